"""What cannot be compiled, what cannot be sent, and what would be lost: each with its argument and its reason."""

from __future__ import annotations

import json
import math
from typing import Any
from urllib.parse import parse_qsl, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.backend.exchange import Request
from gateway.backend.request import (
    Body,
    RequestBuilder,
    RequestFault,
    SendRule,
    Unsendable,
    compile_request,
)

R = SendRule


def compiled(
    request: str, sends: dict[str, SendRule] | None = None, body: Body | None = None, **arguments: Any
) -> RequestBuilder | tuple[RequestFault, ...]:
    method, _, path = request.partition(" ")
    return compile_request(method, path, sends or {}, body, arguments, backend="b")


def built(
    request: str, sends: dict[str, SendRule] | None, body: Body | None, accepted: dict[str, Any]
) -> Request | Unsendable:
    builder = compiled(request, sends, body, **dict.fromkeys(accepted, True))
    assert isinstance(builder, RequestBuilder), builder
    return builder.build(accepted)


S, N, A, O = {"type": "string"}, {"type": "number"}, {"type": "array"}, {"type": "object"}  # noqa: E741 - schema letters

REFUSED: list[tuple[str, dict[str, SendRule], Body | None, dict[str, Any], tuple[str | int, ...], str]] = [
    ("GET /a/{b}", {}, None, {}, ("request",), "placeholder `{b}` has no argument"),
    ("GET /a/{}", {}, None, {}, ("request",), "names no argument"),
    ("GET /a/{b", {}, None, {"b": S}, ("request",), "has no partner"),
    ("GET /a b", {}, None, {}, ("request",), "holds a space"),
    ("GET /a\tb", {}, None, {}, ("request",), "holds a space"),
    ("GET /a#b", {}, None, {}, ("request",), "fragment"),
    ("GET /é", {}, None, {}, ("request",), "percent-encoded"),
    ("GET /a%2", {}, None, {}, ("request",), "percent-encoded"),
    ("GET a", {}, None, {}, ("request",), "start with `/`"),
    ("GET /a/../b", {}, None, {}, ("request",), "`..` segment"),
    ("GET /a?x={b}", {}, None, {"b": S}, ("request",), "in the query"),
    ("get /a", {}, None, {}, ("request",), "the method must be one of"),
    ("CONNECT /a", {}, None, {}, ("request",), "the method must be one of"),
    ("GET /a/{b}", {"b": R("query")}, None, {"b": S}, ("send", "b", "in"), "two places, the path and the query"),
    ("GET /a/{b}", {"c": R("path", "b"), "d": R("path", "b")}, None, {"c": S, "d": S}, ("send", "d"), "already filled"),
    ("GET /a", {"b": R("path")}, None, {"b": S}, ("send", "b", "in"), "no placeholder `{b}`"),
    ("POST /{b}", {}, Body(argument="b"), {"b": S}, ("send", "body", "argument"), "two places, the body and the path"),
    ("POST /", {"b": R("query")}, Body(argument="b"), {"b": S}, ("send", "body", "argument"), "the body and the query"),
    ("POST /", {}, Body(argument="x"), {}, ("send", "body", "argument"), "`x` is no argument"),
    ("POST /", {}, Body(argument="x"), {"x": S, "y": S}, ("send", "y"), "`y` has no place: the body is `x`"),
    ("GET /", {"b": R("body")}, None, {"b": S}, ("send", "b"), "a body of a GET"),
    ("HEAD /", {}, Body("form"), {}, ("send", "body"), "a HEAD has no body"),
    ("GET /", {"z": R("query")}, None, {}, ("send", "z"), "`z` is no argument"),
    ("GET /", {"b": R(style="simple")}, None, {"b": S}, ("send", "b", "style"), "`style: simple` has no meaning"),
    ("GET /{b}", {"b": R(style="form")}, None, {"b": S}, ("send", "b", "style"), "only `simple`"),
    ("POST /", {"b": R(style="form")}, None, {"b": S}, ("send", "b", "style"), "json body, which knows no style"),
    ("POST /", {"b": R(explode=True)}, None, {"b": S}, ("send", "b", "explode"), "no meaning"),
    ("GET /", {"b": R(style="deepObject", explode=False)}, None, {"b": O}, ("send", "b", "explode"), "one pair"),
    ("GET /", {"b": R(style="pipeDelimited", encode="json")}, None, {"b": O}, ("send", "b", "encode"), "one text"),
    ("GET /{b}", {"b": R(reserved=True)}, None, {"b": S}, ("send", "b", "reserved"), "no meaning in a path"),
    ("POST /", {"b": R(empty="blank")}, None, {"b": A}, ("send", "b", "empty"), "no meaning in a json body"),
    ("GET /", {"b": R(style="deepObject")}, None, {"b": S}, ("send", "b", "style"), "writes objects"),
    ("GET /", {"b": R("header", "a b")}, None, {"b": S}, ("send", "b", "name"), "no name for a header"),
    ("GET /", {"b": R("header", "Host")}, None, {"b": S}, ("send", "b", "name"), "belongs to the connection"),
    ("GET /", {"b": R("header", "authorization")}, None, {"b": S}, ("send", "b", "name"), "a credential"),
    ("GET /", {"b": R("header", "Range")}, None, {"b": S}, ("send", "b", "name"), "less than an answer"),
    ("GET /", {"b": R("header", "X", empty="a\r\nb")}, None, {"b": A}, ("send", "b", "empty"), "cannot stand"),
    ("GET /", {"b": R("cookie", "a=b")}, None, {"b": S}, ("send", "b", "name"), "no name for a cookie"),
    ("GET /", {"b": R(name="c")}, None, {"b": S, "c": S}, ("send", "c"), "both `c` in the query"),
    ("POST /", {"b": R(name="c")}, Body(argument="b"), {"b": S}, ("send", "b"), "the whole body"),
    ("GET /{b}", {"b": R(name="c")}, None, {"b": S}, ("send", "b", "name"), "write the wire name in the path"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("request_line", "sends", "body", "arguments", "path", "words"), REFUSED, ids=[row[5] for row in REFUSED]
)
def test_a_request_that_cannot_be_right_is_refused_where_it_is_written(
    request_line: str,
    sends: dict[str, SendRule],
    body: Body | None,
    arguments: dict[str, Any],
    path: tuple[str | int, ...],
    words: str,
) -> None:
    faults = compiled(request_line, sends, body, **arguments)
    assert isinstance(faults, tuple)
    assert [fault for fault in faults if fault.path == path and words in fault.message], faults


@pytest.mark.parametrize(
    ("sends", "schema", "words"),
    [
        ({}, O, "has a form in a query; declare `style: deepObject` or `encode: json`"),
        ({}, {"type": "array", "items": O}, "has a form in a query"),
        ({}, {"type": ["array", "null"], "items": A}, "has a form in a query"),
        ({"b": R("cookie")}, A, "has a form in a cookie; declare `encode: json`"),
        ({"b": R("header")}, O, "has a form in a header; declare `encode: json`"),
    ],
)
def test_an_argument_no_value_of_which_has_a_form_is_a_warning(
    sends: dict[str, SendRule], schema: Any, words: str
) -> None:
    builder = compiled("GET /", sends, None, b=schema)
    assert isinstance(builder, RequestBuilder)
    (warning,) = builder.warnings
    assert words in warning.message


@pytest.mark.parametrize("schema", [True, {}, S, A, {"type": ["object", "string"]}, {"type": "array", "items": S}])
def test_an_argument_with_some_value_that_has_a_form_is_none(schema: Any) -> None:
    builder = compiled("GET /", {}, None, b=schema)
    assert isinstance(builder, RequestBuilder)
    assert builder.warnings == ()


def test_every_fault_is_found_at_once() -> None:
    faults = compiled("GET /a b/{x}", {"q": R("body"), "z": R(style="simple")}, None, q=S, z=S)
    assert isinstance(faults, tuple)
    assert {fault.path for fault in faults} == {("request",), ("send", "q"), ("send", "z", "style")}


def test_a_placeholder_needs_an_argument_that_every_call_has() -> None:
    faults = compile_request("GET", "/{a}/{b}", {}, None, {"a": S, "b": {"default": "x"}}, backend="b", required=["c"])
    assert faults == (
        RequestFault(("request",), "`{a}` needs `a` in every call; list it under the input's `required`"),
    )


UNSENDABLE: list[tuple[str, dict[str, SendRule], Body | None, dict[str, Any], str]] = [
    ("GET /{b}", {}, None, {"b": ""}, "is empty"),
    ("GET /{b}", {}, None, {"b": None}, "is null"),
    ("GET /{b}", {}, None, {"b": {}}, "is an object"),
    ("GET /{b}", {}, None, {"b": []}, "is empty"),
    ("GET /", {}, None, {"b": {"a": 1}}, "is an object"),
    ("GET /", {}, None, {"b": [{"a": 1}]}, "a list or an object inside"),
    ("GET /", {}, None, {"b": [[1]]}, "a list or an object inside"),
    ("GET /", {}, None, {"b": [1, None]}, "a null inside"),
    ("GET /", {"b": R(style="deepObject")}, None, {"b": {"a": {"c": 1}}}, "a list or an object inside"),
    ("GET /", {"b": R(style="deepObject")}, None, {"b": {"a": [1]}}, "a list or an object inside"),
    ("GET /", {"b": R(style="deepObject")}, None, {"b": 1}, "is not an object"),
    ("GET /", {"b": R(style="spaceDelimited")}, None, {"b": ["a b"]}, "cannot tell from its delimiter"),
    ("GET /", {"b": R(style="pipeDelimited")}, None, {"b": ["a|b"]}, "cannot tell from its delimiter"),
    ("GET /", {"b": R("header")}, None, {"b": "a\r\nX-Evil: 1"}, "a control character"),
    ("GET /", {"b": R("header")}, None, {"b": ["a", "b\n"]}, "a control character"),
    ("GET /", {"b": R("header")}, None, {"b": " a"}, "a space at either end"),
    ("GET /", {"b": R("header")}, None, {"b": ["a,b"]}, "a comma inside"),
    ("GET /", {"b": R("header")}, None, {"b": {}}, "is an object"),
    ("GET /", {"b": R("cookie")}, None, {"b": ["a"]}, "no form in a cookie"),
    ("GET /", {}, None, {"b": "\ud800"}, "not valid Unicode"),
    ("GET /{b}", {}, None, {"b": "\ud800"}, "not valid Unicode"),
    ("GET /", {"b": R("cookie")}, None, {"b": "\ud800"}, "not valid Unicode"),
    ("GET /", {"b": R("header")}, None, {"b": "\ud800"}, "not valid Unicode"),
    ("GET /", {"b": R(encode="json")}, None, {"b": ["\ud800"]}, "not valid Unicode"),
    ("POST /", {}, None, {"a": 1, "b": "\ud800"}, "not valid Unicode"),
    ("POST /", {}, Body("multipart"), {"b": "\ud800"}, "not valid Unicode"),
    ("POST /", {}, Body("form"), {"b": {"x": 1}}, "is an object"),
    ("POST /", {}, Body("form", "b"), {"b": [1]}, "is not an object"),
    ("GET /", {}, None, {"b": 10**5000}, "too many digits"),
    ("GET /", {}, None, {"b": math.inf}, "too many digits"),
]


@pytest.mark.parametrize(("request_line", "sends", "body", "accepted", "words"), UNSENDABLE)
def test_what_has_no_form_is_refused_by_name_before_anything_is_sent(
    request_line: str, sends: dict[str, SendRule], body: Body | None, accepted: dict[str, Any], words: str
) -> None:
    refused = built(request_line, sends, body, accepted)
    assert isinstance(refused, Unsendable), refused
    assert refused.argument == "b"
    assert words in refused.reason


LOST: list[tuple[SendRule, Any, str | None]] = [
    (R(), [], "is an empty list, which has no form there"),
    (R(empty="blank"), [], None),
    (R(empty="none"), [], None),
    (R(empty="omit"), [], None),
    (R(), None, "is null, which has no form there"),
    (R(empty="omit"), None, None),
    (R(), {"a": 1}, "is an object, which has no form here"),
    (R(style="deepObject"), {}, "is an empty object, which has no form there"),
    (R(style="deepObject", empty="blank"), {}, None),
    (R(encode="json"), [], None),
    (R(), [{}], "a list or an object inside"),
    (R("header"), [], "is an empty list"),
    (R("cookie"), None, "is null"),
    (R(), 0, None),
    (R(), "", None),
    (R(), False, None),
]


@pytest.mark.parametrize(("rule", "value", "words"), LOST)
def test_a_default_that_would_never_reach_the_backend_is_known_at_load(
    rule: SendRule, value: Any, words: str | None
) -> None:
    builder = compiled("GET /", {"a": rule}, None, a=True)
    assert isinstance(builder, RequestBuilder)
    said = builder.lost("a", value)
    assert said is None if words is None else said is not None and words in said


@pytest.mark.parametrize("value", [None, [], {}, 0, [{"a": None}]])
def test_nothing_is_lost_in_a_json_body(value: Any) -> None:
    for body in (None, Body(argument="a")):
        builder = compiled("POST /", {}, body, a=True)
        assert isinstance(builder, RequestBuilder)
        assert builder.lost("a", value) is None


def test_arguments_that_an_open_input_allows_go_where_declared_ones_would() -> None:
    def open_to(method: str) -> RequestBuilder:
        builder = compile_request(method, "/", {}, None, {"a": True}, backend="b", open_input=True)
        assert isinstance(builder, RequestBuilder)
        return builder

    accepted = {"x": [1, 2], "a": 1}
    asked, posted = open_to("GET").build(accepted), open_to("POST").build(accepted)
    assert isinstance(asked, Request)
    assert asked.target == "/?a=1&x=1&x=2"
    assert isinstance(posted, Request)
    assert posted.body == b'{"a":1,"x":[1,2]}'


def test_the_same_input_is_the_same_bytes_and_is_not_changed() -> None:
    accepted = {"a": {"n": 1.0}, "b": [2.0]}
    first, second = (built("POST /", {}, Body("multipart"), accepted) for _ in range(2))
    assert first == second
    assert json.dumps(accepted) == '{"a": {"n": 1.0}, "b": [2.0]}'


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
@pytest.mark.requirement("s12-36-path-encoding")
def test_any_text_is_one_segment_and_comes_back(text: str) -> None:
    request = built("GET /a/{b}/c", {}, None, {"b": text})
    assert isinstance(request, Request)
    start, middle, end = request.target[1:].split("/")
    assert (start, unquote(middle), end) == ("a", text, "c")
    assert middle not in (".", "..")
    assert request.target.isascii()
    assert request.target.isprintable()
    assert " " not in request.target


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))), st.booleans())
def test_any_texts_come_back_from_a_query_and_bring_no_other_parameter(texts: list[str], reserved: bool) -> None:
    request = built("GET /?z=1", {"b": R(reserved=reserved)}, None, {"b": texts})
    assert isinstance(request, Request)
    query = request.target.partition("?")[2]
    assert parse_qsl(query, keep_blank_values=True) == [("z", "1"), *(("b", text) for text in texts)]


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(codec="utf-8"))))
def test_any_texts_come_back_from_a_form(fields: dict[str, str]) -> None:
    request = built("POST /", {}, Body("form", "b"), {"b": fields})
    assert isinstance(request, Request)
    assert parse_qsl((request.body or b"").decode(), keep_blank_values=True) == list(fields.items())


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**30), 10**30))
def test_any_number_keeps_its_value_on_the_wire(number: float) -> None:
    asked, posted = built("GET /", {}, None, {"b": number}), built("POST /", {}, None, {"b": number})
    assert isinstance(asked, Request)
    assert isinstance(posted, Request)
    text = unquote(asked.target.partition("=")[2])
    assert (int(text) if text.lstrip("-").isdigit() else float(text)) == number
    assert json.loads(posted.body or b"")["b"] == number
    assert "+" not in text


