"""The `toolview` command: reads the command line, loads the contract, hands over; never a traceback."""

from __future__ import annotations

import argparse
import codecs
import errno
import functools
import gc
import importlib
import importlib.util
import io
import json
import os
import sys
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gateway import __version__
from gateway.surfaces.switches import CALL, PREVIEW, Switch

if TYPE_CHECKING:
    from gateway.processes.channel import Channel
    from gateway.processes.tally import Tallies

DEFAULT_CONTRACT = "config/gateway.yaml"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; answers its exit code: 0, 1 for a refusal or a failed call, 2 for usage."""
    gc.disable()  # what is imported and loaded stays; looking through it again and again costs a fifth of a start
    _prepare_streams()
    try:
        try:
            return _command(argv)
        finally:
            sys.stdout.flush()  # what cannot be written is known here, and not when nobody is left to say it
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        _give_up_stdout()
        return 1
    except OSError as fault:
        if fault.errno not in _UNWRITABLE:
            raise
        _give_up_stdout()
        with suppress(OSError):
            return _said(f"the output cannot be written: {fault.strerror}")
        return 1


#: What writing to a disk that is full, over its quota or broken fails with.
_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def _command(argv: Sequence[str] | None) -> int:
    arguments = _parser().parse_args(argv)
    code: int = arguments.command(arguments, getattr(arguments, "words", []))
    return code


def _prepare_streams() -> None:
    """Make the standard streams fit to use: all there, input in UTF-8, and able to take any character.

    A closed one is an empty one; else the next socket would get its number, and what is printed would go there.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this one
            os.set_inheritable(number, True)  # as standard streams are: a worker for projections starts with them too
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8", closefd=False))  # noqa: SIM115 - it stays open
    codecs.register_error("toolview.escape", _escaped)
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="toolview.escape")
    if isinstance(sys.stdin, io.TextIOWrapper) and sys.stdin.errors == "strict":
        sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape")


def _escaped(fault: UnicodeError) -> tuple[str, int]:
    """What an output's encoding lacks, as JSON escapes it: what is printed as JSON stays JSON."""
    if not isinstance(fault, UnicodeEncodeError):
        raise fault
    return json.dumps(fault.object[fault.start : fault.end])[1:-1], fault.end


