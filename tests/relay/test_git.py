"""git over HTTP through the relay: a clone and a push with git's own client and git's own server program."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path
from random import Random

import pytest
from aiohttp import web

from tests.relay.peers import program, relaying, run, serving

_QUIET = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.org",
}


def _server(git: str, root: Path) -> web.Application:
    async def answer(request: web.Request) -> web.Response:
        """RFC 3875: the request as environment and stdin, the answer as header lines and a body on stdout."""
        environment = _QUIET | {
            "GIT_PROJECT_ROOT": str(root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "REMOTE_USER": "a",
            "REQUEST_METHOD": request.method,
            "PATH_INFO": request.path,
            "QUERY_STRING": request.query_string,
            "CONTENT_TYPE": request.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": request.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": request.headers.get("Git-Protocol", ""),
            "PATH": str(Path(git).parent) + ":/usr/bin:/bin",
        }
        process = await asyncio.create_subprocess_exec(
            git, "http-backend", stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
        out, _ = await process.communicate(await request.read())
        head, _, body = out.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        status = int(fields.pop("Status", "200").split(" ")[0])
        return web.Response(status=status, body=body, headers=fields)

    app = web.Application(client_max_size=1 << 26)
    app.router.add_route("*", "/{path:.*}", answer)
    return app


_DECLARED = (
    ("GET", "/{repository}/info/refs"),
    ("POST", "/{repository}/git-upload-pack"),
    ("POST", "/{repository}/git-receive-pack"),
)


@pytest.mark.parametrize("declared", [None, _DECLARED], ids=["plain", "strict"])
async def test_a_clone_and_a_push_arrive_whole(declared: tuple[tuple[str, str], ...] | None, tmp_path: Path) -> None:
    git = program("git")
    origin, first, second = tmp_path / "origin.git", tmp_path / "first", tmp_path / "second"
    await run(git, "init", "--quiet", "--bare", "--initial-branch=main", str(origin), **_QUIET)
    async with serving(_server(git, tmp_path)) as port, relaying(port, declared) as (through, notes):
        url = f"http://127.0.0.1:{through}/origin.git"
        await run(git, "clone", "--quiet", url, str(first), **_QUIET)
        # More than git sends with a length: beyond http.postBuffer (1 MiB) it uploads in chunks.
        (first / "large").write_bytes(Random(6).randbytes(1_500_000))
        (first / "small").write_text("hello\n")
        for command in (["add", "."], ["commit", "--quiet", "-m", "one"], ["push", "--quiet", "origin", "HEAD:main"]):
            await run(git, "-C", str(first), *command, **_QUIET)
        await run(git, "clone", "--quiet", url, str(second), **_QUIET)
    for name in ("large", "small"):
        assert (second / name).read_bytes() == (first / name).read_bytes()
    assert await run(git, "-C", str(origin), "fsck", "--strict", **_QUIET) == b""
    assert ("POST", 200) in notes.exchanges
    assert notes.opaques == 0
