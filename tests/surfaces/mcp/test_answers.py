"""What is answered, held against the protocol's own models in every version, and spliced without being read again."""

from __future__ import annotations

import base64
import json
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # the Python client's engine has no stubs
import pytest
from mcp_types.methods import validate_server_result

from gateway.call.outcome import Call, Code, Outcome
from gateway.surfaces.mcp import answers, wire
from gateway.surfaces.mcp.answers import Listing, TextMode
from tests.surfaces.mcp.fakes import BIG, ODD, TOOLS, FakeCatalog, FakeGateway, answered, failed

Json = Any
VERSIONS = [*sorted(wire.HANDSHAKE_VERSIONS), wire.MODERN_VERSION]
CATALOG = FakeCatalog(tuple(sorted(TOOLS, key=lambda tool: tool.name)), "0123456789abcdef")
LISTING = Listing(CATALOG, private=False)


def call(tool: str) -> Call:
    return Call(tool, {}, "mcp", "c-1")


def result(outcome: Outcome, version: str = "2025-11-25", text: TextMode = "json") -> Json:
    modern = version == wire.MODERN_VERSION
    shown = json.loads(answers.call_result(outcome, LISTING, text, modern=modern))
    validate_server_result("tools/call", version, shown)
    assert ("resultType" in shown) == modern
    assert shown["_meta"]["toolview/catalog"] == CATALOG.digest
    assert ("io.modelcontextprotocol/serverInfo" in shown["_meta"]) == modern
    return shown


@pytest.mark.requirement("s12-70-mcp-result", "s12-76-digest")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ODD)
def test_v8_res10_an_answer_is_structured_and_fits_what_was_listed_and_is_the_text_too(name: str, version: str) -> None:
    value = ODD[name][2]
    shown = result(answered(call(name), value), version)
    tool = LISTING.tools[name]
    structured = {"result": value} if tool.wrapped else value
    assert shown["structuredContent"] == structured
    assert [block["type"] for block in shown["content"]] == ["text"]
    assert json.loads(shown["content"][0]["text"]) == structured
    assert shown["isError"] is False
    assert tool.output_schema is not None
    jsonschema.Draft202012Validator(tool.output_schema).validate(shown["structuredContent"])


def test_res12_every_digit_arrives_in_both_copies() -> None:
    text = answers.call_result(answered(call("wide_ids"), {"id": BIG}), LISTING, "json", modern=True)
    assert text.count(str(BIG).encode()) == 2


def test_the_answers_bytes_are_spliced_as_they_are() -> None:
    body = b'{"price":0.40,"tiny":1e-7,"n":12345678901234567890123}'
    outcome = Outcome(call("cycle"), "cycle", None, body=body)
    shown = answers.call_result(outcome, LISTING, "json", modern=False)
    assert b'"structuredContent":' + body + b"," in shown
    assert json.loads(shown)["content"][0]["text"].encode() == body


@pytest.mark.requirement("s12-70-mcp-result", "s12-76-digest")
@pytest.mark.parametrize("version", VERSIONS)
def test_v7_a_failure_is_a_tool_error_with_the_envelope_as_text_and_nothing_structured(version: str) -> None:
    outcome = Outcome(call("cycle"), "cycle", failed(Code.RATE_LIMITED, "Wait.", retry_after=7))
    shown = result(outcome, version)
    assert shown["isError"] is True
    assert "structuredContent" not in shown
    assert json.loads(shown["content"][0]["text"]) == outcome.envelope()


@pytest.mark.parametrize("version", VERSIONS)
def test_an_endpoint_without_output_answers_no_content(version: str) -> None:
    shown = result(Outcome(call("silent"), "silent", None), version)
    assert shown["content"] == []
    assert "structuredContent" not in shown
    assert shown["isError"] is False


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("media_type", "block"),
    [
        ("image/png", {"type": "image", "mimeType": "image/png", "data": "AAE="}),
        ("audio/wav", {"type": "audio", "mimeType": "audio/wav", "data": "AAE="}),
        (
            "application/pdf",
            {
                "type": "resource",
                "resource": {"uri": "toolview://picture/c-1", "mimeType": "application/pdf", "blob": "AAE="},
            },
        ),
        (
            "text/csv",
            {"type": "resource", "resource": {"uri": "toolview://picture/c-1", "mimeType": "text/csv", "text": "\0\1"}},
        ),
    ],
)
def test_a_media_answer_is_a_block_of_its_kind(media_type: str, block: Json, version: str) -> None:
    outcome = Outcome(call("picture"), "picture", None, body=b"\0\1", media_type=media_type)
    assert result(outcome, version)["content"] == [block]


def test_a_text_that_is_not_utf8_stays_bytes() -> None:
    outcome = Outcome(call("picture"), "picture", None, body=b"\xff", media_type="text/plain")
    assert result(outcome)["content"][0]["resource"]["blob"] == base64.b64encode(b"\xff").decode()


