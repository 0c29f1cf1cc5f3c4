"""The demo's HTTP API, in the manner of an old in-house service: fat answers, own error bodies, own defaults."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import hdrs, web

from gateway.demo.people import BLOCKS, TEAMS, new_record, team_records

#: Below this many bytes an answer is not worth compressing.
_GZIP_FROM = 1024
_LONGEST_WAIT = 60.0

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def start(host: str, port: int) -> tuple[web.AppRunner, int]:
    """Serve the directory and say on which port; 0 takes a free one. `await runner.cleanup()` ends it."""
    runner = web.AppRunner(application(), access_log=None, handler_cancellation=True, shutdown_timeout=1.0)
    await runner.setup()
    site = web.TCPSite(runner, host, port)
    try:
        await site.start()
    except OSError:
        await runner.cleanup()
        raise
    bound: int = runner.addresses[0][1]
    return runner, bound


def application() -> web.Application:
    """The directory as an aiohttp application, with its own people: two applications share nothing."""
    directory = _Directory()
    app = web.Application(middlewares=[_legacy_errors])
    app.add_routes(
        [
            web.get("/people/{team}", directory.list_people),
            web.post("/people/search", directory.search_people),
            web.get("/people/{team}/{id}", directory.get_person),
            web.post("/people", directory.create_person),
            web.get("/broken", _broken),
            web.get("/slow", _slow),
            web.get("/debug/loads", directory.show_loads),
        ]
    )
    return app


class _Refused(Exception):
    """The directory says no; the middleware writes it in the one form this API has for that."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message


@dataclass
class _Loads:
    """What was fetched from the imagined database: the cost that a good default saves."""

    people: int = 0
    stats: int = 0
    history: int = 0
    #: Method and raw target of the last request for people.
    last: str | None = None


@dataclass
class _Directory:
    teams: dict[str, list[dict[str, Any]]] = field(
        default_factory=lambda: {team: list(team_records(team)) for team in TEAMS}
    )
    loads: _Loads = field(default_factory=_Loads)

    async def list_people(self, request: web.Request) -> web.Response:
        team = request.match_info["team"]
        people = list(itertools.islice(self._team(team), _limit(request.query.get("limit"))))
        shown = self._load(request, people, _blocks(request))
        return _answer(request, {"team": team, "total": len(self.teams[team]), "people": shown})

    async def get_person(self, request: web.Request) -> web.Response:
        wanted = request.match_info["id"]
        for person in self._team(request.match_info["team"]):
            if str(person["id"]) == wanted:
                return _answer(request, self._load(request, [person], _blocks(request))[0])
        raise _Refused(404, "PERSON_NOT_FOUND", "No person of that id in this team.")

    async def search_people(self, request: web.Request) -> web.Response:
        body = await _json_object(request)
        query = str(body.get("query") or "").casefold()
        if not query:
            raise _Refused(422, "QUERY_MISSING", "The field 'query' must hold at least one character.")
        team = body.get("team")
        searched: Iterable[dict[str, Any]] = self._team(team) if team else itertools.chain(*self.teams.values())
        hits = [person for person in searched if _matches(person, query)]
        found = self._load(request, hits[: _limit(body.get("limit"))], ())
        return _answer(request, {"query": body["query"], "total": len(hits), "people": found})

    async def create_person(self, request: web.Request) -> web.Response:
        body = await _json_object(request)
        for name in ("team", "name", "email"):
            if not isinstance(body.get(name), str) or not body[name].strip():
                raise _Refused(422, "FIELD_MISSING", f"The field '{name}' must be a text that is not blank.")
        people = self._team(body["team"])
        if any(person["email"] == body["email"] for members in self.teams.values() for person in members):
            raise _Refused(409, "EMAIL_TAKEN", "Somebody has this e-mail address already.")
        title = str(body.get("title") or "Unassigned")
        person = new_record(body["team"], len(people), body["name"], title, body["email"])
        people.append(person)
        self.loads.last = f"{request.method} {request.raw_path}"
        created = _answer(request, person | {"welcome_mail": bool(body.get("notify", True))}, status=201)
        created.headers[hdrs.LOCATION] = f"/people/{person['team']}/{person['id']}"
        return created

    async def show_loads(self, request: web.Request) -> web.Response:
        return _answer(request, vars(self.loads))

    def _team(self, team: Any) -> list[dict[str, Any]]:
        if not isinstance(team, str) or team not in self.teams:
            raise _Refused(404, "TEAM_NOT_FOUND", "No such team. Known: " + ", ".join(self.teams) + ".")
        return self.teams[team]

    def _load(
        self, request: web.Request, people: list[dict[str, Any]], blocks: tuple[str, ...]
    ) -> list[dict[str, Any]]:
        self.loads.last = f"{request.method} {request.raw_path}"
        self.loads.people += len(people)
        self.loads.stats += len(people) * ("stats" in blocks)
        self.loads.history += len(people) * ("history" in blocks)
        left_out = {block: None for block in BLOCKS if block not in blocks}
        return [person | left_out for person in people]


