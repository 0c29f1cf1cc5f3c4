"""The name that was probably meant; knows nothing but names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The closest of the known names, or None where none is close."""
    close = difflib.get_close_matches(name[:60], list(known), n=1, cutoff=0.6)
    return close[0] if close else None


def did_you_mean(name: str, known: Iterable[str], quote: str = '"') -> str:
    """`; did you mean "limit"?`, or nothing."""
    close = nearest(name, known)
    return f"; did you mean {quote}{close}{quote}?" if close is not None else ""
