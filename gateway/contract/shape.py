"""What written data must look like: the base of every group of keys, and a sentence for each misfit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path as FilePath
from typing import Annotated, Any, NamedTuple, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, WrapValidator

from gateway.contract.disk import Disk
from gateway.contract.refusal import Path, either, nearest, quoted
from gateway.contract.scalars import EMPTY, a, refuse
from gateway.contract.values import Malformed
from gateway.json_text import type_name

T = TypeVar("T")


class Shape(BaseModel):
    """A group of keys: closed, frozen, and every key with its place in the grammar."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
        arbitrary_types_allowed=True,
        defer_build=True,  # a group is compiled with the one that holds it, not once more by itself
    )


def written(default: str, description: str) -> Any:
    """A key with a default in the words that an operator would write."""
    return Field(default=default, validate_default=True, description=description)


def _given(value: Any, inner: Callable[[Any], Any]) -> Any:
    if value is None:
        refuse(Malformed(EMPTY), None)
    return inner(value)


#: A key that may be left out; written without a value it is refused, so that a slip of indentation is not silent.
Maybe = Annotated[T | None, WrapValidator(_given)]


def misfits(
    shape: type[Shape], written: Any, moved: Mapping[str, str], folder: FilePath, disk: Disk
) -> Shape | list[tuple[Path, str]]:
    """The written data as this shape; or the path and sentence of everything that does not fit.

    Relative file names start from `folder`, and `disk` says what is there. `moved` names keys of other shapes and
    where they belong.
    """
    try:
        return shape.model_validate(written, context=(folder, disk))
    except ValidationError as fault:
        return [_sentence(shape, error, moved) for error in fault.errors(include_url=False, include_input=True)]


def _sentence(shape: type[Shape], error: Any, moved: Mapping[str, str]) -> tuple[Path, str]:
    path: Path = tuple(error["loc"])
    match error["type"]:
        case "written":
            return path, error["ctx"]["sentence"]
        case "extra_forbidden":
            return path, unknown_key(str(path[-1]), keys_at(shape, path[:-1]), moved.get(".".join(map(str, path))))
        case "missing":
            return path[:-1], f"the key `{path[-1]}` is missing; write it"
        case _ if error["input"] is None:
            return path, EMPTY
        case "model_type" | "dict_type" | "mapping_type" | "model_attributes_type":
            keys = keys_at(shape, path)
            which = f" with the keys {either(keys)}" if keys else ""
            return path, f"write a mapping{which}, not {a(type_name(error['input']))}"
        case "tuple_type" | "list_type" | "frozen_set_type":
            return path, f"write a list, as `[{'…'}]`, not {a(type_name(error['input']))}"
        case _:
            return path, f"this value does not fit ({error['msg'].lower()}); see CONFIGURATION.md"


def unknown_key(key: str, accepted: tuple[str, ...], place: str | None) -> str:
    """The sentence for a key that is not accepted where it stands."""
    shown = quoted(key)[1:-1]
    if place:
        return f"`{shown}` does not belong here; write it as `{place}`"
    meant = nearest(key, accepted)
    hint = f"did you mean `{meant}`? " if meant else ""
    return f"the key `{shown}` is unknown; {hint}accepted here: {', '.join(accepted)}"


def keys_at(shape: type[Shape], path: Path) -> tuple[str, ...]:
    """The keys that a shape accepts at a path below it; none where that is not a group of keys."""
    current: Any = shape
    for part in path:
        if _is_shape(current):
            found = (field for name, field in current.model_fields.items() if (field.alias or name) == part)
            current = _inner(getattr(next(found, None), "annotation", None))
        elif isinstance(current, _Each):
            current = current.shape
    return tuple(field.alias or name for name, field in current.model_fields.items()) if _is_shape(current) else ()


class _Each(NamedTuple):
    """A list or mapping of groups."""

    shape: Any


def _inner(annotation: Any) -> Any:
    """The group, or the groups, that a field holds."""
    if _is_shape(annotation):
        return annotation
    found = next((inner for part in get_args(annotation) if (inner := _inner(part)) is not None), None)
    return _Each(found) if found is not None and get_origin(annotation) in (tuple, Mapping) else found


def _is_shape(candidate: Any) -> bool:
    return isinstance(candidate, type) and issubclass(candidate, Shape)
