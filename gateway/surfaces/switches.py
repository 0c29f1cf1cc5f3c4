"""What `call` and `preview` understand beside a tool's own arguments; a table that costs nothing to import."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Switch(NamedTuple):
    """One of a command's own words; `value` is what it is followed by, None where it stands alone."""

    value: str | None
    about: str


_JSON = Switch("'{…}'", "the arguments, or some of them, as JSON")
_CONFIG = Switch("CONFIG", "the contract, else $TOOLVIEW_CONFIG or config/gateway.yaml")
_HELP = Switch(None, "tell the tool's flags, and stop")

CALL: Mapping[str, Switch] = {
    "json": _JSON,
    "output": Switch("FILE", "write the answer there; - is stdout"),
    "dry-run": Switch(None, "show the request, secrets out, and send nothing"),
    "config": _CONFIG,
    "help": _HELP,
}
PREVIEW: Mapping[str, Switch] = {
    "answer": Switch("FILE", "what the backend is taken to answer, - for stdin; else the contract's example"),
    "status": Switch("STATUS", "with which HTTP status"),
    "json": _JSON,
    "config": _CONFIG,
    "help": _HELP,
}
#: The commands that name a tool.
OF_COMMAND: Mapping[str, Mapping[str, Switch]] = {"call": CALL, "preview": PREVIEW}
