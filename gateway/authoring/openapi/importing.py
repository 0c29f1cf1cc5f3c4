"""`toolview import openapi`: a description to the text of a contract that loads, and what could not be carried over.

The contract is loaded before it is given away: what `check` would refuse is left out and said.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import BinaryIO

from gateway.authoring.openapi import failures
from gateway.authoring.openapi.backends import Backends
from gateway.authoring.openapi.description import Description, Unreadable, open_description, read_file
from gateway.authoring.openapi.document import Content, apart
from gateway.authoring.openapi.ids import endpoint_ids
from gateway.authoring.openapi.normal import Api, Operation
from gateway.authoring.openapi.openapi3 import read_openapi3
from gateway.authoring.openapi.operation import Drafted, LeftOut, draft
from gateway.authoring.openapi.shared import share
from gateway.authoring.openapi.swagger2 import read_swagger2
from gateway.authoring.openapi.translate import Translator
from gateway.authoring.openapi.yaml_text import write_yaml
from gateway.contract.document import LARGEST_FILE
from gateway.contract.load import load
from gateway.contract.model import Contract
from gateway.contract.refusal import Refusal, nearest, printable
from gateway.contract.values import Malformed
from gateway.contract.values import url as checked_url
from gateway.json_pointer import pointer_of
from gateway.record import record


@record
class Choice:
    """What is asked for beyond the description itself."""

    #: Offer what writes as tools too.
    all: bool = False
    #: Take these alone, by operationId or `METHOD /path`, and offer each as a tool.
    only: tuple[str, ...] = ()
    #: Where the backend is, whatever the description says.
    url: str | None = None
    #: Count and log answers that break the description, instead of failing their calls.
    observe: bool = False


@record
class Imported:
    """A contract that loads, as text; shared schemas in a file of their own where they were asked for apart."""

    contract: str
    schemas: str | None
    #: What could not be carried over, a line each: place and sentence.
    notes: tuple[str, ...]
    operations: int
    endpoints: int
    tools: int

    def told(self, name: str) -> list[str]:
        """What there is to say of it, a line each: what was left behind, and how much came over."""
        shown = printable(name) if name != "-" else "standard input"
        count = f"{self.endpoints} of {self.operations} operations imported, {self.tools} of them as tools"
        return [*(f"{shown}: {note}" for note in self.notes), f"{shown}: {count}"]


@record
class Refused:
    """Why nothing was imported: one sentence. `misused`: what was asked for, not the description, is at fault."""

    message: str
    misused: bool = False


def import_openapi(name: str, stdin: BinaryIO, choice: Choice, *, as_folder: bool = False) -> Imported | Refused:
    """The contract of a description in a file, or on stdin for `-`."""
    if choice.url is not None and isinstance(wrong := checked_url(choice.url), Malformed):
        return Refused(f"--url: {wrong.message}", misused=True)
    source = "stdin" if name == "-" else FilePath(name).name
    if name == "-":
        data: bytes | Unreadable = stdin.read(LARGEST_FILE + 1)
        if isinstance(data, bytes) and len(data) > LARGEST_FILE:
            data = Unreadable(f"the text is larger than {LARGEST_FILE} bytes")
        folder = None
    else:
        data = read_file(FilePath(name))
        folder = FilePath(name).parent
    if isinstance(data, Unreadable):
        return Refused(data.message)
    try:
        description = open_description(data, name, folder and folder.resolve())
        if isinstance(description, Unreadable):
            return Refused(description.message)
        api = _read(description)
        return api if isinstance(api, Refused) else _Importing(api, choice).run(source, as_folder=as_folder)
    except RecursionError:
        return Refused("the description is nested too deep to be read")


def _read(description: Description) -> Api | Refused:
    root = description.root
    swagger, openapi = root.value.get("swagger"), root.value.get("openapi")
    if swagger is None and openapi is None:
        return Refused("this is no OpenAPI description: it has neither `openapi` nor `swagger` at its root")
    version = str(swagger if openapi is None else openapi)
    if openapi is None and not re.fullmatch(r"2(\.0)?", version):
        return Refused(f"Swagger {printable(version)[:20]} is not read; 2.0, and OpenAPI 3.0 and 3.1 are")
    if openapi is not None and not re.match(r"3\.[01](\.|$|-)", version):
        return Refused(f"OpenAPI {printable(version)[:20]} is not read; 3.0, 3.1 and Swagger 2.0 are")
    if not isinstance(root.value.get("paths"), dict) or not root.value["paths"]:
        return Refused("the description has no `paths`, so there is nothing to call")
    if openapi is None:
        return read_swagger2(description)
    return read_openapi3(description, "3.1" if version.startswith("3.1") else "3.0")


@dataclass
class _Importing:
    api: Api
    choice: Choice
    #: What each line of the contract belongs to.
    owners: list[tuple[str, str] | None] = field(default_factory=list)

    @property
    def description(self) -> Description:
        return self.api.description

    def run(self, source: str, *, as_folder: bool) -> Imported | Refused:
        chosen = self._chosen()
        if isinstance(chosen, Refused):
            return chosen
        backends = Backends(self.api, self.choice.url)
        backends.add(chosen)
        translator = Translator(self.description, self.api.dialect)
        drafts = self._drafts(chosen, translator)
        schemas, names = share(translator)
        told = failures.facts(chosen, self.description)
        offer = self.choice.all or bool(self.choice.only)
        content = Content(self.api, source, offer, self.choice.observe, backends, schemas, names, told, drafts)
        self._note_what_has_no_place(chosen)
        refused = self._until_it_loads(content)
        if refused is not None:
            return refused
        document = content.document()
        contract, shared = apart(document) if as_folder and "schemas" in document else (document, None)
        return Imported(
            contract=write_yaml(contract),
            schemas=None if shared is None else write_yaml(shared),
            notes=tuple(f"{place}: {sentence}" for place, sentence in self.description.notes.lines),
            operations=len(chosen),
            endpoints=len(content.drafts),
            tools=sum(content.is_tool(each) for each in content.drafts.values()),
        )

    def _drafts(self, chosen: Sequence[Operation], translator: Translator) -> dict[str, Drafted]:
        ids, drafts = endpoint_ids(chosen), {}
        for operation in chosen:
            drafted = draft(operation, translator, self.api.credentials)
            if isinstance(drafted, LeftOut):
                self._leave_out(operation, drafted.place, drafted.reason)
            else:
                drafts[ids[operation.spelled]] = drafted
        return drafts

    def _chosen(self) -> tuple[Operation, ...] | Refused:
        if not self.api.operations:
            return Refused("the description has no operation that could be read")
        if not self.choice.only:
            return self.api.operations
        known = {word: each for each in self.api.operations for word in (each.spelled, each.id) if word}
        found: dict[str, Operation] = {}
        for word in self.choice.only:
            if word not in known:
                meant = nearest(word, list(known))
                hint = f'; did you mean "{meant}"?' if meant else ""
                return Refused(printable(f'--only: there is no operation "{word}"{hint}'), misused=True)
            found[known[word].spelled] = known[word]
        return tuple(found.values())

    def _leave_out(self, operation: Operation, place: str, reason: str) -> None:
        self.description.notes.add(place, f"{operation.spelled} is left out: {reason}")

    # until it loads

    def _until_it_loads(self, content: Content) -> Refused | None:
        """Load the contract; what is refused is left out, and all is loaded again."""
        for _ in range(_MOST_LOADS):
            if not content.drafts:
                return Refused(f"no operation could be imported; {self._first_reason()}")
            refusals = self._load(content)
            if not refusals:
                return None
            mended = [self._mend(content, refusal) for refusal in refusals]
            if not any(mended):
                return Refused(f"the contract would be refused: {printable(refusals[0].message)}")
        return Refused("the contract would be refused, whatever is left out of it")

    def _first_reason(self) -> str:
        places = self.description.notes.lines
        return next(
            (f"{place}: {sentence}" for place, sentence in places if "is left out: " in sentence), "there is none"
        )

    def _load(self, content: Content) -> tuple[Refusal, ...]:
        with tempfile.TemporaryDirectory(prefix="toolview-") as folder:
            file = FilePath(folder) / "gateway.yaml"
            text = write_yaml(content.document())
            self.owners = _owners(text)
            file.write_text(text, encoding="utf-8")
            loaded = load(file, {})
            if isinstance(loaded, Contract):
                for warning in loaded.warnings:
                    self._warn(content, warning)
                return ()
            return loaded

    def _owner(self, refusal: Refusal) -> tuple[str, str] | None:
        """The section and the entry that a line of the contract belongs to."""
        return self.owners[refusal.line - 1] if refusal.line <= len(self.owners) else None

    def _mend(self, content: Content, refusal: Refusal) -> bool:
        owner = self._owner(refusal)
        if owner is None:
            return False
        section, entry = owner
        said = f"`check` would refuse it: {refusal.message}"
        if section == "endpoints" and entry in content.drafts:
            operation = content.drafts.pop(entry).operation
            self._leave_out(operation, operation.at.place, said)
            return True
        if section == "schemas" and entry in content.schemas and entry not in content.opened:
            content.opened.add(entry)
            key = next(key for key, name in content.names.items() if name == entry)
            self.description.notes.add(
                printable(f"{key.file}#{pointer_of(key.path)}"), f"any value is allowed here; {said}"
            )
            return True
        return section in ("endpoints", "schemas")

    def _warn(self, content: Content, warning: Refusal) -> None:
        owner = self._owner(warning)
        drafted = content.drafts.get(owner[1]) if owner else None
        self.description.notes.add(drafted.operation.at.place if drafted else "#", warning.message)

    def _note_what_has_no_place(self, operations: Sequence[Operation]) -> None:
        """What a contract has no word for, told once with its first place."""
        links, headers = Counter[str](), Counter[str]()
        for operation in operations:
            for answer in operation.answers:
                for key, count in (("links", links), ("headers", headers)):
                    if isinstance(answer.at.value, dict) and answer.at.value.get(key):
                        count[answer.at.get(key).place] += 1
        for what, found in (("links", links), ("headers", headers)):
            if found:
                more = f" ({len(found)} places)" if len(found) > 1 else ""
                said = f"{what} of answers have no place in a contract; they are left out{more}"
                self.description.notes.add(next(iter(found)), said)
        for credential in self.api.credentials:
            place = "#/securityDefinitions" if self.api.dialect == "2.0" else "#/components/securitySchemes"
            said = f"`{credential.name}` ({credential.said}) needs a secret: write it under the backend's `auth`"
            self.description.notes.add(f"{place}/{printable(credential.name)}", said)


_MOST_LOADS = 12


def _owners(text: str) -> list[tuple[str, str] | None]:
    """The section and the entry of each line: what stands at the root, and two spaces in."""
    owners: list[tuple[str, str] | None] = []
    section = entry = ""
    for line in text.split("\n"):
        if found := re.fullmatch(r"([a-z]+):.*", line):
            section, entry = found[1], ""
        elif found := re.fullmatch(r"  ([^\s#:]+):.*", line):
            entry = found[1]
        owners.append((section, entry) if entry else None)
    return owners
