"""What an operation says, the same for every version of OpenAPI; schemas stay where they are, in their own dialect."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from gateway.authoring.openapi.description import Description, Node
from gateway.record import record

Where = Literal["path", "query", "header", "cookie"]

#: What `send.style` can say.
STYLES = ("form", "spaceDelimited", "pipeDelimited", "deepObject", "simple")


@record
class Parameter:
    """One value of a request, and how it is spelled where it goes; None is OpenAPI 3's default for the place."""

    name: str
    where: Where | Literal["field"]
    required: bool
    description: str | None
    #: None where nothing is said of its values: any text.
    schema: Node | None
    at: Node
    style: str | None = None
    explode: bool | None = None
    reserved: bool = False
    #: An empty value may travel.
    blank: bool = False
    #: The value as JSON text.
    as_json: bool = False
    is_file: bool = False
    #: Why a contract has no words for how it is spelled.
    unfit: str | None = None
    deprecated: bool = False


@record
class Encoding:
    """How one property of a form's schema is spelled."""

    style: str | None = None
    explode: bool | None = None
    reserved: bool = False
    content_type: str | None = None


@record
class Body:
    """A request body; of several media types the one that a contract knows best."""

    kind: Literal["json", "form", "multipart", "raw"]
    media: str
    required: bool
    name: str
    description: str | None
    at: Node
    schema: Node | None = None
    #: Of Swagger 2.0's `formData`, which has no schema around it.
    fields: tuple[Parameter, ...] = ()
    encoding: dict[str, Encoding] = field(default_factory=dict)


@record
class Answer:
    """What comes back under one status."""

    status: str
    kind: Literal["nothing", "json", "file", "stream"]
    media: str
    schema: Node | None
    description: str | None
    at: Node


@record
class Operation:
    """One operation of the description."""

    method: str
    path: str
    at: Node
    id: str | None
    summary: str | None
    description: str | None
    deprecated: bool
    parameters: tuple[Parameter, ...]
    body: Body | None
    answers: tuple[Answer, ...]
    #: URLs that it is served under, the first one first; none is the description's own.
    servers: tuple[str, ...] = ()

    @property
    def spelled(self) -> str:
        return f"{self.method} {self.path}"


@record
class Credential:
    """A security scheme: its name, what it is in a few words, and the `auth` that a contract would have for it."""

    name: str
    said: str
    auth: dict[str, object] | None
    #: The parameter that carries it, which is no argument of a caller.
    carried: tuple[Where, str] | None = None


@record
class Api:
    """A description in one form."""

    dialect: Literal["2.0", "3.0", "3.1"]
    title: str
    version: str
    servers: tuple[str, ...]
    operations: tuple[Operation, ...]
    credentials: tuple[Credential, ...]
    description: Description


#: Keys of a path item that are operations.
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")


def is_json(media: str) -> bool:
    """Whether a media type is JSON, as a gateway reads it."""
    plain = media.partition(";")[0].strip().lower()
    return plain in ("application/json", "text/json", "*/*", "application/*") or plain.endswith("+json")
