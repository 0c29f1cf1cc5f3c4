"""Plain data as YAML for people: blocks, short leaves on one line, comments, every text safe. Knows no contract key."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Mapping
from typing import Any

from gateway.contract.document import plain_scalar
from gateway.contract.refusal import printable

Json = Any

_WIDTH = 120
#: The longest mapping on one line that holds another one.
_NESTED = 80


class Commented(dict[str, Any]):
    """A mapping with comments: above a key, and at the end of a key's line."""

    def __init__(self, *given: Any, **entries: Any) -> None:
        super().__init__(*given, **entries)
        self.above: dict[str, list[str]] = {}
        self.behind: dict[str, str] = {}
        #: Below its last key.
        self.below: list[str] = []

    def copied(self) -> Commented:
        copy = Commented(self)
        copy.above, copy.behind, copy.below = dict(self.above), dict(self.behind), list(self.below)
        return copy


def write_yaml(document: Mapping[str, Json]) -> str:
    """The document as YAML 1.2 that reads the same as YAML 1.1."""
    lines: list[str] = []
    _mapping(lines, document, 0)
    return "\n".join(lines) + "\n"


def _mapping(lines: list[str], node: Mapping[str, Json], indent: int) -> None:
    pad = " " * indent
    for key, value in node.items():
        behind = ""
        if isinstance(node, Commented):
            lines += [f"{pad}# {printable(line)}" if line else "" for line in node.above.get(key, ())]
            behind = f" # {printable(node.behind[key])}" if key in node.behind else ""
        _entry(lines, f"{pad}{_text(key, flow=False)}:", value, indent, behind)
    if isinstance(node, Commented):
        lines += [f"{pad}# {printable(line)}" for line in node.below]


def _entry(lines: list[str], head: str, value: Json, indent: int, behind: str) -> None:
    if isinstance(value, str) and (block := _block(value, indent + 2)):
        lines.append(f"{head} {block[0]}{behind}")
        lines += block[1:]
        return
    short = None if isinstance(value, Commented) else _flow(value, _WIDTH - len(head) - 1)
    if short is not None:
        lines.append(f"{head} {short}{behind}" if short else f"{head}{behind}")
    elif isinstance(value, Mapping):
        lines.append(head + behind)
        _mapping(lines, value, indent + 2)
    else:
        lines.append(head + behind)
        for item in value:
            _item(lines, item, indent + 2)


def _item(lines: list[str], item: Json, indent: int) -> None:
    pad = " " * indent
    short = _flow(item, _WIDTH - indent - 2)
    if short is not None:
        lines.append(f"{pad}- {short or 'null'}")
        return
    inner: list[str] = []
    if isinstance(item, Mapping):
        _mapping(inner, item, indent + 2)
    else:
        for each in item:
            _item(inner, each, indent + 2)
    lines.append(f"{pad}- {inner[0][indent + 2 :]}")
    lines += inner[1:]


def _flow(value: Json, room: int, depth: int = 0) -> str | None:
    """A value on one line; None where it is too long or too deep to be read there."""
    if isinstance(value, Mapping):
        inner = sum(isinstance(each, Mapping) and bool(each) for each in value.values())
        if depth > 1 or inner > 1 or 0 < inner == len(value):
            return None if value else "{}"
        room = min(room, _NESTED) if inner else room
        parts = []
        for key, each in value.items():
            shown = _flow(each, room, depth + 1)
            if shown is None:
                return None
            parts.append(f"{_text(key, flow=True)}: {shown or 'null'}")
        text = f"{{{', '.join(parts)}}}"
    elif isinstance(value, list):
        if depth > 1:
            return None if value else "[]"
        shown_items = [_flow(each, room, depth + 1) for each in value]
        if any(each is None for each in shown_items):
            return None
        text = f"[{', '.join(each or 'null' for each in shown_items)}]"
    else:
        return _scalar(value, flow=depth > 0)
    return text if len(text) <= room else None


def _scalar(value: Json, *, flow: bool) -> str:
    if value is None:
        return "null" if flow else ""
    if isinstance(value, str):
        return _text(value, flow=flow)
    written = json.dumps(value)
    # YAML 1.1 has no float without a point
    return written.replace("e", ".0e", 1) if isinstance(value, float) and "." not in written else written


def _text(text: str, *, flow: bool) -> str:
    """A text, quoted where anything could read it as something else."""
    return text if _is_plain(text, flow) else _quoted(text)


#: YAML 1.1 reads these as booleans, and many programs still do.
_WORDS = re.compile(r"y|n|yes|no|on|off|true|false|null|~", re.IGNORECASE)
_PLAIN = re.compile(r"[A-Za-z_/$][^\x00-\x1f\x7f]*")


def _is_plain(text: str, flow: bool) -> bool:
    if not _PLAIN.fullmatch(text) or not text.isprintable() or text != text.strip():
        return False
    if _WORDS.fullmatch(text) or not isinstance(plain_scalar(text), str):
        return False
    if ": " in text or " #" in text or text.endswith(":"):
        return False
    return not flow or not (set(text) & set(",[]{}") or ":" in text or '"' in text or "'" in text)


def _quoted(text: str) -> str:
    """Double quotes with JSON's escapes, and YAML's for what is not printable."""
    written = json.dumps(text, ensure_ascii=False)
    return "".join(char if char.isprintable() or char == " " else _escape(char) for char in written)


def _escape(char: str) -> str:
    code = ord(char)
    if 0xD800 <= code <= 0xDFFF:
        return "\\ufffd"  # half a pair is no character
    return f"\\U{code:08x}" if code > 0xFFFF else f"\\u{code:04x}"


def _block(text: str, indent: int) -> list[str]:
    """A long text or one of several lines as a block scalar; [] where it stands better on its line, or quoted."""
    if "\n" not in text and len(text) <= _WIDTH - indent - 20:
        return []
    if any(not char.isprintable() and char != "\n" for char in text) or text != text.strip():
        return []
    pad = " " * indent
    lines = text.split("\n")
    if any(line != line.rstrip() for line in lines):
        return []
    if len(lines) > 1:
        return ["|-", *(pad + line if line else "" for line in lines)]
    if "  " in text:
        return []
    folded = textwrap.wrap(text, max(40, _WIDTH - indent), break_long_words=False, break_on_hyphens=False)
    return [">-", *(pad + line for line in folded)]
