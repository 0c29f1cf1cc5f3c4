"""What written data must look like: the base of every group of keys, its scalars, and a sentence for each misfit."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path as FilePath
from typing import Annotated, Any, TypeVar, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    WrapValidator,
)
from pydantic_core import PydanticCustomError

from gateway.contract import values
from gateway.contract.document import plain_scalar
from gateway.contract.refusal import Path, either, nearest, quoted
from gateway.contract.secrets import Secret
from gateway.json_text import type_name

T = TypeVar("T")


class Shape(BaseModel):
    """A group of keys: closed, frozen, and every key with its place in the grammar."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, arbitrary_types_allowed=True)


def written(default: str, description: str) -> Any:
    """A key with a default in the words that an operator would write."""
    return Field(default=default, validate_default=True, description=description)


def scalar(
    accepts: str, schema: dict[str, Any], read: Callable[[Any], Any], kinds: tuple[type, ...] = (str,)
) -> tuple[PlainValidator, WithJsonSchema]:
    """A field read from one scalar: `accepts` completes "write …", `read` may answer `values.Malformed`."""

    def check(value: Any) -> Any:
        if type(value) in (bool, int, float) and isinstance(value, bool) and bool not in kinds:
            return _misfit(accepts, value)
        if not isinstance(value, kinds):
            return _misfit(accepts, value)
        found = read(value)
        return _misfit(found.message, value) if isinstance(found, values.Malformed) else found

    return PlainValidator(check), WithJsonSchema(schema)


def _misfit(sentence: str, value: Any) -> Any:
    if not sentence.startswith(("write", "a ", "the ", "credentials", "percent")):
        sentence = f"write {sentence}"
    if not isinstance(value, Secret) and sentence.startswith("write") and isinstance(value, (str, int, float)):
        sentence += f", not {quoted(value)}"
    elif isinstance(value, (list, dict)) or value is None:
        sentence += f", not {_a(type_name(value))}"
    raise PydanticCustomError("written", "{sentence}", {"sentence": sentence})


def _text(value: str) -> Any:
    return value if value.strip() else values.Malformed("write some text; this is blank")


def _whole(value: Any) -> Any:
    number = plain_scalar(value) if isinstance(value, Secret) else value
    if type(number) is not int or not 0 <= number < 2**31:
        return values.Malformed("write a whole number, 0 or more")
    return number


def _positive(value: Any) -> Any:
    number = _whole(value)
    return values.Malformed("write a whole number, 1 or more") if number == 0 else number


def _switch(value: Any) -> Any:
    found = plain_scalar(value) if isinstance(value, Secret) else value
    return found if isinstance(found, bool) else values.Malformed("write `true` or `false`")


def _header_value(value: str) -> Any:
    if values.header_value(value):
        return value
    return values.Malformed("a header's value is one line of ASCII text without blanks around it; write it so")


def _header_name(value: str) -> Any:
    return value if values.header_name(value) else values.Malformed("write the name of a header, as `X-Request-Id`")


def _sha256(value: str) -> Any:
    if len(value) == 64 and all(char in "0123456789abcdef" for char in value.lower()):
        return value.lower()
    return values.Malformed("the key's digest is 64 hexadecimal digits; make it with `printf %s KEY | sha256sum`")


def _file(value: Any, info: ValidationInfo) -> Any:
    """The absolute path of a file that is there; a relative one starts from the contract's folder."""
    if not isinstance(value, str):
        return _misfit("the path of a file", value)
    path = _path(value, info)
    try:
        if path.is_file() and os.access(path, os.R_OK):
            return type(value)(path)
    except (OSError, ValueError):
        pass
    return _misfit(
        values.Malformed("the file is not there or cannot be read; mend the path or its rights").message, value
    )


def _socket(value: Any, info: ValidationInfo) -> Any:
    """The absolute path of a unix socket, which may appear later."""
    if not isinstance(value, str) or not value.strip() or "\0" in value or len(value.encode()) > 100:
        return _misfit("the path of a unix socket, at most 100 bytes", value)
    return type(value)(_path(value, info))


def _path(value: str, info: ValidationInfo) -> FilePath:
    return FilePath(info.context or ".", value)


def _key_set(value: Any, info: ValidationInfo) -> Any:
    if isinstance(value, str) and value.startswith("https://"):
        return value
    if isinstance(value, str) and "://" in value:
        return _misfit("the URL of a key set starts with `https://`; write it so, or name a file", value)
    return _file(value, info)


def _ledger(value: str) -> Any:
    if value.startswith(("sqlite:///", "redis://", "rediss://")):
        return value
    return values.Malformed("write where the ledger is, as `sqlite:///var/ledger.db` or `redis://host:6379`")


_NUMBERS: tuple[type, ...] = (str, int, float)