def _give_up_stdout() -> None:
    """Let what is left in the buffer go nowhere, so that the interpreter does not fail on it when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "toolview", description="A declared view of an HTTP API for agents.", allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"toolview {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(name: str, run: Callable[[argparse.Namespace, list[str]], int], about: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=about, description=about, allow_abbrev=False)
        added.set_defaults(command=run)
        return added

    serve = command("serve", _serve, "serve the contract until SIGINT or SIGTERM; SIGHUP reloads it")
    serve.add_argument(
        "--workers",
        type=_count,
        default=1,
        metavar="N",
        help="processes that serve tools, beside one for the pass-through; 0: everything in one process (default: 1)",
    )
    serve.add_argument("--watch", action="store_true", help="reload when a file of the contract changes")
    stdio = command("stdio", _stdio, "serve MCP on stdin and stdout, a message a line; logs go to stderr")
    check = command("check", _check, "print every fault of the contract; exit 1 where there is one")
    check.add_argument("--format", choices=["text", "json"], default="text", help="how faults are printed")
    tools = command("tools", _tools, "list the contract's tools")
    tools.add_argument("--format", choices=["text", "json"], default="text", help="for people, or as MCP lists them")
    what = tools.add_mutually_exclusive_group()
    what.add_argument("--cost", action="store_true", help="bytes that listing each costs, and calls by their examples")
    what.add_argument("--compact", action="store_true", help="the compact list, as /v1/tools?view=compact answers it")
    call = command("call", _call, "call a tool: its answer on stdout, a failure on stderr")
    call.add_argument(
        "tool", help="the tool's name; then --key value …, --json '{…}' or - for JSON on stdin; --help tells its flags"
    )
    preview = command(
        "preview", _preview, "show what a tool makes of an answer in a file: full, view, bytes; sends nothing"
    )
    preview.add_argument(
        "tool", help="the tool's name; then its arguments as `call` takes them, else those of its first example"
    )
    for added, switches in ((call, CALL), (preview, PREVIEW)):
        added.epilog = _BEFORE_OR_BEHIND
        behind = added.add_argument("words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
        behind.required = False  # else argparse says that it is missing, where the tool's name is
        for name, switch in switches.items():
            if name == "help":  # before the tool's name: of the command
                continue
            if switch.value is None:
                added.add_argument(f"--{name}", action="store_const", const="", help=switch.about)
            else:
                added.add_argument(f"--{name}", metavar=switch.value, help=switch.about)
    mock = command("mock", _mock, "stand where a backend will be, and answer from the contract's examples")
    mock.add_argument("--backend", metavar="NAME", help="only this one of the backends")
    mock.add_argument("--listen", metavar="HOST:PORT", help="where to stand; else where the contract has the backend")
    completion = command("completion", _completion, "print the completion script of a shell")
    completion.add_argument("shell", choices=["bash", "zsh", "fish", "words"], help="`words` is what the scripts call")
    completion.add_argument("words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    demo = command("demo", _demo, "start the demo API and the gateway beside it, and print what to try")
    snapshot = command("snapshot", _snapshot, "print what consumers rely on, as one text to keep and compare")
    diff = command("diff", _diff, "tell what changed between two contracts or snapshots, and whom it breaks")
    diff.add_argument("old", metavar="OLD", help="a contract, a snapshot, or - for a snapshot on stdin")
    diff.add_argument("new", metavar="NEW", help="likewise")
    diff.add_argument("--format", choices=["text", "json", "github"], default="text", help="how changes are printed")
    diff.add_argument(
        "--fail-on", choices=["breaking", "compatible", "docs"], help="exit 1 where there is one, or a graver one"
    )
    lint = command("lint", _lint, "tell what a model needs and the contract does not say; exit 1 where there is any")
    lint.add_argument("--format", choices=["text", "json", "github"], default="text", help="how faults are printed")
    lint.add_argument("--rules", action="store_true", help="print every rule with its reason and repair, and stop")
    imported = command("import", _import, "write a contract from an OpenAPI or Swagger description of an API")
    imported.add_argument("kind", choices=["openapi"], help="what FILE is: Swagger 2.0, OpenAPI 3.0 or 3.1")
    imported.add_argument("file", metavar="FILE", help="the description, JSON or YAML; - for stdin")
    imported.add_argument("--output", metavar="PATH", help="a file, or a folder for gateway.yaml; else it is printed")
    imported.add_argument("--force", action="store_true", help="replace what --output already holds")
    imported.add_argument("--only", action="append", default=[], metavar="OPERATION", help=_ONLY)
    imported.add_argument("--all", action="store_true", help="offer what writes as tools too, not only what reads")
    imported.add_argument("--url", metavar="URL", help="where the API is, instead of what the description says")
    imported.add_argument(
        "--observe", action="store_true", help="`validate: observe`, for descriptions not to be trusted"
    )
    command("schema", _schema, "print the JSON Schema of the contract file, for editors")
    contract = os.environ.get("TOOLVIEW_CONFIG", DEFAULT_CONTRACT)
    for added in (serve, stdio, check, tools, snapshot, lint, mock):
        added.add_argument("contract", nargs="?", default=contract, metavar="CONFIG", help="default: %(default)s")
    demo.add_argument("--config", dest="contract", default=contract, metavar="CONFIG", help="default: %(default)s")
    return parser


_BEFORE_OR_BEHIND = (
    "These stand before the tool's name. Behind it they are understood too, unless the tool has an argument of that "
    "name: then it is the tool's."
)
_ONLY = "take this one alone and offer it as a tool, by operationId or `METHOD /path`; may be given again"


def _count(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) > _MOST_WORKERS:
        raise argparse.ArgumentTypeError(f"write a number from 0 to {_MOST_WORKERS}")
    return int(text)


_MOST_WORKERS = 64


def _serve(arguments: argparse.Namespace, _: list[str]) -> int:
    if arguments.watch and importlib.util.find_spec("watchfiles") is None:
        return _said("--watch needs watchfiles: pip install watchfiles")
    from gateway.processes.descriptors import raise_to_what_is_allowed

    if (too_few := raise_to_what_is_allowed()) is not None:
        return _said(too_few)
    if arguments.workers == 0 or not hasattr(os, "fork"):
        return _serve_alone(arguments.contract, watch=arguments.watch)
    from gateway.processes.supervisor import Supervisor

    # Made before the fork: whichever worker a person's answer comes back to, it knows the question (decision 0057).
    tools = functools.partial(_serve_tools, arguments.contract, os.urandom(32))
    return Supervisor(arguments.workers, tools, _serve_passthrough, watch=arguments.watch).run()


def _serve_alone(path: str, *, watch: bool) -> int:
    """Everything in this process."""
    contract = _with_aiohttp_aside(lambda: _load(path))
    if contract is None:
        return 1
    from gateway.serve import serve

    taken = _run(serve(contract, _logging(contract).observe, watch=watch))
    return 0 if taken is None else _said(*taken.messages)


def _serve_tools(
    path: str, state_secret: bytes, channel: Channel, tallies: Tallies, part: int, kept: int | None
) -> int:
    """The life of a process that serves tools; `kept` is what others read whom it is to serve beside."""
    from gateway.contract.disk import Disk
    from gateway.contract.load import load
    from gateway.contract.model import Contract
    from gateway.processes.supervisor import refused

    disk = Disk() if kept is None else Disk.kept(kept)
    if kept is not None:
        os.close(kept)
    contract = _with_aiohttp_aside(lambda: load(Path(path), disk=disk))
    if not isinstance(contract, Contract):
        channel.send(refused(contract))
        return 1
    from gateway.processes.tools import serve_tools_until_told
    from gateway.serve import Plan, plan_of

    plan = plan_of(contract)
    if not isinstance(plan, Plan):
        channel.send(refused(plan))
        return 1
    observe = _logging(contract).observe
    again: Callable[[Disk], Any] = lambda disk: load(Path(path), disk=disk)  # noqa: E731 - it is short
    code: int = _run(
        serve_tools_until_told(plan, channel, tallies, part, again, disk, observe, state_secret=state_secret)
    )
    return code


def _serve_passthrough(channel: Channel, tallies: Tallies, part: int, kept: int | None) -> int:
    """The life of the process of the pass-through."""
    if kept is not None:
        os.close(kept)  # it reads no contract
    from gateway.processes.relay import relay_until_told

    code: int = _run(relay_until_told(channel, tallies, part))
    return code


def _with_aiohttp_aside(work: Callable[[], Any]) -> Any:
    """aiohttp reads the system's certificates while it is imported; meanwhile the contract can be read."""
    aside = threading.Thread(target=importlib.import_module, args=("aiohttp",))
    aside.start()
    done = work()
    aside.join()
    return done


