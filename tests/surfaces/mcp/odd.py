"""A contract of odd tools, the backend behind it, and what every client must be given for each call."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.rig import Backend, Received, accepted, backend, http
from tests.test_serve import serving

Json = Any
INSTRUCTIONS = "Call what you like."
BIG = 1915883588174806058
LONG = "n" * 64
BULK = [f"bulk_{number:03}" for number in range(200)]

TREE = {"name": "a", "kids": [{"name": "b", "kids": [{"name": "c", "kids": []}]}]}
TURNS: Json = {"left": {"right": {"left": {"right": {}}}}}
#: The card of `cycle`, and what it is read by.
CARD = "<!doctype html>\n<title>É \u2028 </title><script>1 < 2 && '\\\\'</script>\n"
CARD_URI = "ui://toolview/ui/a%20tree.html"
WORDS = {"type": "t", "properties": {"$ref": "r"}, "default": [1], "required": True, "a/b~c": "p", "": "e"}

CONTRACT = """
    version: 1
    gateway: {tools: {listen: 127.0.0.1:0}, admin: {listen: 127.0.0.1:0}, mcp: {instructions: INSTRUCTIONS, progress: 5ms}, limits: {body: 200KiB}}
    backends: {b: {url: URL}}
    schemas:
      Node: {type: object, properties: {name: {type: string}, kids: {type: array, items: {$ref: "#/schemas/Node"}}}}
      Left: {type: object, properties: {left: {$ref: "#/schemas/Right"}}, additionalProperties: false}
      Right: {type: object, properties: {right: {allOf: [{$ref: "#/schemas/Left"}]}}}
      Unit: {enum: [m, ft]}
      Id: {type: integer, format: int64, minimum: 0, maximum: 9223372036854775807}
      Empty: {type: object}
    endpoints:
      rows: {request: GET /rows, description: A list., output: {type: array, items: {type: object, properties: {id: {$ref: "#/schemas/Id"}}}}, tool: {name: array_root}}
      word: {request: GET /word, description: A word., output: {type: string}, tool: {name: scalar_root}}
      null: {request: GET /null, description: Nothing., output: {type: "null"}, tool: {name: null_root}}
      maybe: {request: GET /null, description: Perhaps., output: {type: [object, "null"]}, tool: {name: nullable_root}}
      choice:
        request: GET /choice
        description: One of two shapes.
        output: {oneOf: [{type: object, required: [cat], properties: {cat: {type: integer}}}, {type: array, items: {type: integer}}]}
        tool: {name: choice_root}
      tree:
        request: POST /tree
        description: A tree.
        input: {type: object, properties: {under: {$ref: "#/schemas/Node"}}}
        output: {$ref: "#/schemas/Node"}
        tool: {name: cycle, ui: {resource: ui/a tree.html, visibility: [model]}}
      turns: {request: GET /turns, description: Left and right., output: {$ref: "#/schemas/Left"}, tool: {name: cycle_of_two}}
      state:
        request: POST /state
        description: A state that may be unknown.
        input: {type: object, properties: {state: {type: [string, "null"], enum: ["on", "off", null]}}}
        output: {type: object, properties: {state: {enum: ["on", "off", null]}, old: {anyOf: [{enum: ["on"]}, {type: "null"}]}}}
        tool: {name: nullable_enum}
      wide:
        request: GET /wide/{id}
        description: A wide id.
        input: {type: object, required: [id], properties: {id: {$ref: "#/schemas/Id"}}}
        output: {type: object, required: [id], properties: {id: {$ref: "#/schemas/Id"}, price: {type: number}}}
        tool: {name: wide_ids}
      made:
        request: POST /made
        description: Makes one.
        output: {"200": {type: object, properties: {old: {type: boolean}}}, "201": {type: array, items: {type: string}}}
        tool: {name: by_status}
      pair:
        request: GET /pair
        description: A pair.
        output: {type: object, properties: {at: {type: array, prefixItems: [{type: string}, {type: number}], items: false}}}
        tool: {name: tuple}
      strict:
        request: GET /strict
        description: What validators disagree on.
        output:
          type: object
          properties:
            when: {type: string, format: date-time}
            part: {type: number, multipleOf: 0.01}
            code: {type: string, pattern: '^\\p{Lu}+$'}
            rows: {type: array, uniqueItems: true, items: {type: integer}}
          unevaluatedProperties: false
        tool: {name: strict}
      words:
        request: GET /words
        description: Keys that are words of schemas, and keys that are hard to point at.
        output:
          type: object
          properties:
            type: {type: string}
            properties: {type: object, properties: {$ref: {type: string}}}
            default: {type: array}
            required: {type: boolean}
            a/b~c: {type: string}
            "": {type: string}
        tool: {name: words}
      texts: {request: GET /texts, description: Texts that break lines., output: {type: object, additionalProperties: {type: string}}, tool: {name: LONG}}
      unit:
        request: GET /unit
        description: Defaults beside references.
        input:
          type: object
          required: [unit]
          properties: {unit: {$ref: "#/schemas/Unit"}, other: {$ref: "#/schemas/Unit", default: ft, description: The other.}}
        output: {$ref: "#/schemas/Empty"}
        tool: {name: default_beside_ref, view: {defaults: {unit: m}}}
      region:
        request: GET /region/{region}
        description: Arguments that clients repeat in headers.
        input:
          type: object
          required: [region]
          properties:
            region: {type: string, x-mcp-header: Region}
            zone: {type: integer, x-mcp-header: Zone}
        output: {$ref: "#/schemas/Empty"}
        tool: {name: in_headers}
      slow: {request: "GET /slow/{who}", description: Waits., input: {type: object, required: [who], properties: {who: {type: string}}}, output: {$ref: "#/schemas/Empty"}}
      release: {request: "POST /release/{who}", description: Ends it., input: {type: object, required: [who], properties: {who: {type: string}}}, output: {$ref: "#/schemas/Empty"}}
      asks: {request: POST /asks, description: Asks first., input: {type: object, properties: {what: {type: string, default: do it}}}, output: {$ref: "#/schemas/Empty"}, tool: {mcp: {confirm: "Shall I {what}?"}}}
      silent: {request: GET /silent, description: Says nothing., tool: {name: silent}}
      image: {request: GET /image, description: A picture., kind: media, tool: {name: picture}}
      sound: {request: GET /sound, description: A sound., kind: media, tool: {name: sound}}
      table: {request: GET /table, description: A table., kind: media, tool: {name: text_file}}
      paper: {request: GET /paper, description: A paper., kind: media, tool: {name: file}}
      parts: {request: GET /parts, description: Several in one., kind: media, tool: {name: parts}}
      gone: {request: GET /gone, description: Fails., output: {type: object, required: [x], properties: {x: {type: integer}}}, tool: {name: fails}}
