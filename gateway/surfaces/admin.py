"""The operators' listener: metrics, health, the contract. Knows what is being served, no argument or answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web

from gateway.gateway import Gateway
from gateway.generation import Reload
from gateway.surfaces.http import Routes, json_response

_FRESH = {"Cache-Control": "no-store"}

#: Whether each backend can be spoken to, by name; None where nothing checks it.
Health = Callable[[], Awaitable[Mapping[str, bool | None]]]


#: The text that Prometheus scrapes, and its headers.
Scrape = Callable[[], tuple[bytes, Mapping[str, str]]]

#: Loads the contract anew, and tells how that ended.
LoadAnew = Callable[[], Awaitable[Reload]]


def admin_routes(gateway: Gateway, scrape: Scrape, health: Health, load_anew: LoadAnew) -> Routes:
    """`GET /metrics`, `/-/healthy`, `/-/ready`, `/-/contract`, `POST /-/reload`."""

    async def metrics(_: web.BaseRequest) -> web.StreamResponse:
        body, headers = scrape()
        return web.Response(body=body, headers=headers)

    async def healthy(_: web.BaseRequest) -> web.StreamResponse:
        return json_response({"healthy": True})

    async def ready(_: web.BaseRequest) -> web.StreamResponse:
        backends = await health()
        up = all(state is not False for state in backends.values())
        contract = gateway.generation.contract.digest
        return json_response({"ready": up, "contract": contract, "backends": dict(backends)}, 200 if up else 503)

    async def reload(_: web.BaseRequest) -> web.StreamResponse:
        ended = await load_anew()
        if ended.ok:
            warnings = [warning.as_json() for warning in gateway.generation.contract.warnings]
            return json_response({"ok": True, "contract": ended.digest, "warnings": warnings})
        refusals = [refusal.as_json() for refusal in ended.refusals]
        message = "The contract was refused, and the one before it is still served."
        told = {"ok": False, "error": "contract_refused", "message": message}
        return json_response({**told, "contract": ended.digest, "refusals": refusals}, 422)

    async def contract(_: web.BaseRequest) -> web.StreamResponse:
        served = gateway.generation.contract
        warnings = [warning.as_json() for warning in served.warnings]
        return json_response(
            {"digest": served.digest, "warnings": warnings, "contract": served.written}, headers=_FRESH
        )

    return Routes(
        {
            "/metrics": {"GET": metrics},
            "/-/healthy": {"GET": healthy},
            "/-/ready": {"GET": ready},
            "/-/reload": {"POST": reload},
            "/-/contract": {"GET": contract},
        },
        public=frozenset({"/-/healthy", "/-/ready"}),  # probes carry no key
    )