def _logging(contract: Any) -> Any:
    """The log that the contract asks for, and what writes a line for each call."""
    from gateway.telemetry.log import form_of, set_up

    log = contract.gateway.log
    return set_up(form_of(log.format), log.level)


def _stdio(arguments: argparse.Namespace, _: list[str]) -> int:
    # The streams are the client's alone: what a hook prints goes to stderr, and none reads its messages.
    source, sink = os.dup(0), os.dup(1)
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    contract = _load(arguments.contract)
    if contract is None:
        return 1
    from gateway.piped import serve_stdio
    from gateway.telemetry.log import set_up

    log = contract.gateway.log
    call_log = set_up(log.format or ("text" if sys.stderr.isatty() else "json"), log.level)
    _run(serve_stdio(contract, source, sink, call_log.observe))
    return 0


def _check(arguments: argparse.Namespace, _: list[str]) -> int:
    from gateway.contract.load import load
    from gateway.contract.model import Contract
    from gateway.contract.refusal import printable

    loaded = load(Path(arguments.contract))
    name = printable(arguments.contract)
    faults = loaded.warnings if isinstance(loaded, Contract) else loaded
    if arguments.format == "json":
        accepted = isinstance(loaded, Contract)
        key = "warnings" if accepted else "refusals"
        print(json.dumps({"accepted": accepted, key: [fault.as_json() for fault in faults]}, ensure_ascii=False))
    else:
        for fault in faults:
            print(f"{'warning: ' if isinstance(loaded, Contract) else ''}{fault}")
        if isinstance(loaded, Contract):
            print(f"{name}: accepted, {len(loaded.endpoints)} endpoints")
        else:
            print(f"{name}: refused, {len(faults)} fault{'s' if len(faults) > 1 else ''}")
    return 0 if isinstance(loaded, Contract) else 1


def _tools(arguments: argparse.Namespace, _: list[str]) -> int:
    contract = _load(arguments.contract)
    if contract is None:
        return 1
    if arguments.compact:
        from gateway.authoring.cost import compact_listing

        print(compact_listing(contract).decode())
        return 0
    if arguments.cost:
        from gateway.authoring import cost

        found = _run(cost.costs(contract))
        print(cost.as_json(found) if arguments.format == "json" else cost.as_text(found))
        return 0
    from gateway.generation import index
    from gateway.surfaces.cli import write_tools

    write_tools(index(contract), sys.stdout, form=arguments.format)
    return 0


