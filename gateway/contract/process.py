"""The `gateway` and `backends` groups: read as shapes, then the rules that they keep. Knows no endpoint."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any

from gateway import json_text
from gateway.contract import moved
from gateway.contract.hooks import import_hook, modules_of
from gateway.contract.model import Backend, BackendWritten, Gateway, GatewayWritten, Hooks, HooksWritten
from gateway.contract.reading import Reading
from gateway.contract.refusal import Path, either, quoted
from gateway.contract.values import Address, header_name
from gateway.projection import Sources

Json = Any

_ERROR_KEYS = ("code", "message")
_AUTH_KINDS = ("bearer", "basic", "header", "query", "client_credentials")


def read_gateway(reading: Reading, written: Json) -> Gateway:
    """The process's own settings; the defaults where something was refused."""
    shape = reading.shape(GatewayWritten, {} if written is None else written, ("gateway",), moved.GATEWAY)
    shape = shape or GatewayWritten()
    _check_keys(reading, shape)
    _check_tokens(reading, shape)
    folder = _projections_folder(reading, shape.projections)
    settings = {key: getattr(shape, key) for key in GatewayWritten.model_fields}
    return Gateway(**{**settings, "projections": folder, "hooks": _hooks(reading, shape.hooks, folder)})


def _check_keys(reading: Reading, gateway: GatewayWritten) -> None:
    """Each caller has a key and a name of its own; of two that are the same one would be lost without a word."""
    seen: dict[tuple[str, str], int] = {}
    for index, key in enumerate(gateway.auth.keys if gateway.auth is not None else ()):
        for field, value in (("sha256", key.sha256.lower()), ("name", key.name)):
            first = seen.setdefault((field, value), index)
            if first != index:
                reading.refuse(
                    ("gateway", "auth", "keys", index, field),
                    f"this is already the {'key' if field == 'sha256' else 'name'} of `keys[{first}]`;"
                    f" give each caller its own, with all its scopes",
                )


def _check_tokens(reading: Reading, gateway: GatewayWritten) -> None:
    """Tokens can be checked, and nobody is sent to fetch one that nothing takes."""
    auth, at = gateway.auth, ("gateway", "auth")
    if auth is None:
        return
    if auth.jwt is not None and "://" not in auth.jwt.jwks and (fault := _no_key_set(reading, auth.jwt.jwks)):
        reading.refuse((*at, "jwt", "jwks"), fault)
    if auth.jwt is not None and not auth.jwt.algorithms:
        reading.refuse((*at, "jwt", "algorithms"), "the list is empty; write how tokens are signed, as `[RS256]`")
    if auth.oauth is None:
        return
    if not auth.oauth.authorization_servers:
        where = (*at, "oauth", "authorization_servers")
        reading.refuse(where, "the list is empty; write who gives out tokens, as `[https://login.example]`")
    if auth.jwt is None:
        reading.refuse((*at, "oauth"), "clients would fetch tokens that nothing here takes; write `auth.jwt` beside it")


def _no_key_set(reading: Reading, name: str) -> str | None:
    """What is wrong with a file that should hold public keys; each key is judged once it is read to serve."""
    document = json_text.parse(reading.files.disk.read(FilePath(name), _KEY_SET_LIMIT))
    keys = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(keys, list) or not any(isinstance(key, dict) for key in keys):
        return 'the file is no key set; it holds `{"keys": […]}` (RFC 7517)'
    if any(isinstance(key, dict) and not _PRIVATE_PARTS.isdisjoint(key) for key in keys):
        return "the file holds a private or shared key; give the gateway the public keys only"
    if not any(key.get("kty") in ("RSA", "EC", "OKP") for key in keys if isinstance(key, dict)):
        return "the file holds no public key of the kinds RSA, EC or OKP; name the right file"
    return None


_KEY_SET_LIMIT = 262144
#: RFC 7518 section 6: what only whoever signs may hold.
_PRIVATE_PARTS = {"d", "p", "q", "k"}


def read_backends(reading: Reading, written: Json, gateway: Gateway) -> dict[str, Backend]:
    """Every backend that has a shape; its rules may still have been refused."""
    at: Path = ("backends",)
    if written is None or not isinstance(written, dict):
        reading.refuse(at, "write a mapping of backends by name, as `directory: {url: http://127.0.0.1:9000}`")
        return {}
    if not written:
        reading.refuse(at, "there is no backend; write one, as `directory: {url: http://127.0.0.1:9000}`")
    backends = {}
    for name, group in written.items():
        shape = reading.shape(BackendWritten, _spelled_out(group), (*at, name), moved.BACKEND)
        if not name.strip():
            reading.refuse((*at, name), "a backend needs a name; write one")
        if shape is None:
            continue
        backends[name] = Backend(name=name, **{key: getattr(shape, key) for key in BackendWritten.model_fields})
        _check_backend(reading, backends[name], (*at, name), gateway)
    return backends


def check_listeners(reading: Reading, gateway: Gateway, backends: Mapping[str, Backend]) -> None:
    """No two share an address; none is open to the network without `auth` (class 11)."""
    listeners: list[tuple[Path, Address]] = [
        (("gateway", "tools", "listen"), gateway.tools.listen),
        (("gateway", "admin", "listen"), gateway.admin.listen),
    ]
    for name, backend in backends.items():
        if backend.passthrough is not None:
            listeners.append((("backends", name, "passthrough", "listen"), backend.passthrough.listen))
    for index, (path, address) in enumerate(listeners):
        for other, taken in listeners[:index]:
            if _share(address, taken):
                where = ".".join(map(str, other[:-1]))
                reading.refuse(path, f"this address is already that of `{where}`; give each listener its own port")
                break
    unguarded = gateway.auth is None and not gateway.insecure and not reading.faulted(("gateway",))
    for path, address in listeners[:2]:
        if unguarded and not address.loopback:
            reading.refuse(
                path,
                "a listener off loopback needs `gateway.auth`; write it, listen on 127.0.0.1,"
                " or write `gateway.insecure: true`",
            )
    admin = gateway.admin
    if gateway.auth is not None and not admin.listen.loopback and not admin.scopes:
        reading.warn(
            ("gateway", "admin"),
            "whoever may call a tool may also use this listener; write `gateway.admin.scopes`, or listen on 127.0.0.1",
        )
    if gateway.auth is None and admin.scopes and not reading.faulted(("gateway",)):
        reading.refuse(("gateway", "admin", "scopes"), "nobody holds a scope without `gateway.auth`; write it")


