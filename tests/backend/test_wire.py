"""The bytes that reach a backend: request target, headers and body, for each style and each known mistake."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from gateway import __version__
from gateway.backend.decode import ACCEPT_ENCODING
from gateway.backend.exchange import Answer, Request
from gateway.backend.request import Body, RequestBuilder, SendRule, compile_request
from tests.backend.raw import OK, client_of, declared, raw_backend


@dataclass(frozen=True)
class Case:
    id: str
    request: str
    arguments: dict[str, Any]
    line: str
    sends: dict[str, SendRule] = field(default_factory=dict)
    body: Body | None = None
    schemas: dict[str, Any] = field(default_factory=dict)
    content: bytes = b""
    has: tuple[str, ...] = ()
    base_path: str = ""


def builder(case: Case) -> RequestBuilder:
    method, path = case.request.split(" ")
    schemas = case.schemas or dict.fromkeys(case.arguments, True)
    compiled = compile_request(method, path, case.sends, case.body, schemas, backend="b", base_path=case.base_path)
    assert isinstance(compiled, RequestBuilder), compiled
    return compiled


R = SendRule
CASES = [
    Case("REQ-03 deepObject", "GET /s", {"filter": {"status": "open", "owner": "me"}},
         "GET /s?filter%5Bstatus%5D=open&filter%5Bowner%5D=me", {"filter": R(style="deepObject")}),
    Case("REQ-04 one segment", "GET /files/{name}", {"name": "a/b?c#d%e f"}, "GET /files/a%2Fb%3Fc%23d%25e%20f"),
    Case("REQ-07 every placeholder", "GET /{kind}/{id}", {"kind": "pet", "id": "7"}, "GET /pet/7"),
    Case("REQ-08 path and body share a name", "PUT /users/{id}", {"user": "7", "id": 123, "name": "J"}, "PUT /users/7",
         {"user": R("path", "id"), "id": R("body")}, content=b'{"id":123,"name":"J"}'),
    Case("REQ-09 a whole body beside a query of the same name", "POST /values", {"status": "active", "items": [1, 2]},
         "POST /values?values=active", {"status": R("query", "values")}, Body(argument="items"), content=b"[1,2]"),
    Case("REQ-11 form", "POST /login", {"username": "admin", "tags": ["a", "b"]}, "POST /login", {}, Body("form"),
         content=b"username=admin&tags=a&tags=b", has=("Content-Type: application/x-www-form-urlencoded",)),
    Case("REQ-12 cookie", "GET /c", {"sid": "x;y"}, "GET /c", {"sid": R("cookie")}, has=("Cookie: sid=x%3By",)),
    Case("REQ-15 a POST with a query", "POST /items", {"dryRun": True, "name": "x"}, "POST /items?dryRun=true",
         {"dryRun": R("query")}, content=b'{"name":"x"}', has=("Content-Type: application/json",)),
    Case("REQ-16 integers", "GET /ads/{id}", {"id": 21000000}, "GET /ads/21000000"),
    Case("REQ-16 beyond a double", "GET /ads/{id}", {"id": 9007199254740993}, "GET /ads/9007199254740993"),
    Case("REQ-17 a whole number", "GET /l", {"limit": 30.0}, "GET /l?limit=30"),
    Case("REQ-17 in a body", "POST /l", {"limit": 30.0, "deep": [{"n": 2.0, "x": 2.5}]}, "POST /l",
         content=b'{"limit":30,"deep":[{"n":2,"x":2.5}]}'),
    Case("REQ-18 absent", "GET /l", {}, "GET /l", schemas={"name": True}),
    Case("REQ-18 null", "GET /l", {"name": None}, "GET /l"),
    Case("REQ-19 each key once, in declared order", "GET /l", {"limit": 5, "expand": "items"},
         "GET /l?expand=items&limit=5", schemas={"expand": True, "limit": True}),
    Case("REQ-20 no arguments", "POST /l", {}, "POST /l", schemas={"a": True}, content=b"{}"),
    Case("REQ-21 an encoded slash", "GET /code/{code}", {"code": "a/b"}, "GET /code/a%2Fb"),
    Case("falsy values are values", "GET /l", {"a": False, "b": 0, "c": ""}, "GET /l?a=false&b=0&c="),
    Case("form explodes", "GET /l", {"c": ["blue", "a,b", "x y"]}, "GET /l?c=blue&c=a%2Cb&c=x%20y"),
    Case("form, not exploded", "GET /l", {"c": ["blue", "a,b"]}, "GET /l?c=blue,a%2Cb", {"c": R(explode=False)}),
    Case("spaceDelimited", "GET /l", {"c": ["blue", "a,b"]}, "GET /l?c=blue%20a%2Cb", {"c": R(style="spaceDelimited")}),
    Case("pipeDelimited", "GET /l", {"c": ["blue", 1]}, "GET /l?c=blue%7C1", {"c": R(style="pipeDelimited")}),
    Case("pipeDelimited, exploded", "GET /l", {"c": ["a", "b"]}, "GET /l?c=a&c=b",
         {"c": R(style="pipeDelimited", explode=True)}),
    Case("reserved", "GET /l", {"u": "http://h:1/a?b=c&d#e[f]+%"},
         "GET /l?u=http://h:1/a?b=c%26d%23e%5Bf%5D%2B%25", {"u": R(reserved=True)}),
    Case("json in a parameter", "GET /l", {"f": {"a": [1, None], "b": "é"}},
         "GET /l?f=%7B%22a%22%3A%5B1%2Cnull%5D%2C%22b%22%3A%22%C3%A9%22%7D", {"f": R(encode="json")}),
    Case("an empty list is left out", "GET /l", {"c": [], "d": 1}, "GET /l?d=1"),
    Case("an empty list, omit", "GET /l", {"c": []}, "GET /l", {"c": R(empty="omit")}),
    Case("an empty list, blank", "GET /l", {"c": []}, "GET /l?c=", {"c": R(empty="blank")}),
    Case("an empty list, literal", "GET /l", {"c": []}, "GET /l?c=no%20one", {"c": R(empty="no one")}),
    Case("another wire name", "GET /l", {"top": 3}, "GET /l?$top=3", {"top": R(name="$top")}),
    Case("a name that must be encoded", "GET /l", {"a b&c": 3}, "GET /l?a%20b%26c=3"),
    Case("non-ASCII", "GET /p/{q}", {"q": "café/☕", "r": "é"}, "GET /p/caf%C3%A9%2F%E2%98%95?r=%C3%A9"),
    Case("dot", "GET /p/{q}/x", {"q": "."}, "GET /p/%2E/x"),
    Case("dot dot", "GET /p/{q}/x", {"q": ".."}, "GET /p/%2E%2E/x"),
    Case("a dot inside", "GET /p/{q}", {"q": "a.b"}, "GET /p/a.b"),
    Case("a list in a path", "GET /p/{q}", {"q": ["a,", "b/"]}, "GET /p/a%2C,b%2F"),
    Case("json in a path", "GET /p/{q}", {"q": ["/"]}, "GET /p/%5B%22%2F%22%5D", {"q": R(encode="json")}),
    Case("text around a placeholder", "GET /F(K='{k}')", {"k": "it's"}, "GET /F(K='it%27s')"),
    Case("a written query", "GET /s?type=person&x", {"q": "a"}, "GET /s?type=person&x&q=a"),
    Case("base path", "GET /a/{b}", {"b": "c"}, "GET /api/v1/a/c", base_path="/api/v1/"),
    Case("target untouched", "GET /a%2Fb//c?x=", {}, "GET /a%2Fb//c?x="),
    Case("large floats", "GET /l", {"a": 1e21, "b": 1e-7, "c": 0.1},
         "GET /l?a=1000000000000000000000&b=1e-07&c=0.1"),
    Case("null stays in a body", "POST /l", {"a": None, "b": []}, "POST /l", content=b'{"a":null,"b":[]}'),
    Case("big integers in a body", "POST /l", {"a": 12345678901234567890123}, "POST /l",
         content=b'{"a":12345678901234567890123}'),
    Case("a POST without arguments", "POST /l", {}, "POST /l", has=("Content-Length: 0",)),
    Case("DELETE goes into the query", "DELETE /l", {"id": 1}, "DELETE /l?id=1"),
    Case("DELETE with a body", "DELETE /l", {"id": 1}, "DELETE /l", {"id": R("body")}, content=b'{"id":1}'),
    Case("header", "GET /l", {"lang": ["de", "en"], "n": 3.0}, "GET /l",
         {"lang": R("header", "Accept-Language"), "n": R("header", "X-N")}, has=("Accept-Language: de,en", "X-N: 3")),
    Case("cookies", "GET /l", {"a": 'x "y"', "b": True}, "GET /l", {"a": R("cookie", "A"), "b": R("cookie")},
         has=("Cookie: A=x%20%22y%22; b=true",)),
    Case("form spells a space as plus", "POST /l", {"a": "x +&", "b": None, "c": {"k": 1}}, "POST /l",
         {"c": R(style="deepObject")}, Body("form"), content=b"a=x+%2B%26&c%5Bk%5D=1"),
    Case("a whole form", "POST /l", {"all": {"a": 1, "b": ["x", "y"]}}, "POST /l", {}, Body("form", "all"),
         content=b"a=1&b=x&b=y"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
@pytest.mark.requirement("s12-31-list-repeats", "s12-38-delete-query")
async def test_a_raw_backend_receives_exactly_these_bytes(case: Case) -> None:
    request = builder(case).build(case.arguments)
    assert isinstance(request, Request), request
    async with raw_backend(OK) as backend, client_of(declared(backend.url)) as client:
        answer = await client.send(request)
        assert isinstance(answer, Answer), answer
    head, _, content = backend.received[0].partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines[0] == case.line + " HTTP/1.1"
    assert content == case.content
    for line in case.has:
        assert line in lines


async def test_no_header_is_invented_but_the_five_that_are_documented() -> None:
    request = Request("b", "GET", "/x", (("X-Tool-Call-Id", "c1"), ("traceparent", "00-1")))
    async with raw_backend(OK) as backend, client_of(declared(backend.url)) as client:
        await client.send(request)
    assert backend.received[0].decode().split("\r\n") == [
        "GET /x HTTP/1.1",
        f"Host: {backend.url.removeprefix('http://')}",
        "Accept: application/json",
        f"Accept-Encoding: {ACCEPT_ENCODING}",
        f"User-Agent: toolview/{__version__}",
        "X-Tool-Call-Id: c1",
        "traceparent: 00-1",
        "",
        "",
    ]


async def test_a_multipart_body_is_parts_with_names_and_an_object_is_json() -> None:
    case = Case("", "POST /l", {"a": "ü", "b": [1, True], "c": {"k": 2.0}, 'q"': ""}, "", {}, Body("multipart"))
    request = builder(case).build(case.arguments)
    assert isinstance(request, Request)
    assert request.body is not None
    kind = dict(request.headers)["Content-Type"]
    boundary = kind.removeprefix("multipart/form-data; boundary=").encode()
    parts = [part.strip(b"\r\n") for part in request.body.split(b"--" + boundary)]
    named = b'Content-Disposition: form-data; name="%s"\r\n'
    assert parts == [
        b"",
        named % b"a" + b"\r\n" + "ü".encode(),
        named % b"b" + b"\r\n1",
        named % b"b" + b"\r\ntrue",
        named % b"c" + b'Content-Type: application/json\r\n\r\n{"k":2}',
        (named % b"q%22").strip(b"\r\n"),
        b"--",
    ]
