"""The scalars of a contract as pydantic types: each reads one value, or says in one sentence what to write instead."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path as FilePath
from typing import Annotated, Any, NoReturn
from urllib.parse import urlsplit

from pydantic import PlainValidator, ValidationInfo, WithJsonSchema
from pydantic_core import PydanticCustomError

from gateway.contract import values
from gateway.contract.disk import Disk
from gateway.contract.document import plain_scalar
from gateway.contract.refusal import either, nearest, quoted
from gateway.contract.secrets import Private, Secret
from gateway.contract.values import Malformed
from gateway.json_text import type_name
from gateway.projection import compile_jmespath

#: Of a key that is written without a value.
EMPTY = "this key has no value; write one, or leave the key out"


def scalar(
    accepts: str, schema: dict[str, Any], read: Callable[[Any], Any], kinds: tuple[type, ...] = (str,)
) -> tuple[PlainValidator, WithJsonSchema]:
    """A field read from one scalar: `accepts` is the sentence for another kind of value, `read` may say `Malformed`."""

    def check(value: Any) -> Any:
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            refuse(Malformed(accepts), value)
        found = read(value)
        if isinstance(found, Malformed):
            refuse(found, value)
        return found

    return PlainValidator(check), WithJsonSchema(schema)


def refuse(fault: Malformed, value: Any) -> NoReturn:
    """Raises what pydantic takes for a fault of this field; the value is shown unless it may be a secret."""
    sentence = fault.message
    if value is None:
        sentence = EMPTY
    elif sentence.startswith("write "):
        sentence += f", not {_shown(value)}"
    raise PydanticCustomError("written", "{sentence}", {"sentence": sentence + fault.hint})


def a(kind: str) -> str:
    """A JSON type in the words of YAML."""
    return {"null": "nothing", "object": "a mapping", "array": "a list", "string": "text", "integer": "an integer"}.get(
        kind, f"a {kind}"
    )


def _shown(value: Any) -> str:
    if isinstance(value, Secret):
        return "what its placeholder gives"
    return a(type_name(value)) if isinstance(value, (list, dict)) else quoted(value)


def _schema_node(value: Any) -> Any:
    if value is None:
        refuse(Malformed(EMPTY), None)
    return value


def choice(*words: str) -> tuple[PlainValidator, WithJsonSchema]:
    """One of a few words."""
    sentence = f"write {either(f'`{word}`' for word in words)}"

    def read(value: str) -> Any:
        if value in words:
            return str(value)
        meant = None if isinstance(value, Secret) else nearest(value, words)
        return Malformed(sentence, f"; did you mean `{meant}`?" if meant else "")

    return scalar(sentence, {"enum": list(words)}, read)


def _text(value: str) -> Any:
    return value if value.strip() else Malformed("the text is blank; write what it is for")


def _secret_text(value: str) -> Any:
    found = _text(value)
    return found if isinstance(found, Malformed) else Secret(found)


def _state_secret(value: Any) -> Any:
    if not isinstance(value, Secret):
        return Malformed("a secret is not written into the contract; write `${NAME}` or `${file:/path}`")
    if len(value.encode()) < _SECRET_BYTES:
        return Malformed(f"the secret has fewer than {_SECRET_BYTES} bytes; make one with `openssl rand -base64 32`")
    return value


#: As many as the digest has that it signs with (RFC 2104 section 3).
_SECRET_BYTES = 32


def _whole(value: Any) -> Any:
    number = plain_scalar(value) if isinstance(value, Secret) else value
    if type(number) is not int or not 0 <= number < 2**31:
        return Malformed("write a whole number, 0 or more")
    return number


def _positive(value: Any) -> Any:
    number = _whole(value)
    return Malformed("write a whole number, 1 or more") if number == 0 or isinstance(number, Malformed) else number


def _switch(value: Any) -> Any:
    found = plain_scalar(value) if isinstance(value, Secret) else value
    return found if isinstance(found, bool) else Malformed("write `true` or `false`")


def _header_value(value: str) -> Any:
    if values.header_value(value):
        return value if isinstance(value, Secret) else Private(value)
    return Malformed("a header's value is one line of ASCII text without blanks around it; write it so")


def _header_name(value: str) -> Any:
    return value if values.header_name(value) else Malformed("write the name of a header, as `X-Request-Id`")


def _scope(value: str) -> Any:
    # RFC 6749 §3.3: a space would make two of it.
    if value and all("!" <= char <= "~" and char not in '"\\' for char in value):
        return value
    return Malformed("write a scope as one word, as `things.read`")


def _target(value: str) -> Any:
    if value.startswith("/") and value.isascii() and value.isprintable() and not {" ", "#"} & set(value):
        return value
    return Malformed("write a path that starts with `/`, as `/health`")


def _sha256(value: str) -> Any:
    if len(value) == 64 and all(char in "0123456789abcdef" for char in value.lower()):
        return value.lower()
    return Malformed("the key's digest is 64 hexadecimal digits; make it with `printf %s KEY | sha256sum | cut -c-64`")


def _file(value: Any, info: ValidationInfo) -> Any:
    """The absolute path of a file that is there; a relative one starts from the contract's folder."""
    if not isinstance(value, str):
        refuse(Malformed("write the path of a file"), value)
    path = _path(value, info)
    try:
        if _disk(info).readable(path):
            return type(value)(path)
    except (OSError, ValueError):
        pass
    refuse(Malformed("the file is not there or cannot be read; mend the path or its rights"), value)


