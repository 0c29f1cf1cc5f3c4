"""One contract indexed for serving: tools by surface and name, and what each surface lists. Immutable, no sockets.

A request reads the current generation once; a reload swaps it.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from gateway.catalog.advertise import Advertised, advertise, catalog_digest
from gateway.contract.model import Contract, Endpoint
from gateway.contract.refusal import Refusal
from gateway.projection import Projection
from gateway.record import record

if TYPE_CHECKING:
    from gateway.catalog.descriptors import Described

#: The surfaces on which an endpoint is a tool; `http` is the backend's own.
TOOL_SURFACES = ("mcp", "agent", "cli")
#: Where operators try tools: every one, whatever it is exposed on; of two of one name the first surface's.
CONSOLE = "console"

#: Catalogs that are kept at once: one for each set of visible tools and surface.
_KEPT = 256


@record
class Catalog:
    """What one surface lists to one set of scopes: the tools sorted by name, and the digest that stamps them."""

    tools: tuple[Advertised, ...]
    digest: str
    by_name: Mapping[str, Advertised]


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Generation:
    """A contract that is being served."""

    contract: Contract
    _tools: Mapping[tuple[str, str], Endpoint] = field(repr=False)
    _advertised: Mapping[str, Advertised] = field(repr=False)
    #: One catalog per surface and set of visible tools, made when it is first asked for.
    _catalogs: dict[tuple[str, tuple[str, ...]], Catalog] = field(repr=False, default_factory=dict)
    _by_scopes: dict[tuple[str, frozenset[str] | None], Catalog] = field(repr=False, default_factory=dict)
    _described: dict[str, Mapping[str, Described]] = field(repr=False, default_factory=dict)

    def catalog(self, surface: str, scopes: frozenset[str] | None) -> Catalog:
        """What a surface lists to a principal; equal sets of visible tools share one catalog."""
        if (known := self._by_scopes.get((surface, scopes))) is not None:
            return known
        visible = self.visible(surface, scopes)
        key = (surface, tuple(endpoint.id for endpoint in visible))
        catalog = self._catalogs.get(key)
        if catalog is None:
            tools = tuple(self._advertised[endpoint.id] for endpoint in visible)
            by_name = MappingProxyType({tool.name: tool for tool in tools})
            if len(self._catalogs) >= _KEPT:  # a token may hold any subset of the scopes
                self._catalogs.clear()
            catalog = self._catalogs[key] = Catalog(tools, catalog_digest(tools), by_name)
        if len(self._by_scopes) >= _KEPT:
            self._by_scopes.clear()
        self._by_scopes[surface, scopes] = catalog
        return catalog

    def find(self, name: str, surface: str, scopes: frozenset[str] | None) -> Endpoint | None:
        """The tool of that name on that surface, where the principal may know of it."""
        endpoint = self._tools.get((surface, name))
        return endpoint if endpoint is not None and may_use(endpoint, scopes) else None

    def described(self, surface: str) -> Mapping[str, Described]:
        """The catalog's descriptors of every tool on a surface, by tool name; made when first asked for, and kept."""
        known = self._described.get(surface)
        if known is None:
            from gateway.catalog.descriptors import described  # widening is work that a start need not wait for

            characters = self.contract.gateway.catalog.description
            known = self._described[surface] = {
                tool_name(endpoint): described(
                    endpoint,
                    self._advertised[endpoint.id],
                    self.contract.backends[endpoint.backend],
                    characters=characters,
                )
                for endpoint in self.visible(surface, None)
            }
        return known

    def visible(self, surface: str, scopes: frozenset[str] | None) -> tuple[Endpoint, ...]:
        """The tools of a surface that a principal may know of, sorted by name."""
        return tuple(
            endpoint for (on, _), endpoint in self._tools.items() if on == surface and may_use(endpoint, scopes)
        )

    def projections(self) -> tuple[Projection, ...]:
        """Every projection that a call may run."""
        views = (endpoint.tool.view for endpoint in self.contract.endpoints.values() if endpoint.tool is not None)
        return tuple(view.project for view in views if view is not None and view.project is not None)

    def nearest(self, name: str, surface: str, scopes: frozenset[str] | None) -> list[str]:
        """Names like the given one, among those the principal may know of."""
        names = [tool_name(endpoint) for endpoint in self.visible(surface, scopes)]
        return difflib.get_close_matches(name[:64], names, n=3)


@record
class Reload:
    """How the last load of the contract ended, the one at the start included."""

    #: Seconds since the epoch.
    at: float
    ok: bool
    #: Of the contract that is served since, which a refused load leaves as it was.
    digest: str
    refusals: tuple[Refusal, ...] = ()
    #: When a load was last accepted.
    accepted_at: float = 0.0


def index(contract: Contract) -> Generation:
    """Index a contract for serving."""
    tools = {
        (surface, tool_name(endpoint)): endpoint
        for endpoint in contract.endpoints.values()
        for surface in TOOL_SURFACES
        if surface in endpoint.expose and (surface != "agent" or _is_for_models(endpoint))
    }
    for (_, name), endpoint in sorted(tools.items(), key=lambda item: TOOL_SURFACES.index(item[0][0])):
        tools.setdefault((CONSOLE, name), endpoint)
    advertised = {endpoint.id: advertise(endpoint) for endpoint in tools.values()}
    return Generation(contract, MappingProxyType(dict(sorted(tools.items()))), MappingProxyType(advertised))


def may_use(endpoint: Endpoint, scopes: frozenset[str] | None) -> bool:
    """The one predicate for lists, descriptions and calls on every surface; None means that nobody has to prove who."""
    return scopes is None or endpoint.scopes <= scopes


def _is_for_models(endpoint: Endpoint) -> bool:
    """Whether a model may be told of a tool. On MCP the host keeps it from those that a card calls; elsewhere nobody
    stands between the list and the model (decision 0096)."""
    return endpoint.tool is None or endpoint.tool.ui is None or "model" in endpoint.tool.ui.visibility


def tool_name(endpoint: Endpoint) -> str:
    """The name of an endpoint's tool; an endpoint on a tool surface always has one."""
    assert endpoint.tool is not None
    return endpoint.tool.name