def _projections_folder(reading: Reading, name: str | None) -> str | None:
    """The folder for Python projections and hooks; the contract's own where none is named."""
    folder = reading.files.folder / (name or "")
    try:
        if reading.files.disk.kind(folder) == "folder":
            return str(reading.files.disk.resolved(folder))
    except (OSError, ValueError, RuntimeError):
        pass
    reading.refuse(("gateway", "projections"), "there is no such folder; create it, or mend the path")
    return None


def _hooks(reading: Reading, written: HooksWritten, folder: str | None) -> Hooks:
    found: dict[str, Any] = {"before": None, "after": None}
    if folder is None:
        return Hooks(**found)
    asked = written.before is not None or written.after is not None
    sources = reading.files.disk.sources(FilePath(folder)) if asked else None
    with modules_of(folder, sources if isinstance(sources, Sources) else None):
        for key in found:
            reference = getattr(written, key)
            hook = None if reference is None else import_hook(reference)
            if isinstance(hook, str):
                reading.refuse(("gateway", "hooks", key), hook)
            else:
                found[key] = hook
    return Hooks(**found)


def _spelled_out(group: Json) -> Json:
    """`passthrough: host:port` is short for `{listen: host:port}`."""
    if isinstance(group, dict) and isinstance(group.get("passthrough"), str):
        return {**group, "passthrough": {"listen": group["passthrough"]}}
    return group


def _check_backend(reading: Reading, backend: Backend, path: Path, gateway: Gateway) -> None:
    if backend.socket is not None and backend.url is not None and backend.url.startswith("https:"):
        reading.refuse((*path, "socket"), "a unix socket is spoken to in plain http; write `url: http://…`")
    if backend.url is None and backend.socket is None and not reading.faulted((*path, "url")):
        if backend.passthrough is not None:
            reading.refuse(path, "a pass-through needs a backend to connect to; write `url`")
        elif gateway.missing_backend == "refuse":
            reading.refuse(
                path, "the backend has no `url`; write it, or write `gateway.missing_backend: stub` to list its tools"
            )
    _check_headers(reading, backend, path)
    if backend.auth is not None and not reading.faulted((*path, "auth")):
        kinds = [kind for kind in _AUTH_KINDS if getattr(backend.auth, kind) is not None]
        if len(kinds) != 1:
            which = f"holds {either(kinds).replace(' or ', ' and ')}" if kinds else "is empty"
            reading.refuse((*path, "auth"), f"`auth` {which}; write exactly one of {either(_AUTH_KINDS)}")
    for key in backend.errors:
        if key not in _ERROR_KEYS:
            reading.refuse((*path, "errors", key), f"the key {quoted(key)} is unknown; accepted here: code, message")
    if (backend.tls.cert is None) != (backend.tls.key is None):
        reading.refuse((*path, "tls"), "a client certificate is `cert` and `key` together; write both")


def _check_headers(reading: Reading, backend: Backend, path: Path) -> None:
    """Each header is sent once, and none that frames the message or asks for less than an answer."""
    told: dict[str, str] = {"authorization": "auth"} if _writes_authorization(backend) else {}
    if backend.auth is not None and backend.auth.header is not None:
        told[backend.auth.header.name.lower()] = "auth"
    for name in backend.headers:
        at: Path = (*path, "headers", name)
        if not header_name(name):
            reading.refuse(at, f"{quoted(name)} is no header name; write one, as `X-Api-Key`")
        elif name.lower() in _OF_THE_CONNECTION:
            reading.refuse(at, f"the header {quoted(name)} is the connection's own; take it out")
        elif name.lower() in told:
            reading.refuse(at, f"the header {quoted(name)} is already written as `{told[name.lower()]}`; write it once")
        told.setdefault(name.lower(), f"headers.{name}")
    for index, name in enumerate(backend.forward_headers):
        if name.lower() in _OF_THE_CONNECTION | _OF_THE_CALLER:
            reading.refuse(
                (*path, "forward_headers", index), f"the header {quoted(name)} is never passed on; take it out"
            )


def _writes_authorization(backend: Backend) -> bool:
    auth = backend.auth
    return auth is not None and any((auth.bearer, auth.basic, auth.client_credentials))


_OF_THE_CONNECTION = {
    *("connection", "content-length", "expect", "keep-alive", "proxy-connection", "te", "trailer"),
    *("transfer-encoding", "upgrade"),
}
#: Of a caller these are never passed on: its `Host` is the gateway's, the others ask for less than an answer.
_OF_THE_CALLER = {
    *("host", "if-match", "if-modified-since", "if-none-match", "if-range", "if-unmodified-since", "range"),
}


def _share(one: Address, other: Address) -> bool:
    if one.port != other.port or one.port == 0:
        return False
    hosts = {_host(one), _host(other)}
    return len(hosts) == 1 or bool(hosts & {"0.0.0.0", "::"})  # noqa: S104 (compared, not bound)


def _host(address: Address) -> str:
    host = "127.0.0.1" if address.host.lower() == "localhost" else address.host.lower()
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return host
