"""FastMCP's own proxy of an OpenAPI document, as its documentation sets it up; runs in the scratch environment only."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import httpx2  # type: ignore[import-not-found,unused-ignore]  # lives in bench/.venv-… alone
from fastmcp import FastMCP  # type: ignore[import-not-found,unused-ignore]  # likewise


def main(port: int, backend: str, document: str) -> None:
    """Serve `document` in front of `backend`, stateless and with JSON answers: the leanest form it offers."""
    spec: dict[str, Any] = json.loads(Path(document).read_text())
    proxy = FastMCP.from_openapi(spec, client=httpx2.AsyncClient(base_url=backend), name="bench")
    # Without its log of requests, which would be a cost that says nothing of the proxy.
    proxy.run(
        transport="http",
        host="127.0.0.1",
        port=port,
        stateless_http=True,
        json_response=True,
        show_banner=False,
        log_level="WARNING",
    )


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3])