Text = Annotated[str, *scalar("text; quote it where it looks like a number", {"type": "string", "minLength": 1}, _text)]
Whole = Annotated[int, *scalar("a whole number, 0 or more", {"type": "integer", "minimum": 0}, _whole, _NUMBERS)]
Positive = Annotated[int, *scalar("a whole number, 1 or more", {"type": "integer", "minimum": 1}, _positive, _NUMBERS)]
Switch = Annotated[bool, *scalar("`true` or `false`", {"type": "boolean"}, _switch, (bool, str, int, float))]
Duration = Annotated[
    float,
    *scalar(
        "a duration with its unit, as `250ms`, `10s` or `2m`",
        {"type": "string", "pattern": r"^\d+(\.\d+)?(ms|s|m|h)$", "examples": ["250ms", "10s", "2m"]},
        values.duration,
        _NUMBERS,
    ),
]
Size = Annotated[
    int,
    *scalar(
        "a size as `24KiB`, `10MiB`, or as plain bytes",
        {
            "type": ["string", "integer"],
            "pattern": r"^\d+(B|KiB|MiB|GiB)?$",
            "minimum": 1,
            "examples": ["24KiB", "10MiB"],
        },
        values.size,
        _NUMBERS,
    ),
]
RateLimit = Annotated[
    values.Rate,
    *scalar("a rate as `100/s` or `600/m`", {"type": "string", "pattern": r"^\d+/[smh]$"}, values.rate),
]
Listen = Annotated[
    values.Address,
    *scalar(
        "an address as `host:port`, for example `127.0.0.1:8081`",
        {"type": "string", "pattern": r"^(\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._-]+):\d{1,5}$"},
        values.address,
        _NUMBERS,
    ),
]
RouteText = Annotated[
    values.Route,
    *scalar(
        "`METHOD /path/{placeholder}`",
        {"type": "string", "pattern": rf"^({'|'.join(values.METHODS)}) +/\S*$", "examples": ["GET /people/{team}"]},
        values.route,
    ),
]
Url = Annotated[str, *scalar("an http or https URL", {"type": "string", "pattern": "^https?://"}, values.url)]
Pointer = Annotated[
    str, *scalar("a JSON Pointer, as `/people`", {"type": "string", "pattern": "^(/.*)?$"}, values.pointer)
]
Function = Annotated[
    str,
    *scalar("`module:function`", {"type": "string", "pattern": r"^[A-Za-z_][\w.]*:[A-Za-z_][\w.]*$"}, values.function),
]
FileName = Annotated[str, PlainValidator(_file), WithJsonSchema({"type": "string", "minLength": 1})]
SocketPath = Annotated[str, PlainValidator(_socket), WithJsonSchema({"type": "string", "minLength": 1})]
KeySet = Annotated[str, PlainValidator(_key_set), WithJsonSchema({"type": "string", "minLength": 1})]
HeaderName = Annotated[str, *scalar("the name of a header", {"type": "string"}, _header_name)]
HeaderValue = Annotated[str, *scalar("text; quote it where it looks like a number", {"type": "string"}, _header_value)]
KeyDigest = Annotated[
    str, *scalar("64 hexadecimal digits", {"type": "string", "pattern": "^[0-9a-fA-F]{64}$"}, _sha256)
]
Ledger = Annotated[
    str, *scalar("where the ledger is", {"type": "string", "pattern": "^(sqlite:///|rediss?://)"}, _ledger)
]


def choice(*words: str) -> tuple[PlainValidator, WithJsonSchema]:
    """One of a few words."""

    def read(value: str) -> Any:
        if value in words:
            return str(value)
        meant = nearest(value, words)
        hint = f"; did you mean `{meant}`" if meant and not isinstance(value, Secret) else ""
        return values.Malformed(f"write {either(f'`{word}`' for word in words)}{hint}")

    return scalar(either(f"`{word}`" for word in words), {"enum": list(words)}, read)


def _given(value: Any, inner: Callable[[Any], Any]) -> Any:
    if value is None:
        raise PydanticCustomError("written", "{sentence}", {"sentence": EMPTY})
    return inner(value)


EMPTY = "this key has no value; write one, or leave the key out"

#: A key that may be left out; written without a value it is refused, so that a slip of indentation is not silent.
Maybe = Annotated[T | None, WrapValidator(_given)]


def misfits(
    shape: type[Shape], written: Any, moved: Mapping[str, str], folder: FilePath
) -> Shape | list[tuple[Path, str]]:
    """The written data as this shape; or the path and sentence of everything that does not fit.

    Relative file names start from `folder`. `moved` names keys of other shapes and where they belong.
    """
    try:
        return shape.model_validate(written, context=folder)
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
        case "model_type" | "dict_type" | "model_attributes_type":
            keys = keys_at(shape, path)
            which = f" with the keys {either(keys)}" if keys else ""
            return path, f"write a mapping{which}, not {_a(type_name(error['input']))}"
        case "tuple_type" | "list_type" | "frozen_set_type":
            return path, f"write a list, as `[{'…'}]`, not {_a(type_name(error['input']))}"
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
    """The keys that a shape accepts at a path below it."""
    current: Any = shape
    for part in path:
        if _is_shape(current):
            field = next((item for name, item in current.model_fields.items() if (item.alias or name) == part), None)
            current = _inner(field.annotation) if field else None
        # below a list or a mapping of shapes `_inner` already leads to the shape of its items
    return tuple(field.alias or name for name, field in current.model_fields.items()) if _is_shape(current) else ()


def _inner(annotation: Any) -> Any:
    if _is_shape(annotation):
        return annotation
    return next((found for part in get_args(annotation) if (found := _inner(part)) is not None), None)


def _is_shape(candidate: Any) -> bool:
    return isinstance(candidate, type) and issubclass(candidate, Shape)


def _a(kind: str) -> str:
    return {"null": "nothing", "object": "a mapping", "array": "a list", "string": "text"}.get(kind, f"a {kind}")
