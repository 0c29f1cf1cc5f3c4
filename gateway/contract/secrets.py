"""`${NAME}`, `${NAME:-default}` and `${file:…}` in the gateway and backends, resolved so that no print shows them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path as FilePath
from typing import Any

from gateway.contract.disk import Disk
from gateway.contract.document import Marks
from gateway.contract.refusal import Path

_PLACEHOLDER = re.compile(r"\$\$\{|\$\{([^{}]*)\}|\$\{")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FILE_LIMIT = 64 * 1024


class Secret(str):
    """Text that came from outside the contract: it works as text, but its repr is `***`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"

    def __reduce__(self) -> str:
        raise TypeError("a secret is not pickled")


class Private(Secret):
    """Text that the contract writes out for a backend's eyes alone; it need not be a credential."""

    __slots__ = ()


#: Told of each fault: where, and the sentence.
Report = Callable[[Path, str], None]


def resolve(node: Any, path: Path, environment: Mapping[str, str], disk: Disk, marks: Marks, report: Report) -> Any:
    """The same data with every placeholder resolved; a text that held one is a `Secret`."""
    if isinstance(node, str):
        return _resolved(node, path, environment, disk, report) if "${" in node else node
    if not isinstance(node, (dict, list)):
        return node
    items = node.items() if isinstance(node, dict) else enumerate(node)
    values = [(key, resolve(item, (*path, key), environment, disk, marks, report)) for key, item in items]
    copy: Any = dict(values) if isinstance(node, dict) else [item for _, item in values]
    marks.copied(copy, node)
    return copy


def masked(node: Any) -> Any:
    """The data as they may be shown: a placeholder keeps its name, never its default."""
    if isinstance(node, str):
        return _PLACEHOLDER.sub(lambda found: _shown(found.group(0)), node)
    if isinstance(node, dict):
        return {key: masked(item) for key, item in node.items()}
    return [masked(item) for item in node] if isinstance(node, list) else node


def _resolved(text: str, path: Path, environment: Mapping[str, str], disk: Disk, report: Report) -> str:
    whole = True

    def value(found: re.Match[str]) -> str:
        nonlocal whole
        if found.group(0) == "$${":
            return "${"
        answer = _lookup(found.group(1), environment, disk)
        if isinstance(answer, _Missing):
            whole = False
            report(path, str(answer))
            return ""
        return answer

    filled = _PLACEHOLDER.sub(value, text)
    return Secret(filled) if whole else Secret("")


class _Missing(str):
    __slots__ = ()


def _lookup(inside: str | None, environment: Mapping[str, str], disk: Disk) -> str:
    if inside is None:
        return _Missing("`${` is not closed; write `${NAME}`, or `$${` for the text itself")
    if inside.startswith("file:"):
        return _from_file(inside.removeprefix("file:"), disk)
    name, has_default, default = inside.partition(":-")
    if not _NAME.fullmatch(name):
        return _Missing("a placeholder is written `${NAME}`, `${NAME:-default}` or `${file:/path}`")
    # As in a shell, `:-` also serves where the variable is empty.
    if found := environment.get(name):
        return found
    if has_default:
        return default
    state = "is empty" if name in environment else "is not set"
    return _Missing(f"the environment variable {name} {state}; set it, or write `${{{name}:-default}}`")


def _from_file(name: str, disk: Disk) -> str:
    file = FilePath(name)
    if not file.is_absolute():
        return _Missing(f"the secret file {_quoted(name)} needs an absolute path, as `${{file:/run/secrets/token}}`")
    try:
        if disk.kind(file) != "file":
            return _Missing(f"the secret file {_quoted(name)} is not there; create it, or mend the path")
        data = disk.read(file, _FILE_LIMIT + 1)
        if len(data) > _FILE_LIMIT:
            return _Missing(f"the secret file {_quoted(name)} is larger than {_FILE_LIMIT} bytes; name the right file")
        return data.decode().rstrip("\r\n")
    except (OSError, ValueError):
        return _Missing(f"the secret file {_quoted(name)} cannot be read as UTF-8 text; mend its rights or its content")


def _quoted(name: str) -> str:
    return "`" + "".join(char if char.isprintable() else "?" for char in name) + "`"


def _shown(text: str) -> str:
    return re.sub(r":-[^}]*\}", ":-…}", text)