BULK
""".replace("LONG", LONG).replace("INSTRUCTIONS", INSTRUCTIONS)  # noqa: E501 - an endpoint a line
_BULK = """\
      {name}: {{request: "GET /bulk", description: One of many., input: {{type: object, properties: {{q: {{type: string}}}}}}, output: {{$ref: "#/schemas/Empty"}}}}
"""  # noqa: E501 - an endpoint a line

ANSWERS: dict[str, bytes] = {
    "/rows": http([{"id": BIG}, {"id": BIG + 1}]),
    "/word": http(b'"seven"'),
    "/null": http(b"null"),
    "/choice": http([1, 2]),
    "/tree": http(TREE),
    "/turns": http(TURNS),
    "/state": http({"state": None, "old": None}),
    "/made": http(["a"], status=201),
    "/pair": http({"at": ["x", 1.5]}),
    "/strict": http({"when": "2024-02-29T23:59:60Z", "part": 0.07, "code": "É", "rows": [2**63 - 2, 2**63 - 1]}),
    "/words": http(WORDS),
    "/texts": http({"quote": '" \\ / \u2028 é 😀 \x7f\u0000', "</script>": "<!--"}),
    "/silent": http(b"", status=204),
    "/asks": http({}),
    "/image": http(b"\x89PNG", content_type="image/png"),
    "/sound": http(b"RIFF", content_type="audio/wav"),
    "/table": http("é;1\n".encode(), content_type="text/csv; charset=utf-8"),
    "/paper": http(b"%PDF\xff", content_type="application/pdf"),
    "/parts": http(
        b"--x\r\nContent-Type: text/plain\r\n\r\nSee:\r\n--x\r\nContent-Type: image/png\r\n\r\n\x89PNG\r\n"
        b'--x\r\nContent-Type: text/csv\r\nContent-Disposition: attachment; filename="a b.csv"\r\n\r\n1\r\n--x--',
        content_type="multipart/mixed; boundary=x",
    ),
    "/gone": http({"x": 1}, status=410),
}


@dataclass(frozen=True)
class Odd:
    """One call: the tool, its arguments, the structured answer, if there is one, and the kinds of its blocks."""

    tool: str
    arguments: Json
    answer: Json
    blocks: tuple[str, ...] = ("text",)


CALLS = [
    Odd("array_root", {}, {"result": [{"id": BIG}, {"id": BIG + 1}]}),
    Odd("scalar_root", {}, {"result": "seven"}),
    Odd("null_root", {}, {"result": None}),
    Odd("nullable_root", {}, {"result": None}),
    Odd("choice_root", {}, {"result": [1, 2]}),
    Odd("cycle", {"under": TREE}, TREE),
    Odd("cycle_of_two", {}, TURNS),
    Odd("nullable_enum", {"state": None}, {"state": None, "old": None}),
    Odd("wide_ids", {"id": BIG}, {"id": BIG, "price": 0.4}),
    Odd("by_status", {}, {"result": ["a"]}),
    Odd("tuple", {}, {"at": ["x", 1.5]}),
    Odd("strict", {}, json.loads(ANSWERS["/strict"].partition(b"\r\n\r\n")[2])),
    Odd("words", {}, WORDS),
    Odd(LONG, {}, {"quote": '" \\ / \u2028 é 😀 \x7f\u0000', "</script>": "<!--"}),
    Odd("default_beside_ref", {}, {}),
    Odd("in_headers", {"region": "Zürich", "zone": 7}, {}),
    Odd("bulk_199", {"q": "x"}, {}),
    Odd("release", {"who": "nobody"}, {}),
    Odd("silent", {}, None, ()),
    Odd("picture", {}, None, ("image",)),
    Odd("sound", {}, None, ("audio",)),
    Odd("text_file", {}, None, ("resource",)),
    Odd("file", {}, None, ("resource",)),
    Odd("parts", {}, None, ("text", "image", "resource")),
    Odd("fails", {}, None),
]
#: `slow` answers once its caller has called `release`, so whoever waits for it must hear of it meanwhile.
NAMES = sorted({call.tool for call in CALLS} | {"slow", "asks", *BULK})


class Answers:
    """What the backend answers."""

    def __init__(self) -> None:
        self._released: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)

    def __call__(self, request: Received) -> bytes | Awaitable[bytes]:
        path = request.target.partition("?")[0]
        _, first, who = (*path.split("/"), "", "")[:3]
        if first == "wide":
            return http(b'{"id":%d,"price":0.40}' % BIG)
        if first == "slow":
            return self._slow(who)
        if first == "release":
            self._released[who].set()
        return ANSWERS.get(path, http({}))

    async def _slow(self, who: str) -> bytes:
        await self._released[who].wait()
        return http({})


@asynccontextmanager
async def served_odd(folder: Path) -> AsyncIterator[tuple[str, Backend]]:
    """The gateway with all its listeners; gives the URL of its MCP surface, and the backend."""
    async with backend(Answers()) as behind:
        bulk = "".join(_BULK.format(name=name) for name in BULK)
        text = CONTRACT.replace("URL", behind.url).replace("BULK\n", bulk)
        contract = accepted(folder, text, {"ui/a tree.html": CARD})
        async with serving(contract) as served:
            yield f"http://{served.addresses['tools']}/mcp", behind
