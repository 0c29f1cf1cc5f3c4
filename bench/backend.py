"""A plain HTTP backend that costs next to nothing: one 1 KB JSON answer, keep-alive; knows nothing of who asks."""

from __future__ import annotations

import asyncio
import json
import sys

#: 1 KB of a legacy record: more than a model needs, with an id that no double holds.
RECORD = {
    "id": 1915883588174806058,
    "name": "Harbour crane inspection, north quay",
    "state": "OPEN",
    "price": 1249.5,
    "tags": [{"id": 11, "label": "urgent"}, {"id": 12, "label": "north"}],
    "owner": {"id": 1900000000000000123, "login": "m.okafor", "phone": "+1-555-0142", "cost_center": "CC-4471"},
    "address": {"line1": "17 Mill Lane", "line2": None, "city": "Rotterdam", "geo": {"lat": 51.92442, "lon": 4.477733}},
    "created_at": "2026-03-02T09:15:00Z",
    "updated_at": "2026-11-20T17:45:12Z",
    "deleted_at": None,
    "measurements": [{"at": f"2026-11-{day:02d}", "value": day * 1.25, "unit": "mm"} for day in range(1, 8)],
    "audit": {"created_by": "batch_import", "revision": 17, "checksum": "9f86d081884c7d659a2feaa0c55ad015"},
    "internal_notes": "Follow-up of the spring storm damage. Operator to be present; bring the long ladder and ropes.",
}
BODY = json.dumps(RECORD, separators=(",", ":")).encode()
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(BODY), BODY)
#: 140 KB: a list of the same record under `/large/`.
LARGE = {"rows": [RECORD] * (140 * 1024 // len(BODY))}
_LARGE_BODY = json.dumps(LARGE, separators=(",", ":")).encode()
_LARGE_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (
    len(_LARGE_BODY),
    _LARGE_BODY,
)


class _Plain(asyncio.Protocol):
    """Answers each request head the same; bodies are not expected."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.buffer = b""

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while b"\r\n\r\n" in self.buffer:
            head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
            self.transport.write(_LARGE_ANSWER if b" /large/" in head[:64] else _ANSWER)


async def _serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(_Plain, "127.0.0.1", port)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))