def _call(arguments: argparse.Namespace, words: list[str]) -> int:
    from gateway.once import Streams, Unsent, call_once
    from gateway.surfaces import cli
    from gateway.surfaces.command_line import Misused
    from gateway.telemetry.log import set_up

    before = _before(arguments, CALL)
    contract = _contract_of(arguments.tool, words, before, CALL, cli.SURFACE)
    if isinstance(contract, int):
        return contract
    # a person sees why a call failed inside; what is not a terminal gets the envelope and nothing else
    log = set_up("text", "error" if sys.stderr.isatty() else "critical")
    streams = Streams(sys.stdin, sys.stdout, sys.stderr)
    called = _run(call_once(contract, arguments.tool, words, streams, log.observe, before=before))
    if isinstance(called, str):
        print(called)
        return 0
    if isinstance(called, Misused):
        return cli.usage_error(called.message)
    if isinstance(called, Unsent):
        return cli.write_request(called.head, called.body, sys.stdout)
    outcome, output = called
    return cli.write_outcome(outcome, sys.stdout, sys.stderr, output)


def _preview(arguments: argparse.Namespace, words: list[str]) -> int:
    from gateway.generation import CONSOLE
    from gateway.preview import preview
    from gateway.surfaces import cli
    from gateway.surfaces.command_line import Misused
    from gateway.telemetry.log import set_up

    before = _before(arguments, PREVIEW)
    contract = _contract_of(arguments.tool, words, before, PREVIEW, CONSOLE)
    if isinstance(contract, int):
        return contract
    set_up("text", "critical")  # why it failed stands in the envelope
    seen = _run(preview(contract, arguments.tool, words, sys.stdin, before))
    if isinstance(seen, str):
        print(seen)
        return 0
    if isinstance(seen, Misused):
        return cli.usage_error(seen.message)
    return cli.write_outcome(seen, sys.stdout, sys.stderr)


def _before(arguments: argparse.Namespace, switches: Mapping[str, Switch]) -> dict[str, str]:
    """The switches that stand before the tool's name."""
    written = {name: getattr(arguments, name.replace("-", "_"), None) for name in switches if name != "help"}
    return {name: value for name, value in written.items() if value is not None}


def _contract_of(
    tool: str, words: list[str], before: Mapping[str, str], switches: Mapping[str, Switch], surface: str
) -> Any:
    """The contract of a line that names a tool; else the exit code, once what is wrong is said."""
    default = os.environ.get("TOOLVIEW_CONFIG", DEFAULT_CONTRACT)
    if "config" in before or not any(word.startswith("--config") for word in words):
        contract = _load(before.get("config", default))
        return 1 if contract is None else contract
    from gateway.contract.load import load
    from gateway.surfaces.command_line import Misused, contract_of

    loaded: Callable[[str | None], Any] = functools.cache(lambda path: load(Path(path or default)))
    path = contract_of(tool, words, switches, lambda path: _accepted(loaded(path)), surface)
    if isinstance(path, Misused):
        return _misused(path.message)
    contract = _accepted(loaded(path))
    if contract is None:
        print(*loaded(path), sep="\n", file=sys.stderr)
        return 1
    return contract


def _accepted(loaded: Any) -> Any:
    return None if isinstance(loaded, tuple) else loaded


def _mock(arguments: argparse.Namespace, _: list[str]) -> int:
    from gateway.contract.values import Malformed, address

    listen = address(arguments.listen) if arguments.listen is not None else None
    if isinstance(listen, Malformed):
        return _misused(f"--listen: {listen.message}")
    contract = _load(arguments.contract)
    if contract is None:
        return 1
    from gateway.mock import Unfit, places, serve_mock

    where = places(contract, arguments.backend, listen)
    if isinstance(where, Unfit):
        return _misused(where.message)
    unfit = _run(serve_mock(contract, where))
    return 0 if unfit is None else _said(unfit.message)


def _completion(arguments: argparse.Namespace, words: list[str]) -> int:
    """The script of a shell; or what may stand where its cursor is, which is what that script asks for."""
    from gateway.surfaces.completion import SCRIPTS, candidates

    if arguments.shell != "words":
        print(SCRIPTS[arguments.shell], end="")
        return 0
    from gateway.contract.load import load

    def tools(path: str | None) -> Any:
        return _accepted(load(Path(path or os.environ.get("TOOLVIEW_CONFIG", DEFAULT_CONTRACT))))

    commands = {
        name: [flag for action in parser._actions for flag in action.option_strings]
        for name, parser in next(
            action.choices for action in _parser()._actions if isinstance(action, argparse._SubParsersAction)
        ).items()
    }
    print("\n".join(candidates(words[1:] if words[:1] == ["--"] else words, commands, tools)))
    return 0


