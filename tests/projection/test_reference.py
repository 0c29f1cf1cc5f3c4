"""Python references at load: each refusal has its sentence, and nothing of the operator's runs in this process."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gateway.projection import Projection, import_python, reference
from gateway.projection.sources import read_sources

SHAPES = """
import functools
from package.inner import card as imported

def card(full, ctx): return {}
def with_default(full, ctx, more=1): return {}
def anything(*arguments): return {}
lambda_card = lambda full, ctx: {}
part = functools.partial(lambda size, full, ctx: {}, 3)
class Callable:
    def __call__(self, full, ctx): return {}
an_object = Callable()

def one(full): return {}
def three(full, ctx, more): return {}
def keyword(full, *, ctx): return {}
async def coroutine(full, ctx): return {}
part_coroutine = functools.partial(coroutine)
async def async_generator(full, ctx): yield {}
def generator(full, ctx): yield {}
number = 3
maximum = max
"""


@pytest.fixture(scope="module")
def shapes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _folder(
        tmp_path_factory.mktemp("shapes"),
        {"shapes.py": SHAPES, "package/__init__.py": "", "package/inner.py": "def card(full, ctx): return {}"},
    )


@pytest.mark.parametrize("name", ["card", "with_default", "anything", "lambda_card", "part", "an_object", "imported"])
def test_what_takes_full_and_ctx_is_a_projection(shapes: Path, name: str) -> None:
    projection = import_python(f"shapes:{name}", shapes)
    assert isinstance(projection, Projection)
    assert (projection.kind, projection.reference) == ("python", f"shapes:{name}")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("one", "shapes:one does not take the two positional arguments (full, ctx)"),
        ("three", "shapes:three does not take the two positional arguments (full, ctx)"),
        ("keyword", "shapes:keyword does not take the two positional arguments (full, ctx)"),
        ("coroutine", "shapes:coroutine is a coroutine function; a projection is a plain `def`, not `async def`"),
        (
            "part_coroutine",
            "shapes:part_coroutine is a coroutine function; a projection is a plain `def`, not `async def`",
        ),
        (
            "async_generator",
            "shapes:async_generator is an async generator function; a projection returns its answer",
        ),
        ("generator", "shapes:generator is a generator function; a projection returns its answer, it does not yield"),
        ("number", "shapes:number is an int, not a function"),
        ("Callable", "shapes:Callable is a class; a projection is a plain function f(full, ctx)"),
        (
            "maximum",
            "shapes:maximum does not say what arguments it takes; wrap it in a plain function f(full, ctx)",
        ),
        ("crad", "module 'shapes' has no function 'crad'; did you mean \"card\"?"),
    ],
)
def test_what_is_no_projection_is_refused(shapes: Path, name: str, sentence: str) -> None:
    assert import_python(f"shapes:{name}", shapes) == sentence


@pytest.mark.parametrize("text", ["card", "a:b:c", "a.b", ":card", "cards:", "a-b:c", "../cards:card", "a:b.c"])
def test_a_reference_is_a_module_and_a_function(text: str) -> None:
    assert import_python(text, None) == f"{text!r} is not of the form module:function"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("\n1/0", "module 'broken' raises ZeroDivisionError while it is imported (line 2 of broken.py)"),
        ("import below", "module 'broken' raises ValueError while it is imported (line 3 of below.py)"),
        ("def f(:\n", "module 'broken' raises SyntaxError while it is imported (line 1 of broken.py)"),
        ("import absent_module", "module 'broken' imports 'absent_module', which is not found (line 1 of broken.py)"),
        ("raise SystemExit(1)", "module 'broken' raises SystemExit while it is imported (line 1 of broken.py)"),
        ("import os; os._exit(7)", "module 'broken' ends its process while it is imported (exit status 7)"),
        ("import os; os.abort()", "module 'broken' ends its process while it is imported (signal SIGABRT)"),
    ],
)
def test_a_module_that_does_not_import_is_refused_with_the_line(tmp_path: Path, text: str, sentence: str) -> None:
    _folder(tmp_path, {"broken.py": text, "below.py": "\n\nraise ValueError('secret')"})
    assert import_python("broken:card", tmp_path) == sentence


def test_a_module_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert (
        import_python("absent.inner:card", tmp_path)
        == "module 'absent.inner' is not found; put it into the projections folder, or mend the name"
    )
    assert import_python("a:b", tmp_path / "no") == f"the projections folder {str(tmp_path / 'no')!r} does not exist"


def test_a_module_that_never_finishes_importing_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "IMPORT_SECONDS", 0.2)
    _folder(tmp_path, {"endless.py": "while True: pass"})
    assert import_python("endless:card", tmp_path) == "module 'endless' is not imported after 0.2 seconds"


def test_a_file_named_like_one_of_pythons_own_modules_is_refused_or_ours(tmp_path: Path) -> None:
    _folder(tmp_path, {"json.py": "def card(full, ctx): return {}", "calendar.py": "def card(full, ctx): return {}"})
    assert import_python("json:card", tmp_path) == (
        "module 'json' is one of Python's own here, and hides the file of that name; rename the file"
    )
    assert isinstance(import_python("calendar:card", tmp_path), Projection)


def test_nothing_of_the_operators_is_imported_here(shapes: Path) -> None:
    before = (list(sys.path), set(sys.modules))
    import_python("shapes:card", shapes)
    import_python("shapes:absent", shapes)
    assert sys.path == before[0]
    assert not {"shapes", "package"} & sys.modules.keys()
    assert not list(shapes.rglob("*.pyc"))


def test_code_that_changed_is_another_projection(tmp_path: Path) -> None:
    _folder(tmp_path, {"cards.py": "import words\ndef card(full, ctx): return words.ONE", "words.py": "ONE = 1"})
    first = import_python("cards:card", tmp_path)
    assert import_python("cards:card", tmp_path) == first
    _folder(tmp_path, {"words.py": "ONE = 2"})
    assert import_python("cards:card", tmp_path) != first


def test_hidden_folders_and_environments_are_not_read(tmp_path: Path) -> None:
    _folder(
        tmp_path,
        {
            "a.py": "",
            "b/c.py": "",
            ".git/x.py": "",
            "env/pyvenv.cfg": "",
            "env/y.py": "",
            "__pycache__/z.py": "",
            "d.txt": "",
        },
    )
    sources = read_sources(tmp_path)
    assert not isinstance(sources, str)
    assert sorted(sources.files) == ["a.py", "b/c.py"]


def test_a_linked_file_is_read(tmp_path: Path) -> None:
    _folder(tmp_path, {"..data/cards.py": "def card(full, ctx): return {}"})
    (tmp_path / "cards.py").symlink_to("..data/cards.py")  # how a mounted ConfigMap looks
    assert isinstance(import_python("cards:card", tmp_path), Projection)


def _folder(path: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)
    return path
