"""What call and surface tests stand on: a backend on a raw socket that answers as told, and contracts from text."""

from __future__ import annotations

import asyncio
import json
import textwrap
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateway.call.outcome import Call, Outcome
from gateway.contract.load import load
from gateway.contract.model import Contract
from gateway.contract.refusal import Refusal
from gateway.gateway import Gateway, Observer
from gateway.generation import index
from gateway.unlistened import unlistened


@dataclass(frozen=True)
class Received:
    """One request as the backend got it."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    raw: bytes

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)


@dataclass
class Backend:
    """Answers each request with what `answer` gives for it, which may take a while; None closes without a word."""

    answer: Callable[[Received], bytes | Awaitable[bytes] | None]
    received: list[Received] = field(default_factory=list)
    url: str = ""
    #: Set when a client that was being made to wait is gone.
    left: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                lines = head.decode("latin-1").split("\r\n")
                method, target, _ = lines[0].split(" ", 2)
                headers = tuple((line.partition(":")[0], line.partition(":")[2].strip()) for line in lines[1:-2])
                length = int({key.lower(): value for key, value in headers}.get("content-length", 0))
                body = await reader.readexactly(length)
                request = Received(method, target, headers, body, head + body)
                self.received.append(request)
                answer = self.answer(request)
                if isinstance(answer, Awaitable):
                    answer = await answer
                if answer is None:
                    break
                if answer == HANG:
                    await reader.read()
                    self.left.set()
                    break
                writer.write(answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


#: An answer that never comes.
HANG = b"hang"


@dataclass
class Held:
    """Answers that are kept back until `release` is set; each `was_asked` waits for one more who asks."""

    content: bytes
    release: asyncio.Event = field(default_factory=asyncio.Event)
    _asked: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))

    async def was_asked(self) -> None:
        await self._asked.acquire()

    async def __call__(self, _: Received) -> bytes:
        self._asked.release()
        await self.release.wait()
        return self.content


def http(
    body: Any = b"", status: int = 200, headers: Mapping[str, str] | None = None, content_type: str = "application/json"
) -> bytes:
    """One HTTP answer; a body that is not bytes is written as JSON."""
    content = body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()
    lines = [f"HTTP/1.1 {status} Told", f"Content-Type: {content_type}", f"Content-Length: {len(content)}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + content


@asynccontextmanager
async def backend(answer: Callable[[Received], bytes | Awaitable[bytes] | None] | bytes) -> AsyncIterator[Backend]:
    """A backend on a free port; one fixed answer, or one made for each request."""
    served = Backend(answer if callable(answer) else lambda _: answer)
    server = await asyncio.start_server(served.serve, "127.0.0.1", 0)
    served.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield served
    finally:
        server.close()


def contract_at(folder: Path, text: str, files: Mapping[str, str] | None = None) -> Contract | tuple[Refusal, ...]:
    """Load a contract from text, with files beside it (`projections/…` among them)."""
    (folder / "projections").mkdir(parents=True, exist_ok=True)
    for name, content in {**(files or {}), "gateway.yaml": text}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(content))
    return load(folder / "gateway.yaml")


def accepted(folder: Path, text: str, files: Mapping[str, str] | None = None) -> Contract:
    """Load a contract that must be accepted."""
    contract = contract_at(folder, text, files)
    assert isinstance(contract, Contract), "\n".join(map(str, contract))
    return contract


@dataclass
class Running:
    """A gateway without listeners, and every outcome that it told."""

    gateway: Gateway
    outcomes: list[Outcome]

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        surface: str = "mcp",
        call_id: str = "call-1",
        headers: Mapping[str, str] | None = None,
        view: bool = True,
    ) -> Outcome:
        call = Call(tool, dict(arguments or {}), surface, call_id, headers or {}, view=view)
        return await self.gateway.run(call)


@asynccontextmanager
async def running(contract: Contract, *observers: Observer, trace: bool = False) -> AsyncIterator[Running]:
    """A gateway on a contract, with its real client and projection workers."""
    outcomes: list[Outcome] = []
    async with unlistened(index(contract), outcomes.append, *observers, trace=trace) as gateway:
        yield Running(gateway, outcomes)