@pytest.mark.parametrize(
    ("argument", "rule"),
    [("tok", R()), ("Tok", R()), ("b", R(name="tok")), ("tok[]", R()), ("b", R(name="tok", style="deepObject"))],
)
def test_no_declared_argument_stands_beside_the_credential_in_the_query(argument: str, rule: SendRule) -> None:
    schema = O if rule.style else S
    faults = compile_request("GET", "/", {argument: rule}, None, {argument: schema}, backend="b", credential="tok")
    assert isinstance(faults, tuple)
    assert [fault.path for fault in faults] == [("send", argument)]
    assert "`auth.query`" in faults[0].message


def test_no_undeclared_argument_stands_beside_the_credential_in_the_query() -> None:
    builder = compile_request("GET", "/", {}, None, {"a": S}, backend="b", open_input=True, credential="tok")
    assert isinstance(builder, RequestBuilder)
    for argument in ("tok", "TOK", "tok[]"):
        refused = builder.build({"a": "x", argument: "evil"})
        assert isinstance(refused, Unsendable), argument
        assert refused.argument == argument
    request = builder.build({"a": "x", "token": "fine"})
    assert not isinstance(request, Unsendable)
    assert request.target == "/?a=x&token=fine"


def test_a_body_or_a_path_may_name_what_the_query_keeps_for_the_credential() -> None:
    for line in ("POST /", "GET /{tok}"):
        method, path = line.split()
        builder = compile_request(method, path, {}, None, {"tok": S}, backend="b", credential="tok", required=["tok"])
        assert isinstance(builder, RequestBuilder), line