def _socket(value: Any, info: ValidationInfo) -> Any:
    """The absolute path of a unix socket, which may appear later."""
    if not isinstance(value, str) or not value.strip() or "\0" in value or len(value.encode()) > 100:
        refuse(Malformed("write the path of a unix socket, at most 100 bytes"), value)
    return type(value)(_path(value, info))


def _path(value: str, info: ValidationInfo) -> FilePath:
    return FilePath(info.context[0] if info.context else ".", value)


def _disk(info: ValidationInfo) -> Disk:
    return info.context[1] if info.context else Disk()


def _key_set(value: Any, info: ValidationInfo) -> Any:
    if not isinstance(value, str) or "://" not in value:
        return _file(value, info)
    if not _key_set_url(value):
        refuse(Malformed("the URL of a key set starts with `https://`; write it so, or name a file"), value)
    return Secret(value) if "?" in value else value  # some issuers want a key there


def _key_set_url(value: str) -> bool:
    """Whether keys can be trusted that come from there: over TLS, or without leaving the host."""
    try:
        parts = urlsplit(value)
        host, port = parts.hostname, parts.port
    except ValueError:
        return False
    if not value.isascii() or not value.isprintable() or " " in value or "#" in value or "@" in parts.netloc:
        return False
    on_loopback = values.Address(host or "", port or 0).loopback
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and on_loopback))


def _ledger(value: str) -> Any:
    if value.startswith(("sqlite:///", "redis://", "rediss://")):
        return value
    return Malformed("write where the ledger is, as `sqlite:///var/ledger.db` or `redis://host:6379`")


_NUMBERS: tuple[type, ...] = (str, int, float)


def _state(value: str) -> Any:
    """A JMESPath expression over the state of a job."""
    found = compile_jmespath(value, None)
    return Malformed(found) if isinstance(found, str) else value


def _job_route(value: str) -> Any:
    route = values.route(value)
    if isinstance(route, values.Route) and set(route.placeholders) - {"id"}:
        return Malformed("only the job's `{id}` is known here; write it as `GET /jobs/{id}`")
    return route