def _demo(arguments: argparse.Namespace, _: list[str]) -> int:
    contract = _load(arguments.contract)
    if contract is None:
        return 1
    from gateway.demo.run import run_demo
    from gateway.telemetry.log import set_up

    call_log = set_up("text", "warning")
    taken = _run(run_demo(contract, call_log.observe))
    return 0 if taken is None else _said(*taken.messages)


def _snapshot(arguments: argparse.Namespace, _: list[str]) -> int:
    contract = _load(arguments.contract)
    if contract is None:
        return 1
    from gateway.catalog.snapshot import snapshot, write_snapshot

    sys.stdout.buffer.write(write_snapshot(snapshot(contract)))
    sys.stdout.flush()
    return 0


def _diff(arguments: argparse.Namespace, _: list[str]) -> int:
    """Exits 1 for what `--fail-on` names, and 2 where there is nothing to compare."""
    from gateway.authoring.compare import FORMATS, Side, compared, read_side

    sides = []
    for name in (arguments.old, arguments.new):
        side = read_side(name, sys.stdin.buffer)
        if not isinstance(side, Side):
            print(*side, sep="\n", file=sys.stderr)
            return 2
        sides.append(side)
    result = compared(*sides)
    if text := FORMATS[arguments.format](result):
        print(text)
    return 1 if result.fails(arguments.fail_on) else 0


def _lint(arguments: argparse.Namespace, _: list[str]) -> int:
    """Exits 1 for any fault, and 2 where the contract is refused."""
    from gateway.authoring.lint import FORMATS, Loaded, lint, rules_text

    if arguments.rules:
        print(rules_text())
        return 0
    found = lint(Path(arguments.contract))
    if not isinstance(found, Loaded):
        print(*found, sep="\n", file=sys.stderr)
        return 2
    if text := FORMATS[arguments.format](found.faults):
        print(text)
    return 1 if found.faults else 0


def _import(arguments: argparse.Namespace, _: list[str]) -> int:
    """Exits 1 where nothing is imported, 2 where what is asked for is not there; what is left out is no failure."""
    from gateway.authoring.openapi.importing import Choice, Refused, import_openapi
    from gateway.authoring.openapi.placing import Place, place, put

    where = place(arguments.output, force=arguments.force)
    if not isinstance(where, Place):
        return _misused(where.message)
    choice = Choice(arguments.all, tuple(arguments.only), arguments.url, arguments.observe)
    imported = import_openapi(arguments.file, sys.stdin.buffer, choice, as_folder=where.is_folder)
    if isinstance(imported, Refused):
        return _misused(imported.message) if imported.misused else _said(f"{arguments.file}: {imported.message}")
    unwritten = put(imported, where, sys.stdout)
    if unwritten is not None:
        return _said(unwritten.message)
    print(*imported.told(arguments.file), sep="\n", file=sys.stderr)
    return 0


def _schema(_: argparse.Namespace, __: list[str]) -> int:
    from gateway.contract.load import json_schema

    print(json.dumps(json_schema(), indent=2, ensure_ascii=False))
    return 0


def _load(path: str) -> Any:
    """The contract, or None once its refusals are printed."""
    from gateway.contract.load import load
    from gateway.contract.model import Contract

    loaded = load(Path(path))
    if isinstance(loaded, Contract):
        return loaded
    for refusal in loaded:
        print(refusal, file=sys.stderr)
    return None


def _misused(message: str) -> int:
    from gateway.surfaces.cli import usage_error

    return usage_error(message)


def _said(*messages: str) -> int:
    for message in messages:
        print(f"toolview: {message}", file=sys.stderr)
    return 1


def _run(job: Coroutine[Any, Any, Any]) -> Any:
    """Run on uvloop where it is installed, else on asyncio's own loop."""
    # From here on memory is turned over by calls: what stands by now is never collected, what comes is, in large steps.
    import asyncio  # the supervisor has no event loop

    gc.freeze()
    gc.set_threshold(10_000, 20, 50)
    gc.enable()
    try:
        import uvloop
    except ImportError:
        return asyncio.run(job)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(job)


if __name__ == "__main__":
    sys.exit(main())
