"""The kept text of a surface: equal bytes for equal surfaces, a view only where there is one, other texts refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gateway import json_text
from gateway.catalog.snapshot import Snapshot, Unreadable, read_snapshot, snapshot, write_snapshot
from tests.rig import accepted

CONTRACT = """
version: 1
backends: {people: {url: "http://127.0.0.1:9"}}
endpoints:
  people.get:
    request: GET /people/{id}
    description: One person.
    input: {type: object, required: [id], properties: {id: {type: string}, include: {type: string}}}
    output: &person {type: object, required: [name, id], properties: {id: {type: string}, name: {type: string}}}
    tool: {name: get_person, safety_tier: read}
  people.list:
    request: GET /people
    description: Everybody.
    input: {type: object, properties: {limit: {type: integer}}}
    output: {type: object, properties: {people: {type: array, items: *person}}}
    tool: {name: list_people, safety_tier: read}
"""
VIEW = """{defaults: {include: stats}, output: {type: object, properties: {name: {type: string}}},
      project: {jmespath: "{name: full.name}"}, budget: 4KiB}"""
VIEWED = CONTRACT.replace(
    "{name: get_person, safety_tier: read}", f"{{name: get_person, safety_tier: read, view: {VIEW}}}"
)


def text(folder: Path, contract: str) -> bytes:
    return write_snapshot(snapshot(accepted(folder, contract)))


def rows(written: bytes) -> dict[str, Any]:
    return {row["id"]: row for row in json.loads(written)["operations"]}


@pytest.mark.requirement("196-4-snapshot")
def test_a_view_is_in_the_row_only_where_one_is_declared(tmp_path: Path) -> None:
    plain, viewed = text(tmp_path, CONTRACT), text(tmp_path, VIEWED)
    assert b"toolView" not in plain
    row = rows(viewed)["people.get"]
    assert row["toolView"].keys() == {"defaults", "output", "project", "budget"}
    assert row["toolView"]["project"] is True
    assert row["documents"][row["toolView"]["defaults"]] == {"include": "stats"}
    assert row["documents"][row["toolView"]["output"]]["properties"] == {"name": {"type": "string"}}


@pytest.mark.requirement("196-4-snapshot")
def test_a_view_on_one_endpoint_moves_that_row_only(tmp_path: Path) -> None:
    plain, viewed = text(tmp_path, CONTRACT).splitlines(), text(tmp_path, VIEWED).splitlines()
    moved = [before for before, after in zip(plain, viewed, strict=True) if before != after]
    assert len(moved) == 1
    assert json.loads(moved[0].rstrip(b","))["id"] == "people.get"


@pytest.mark.requirement("196-4-snapshot")
def test_a_view_leaves_the_rest_of_its_own_row(tmp_path: Path) -> None:
    before, after = rows(text(tmp_path, CONTRACT))["people.get"], rows(text(tmp_path, VIEWED))["people.get"]
    assert {key for key in after if before.get(key) != after[key]} == {"toolView", "documents"}
    assert before["schemas"] == after["schemas"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("required: [name, id]", "required: [id, name]"),
        (
            "{type: object, properties: {limit: {type: integer}}}",
            "{properties: {limit: {type: integer}}, type: object}",
        ),
        ("    description: Everybody.\n", "    timeout: 3s\n    description: Everybody.\n"),
        ("http://127.0.0.1:9", "http://127.0.0.1:10"),
    ],
)
def test_what_no_consumer_sees_moves_no_byte(before: str, after: str, tmp_path: Path) -> None:
    assert before in CONTRACT
    assert text(tmp_path, CONTRACT.replace(before, after)) == text(tmp_path, CONTRACT)


@pytest.mark.parametrize(
    "after",
    [
        VIEWED.replace("full.name", "full.id"),  # the code of a projection is none of the surface
        VIEWED.replace("    output: &person", "    # a remark\n    output: &person"),
    ],
)
def test_the_code_of_a_projection_and_remarks_move_no_byte(after: str, tmp_path: Path) -> None:
    assert after != VIEWED
    assert text(tmp_path, after) == text(tmp_path, VIEWED)


def test_rows_are_sorted_whatever_the_order_in_the_contract(tmp_path: Path) -> None:
    head, first, second = CONTRACT.partition("  people.get:")[0], *CONTRACT.split("  people.")[1:]
    person = "{type: object, required: [name, id], properties: {id: {type: string}, name: {type: string}}}"
    swapped = f"{head}  people.{second}  people.{first}".replace("*person", person).replace("&person ", "")
    assert text(tmp_path, swapped) == text(tmp_path, CONTRACT)


def test_it_is_json_with_one_row_a_line(tmp_path: Path) -> None:
    written = text(tmp_path, CONTRACT)
    lines = written.decode().splitlines()
    assert [json.loads(line.rstrip(","))["id"] for line in lines[1:-1]] == ["people.get", "people.list"]
    assert json_text.parse(written) == json.loads(written)
    assert written.endswith(b'],"snapshotVersion":1}\n')


def test_no_secret_and_no_backend_is_in_it(tmp_path: Path) -> None:
    contract = CONTRACT.replace('"http://127.0.0.1:9"', '"http://127.0.0.1:9", headers: {X-Key: hunter2}')
    assert b"hunter2" not in text(tmp_path, contract)
    assert b"127.0.0.1" not in text(tmp_path, contract)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    for contract in (CONTRACT, VIEWED):
        surface = snapshot(accepted(tmp_path, contract))
        read = read_snapshot(write_snapshot(surface))
        assert read == surface
        assert isinstance(read, Snapshot)
        assert write_snapshot(read) == write_snapshot(surface)


@pytest.mark.requirement("196-4-snapshot")
@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            lambda it: it.update(snapshotVersion=0),
            "snapshot version 0 is of an older Toolview, and this one reads 1; write",
        ),
        (
            lambda it: it.update(snapshotVersion=2),
            "snapshot version 2 is of a newer Toolview, and this one reads 1; write",
        ),
        (lambda it: it.update(snapshotVersion="1"), "`snapshotVersion` is a number, and this Toolview reads 1"),
        (lambda it: it.update(snapshotVersion=True), "`snapshotVersion` is a number, and this Toolview reads 1"),
        (lambda it: it.pop("snapshotVersion"), "it has no `snapshotVersion`; write one with `toolview snapshot`"),
        (lambda it: it.pop("operations"), "this is no whole snapshot"),
        (lambda it: it.update(operations=[1]), "this is no whole snapshot: at /operations/0"),
        (lambda it: it["operations"].append(it["operations"][0]), "two rows have the same id"),
        (lambda it: it["operations"][0].pop("kind"), "this is no whole snapshot: at /operations/0"),
        (lambda it: it["operations"][0]["schemas"].update(input="0" * 16), "row `people.get` lacks the document"),
        (lambda it: it["operations"][0]["documents"].update({"0" * 16: {}}), "row `people.get` was changed by hand"),
        (lambda it: forged(it["operations"][0], {"type": "nonsense"}), "has a schema that cannot be used"),
        (lambda it: forged(it["operations"][0], {"$ref": "http://127.0.0.1/x"}), "has a schema that cannot be used"),
        (lambda it: forged(it["operations"][0], [1], "defaults"), "has defaults that are no object"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_the_remedy(change: Any, says: str, tmp_path: Path) -> None:
    document = json.loads(text(tmp_path, VIEWED))
    change(document)
    refused = read_snapshot(json.dumps(document).encode())
    assert isinstance(refused, Unreadable)
    assert says in refused.message
    assert "`toolview snapshot`" in refused.message


def forged(row: dict[str, Any], document: Any, under: str = "input") -> None:
    """A document with a right digest, put in the place of another."""
    name = json_text.digest(document)
    row["documents"][name] = document
    row["schemas" if under == "input" else "toolView"][under] = name


@pytest.mark.parametrize("garbage", [b"", b"null", b"[]", b"{", b"\xff\xfe", b'{"snapshotVersion":1}', b"[" * 100_000])
def test_garbage_is_refused_in_a_sentence(garbage: bytes) -> None:
    assert isinstance(read_snapshot(garbage), Unreadable)
