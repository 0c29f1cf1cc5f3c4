"""The program of a worker process: runs projections, and nothing of the gateway runs here but its JSON reader.

Started by file name, not by module name, so that the package's own imports (asyncio, ...) stay out and it starts fast
and small. Standard input is a socket to the gateway; requests and replies are frames on it, one at a time.
`worker.py describe` imports one module and says what its functions are, once, for the load of a contract.
"""

from __future__ import annotations

import inspect
import marshal
import os
import re
import resource
import signal
import socket
import struct
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    # Last, so that it never hides an installed module: this is for a gateway that runs from a checkout.
    sys.path.append(str(Path(__file__).resolve().parents[2]))

# All that a worker needs is imported before the projections folder comes first on the path: a file of the operator's
# named like one of Python's own must not reach us.
import jmespath
from jmespath.functions import Functions, signature

from gateway.json_text import NotJson, encode, parse

#: Frames: the length of what follows, then one byte that says what it is, then that.
FRAME = struct.Struct("<IB")
#: Of a CALL: which projection, and the length of the context's JSON, which comes before the full answer's.
CALL_HEAD = struct.Struct("<II")

# Requests. Only the gateway sends marshal: its reader must not be fed by operators' code.
SETTINGS, LOAD, CALL = range(3)
# Replies.
DONE, RAISED, AWAITABLE, NOT_JSON, TOO_LARGE, OUT_OF_MEMORY, NOT_LOADED = range(7)

_MAX_TEXT = 8_000


class Context:
    """What a projection gets beside the full answer: `ctx.input` is the accepted input, `ctx.source` who asks."""

    __slots__ = ("input", "source")

    def __init__(self, input: Any, source: Any) -> None:
        self.input = input
        self.source = source


Function = Callable[[Any, Context], Any]


def main() -> None:
    # A process group of its own: Ctrl-C is for the gateway, which lets calls in flight finish, and a kill takes what a
    # projection started with it. Not a session: Linux schedules sessions as equals, whatever their niceness.
    os.setpgid(0, 0)
    link = _own_the_link()
    if sys.argv[1:] == ["describe"]:
        with link.makefile("rb") as incoming:
            request = marshal.load(incoming)  # noqa: S302 - written by the gateway itself
        import_from(request["folder"], request["files"])
        link.sendall(_json(describe(request["module"], request["files"])))
        return
    Worker(link).serve()


def _own_the_link() -> socket.socket:
    """Take standard input for ourselves, and give projections an empty input and the log for an output."""
    link = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return link


