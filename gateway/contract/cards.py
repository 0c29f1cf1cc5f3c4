"""The file of `tool.ui`: a small HTML page that hosts show an answer in, read and judged at load. Knows no surface."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from urllib.parse import quote

from gateway.contract.model import Card, Ui
from gateway.contract.reading import Reading
from gateway.contract.refusal import Path

#: What a card may have in bytes: a page with its scripts built in. Each is held in memory, and sent whole.
LARGEST_CARD = 2 * 1024 * 1024

_BEGINS = re.compile(r"(?>\s+|<!--.*?-->)*+<(?:!doctype\s+html|html)\b", re.IGNORECASE | re.DOTALL)
_FROM_NETWORK = re.compile(
    r"<(?:script|link|img|iframe|audio|video|source|embed)\b[^<>]*?\b(?:src|href)\s?=\s?[\"']?(?:https?:)?//",
    re.IGNORECASE,
)


def read_card(reading: Reading, ui: Ui, path: Path) -> Card | None:
    """The card that a tool has; None where it was refused."""
    if not ui.visibility:
        reading.refuse((*path, "visibility"), "nobody sees this tool; write `[model]`, `[app]` or both")
        return None
    name = PurePosixPath(ui.resource).as_posix()
    html = _html(reading, ui.resource, name)
    if isinstance(html, _Fault):
        reading.refuse((*path, "resource"), html.message)
        return None
    if _FROM_NETWORK.search(html):
        reading.warn(
            (*path, "resource"),
            "this page loads something from the network, which hosts do not let a card do; put it into the file",
        )
    return Card(name, f"ui://toolview/{quote(name)}", html, tuple(dict.fromkeys(ui.visibility)))


class _Fault:
    """Why a file is no card."""

    def __init__(self, message: str) -> None:
        self.message = message


def _html(reading: Reading, written: str, name: str) -> str | _Fault:
    files = reading.files
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:|//", written):
        return _Fault("a card is a file, and never read from the network; copy it into the contract's folder")
    parts = PurePosixPath(written)
    if parts.is_absolute() or ".." in parts.parts:
        return _Fault("a card stays in the contract's folder; write its path from there, as `ui/card.html`")
    if name in files.cards:
        return files.cards[name]
    inside = files.inside(written, files.main)
    try:
        if inside is None or files.disk.kind(files.folder / inside) != "file":
            return _Fault("there is no such file in the contract's folder; create it, or mend the path")
        data = files.disk.read(files.folder / inside, LARGEST_CARD + 1)
    except OSError:  # no rights to it, a name that is too long
        return _Fault("this file cannot be read; mend its rights, or the path")
    if len(data) > LARGEST_CARD:
        return _Fault(f"this file is larger than {LARGEST_CARD} bytes, which is too much for a card; make it smaller")
    try:
        html = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return _Fault("this file is not UTF-8; save it so")
    if not _BEGINS.match(html) or "\0" in html:
        return _Fault("this file is no HTML page; begin it with `<!doctype html>`")
    files.cards[name] = html
    return html
