"""Whether one schema fits another: what the answer may be, and the two questions; the search is loaded when needed.

Most slices of most contracts fit plainly, and a gateway that serves only such ones need not load what searches.
"""

from __future__ import annotations

from typing import Any

from gateway.record import record
from gateway.schema.relation_plain import plainly_fits
from gateway.schema.schema import Schema


@record
class Yes:
    """Every value of the one satisfies the other."""


@record
class No:
    """A value of the one that the other refuses."""

    #: Where, as `people[].name`; "" is the root.
    path: str
    #: Valid under the one, and refused by the other.
    counterexample: Any
    #: One sentence for whoever wrote the schemas.
    reason: str


@record
class Unknown:
    """Neither was shown; the reason says what stood in the way."""

    reason: str


Fits = Yes | No | Unknown


def fits(narrow: Any, wide: Any, *, formats: str = "annotate", **more: Any) -> Fits:
    """Whether every JSON value valid under `narrow` satisfies `wide`; see `relation.fits`."""
    from gateway.schema import relation

    return relation.fits(narrow, wide, formats=formats, **more)


def fits_slice(full: Any, view: Any, *, formats: str = "annotate", **more: Any) -> Fits:
    """Whether every full answer, stripped by its own schema and then cut to what the view declares, satisfies the view.

    Both are compiled schemas, or documents that may still turn out to be none. A counterexample is a full answer that
    is valid and of which the view refuses what is left.
    """
    # only of a compiled schema is it known that every word in it is honoured
    if isinstance(full, Schema) and isinstance(view, Schema) and plainly_fits(full.document, view.document):
        return Yes()
    from gateway.schema import relation

    return relation.fits_slice(full, view, formats=formats, **more)