def test_the_contract_says_whether_the_text_repeats_the_answer() -> None:
    outcome = answered(call("array_root"), [1, 2])
    assert result(outcome, text="none")["content"] == []
    assert (
        result(outcome, text="short")["content"][0]["text"] == "The answer is in structuredContent: 16 bytes of JSON."
    )
    for text in ("json", "short", "none"):
        assert result(outcome, text=text)["structuredContent"] == {"result": [1, 2]}


@pytest.mark.parametrize("version", VERSIONS)
def test_v1_v3_the_list_is_complete_sorted_and_the_same_bytes_every_time(version: str) -> None:
    modern = version == wire.MODERN_VERSION
    first = LISTING.result(modern=modern)
    assert first == Listing(CATALOG, private=False).result(modern=modern)
    shown = json.loads(first)
    validate_server_result("tools/list", version, shown)
    names = [tool["name"] for tool in shown["tools"]]
    assert names == sorted(tool.name for tool in TOOLS)
    assert max(map(len, names)) == 64
    assert len(names) > 200
    assert shown["_meta"]["toolview/catalog"] == CATALOG.digest
    assert {"ttlMs", "cacheScope", "resultType"} & shown.keys() == (
        {"ttlMs", "cacheScope", "resultType"} if modern else set()
    )


def test_v1_v2_l4_cat20_every_entry_has_what_clients_demand_and_no_null() -> None:
    for tool in json.loads(LISTING.result(modern=False))["tools"]:
        assert None not in tool.values()
        assert tool["description"]
        assert tool["inputSchema"]["type"] == "object"
        assert tool.get("outputSchema", {"type": "object"})["type"] == "object"


def test_v2_a_tool_without_arguments() -> None:
    (shown,) = (tool for tool in json.loads(LISTING.result(modern=False))["tools"] if tool["name"] == "silent")
    assert shown["inputSchema"] == {"type": "object", "properties": {}, "additionalProperties": False}
    assert "outputSchema" not in shown


def test_a4_a_list_that_is_one_principals_is_not_for_shared_caches() -> None:
    assert json.loads(Listing(CATALOG, private=True).result(modern=True))["cacheScope"] == "private"
    assert json.loads(LISTING.result(modern=True))["cacheScope"] == "public"


def test_m5_arguments_with_headers_are_found_where_clients_look() -> None:
    assert [(item.path, item.header) for item in LISTING.mirrored("regional")] == [
        (("region",), "Mcp-Param-Region"),
        (("zone", "number"), "Mcp-Param-Zone"),
    ]
    assert LISTING.mirrored("cycle") == ()


def test_m8_discover_says_what_is_served_and_no_more() -> None:
    shown = json.loads(answers.discover_result("Be kind.", private=False, cards=False))
    validate_server_result("server/discover", wire.MODERN_VERSION, shown)
    assert shown["supportedVersions"] == [wire.MODERN_VERSION]
    assert shown["capabilities"] == {"tools": {}}
    assert shown["instructions"] == "Be kind."
    assert "instructions" not in json.loads(answers.discover_result(None, private=False, cards=False))


@pytest.mark.parametrize("version", sorted(wire.HANDSHAKE_VERSIONS))
def test_l1_m9_the_handshake_says_its_version_and_has_nothing_of_the_modern_era(version: str) -> None:
    shown = json.loads(answers.initialize_result(version, None, cards=False))
    validate_server_result("initialize", version, shown)
    assert shown.keys() == {"protocolVersion", "capabilities", "serverInfo"}
    assert shown["capabilities"] == {"tools": {"listChanged": False}}


@pytest.mark.parametrize("id", [0, "", "é\u2028", -(2**63), 2**70])
def test_t9_res08_a_reply_has_its_id_and_either_a_result_or_an_error(id: Json) -> None:
    assert json.loads(answers.reply(id, b"{}")) == {"jsonrpc": "2.0", "id": id, "result": {}}
    error = json.loads(answers.error(wire.Refusal(id, 400, -32600, "m")))
    assert error == {"jsonrpc": "2.0", "id": id, "error": {"code": -32600, "message": "m"}}


def test_v5_an_unknown_tool_is_a_protocol_error_that_names_its_neighbours() -> None:
    outcome = Outcome(call("cycl"), "unknown", failed(Code.UNKNOWN_TOOL, "There is no such tool.", near=["cycle"]))
    refusal = answers.unknown_tool(3, outcome, LISTING, modern=False)
    assert (refusal.id, refusal.status, refusal.code, refusal.message) == (3, 200, -32602, "Unknown tool: cycl")
    assert refusal.data["details"]["near"] == ["cycle"]
    assert refusal.data["_meta"] == {"toolview/catalog": CATALOG.digest}
    assert answers.unknown_tool(3, outcome, LISTING, modern=True).status == 400


def test_v11_our_meta_keys_are_not_in_the_protocols_own_namespace() -> None:
    for key in (answers.CATALOG_KEY, wire.CALL_ID_KEY):
        assert key.startswith("toolview/")


def test_the_fake_gateway_stamps_what_it_lists() -> None:
    assert len(FakeGateway().digest) == 16