async def _broken(request: web.Request) -> web.Response:
    raise _Refused(500, "DB_DOWN", "ORA-12541: TNS:no listener")


async def _slow(request: web.Request) -> web.Response:
    text = request.query.get("seconds", "5")
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= _LONGEST_WAIT:
        raise _Refused(422, "BAD_SECONDS", "The parameter 'seconds' must be a number from 0 to 60.")
    await asyncio.sleep(seconds)
    return _answer(request, {"status": "DONE", "waited": seconds})


def _blocks(request: web.Request) -> tuple[str, ...]:
    # The old clients never say `include`, so leaving it out means everything; only a blank one means nothing.
    asked = request.query.get("include")
    if asked is None:
        return BLOCKS
    blocks = tuple(block for block in asked.split(",") if block)
    for block in blocks:
        if block not in BLOCKS:
            raise _Refused(422, "BAD_INCLUDE", "The parameter 'include' knows: " + ", ".join(BLOCKS) + ".")
    return blocks


def _limit(asked: Any) -> int | None:
    if asked is None:
        return None
    if not str(asked).isascii() or not str(asked).isdecimal() or len(str(asked)) > 6 or int(asked) < 1:
        raise _Refused(422, "BAD_LIMIT", "The field 'limit' must be a whole number above 0.")
    return int(asked)


def _matches(person: dict[str, Any], query: str) -> bool:
    labels = [tag["label"] for tag in person["tags"]]
    return any(query in text.casefold() for text in (person["name"], person["title"], person["office"], *labels))


async def _json_object(request: web.Request) -> dict[str, Any]:
    try:
        body = json.loads(await request.read())
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise _Refused(400, "BAD_BODY", "The body must be a JSON object.")
    return body


def _answer(request: web.Request, value: Any, status: int = 200) -> web.Response:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    # The header as this service has always written it: names in whatever case their author liked.
    answer = web.Response(body=text, status=status, headers={"content-type": "application/json; charset=utf-8"})
    answer.headers["X-DIRECTORY-Version"] = "4.11.2"
    answer.headers["vary"] = "Accept-Encoding"
    if len(text) >= _GZIP_FROM and _takes_gzip(request.headers.get(hdrs.ACCEPT_ENCODING, "")):
        answer.enable_compression(web.ContentCoding.gzip)
    return answer


def _takes_gzip(accepted: str) -> bool:
    for coding in accepted.lower().split(","):
        name, _, weight = coding.partition(";")
        if name.strip() == "gzip":
            return re.fullmatch(r"\s*q\s*=\s*0(\.0*)?\s*", weight) is None
    return False


@web.middleware
async def _legacy_errors(request: web.Request, handler: _Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except _Refused as refused:
        body = {"error": {"code": refused.code, "message": refused.message}}
        return _answer(request, body, status=refused.status)
    except web.HTTPNotFound:
        body = {"error": {"code": "NO_SUCH_PATH", "message": "This path means nothing here."}}
        return _answer(request, body, status=404)
    except web.HTTPMethodNotAllowed as refused:
        body = {"error": {"code": "BAD_METHOD", "message": "This path does not take that method."}}
        answer = _answer(request, body, status=405)
        answer.headers[hdrs.ALLOW] = refused.headers[hdrs.ALLOW]
        return answer