class Worker:
    """Serves one gateway until the link closes."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._incoming = link.makefile("rb", buffering=256 * 1024)
        self._functions: dict[int, Function] = {}
        self._limits = {CALL: 0.0, LOAD: 0.0}
        self._max_output = 0

    def serve(self) -> None:
        while head := self._incoming.read(FRAME.size):
            size, kind = FRAME.unpack(head)
            body = self._incoming.read(size)
            # Should the gateway die meanwhile, nobody is left to stop a runaway: then the kernel does.
            signal.setitimer(signal.ITIMER_REAL, self._limits.get(kind, 0))
            status, answer = self._answer(kind, body)
            signal.setitimer(signal.ITIMER_REAL, 0)
            self._link.sendall(FRAME.pack(len(answer), status) + answer)

    def _answer(self, kind: int, body: bytes) -> tuple[int, bytes]:
        if kind == CALL:
            return self._call(body)
        request = marshal.loads(body)  # noqa: S302 - written by the gateway itself
        if kind == LOAD:
            return self._load(**request)
        return self._settle(**request)

    def _settle(
        self, limit: float, import_limit: float, memory: int, output: int, folder: str, files: Mapping[str, bytes]
    ) -> tuple[int, bytes]:
        self._limits, self._max_output = {CALL: limit, LOAD: import_limit}, output
        if folder:
            import_from(folder, files)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        # Counts what is really written to, not reserved address space, which some libraries take by the GiB.
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
        return DONE, b""

    def _load(self, number: int, kind: str, reference: str) -> tuple[int, bytes]:
        try:
            self._functions[number] = _jmespath(reference) if kind == "jmespath" else _function(reference)
        except BaseException as error:  # noqa: BLE001 - operators' code is imported, whatever it does
            return NOT_LOADED, _told(error)
        return DONE, b""

    def _call(self, body: bytes) -> tuple[int, bytes]:
        number, size = CALL_HEAD.unpack_from(body)
        try:
            context = _parse(body[CALL_HEAD.size : CALL_HEAD.size + size])
            full = _parse(body[CALL_HEAD.size + size :])
            shown = self._functions[number](full, Context(context["input"], context["source"]))
            if hasattr(type(shown), "__await__"):
                return AWAITABLE, _dismissed(shown)
            answer = _json(shown)
        except MemoryError:
            return OUT_OF_MEMORY, b""
        except _NotJson as fault:
            return NOT_JSON, str(fault).encode("utf-8", "replace")[:_MAX_TEXT]
        except BaseException as error:  # noqa: BLE001 - SystemExit and KeyboardInterrupt end the call, not the worker
            return RAISED, _told(error)
        if len(answer) > self._max_output:
            return TOO_LARGE, str(len(answer)).encode()
        return DONE, answer


# -- operators' modules


class FolderFinder:
    """Finds modules in the projections folder as it was at load, whatever is on disk by now."""

    def __init__(self, folder: str, files: Mapping[str, bytes]) -> None:
        self._folder = folder
        self._files = files

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        place = name.replace(".", "/")
        for file, inside in ((f"{place}/__init__.py", place), (f"{place}.py", None)):
            if file in self._files:
                loader = _Loader(name, f"{self._folder}/{file}", self._files[file])
                spec = ModuleSpec(name, loader, origin=loader.path, is_package=inside is not None)
                spec.has_location = True
                if inside is not None:
                    spec.submodule_search_locations = [f"{self._folder}/{inside}"]
                return spec
        return None


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, text: bytes) -> None:
        super().__init__(name, path)
        self._text = text

    def get_data(self, path: Any) -> bytes:
        if path == self.path:
            return self._text
        return super().get_data(path)

    def path_stats(self, path: Any) -> Mapping[str, Any]:
        raise OSError("no compiled file is read or written beside the operator's")


def import_from(folder: str, files: Mapping[str, bytes]) -> None:
    """Put the folder first on the import path."""
    sys.dont_write_bytecode = True
    sys.meta_path.insert(sys.meta_path.index(PathFinder), FolderFinder(folder, files))
    sys.path.insert(0, folder)


def _function(reference: str) -> Function:
    module, _, name = reference.partition(":")
    found = __import__(module, fromlist=["*"])
    function: Function = getattr(found, name)
    return function


def _jmespath(expression: str) -> Function:
    parsed = jmespath.compile(expression)
    return lambda full, ctx: parsed.search({"full": full, "input": ctx.input, "source": ctx.source}, JMESPATH)


class JsonFunctions(Functions):
    """JMESPath's own functions, where jmespath reads Python's numbers and the specification names JSON's."""

    @signature({"types": []})
    def _func_to_number(self, arg: Any) -> Any:
        if type(arg) is str and _NUMBER(arg):
            value = parse(arg.encode())
            return None if isinstance(value, NotJson) else value
        return arg if type(arg) in (int, float) else None


_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?").fullmatch
#: What every expression is searched with, here and in the gateway itself.
JMESPATH = jmespath.Options(custom_functions=JsonFunctions())


def describe(name: str, files: Mapping[str, bytes]) -> dict[str, Any]:
    """Import a module and say of each of its names whether it is a projection: `{fault}` or `{names: {name: fault}}`.

    A fault is the end of a sentence that begins with the reference; None is none.
    """
    try:
        module = __import__(name, fromlist=["*"])
    except BaseException as error:  # noqa: BLE001 - operators' code is imported, whatever it does
        return {"fault": _import_fault(name, error, files)}
    names = {key: _shape_fault(value) for key, value in vars(module).items() if not key.startswith("__")}
    expected = {f"{name.replace('.', '/')}{end}" for end in (".py", "/__init__.py")}
    taken = bool(expected & files.keys()) and not isinstance(module.__loader__, _Loader)
    return {"names": names, "taken": taken}


