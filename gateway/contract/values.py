"""The small texts of a contract (durations, sizes, addresses, routes, pointers) to values. Knows no YAML and no key."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

from gateway.record import record

METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")


@record
class Address:
    """Where a listener binds."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def loopback(self) -> bool:
        if self.host.lower() == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


@record
class Route:
    """`METHOD /path/{placeholder}`."""

    method: str
    path: str

    @property
    def placeholders(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(re.findall(r"\{([^{}]*)\}", self.path)))


@record
class Rate:
    """At most `count` in `seconds`."""

    count: int
    seconds: float

    def __str__(self) -> str:
        """As it is written: `100/s`."""
        return f"{self.count}/" + next(unit for unit, long in _SECONDS.items() if long == self.seconds)


@record
class Malformed:
    """Why a text has not the form it needs: a sentence with the right form and nothing of the text."""

    message: str
    #: What follows the sentence once the value is shown.
    hint: str = ""


_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_SIZE = re.compile(r"([0-9]+)(B|KiB|MiB|GiB)?")
_BYTES = {"B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}


def duration(text: str | int | float) -> float | Malformed:
    """`250ms`, `10s`, `2m` or `1h`, in seconds."""
    found = _DURATION.fullmatch(text) if isinstance(text, str) and len(text) < 20 else None
    if found is None or float(found[1]) == 0:
        return Malformed("write a duration with its unit, as `250ms`, `10s` or `2m`")
    return float(found[1]) * _SECONDS[found[2]]


def size(text: str | int | float) -> int | Malformed:
    """`24KiB`, `10MiB` or plain bytes."""
    found = _SIZE.fullmatch(str(text)) if not isinstance(text, (bool, float)) and len(str(text)) < 20 else None
    if found is None or int(found[1]) == 0:
        return Malformed("write a size as `24KiB`, `10MiB`, or as plain bytes")
    return int(found[1]) * _BYTES[found[2] or "B"]


def rate(text: str | int | float) -> Rate | Malformed:
    """`100/s`, `600/m` or `1000/h`."""
    found = re.fullmatch(r"([0-9]{1,9})/(s|m|h)", text) if isinstance(text, str) else None
    if found is None or int(found[1]) == 0:
        return Malformed("write a rate as `100/s` or `600/m`")
    return Rate(int(found[1]), _SECONDS[found[2]])


def address(text: str | int | float) -> Address | Malformed:
    """`host:port`; an IPv6 host in brackets."""
    found = re.fullmatch(r"(\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})", text) if isinstance(text, str) else None
    if found is None or int(found[2]) > 65535:
        return Malformed("write an address as `host:port`, for example `127.0.0.1:8081`")
    return Address(found[1].strip("[]"), int(found[2]))


def route(text: str | int | float) -> Route | Malformed:
    """`METHOD /path/{placeholder}`, the path as it goes on the wire."""
    method, _, path = text.strip().partition(" ") if isinstance(text, str) else ("", "", "")
    path = path.strip()
    if method not in METHODS:
        if method.upper() in METHODS:
            return Malformed(f"write the method in capitals, as `{method.upper()} {path or '/path'}`")
        return Malformed("write `METHOD /path/{placeholder}`, with one of " + ", ".join(METHODS))
    if not path.startswith("/"):
        return Malformed("the path starts with `/`; write it so, as `GET /people/{team}`")
    return Route(method, path)


def url(text: str | int | float) -> str | Malformed:
    """An http or https URL with a host and maybe a base path; nothing else."""
    wrong = Malformed("write an http or https URL with a host, as `http://127.0.0.1:9000` or `https://api.example/v1`")
    if not isinstance(text, str) or not text.isascii() or re.search(r"[\x00-\x20\x7f<>\"\\^`{|}]", text):
        return wrong
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return wrong
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        return wrong
    if "@" in parts.netloc:
        return Malformed("credentials do not belong into a URL; write `auth: {basic: {username: …, password: …}}`")
    if "?" in text or "#" in text:
        return Malformed("a backend's URL has no query or fragment; write the host and the base path only")
    return text


def pointer(text: str | int | float) -> str | Malformed:
    """A JSON Pointer (RFC 6901)."""
    if not isinstance(text, str) or not re.fullmatch(r"(/([^~/]|~[01])*)*", text, re.DOTALL):
        return Malformed("write a JSON Pointer, as `/people` or `/error/code`")
    return text


def function(text: str | int | float) -> str | Malformed:
    """`module:function`."""
    if not isinstance(text, str) or not re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*", text):
        return Malformed("write `module:function`")
    return text


def header_name(text: str) -> bool:
    """Whether a text is a field name of RFC 9110 §5.1."""
    return re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", text) is not None


def header_value(text: str) -> bool:
    """Whether a text is a field value of RFC 9110 §5.5 that cannot start another header."""
    return text.isascii() and re.search(r"[\x00-\x08\x0a-\x1f\x7f]", text) is None and text == text.strip()


def idempotent(method: str) -> bool:
    """RFC 9110 §9.2.2."""
    return method not in ("POST", "PATCH")
