"""`tool.view`: compiled, and refused where it changes nothing, asks for what is not there, or could not be filled."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path as FilePath
from types import MappingProxyType
from typing import Any, Protocol

from gateway.backend.request import RequestBuilder
from gateway.contract.model import Budget, BudgetWritten, View, ViewWritten
from gateway.contract.reading import Reading
from gateway.contract.refusal import Path, nearest, quoted
from gateway.contract.schemas import Schemas
from gateway.projection import Projection, compile_jmespath, import_python, lost_arguments
from gateway.schema import Schema
from gateway.schema.fit import No, Unknown

Json = Any


class Reader(Protocol):
    """What a view needs of who reads it."""

    reading: Reading
    schemas: Schemas
    projections: FilePath | None


def read_view(
    reader: Reader,
    written: ViewWritten,
    path: Path,
    arguments: Schema | None,
    output: Schema | None,
    outputs: Mapping[str, Schema] | None,
    builder: RequestBuilder | None,
) -> View | None:
    """The compiled view; None where a part that it needs was refused."""
    reading = reader.reading
    shown = None if written.output is None else reader.schemas.compile_output(written.output, (*path, "output"))
    project = _projection(reader, written, (*path, "project"), arguments)
    defaults = dict(written.defaults or {})
    if not defaults and written.output is None and written.project is None and not reading.faulted(path):
        reading.refuse(path, "the view changes nothing; write `defaults`, `output` or `project`")
    if outputs is not None and output is None:
        reading.refuse(path, "a view starts from the full answer; write the endpoint's `output`, beside `tool`")
    if arguments is not None:
        _check_defaults(reader, defaults, (*path, "defaults"), arguments, builder)
    if shown is not None and written.project is None:
        _check_slice(reader, shown, outputs or {}, (*path, "output"))
    budget = _budget(reading, written, (*path, "budget"), shown if written.output is not None else output)
    if (shown is None and written.output is not None) or (project is None and written.project is not None):
        return None
    return View(MappingProxyType(defaults), shown, project, budget)


def _check_defaults(
    reader: Reader, defaults: Mapping[str, Json], path: Path, arguments: Schema, builder: RequestBuilder | None
) -> None:
    """Classes 3 and 4: a default is an argument, has its field's type, and reaches the backend."""
    reading = reader.reading
    in_path = builder.path_arguments if builder else ()
    for name, value in defaults.items():
        at: Path = (*path, name)
        if name not in arguments.property_names:
            meant = nearest(name, arguments.property_names)
            hint = f"did you mean `{meant}`?" if meant else "declare it there, or take the default out"
            reading.refuse(at, f"the input has no argument {quoted(name)}; {hint}")
            continue
        if name in in_path:
            reading.refuse(at, f"`{name}` fills the path and names what is asked for; take its default out")
            continue
        field = reader.schemas.of_argument(arguments, name)
        violations = field.check(value, 1) if field is not None else []
        if violations:
            where = f" at {violations[0].pointer}" if violations[0].pointer else ""
            reading.refuse(at, f"the default breaks the argument's own schema{where}: {violations[0].message}")
            continue
        lost = builder.lost(name, value) if builder else None
        if lost:
            reading.refuse(at, f"the default of `{name}` {lost.rstrip('.')}; write it under `send.{name}`")


def _check_slice(reader: Reader, shown: Schema, outputs: Mapping[str, Schema], path: Path) -> None:
    """Class 5: every valid full answer fills the slice."""
    for status, full in outputs.items():
        of = "" if len(outputs) == 1 else f" with status {status}"
        match reader.schemas.slice_fits(full, shown):
            case No() as no:
                where = f"{of} cannot fill this slice" + (f" at `{no.path}`" if no.path else "")
                reader.reading.refuse(
                    path,
                    f"some full answer{where}: {no.reason}, as in {quoted(no.counterexample)}"
                    "; let the view allow it, or let the full `output` rule it out",
                )
            case Unknown() as unknown:
                reader.reading.warn(
                    path, f"whether every full answer{of} fills this slice cannot be decided: {unknown.reason}"
                )
            case _:
                pass


def _projection(reader: Reader, written: ViewWritten, path: Path, arguments: Schema | None) -> Projection | None:
    """Class 6: exactly one of an expression that parses and a function that can be called."""
    project = written.project
    if project is None:
        return None
    if (project.jmespath is None) == (project.python is None):
        if not reader.reading.faulted(path):
            reader.reading.refuse(path, "write exactly one of `jmespath: EXPRESSION` and `python: module:function`")
        return None
    kind = "python" if project.jmespath is None else "jmespath"
    if project.jmespath is not None:
        found = compile_jmespath(project.jmespath)
    else:
        found = import_python(project.python or "", reader.projections, reader.reading.files.disk.sources)
    if isinstance(found, str):
        reader.reading.refuse((*path, kind), found)
        return None
    if project.jmespath is not None and arguments is not None:
        for lost in lost_arguments(found, arguments.property_names):
            reader.reading.warn(
                (*path, kind),
                f"`{lost}` stands inside a list or filter, where names are looked up in each element: JMESPath has no"
                " way back to the root, so it is null there; let the backend filter, or project with a Python function",
            )
    return found


def _budget(reading: Reading, written: ViewWritten, path: Path, shown: Schema | None) -> Budget | None:
    budget = written.budget
    if budget is None:
        return None
    if budget.note is not None and budget.trim is None:
        reading.refuse((*path, "note"), "a note says what was trimmed; write `trim`, the list that may be cut")
    if shown is not None:
        _check_budget(reading, budget, path, shown)
    return Budget(budget.bytes, budget.trim, budget.note)


def _check_budget(reading: Reading, budget: BudgetWritten, path: Path, shown: Schema) -> None:
    """The shown answer's schema declares both places, so that a trimmed answer is a valid one."""
    for key, pointer, sample, what in (
        ("trim", budget.trim, [], "a list that may be empty"),
        ("note", budget.note, {"shown": 0, "total": 0}, "an object of `shown` and `total`"),
    ):
        if pointer is None:
            continue
        place: Schema | None = shown
        for token in pointer.split("/")[1:]:
            name = token.replace("~1", "/").replace("~0", "~")
            place = place.property_schema(name) if place and name in place.property_names else None
        if place is None:
            reading.refuse((*path, key), f"the answer's schema does not declare `{pointer}`; declare it as {what}")
        elif not place.valid(sample):
            reading.refuse((*path, key), f"the answer's schema does not let `{pointer}` be {what}; widen it there")