def _import_fault(name: str, error: BaseException, files: Mapping[str, bytes]) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name and (name + ".").startswith(error.name + "."):
        return f"module {name!r} is not found; put it into the projections folder, or mend the name"
    place = _last_place(error, files)
    if isinstance(error, ModuleNotFoundError):
        return f"module {name!r} imports {error.name!r}, which is not found{place}"
    return f"module {name!r} raises {type(error).__name__} while it is imported{place}"


def _last_place(error: BaseException, files: Mapping[str, bytes]) -> str:
    """The innermost line of the operator's own files, as ` (line 3 of directory.py)`."""
    places: list[tuple[str, int]] = []
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        places.append((error.filename, error.lineno))
    frame = error.__traceback__
    found = []
    while frame is not None:
        found.append((frame.tb_frame.f_code.co_filename, frame.tb_lineno))
        frame = frame.tb_next
    for path, line in places + found[::-1]:
        for file in files:
            if path.endswith("/" + file) and path[: -len(file) - 1] == sys.path[0]:
                return f" (line {line} of {file})"
    # of a module that is installed elsewhere
    outside = [place for place in places + found[::-1] if "importlib" not in place[0] and place[0] != __file__]
    return f" (line {outside[0][1]} of {Path(outside[0][0]).name})" if outside else ""


def _shape_fault(value: Any) -> str | None:
    inner = value
    while hasattr(inner, "func") and callable(inner.func):  # functools.partial
        inner = inner.func
    call = inner if inspect.isroutine(inner) else getattr(type(inner), "__call__", None)  # noqa: B004 - its function
    if not callable(value):
        return f"is {_a(type(value).__name__)}, not a function"
    if isinstance(value, type):
        return "is a class; a projection is a plain function f(full, ctx)"
    if inspect.iscoroutinefunction(call):
        return "is a coroutine function; a projection is a plain `def`, not `async def`"
    if inspect.isasyncgenfunction(call):
        return "is an async generator function; a projection returns its answer"
    if inspect.isgeneratorfunction(call):
        return "is a generator function; a projection returns its answer, it does not yield"
    try:
        inspect.signature(value).bind(None, None)
    except TypeError:
        return "does not take the two positional arguments (full, ctx)"
    except ValueError:
        return "does not say what arguments it takes; wrap it in a plain function f(full, ctx)"
    return None


def _a(name: str) -> str:
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


# -- values


class _NotJson(Exception):
    pass


def _parse(text: bytes) -> Any:
    value = parse(text)
    assert not isinstance(value, NotJson), "the gateway wrote it"
    return value


def _json(value: Any) -> bytes:
    try:
        return encode(value)
    except (ValueError, TypeError):
        pass
    try:
        return encode(_plain(value))
    except (ValueError, TypeError) as fault:
        raise _NotJson(str(fault)) from None
    except RecursionError:
        raise _NotJson("it is nested too deeply or holds itself") from None


def _plain(value: Any) -> Any:
    """Kinds of dict, list, str and number (defaultdict, namedtuple, IntEnum) as what they are kinds of."""
    if isinstance(value, dict):
        return {_plain(key) if isinstance(key, str) else key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__int__(value)
    return float.__float__(value) if isinstance(value, float) else value


def _dismissed(awaitable: Any) -> bytes:
    """Close it, so that Python does not warn that it was never awaited; say what it was."""
    for ending in ("close", "cancel"):
        if hasattr(awaitable, ending):
            with suppress(BaseException):  # it is refused anyway
                getattr(awaitable, ending)()
            break
    return type(awaitable).__name__.encode("utf-8", "replace")


def _told(error: BaseException) -> bytes:
    """Class name and text, then the traceback, for the log."""
    try:
        text = f"{type(error).__name__}: {error}"
    except BaseException:  # noqa: BLE001 - an exception's own __str__ may raise
        text = f"{type(error).__name__}, whose text cannot be made"
    try:
        # 1 leaves out this file's own frame
        trace = "".join(traceback.format_tb(error.__traceback__)[1:])
    except BaseException:  # noqa: BLE001 - likewise
        trace = ""
    return f"{text[:2000]}\0{trace[-4000:]}".encode("utf-8", "replace")[:_MAX_TEXT]


if __name__ == "__main__":
    main()