Text = Annotated[
    str, *scalar("write text; quote it where it looks like a number", {"type": "string", "minLength": 1}, _text)
]
Whole = Annotated[int, *scalar("write a whole number, 0 or more", {"type": "integer", "minimum": 0}, _whole, _NUMBERS)]
Positive = Annotated[
    int, *scalar("write a whole number, 1 or more", {"type": "integer", "minimum": 1}, _positive, _NUMBERS)
]
Switch = Annotated[bool, *scalar("write `true` or `false`", {"type": "boolean"}, _switch, (bool, str, int, float))]
Duration = Annotated[
    float,
    *scalar(
        "write a duration with its unit, as `250ms`, `10s` or `2m`",
        {"type": "string", "pattern": r"^\d+(\.\d+)?(ms|s|m|h)$", "examples": ["250ms", "10s", "2m"]},
        values.duration,
        _NUMBERS,
    ),
]
Size = Annotated[
    int,
    *scalar(
        "write a size as `24KiB`, `10MiB`, or as plain bytes",
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
    *scalar("write a rate as `100/s` or `600/m`", {"type": "string", "pattern": r"^\d+/[smh]$"}, values.rate),
]
Listen = Annotated[
    values.Address,
    *scalar(
        "write an address as `host:port`, for example `127.0.0.1:8081`",
        {"type": "string", "pattern": r"^(\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._-]+):\d{1,5}$"},
        values.address,
        _NUMBERS,
    ),
]
RouteText = Annotated[
    values.Route,
    *scalar(
        "write `METHOD /path/{placeholder}`",
        {"type": "string", "pattern": rf"^({'|'.join(values.METHODS)}) +/\S*$", "examples": ["GET /people/{team}"]},
        values.route,
    ),
]
Url = Annotated[str, *scalar("write an http or https URL", {"type": "string", "pattern": "^https?://"}, values.url)]
Pointer = Annotated[
    str, *scalar("write a JSON Pointer, as `/people`", {"type": "string", "pattern": "^(/.*)?$"}, values.pointer)
]
Function = Annotated[
    str,
    *scalar(
        "write `module:function`", {"type": "string", "pattern": r"^[A-Za-z_][\w.]*:[A-Za-z_][\w.]*$"}, values.function
    ),
]
FileName = Annotated[str, PlainValidator(_file), WithJsonSchema({"type": "string", "minLength": 1})]
SocketPath = Annotated[str, PlainValidator(_socket), WithJsonSchema({"type": "string", "minLength": 1})]
KeySet = Annotated[str, PlainValidator(_key_set), WithJsonSchema({"type": "string", "minLength": 1})]
#: A JSON Schema as it stands; what it says is for the schema room to judge.
SchemaNode = Annotated[Any, PlainValidator(_schema_node)]
SecretText = Annotated[
    str, *scalar("write text; quote it where it looks like a number", {"type": "string", "minLength": 1}, _secret_text)
]
StateSecret = Annotated[
    str, *scalar("write it as `${NAME}` or `${file:/path}`", {"type": "string", "pattern": r"\$\{"}, _state_secret)
]
HeaderName = Annotated[str, *scalar("write the name of a header", {"type": "string"}, _header_name)]
HeaderValue = Annotated[
    str, *scalar("write text; quote it where it looks like a number", {"type": "string"}, _header_value)
]
Scope = Annotated[str, *scalar("write a scope as one word", {"type": "string", "pattern": r"^[!#-\[\]-~]+$"}, _scope)]
Target = Annotated[str, *scalar("write a path, as `/health`", {"type": "string", "pattern": "^/"}, _target)]
KeyDigest = Annotated[
    str, *scalar("write 64 hexadecimal digits", {"type": "string", "pattern": "^[0-9a-fA-F]{64}$"}, _sha256)
]
Ledger = Annotated[
    str, *scalar("write where the ledger is", {"type": "string", "pattern": "^(sqlite:///|rediss?://)"}, _ledger)
]


StateExpression = Annotated[
    str, *scalar("write a JMESPath expression over the job's state", {"type": "string", "minLength": 1}, _state)
]
JobRoute = Annotated[
    values.Route,
    *scalar(
        "write `METHOD /path/{id}`",
        {"type": "string", "pattern": rf"^({'|'.join(values.METHODS)}) +/\S*$", "examples": ["GET /jobs/{id}"]},
        _job_route,
    ),
]
