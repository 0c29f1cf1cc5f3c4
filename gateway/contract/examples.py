"""`examples` of an endpoint: sample calls that its input accepts and sample answers that its output accepts."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from gateway import json_text
from gateway.contract.document import LARGEST_FILE
from gateway.contract.model import EndpointWritten, Example, ExampleWritten
from gateway.contract.reading import Reading
from gateway.contract.refusal import Path
from gateway.schema import Schema

Json = Any


def read_examples(
    reading: Reading, shape: EndpointWritten, at: Path, arguments: Schema | None, outputs: Mapping[str, Schema]
) -> tuple[Example, ...]:
    examples = []
    for index, written in enumerate(shape.examples):
        path: Path = (*at, "examples", index)
        has_answer, answer = _answer(reading, written, path)
        if arguments is not None and (violations := arguments.check(dict(written.arguments), 1)):
            where = f" at {violations[0].pointer}" if violations[0].pointer else ""
            reading.refuse((*path, "arguments"), f"the input refuses these arguments{where}: {violations[0].message}")
        schema = outputs.get(str(written.status)) or outputs.get("2XX") if written.status < 300 else None
        if has_answer and schema is not None and (violations := schema.check(answer, 1)):
            where = f" at {violations[0].pointer}" if violations[0].pointer else ""
            key = "answer" if written.answer_file is None else "answer_file"
            reading.refuse((*path, key), f"the output refuses this answer{where}: {violations[0].message}")
        arguments_ = MappingProxyType(dict(written.arguments))
        examples.append(Example(written.title, arguments_, written.status, has_answer, answer))
    return tuple(examples)


def _answer(reading: Reading, written: ExampleWritten, path: Path) -> tuple[bool, Json]:
    inline = "answer" in written.model_fields_set
    if written.answer_file is None:
        return inline, written.answer
    at: Path = (*path, "answer_file")
    if inline:
        reading.refuse(at, "the answer is written twice; keep `answer` or `answer_file`")
        return False, None
    files = reading.files
    inside = files.inside(written.answer_file, files.main)
    file = None if inside is None else files.folder / inside
    try:
        if file is None or files.disk.kind(file) != "file":
            reading.refuse(at, "there is no such file in the contract's folder; create it, or mend the path")
            return False, None
        text = files.disk.read(file, LARGEST_FILE + 1)
        if len(text) > LARGEST_FILE:
            reading.refuse(at, f"the file is larger than {LARGEST_FILE} bytes; name a smaller one")
            return False, None
        answer = json_text.parse(text)
    except (OSError, ValueError):
        reading.refuse(at, "the file cannot be read; mend its rights, or the path")
        return False, None
    if isinstance(answer, json_text.NotJson):
        reading.refuse(at, f"the file is not JSON: {answer.reason}; mend it")
        return False, None
    return True, answer
