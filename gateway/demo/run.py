"""`toolview demo`: the demo API and the gateway beside it in one process, on free ports, with what to try printed.

Part of the composition root, unlike the demo API itself, which knows nothing of the gateway.
"""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from gateway.contract.load import load
from gateway.contract.model import Contract
from gateway.contract.refusal import Refusal
from gateway.contract.values import Address
from gateway.demo import backend as demo
from gateway.gateway import Observer
from gateway.serve import PortTaken, Serving

_PORTS_TRIED = 50


async def run_demo(contract: Contract, *observers: Observer) -> PortTaken | None:
    """Start both, print three lines to try, and stop cleanly on SIGINT or SIGTERM."""
    moved: list[str] = []
    contract = _on_free_ports(contract, moved)
    (name, told), *_ = contract.backends.items()
    url = urlsplit(told.url or "")
    runner, _ = await demo.start(url.hostname or "127.0.0.1", url.port or 80)
    serving = Serving(contract, *observers, load=lambda: _where_it_was(load(Path(contract.files[0])), contract))
    try:
        if (taken := await serving.start()) is not None:
            return taken
        print("\n".join([*moved, *_to_try(serving, name)]), flush=True)
        await _signalled()
        print("\nStopping: finishing what is in flight.", flush=True)
        await serving.stop(5.0)
    finally:
        await runner.cleanup()
    return None


def _to_try(serving: Serving, backend: str) -> Iterator[str]:
    plain, tools, admin = (
        f"http://{serving.addresses[listener]}" for listener in (f"passthrough.{backend}", "tools", "admin")
    )
    yield ""
    yield "The demo directory and the gateway beside it are running. Try, in another terminal:"
    yield ""
    card = f"""curl -s {tools}/agent/tools/list_people -d '{{"team":"platform"}}' | wc -c"""
    yield f"  {f'curl -s {plain}/people/platform | wc -c':86}  # bytes of the API itself"
    yield f"  {card:86}  # bytes of the same list as a card"
    yield f"  {f'curl -s {admin}/metrics | grep ^toolview_tool.*bytes':86}  # what the view saved"
    yield ""
    yield f"An MCP client connects to {tools}/mcp. Ctrl-C stops both."


def _on_free_ports(contract: Contract, moved: list[str]) -> Contract:
    """The demo's contract with another port wherever one is taken; each move is said."""
    used: set[int] = set()

    def free(what: str, address: Address) -> Address:
        for port in range(address.port, address.port + _PORTS_TRIED):
            if port not in used and _is_free(address.host, port):
                used.add(port)
                if port != address.port:
                    moved.append(f"Port {address.port} is taken: {what} uses {port} instead.")
                return replace(address, port=port)
        return replace(address, port=0)

    (name, backend), *_ = contract.backends.items()
    url = urlsplit(backend.url or "")
    told = free("the demo directory", Address(url.hostname or "127.0.0.1", url.port or 80))
    assert backend.passthrough is not None
    passthrough = backend.passthrough.model_copy(
        update={"listen": free("the pass-through", backend.passthrough.listen)}
    )
    backend = replace(backend, url=urlunsplit(url._replace(netloc=str(told))), passthrough=passthrough)
    gateway = contract.gateway
    listeners: dict[str, Any] = {
        "tools": gateway.tools.model_copy(update={"listen": free("tools", gateway.tools.listen)}),
        "admin": gateway.admin.model_copy(update={"listen": free("admin", gateway.admin.listen)}),
    }
    return replace(contract, gateway=replace(gateway, **listeners), backends={name: backend})


def _where_it_was(loaded: Contract | tuple[Refusal, ...], contract: Contract) -> Contract | tuple[Refusal, ...]:
    """What a reload brings, with the addresses that the demo has come to use."""
    if isinstance(loaded, tuple):
        return loaded
    gateway = replace(loaded.gateway, tools=contract.gateway.tools, admin=contract.gateway.admin)
    moved = {
        name: replace(backend, url=contract.backends[name].url, passthrough=contract.backends[name].passthrough)
        if name in contract.backends
        else backend
        for name, backend in loaded.backends.items()
    }
    return replace(loaded, gateway=gateway, backends=moved)


def _is_free(host: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


async def _signalled() -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping.set)
    await stopping.wait()
