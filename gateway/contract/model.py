"""The contract as frozen values: what every later room may rely on, with schemas, projections and requests compiled.

Groups of keys that need no compiling are pydantic shapes and are used as they were read; what is compiled is a
dataclass that `load` builds. Knows no YAML, no file and no socket.
"""

# Annotations are evaluated as they stand (no `from __future__`): pydantic would compile each text anew at every start.
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from gateway.backend.request import RequestBuilder
from gateway.contract.refusal import Refusal
from gateway.contract.scalars import (
    Duration,
    FileName,
    Function,
    HeaderName,
    HeaderValue,
    JobRoute,
    KeyDigest,
    KeySet,
    Ledger,
    Listen,
    Pointer,
    Positive,
    RateLimit,
    RouteText,
    SchemaNode,
    Scope,
    SecretText,
    Size,
    SocketPath,
    StateExpression,
    StateSecret,
    Switch,
    Target,
    Text,
    Url,
    Whole,
    choice,
)
from gateway.contract.shape import Maybe, Shape, written
from gateway.contract.values import Address, Rate, Route
from gateway.projection import Projection
from gateway.schema import Schema

__all__ = [
    "Address",
    "Backend",
    "Budget",
    "Contract",
    "DeclaredError",
    "Endpoint",
    "Gateway",
    "Rate",
    "Route",
    "Tool",
    "View",
]

# gateway

SigningAlgorithm = Annotated[
    Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"],
    *choice("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"),
]


class TlsFiles(Shape):
    cert: FileName = Field(description="file of the certificate chain, PEM")
    key: FileName = Field(description="file of its private key, PEM")


class Listener(Shape):
    listen: Listen = Field(description="`host:port`")
    tls: Maybe[TlsFiles] = Field(default=None, description="serve over TLS")
    origins: tuple[Text, ...] = Field(
        default=(), description="values of `Origin` that are let in besides the listener's own"
    )
    hosts: tuple[Text, ...] = Field(
        default=(), description="values of `Host` that are let in besides the listener's own"
    )


class ToolsListener(Listener):
    listen: Listen = written("127.0.0.1:8081", "`host:port`")


class AdminListener(Listener):
    listen: Listen = written("127.0.0.1:9090", "`host:port`")
    scopes: tuple[Scope, ...] = Field(
        default=(), description="what a principal must hold here; written, it is asked for on loopback too"
    )


class ApiKey(Shape):
    name: Text = Field(description="who holds it; shown in logs")
    sha256: KeyDigest = Field(description="hex digest of the key, which callers send as `Authorization: Bearer`")
    scopes: tuple[Scope, ...] = Field(default=(), description="what its holder may do")


class Jwt(Shape):
    jwks: KeySet = Field(description="file, from the contract's folder, or https URL of the key set; http on loopback")
    issuer: Text = Field(description="the `iss` that a token must have")
    audience: Text = Field(description="the `aud` that a token must have")
    scopes: Text = Field(
        default="scope", description="the claim that lists scopes; as `/realm/roles`, a JSON Pointer to it"
    )
    algorithms: tuple[SigningAlgorithm, ...] = Field(
        default=("RS256", "PS256", "ES256", "EdDSA"),
        description="how a token may be signed; `[RS256, PS256, ES256, EdDSA]`",
    )
    leeway: Duration = written("30s", "how far the clocks of gateway and issuer may differ")
    refresh: Duration = written("10m", "how long a key set is kept before it is read again")
    ca: Maybe[FileName] = Field(
        default=None, description="file of authorities of the key set's server, PEM; the system's"
    )


class OAuth(Shape):
    resource: Url = Field(description="this gateway's own URL as a protected resource")
    authorization_servers: tuple[Url, ...] = Field(description="who gives out tokens")
    scopes: Maybe[tuple[Scope, ...]] = Field(
        default=None, description="scopes that clients are told to ask for; those of every tool"
    )


class Auth(Shape):
    keys: tuple[ApiKey, ...] = Field(default=(), description="static keys")
    jwt: Maybe[Jwt] = Field(default=None, description="signed tokens")
    oauth: Maybe[OAuth] = Field(default=None, description="what `/.well-known/oauth-protected-resource` says")


class HooksWritten(Shape):
    before: Maybe[Function] = Field(
        default=None, description="`module:function` that gets the raw arguments of each call"
    )
    after: Maybe[Function] = Field(
        default=None, description="`module:function` that sees each call once, however it ended"
    )


class Catalog(Shape):
    compact: Switch = Field(default=True, description="serve and advertise the compact view")
    list: Annotated[Literal["envelope", "array"], *choice("envelope", "array")] = Field(
        default="envelope", description="what the standard list answers: `{tools: […]}` or the bare array"
    )
    description: Positive = Field(default=256, description="characters of a description in the compact view")


class Mcp(Shape):
    text: Annotated[Literal["json", "short", "none"], *choice("json", "short", "none")] = Field(
        default="json", description="the text block beside `structuredContent`"
    )
    instructions: Maybe[Text] = Field(default=None, description="what the server says of itself to a model")
    output_schema: Switch = Field(default=True, description="list each tool with its `outputSchema`")
    progress: Duration = written("1s", "time between two notes of progress to a client that asks for them")
    confirm_within: Duration = written("10m", "how long a person may take to answer `tool.mcp.confirm`")
    state_secret: Maybe[StateSecret] = Field(
        default=None, description="what signs questions, 32 bytes or more, as `${NAME}`; one made at each start"
    )


class GatewayLimits(Shape):
    projection: Duration = written("1s", "longest run of one projection")
    body: Size = written("4MiB", "largest request body on `tools` and `admin`")
    calls: Positive = Field(default=256, description="tool calls in flight")
    queue: Whole = Field(default=512, description="tool calls waiting")
    per_principal: Maybe[RateLimit] = Field(default=None, description="calls of one principal, as `100/s`; no bound")


class Log(Shape):
    format: Maybe[Annotated[Literal["json", "text"], *choice("json", "text")]] = Field(
        default=None, description="form of a line; `text` on a terminal, else `json`"
    )
    level: Annotated[Literal["debug", "info", "warning", "error"], *choice("debug", "info", "warning", "error")] = (
        Field(default="info", description="least severe line that is written")
    )
    arguments: Switch = Field(default=False, description="write what callers pass, one more line a call")
    answers: Switch = Field(default=False, description="write what callers get, likewise")


class GatewayWritten(Shape):
    """The process; never part of what consumers rely on."""

    tools: ToolsListener = Field(default_factory=ToolsListener, description="listener of MCP, agent and catalog")
    admin: AdminListener = Field(
        default_factory=AdminListener, description="listener of metrics, health, reload and console"
    )
    auth: Maybe[Auth] = Field(default=None, description="who may call; none is for loopback only")
    hooks: HooksWritten = Field(default_factory=HooksWritten, description="functions around every call")
    catalog: Catalog = Field(default_factory=Catalog, description="how tools are listed")
    mcp: Mcp = Field(default_factory=Mcp, description="the MCP surface")
    limits: GatewayLimits = Field(default_factory=GatewayLimits, description="bounds of the process")
    missing_backend: Annotated[Literal["refuse", "stub"], *choice("refuse", "stub")] = Field(
        default="refuse", description="a backend without `url`: refused, or its tools answer 501"
    )
    formats: Annotated[Literal["annotate", "assert"], *choice("annotate", "assert")] = Field(
        default="annotate", description="whether `format` in a schema is checked"
    )
    insecure: Switch = Field(default=False, description="accept listeners off loopback without `auth`")
    projections: Maybe[Text] = Field(
        default=None,
        description="folder put first on the import path for Python projections and hooks; the contract's own",
    )
    shutdown: Duration = written("30s", "time to drain")
    log: Log = Field(default_factory=Log, description="the log")
    ledger: Maybe[Ledger] = Field(
        default=None, description="where durable calls will be recorded (checked, and not acted on by this version)"
    )
    console: Switch = Field(default=True, description="serve `/console` on `admin`")


@dataclass(frozen=True)
class Hooks:
    """The operator's own functions, imported."""

    before: Callable[[Any], Any] | None
    after: Callable[[Any], Any] | None


@dataclass(frozen=True)
class Gateway:
    """`gateway`, with its hooks imported."""

    tools: ToolsListener
    admin: AdminListener
    auth: Auth | None
    hooks: Hooks
    catalog: Catalog
    mcp: Mcp
    limits: GatewayLimits
    missing_backend: Literal["refuse", "stub"]
    formats: Literal["annotate", "assert"]
    insecure: bool
    #: Absolute, the contract's own folder where none is written.
    projections: str | None
    shutdown: float
    log: Log
    ledger: str | None
    console: bool


# backends.NAME


class Passthrough(Shape):
    listen: Listen = Field(description="where existing clients connect")
    tls: Maybe[TlsFiles] = Field(default=None, description="terminate TLS")
    client_address: Annotated[Literal["none", "proxy-v2"], *choice("none", "proxy-v2")] = Field(
        default="none", description="whether a PROXY header names the client"
    )
    only: Annotated[Literal["all", "declared"], *choice("all", "declared")] = Field(
        default="all", description="`declared` lets only endpoints that expose `http` through"
    )
    max_connections: Maybe[Positive] = Field(default=None, description="client connections; no bound")
    idle_timeout: Maybe[Duration] = Field(default=None, description="close a connection that is idle; never")
    head_timeout: Maybe[Duration] = Field(
        default=None, description="answer 408 where a connection's first head is not whole by then; never"
    )


class BackendTls(Shape):
    ca: Maybe[FileName] = Field(default=None, description="file of authorities, PEM; the system's")
    cert: Maybe[FileName] = Field(default=None, description="file of the client certificate, PEM")
    key: Maybe[FileName] = Field(default=None, description="file of its private key, PEM")
    verify: Switch = Field(default=True, description="check the backend's certificate")


class BackendLimits(Shape):
    concurrency: Maybe[Positive] = Field(
        default=None, description="calls in flight to this backend; no bound of its own"
    )
    answer: Size = written("10MiB", "largest answer, decoded")


class Retry(Shape):
    attempts: Positive = Field(
        default=2, description="tries in all, where nothing was sent or the endpoint is idempotent"
    )


class Breaker(Shape):
    failures: Positive = Field(default=5, description="failures in a row that open it")
    reset: Duration = written("10s", "how long it stays open before one call tries again")


class Health(Shape):
    path: Target = Field(description="path that answers 2xx when the backend is well")
    interval: Duration = written("10s", "time between two checks")


class BasicAuth(Shape):
    username: Text = Field(description="user name")
    password: HeaderValue = Field(description="password")


class HeaderAuth(Shape):
    name: HeaderName = Field(description="name of the header")
    value: HeaderValue = Field(description="its value")


class QueryAuth(Shape):
    name: Text = Field(description="name of the parameter")
    value: SecretText = Field(description="its value")


class ClientCredentials(Shape):
    token_url: Url = Field(description="where tokens are given out")
    client_id: Text = Field(description="client id")
    client_secret: SecretText = Field(description="client secret")
    scopes: tuple[Scope, ...] = Field(default=(), description="scopes to ask for")
    audience: Maybe[Text] = Field(default=None, description="audience to ask for")


class BackendAuth(Shape):
    """How the gateway shows itself to the backend: one of these."""

    bearer: Maybe[HeaderValue] = Field(default=None, description="token sent as `Authorization: Bearer`")
    basic: Maybe[BasicAuth] = Field(default=None, description="user name and password")
    header: Maybe[HeaderAuth] = Field(default=None, description="a key in a header")
    query: Maybe[QueryAuth] = Field(default=None, description="a key in the query")
    client_credentials: Maybe[ClientCredentials] = Field(default=None, description="OAuth 2.0 client credentials")


class BackendWritten(Shape):
    """A backend as it is written."""

    url: Maybe[Url] = Field(default=None, description="http or https, with the base path if there is one")
    socket: Maybe[SocketPath] = Field(default=None, description="unix socket to connect to instead of the URL's host")
    passthrough: Maybe[Passthrough] = Field(
        default=None, description="an address, or these keys: the backend's own HTTP"
    )
    timeout: Duration = written("30s", "from the start of a call to its last byte")
    connect_timeout: Duration = written("3s", "for connecting")
    headers: Mapping[str, HeaderValue] = Field(default={}, description="sent with every call")
    forward_headers: tuple[HeaderName, ...] = Field(default=(), description="the caller's headers that are passed on")
    tls: BackendTls = Field(default_factory=BackendTls, description="TLS towards the backend")
    limits: BackendLimits = Field(default_factory=BackendLimits, description="bounds of this backend")
    retry: Retry = Field(default_factory=Retry, description="sending again")
    breaker: Maybe[Breaker] = Field(default=None, description="stop calling a backend that fails; off")
    health: Maybe[Health] = Field(default=None, description="ask whether the backend is well; off")
    auth: Maybe[BackendAuth] = Field(default=None, description="how the gateway shows itself to the backend")
    errors: Mapping[str, Pointer] = Field(
        default={}, description="where an error body keeps `code` and `message`, as JSON Pointers"
    )


@dataclass(frozen=True)
class Backend:
    """`backends.NAME`; `url` is None where it is a stub."""

    name: str
    url: str | None
    socket: str | None
    passthrough: Passthrough | None
    timeout: float
    connect_timeout: float
    headers: Mapping[str, str]
    forward_headers: tuple[str, ...]
    tls: BackendTls
    limits: BackendLimits
    retry: Retry
    breaker: Breaker | None
    health: Health | None
    auth: BackendAuth | None
    errors: Mapping[str, str]


# endpoints.ID

Place = Annotated[
    Literal["path", "query", "header", "cookie", "body"], *choice("path", "query", "header", "cookie", "body")
]
Style = Annotated[
    Literal["form", "simple", "spaceDelimited", "pipeDelimited", "deepObject"],
    *choice("form", "simple", "spaceDelimited", "pipeDelimited", "deepObject"),
]
Level = Annotated[Literal["low", "medium", "high"], *choice("low", "medium", "high")]
SafetyTier = Annotated[Literal["pure", "read", "write", "exec"], *choice("pure", "read", "write", "exec")]
Surface = Annotated[Literal["http", "mcp", "agent", "cli"], *choice("http", "mcp", "agent", "cli")]


class SendWritten(Shape):
    """`send.ARG`: where an argument goes and how."""

    in_: Maybe[Place] = Field(default=None, alias="in", description="where it goes; by name and method")
    name: Maybe[Text] = Field(default=None, description="the name on the wire; the argument's")
    style: Maybe[Style] = Field(default=None, description="how a list or an object is spelled; OpenAPI's for the place")
    explode: Maybe[Switch] = Field(default=None, description="one pair for each item; OpenAPI's for the style")
    reserved: Switch = Field(default=False, description="leave reserved characters as they are")
    encode: Maybe[Annotated[Literal["json"], *choice("json")]] = Field(
        default=None, description="the value as JSON text"
    )
    empty: Maybe[Text] = Field(
        default=None,
        description="what an empty list becomes: `omit`, `blank`, or a literal text; not sent, refused as a default",
    )


class BodyWritten(Shape):
    """`send.body`: the body as a whole."""

    argument: Maybe[Text] = Field(default=None, description="the argument that is the whole body")
    type: Annotated[Literal["json", "form", "multipart"], *choice("json", "form", "multipart")] = Field(
        default="json", description="the body's media type"
    )


class DeclaredErrorWritten(Shape):
    status: Positive = Field(description="HTTP status on the agent surface, 400 to 599")
    retryable: Maybe[Switch] = Field(default=None, description="whether a retry can help; by status")
    hint: Maybe[Text] = Field(default=None, description="what a model may do about it")


@dataclass(frozen=True)
class DeclaredError:
    """A code of the backend's own that survives to every surface."""

    status: int
    retryable: bool | None
    hint: str | None


class ExampleWritten(Shape):
    title: Maybe[Text] = Field(default=None, description="what it shows")
    arguments: Mapping[str, Any] = Field(default={}, description="the arguments of a sample call")
    status: Positive = Field(default=200, description="the status of the sample answer")
    answer: Any = Field(default=None, description="the backend's sample answer")
    answer_file: Maybe[Text] = Field(default=None, description="a JSON file in the contract's folder that holds it")


@dataclass(frozen=True)
class Example:
    """A sample call, and the backend's sample answer where `has_answer`."""

    title: str | None
    arguments: Mapping[str, Any]
    status: int
    has_answer: bool
    answer: Any


class PollWritten(Shape):
    status: JobRoute = Field(description="request that asks for the state, `GET /jobs/{id}`")
    id: Pointer = Field(description="where the first answer names the job")
    done: StateExpression = Field(description="JMESPath over the state that is true when it is finished")
    failed: Maybe[StateExpression] = Field(
        default=None, description="JMESPath over the state that is true when it failed"
    )
    every: Duration = written("2s", "time between two questions")
    deadline: Duration = written("10m", "longest wait in all")


class DurableWritten(Shape):
    """A call that a backend answers with 202 and finishes later."""

    poll: PollWritten = Field(description="how to ask whether it is finished")
    result: Maybe[JobRoute] = Field(
        default=None, description="request that fetches the result; the last state is the result"
    )


class ProjectWritten(Shape):
    jmespath: Maybe[Text] = Field(default=None, description="expression over `{full, input, source}`")
    python: Maybe[Function] = Field(default=None, description="`module:function`, a plain function `f(full, ctx)`")


class BudgetWritten(Shape):
    bytes: Size = Field(description="largest answer")
    trim: Maybe[Pointer] = Field(default=None, description="the list that is cut from its end until the answer fits")
    note: Maybe[Pointer] = Field(default=None, description="where `{shown, total}` is written")


def _size_alone(written: Any) -> Any:
    """`budget: 24KiB` is short for `{bytes: 24KiB}`."""
    return {"bytes": written} if isinstance(written, (str, int)) and not isinstance(written, bool) else written


class ViewWritten(Shape):
    """`tool.view`: what a tool's caller gets."""

    defaults: Maybe[Mapping[str, Any]] = Field(
        default=None, description="arguments that tools fill in where none is passed"
    )
    output: SchemaNode = Field(default=None, description="JSON Schema of the shown answer")
    project: Maybe[ProjectWritten] = Field(default=None, description="full answer to shown answer")
    budget: Maybe[Annotated[BudgetWritten, BeforeValidator(_size_alone)]] = Field(
        default=None, description="a size, or these keys"
    )


class AnnotationsWritten(Shape):
    """MCP hints; derived from method, `idempotent` and `safety_tier` where not written."""

    title: Maybe[Text] = Field(default=None, description="title; the tool's")
    readOnlyHint: Maybe[Switch] = Field(
        default=None, description="it changes nothing; by `safety_tier`, else by method"
    )
    destructiveHint: Maybe[Switch] = Field(
        default=None, description="it may destroy something; the opposite of `readOnlyHint`"
    )
    idempotentHint: Maybe[Switch] = Field(
        default=None, description="repeating it does no harm; the endpoint's `idempotent`"
    )
    openWorldHint: Maybe[Switch] = Field(default=None, description="it reaches beyond the backend; `false`")


class Ui(Shape):
    resource: Text = Field(description="HTML file of the card, in the contract's folder, 2 MiB at most")
    visibility: tuple[Annotated[Literal["model", "app"], *choice("model", "app")], ...] = Field(
        default=("model", "app"), description="who sees the tool, `[app]` for the card's own calls alone; both"
    )


class ToolMcp(Shape):
    confirm: Maybe[Text] = Field(default=None, description="question to the person first, as `Delete {name}?`")


class ToolWritten(Shape):
    """`tool`: everything a tool surface reads and HTTP never does."""

    name: Maybe[Text] = Field(default=None, description="the tool's name; derived from the endpoint's id")
    title: Maybe[Text] = Field(default=None, description="title for people; the endpoint's")
    view: Maybe[ViewWritten] = Field(default=None, description="what the caller gets")
    annotations: Maybe[AnnotationsWritten] = Field(default=None, description="MCP hints")
    safety_tier: Maybe[SafetyTier] = Field(
        default=None, description="what a call may do; listed as `write`, with a warning"
    )
    ui: Maybe[Ui] = Field(default=None, description="MCP Apps card")
    mcp: Maybe[ToolMcp] = Field(default=None, description="what only MCP does")
    cost: Maybe[Level] = Field(default=None, description="what a call costs")
    latency: Maybe[Level] = Field(default=None, description="how long a call takes")


class EndpointWritten(Shape):
    """An endpoint as it is written."""

    backend: Maybe[Text] = Field(default=None, description="which backend; the only one")
    request: RouteText = Field(description="`METHOD /path/{placeholder}`")
    description: Text = Field(description="written for the model; blank is refused")
    title: Maybe[Text] = Field(default=None, description="title for people")
    expose: Maybe[tuple[Surface, ...]] = Field(
        default=None,
        description="surfaces that have it, where `cli` is `toolview call`; `[http, mcp, agent]`, `[http]` for a kind "
        "that is HTTP only",
    )
    kind: Annotated[
        Literal["json", "media", "raw", "multipart", "stream"], *choice("json", "media", "raw", "multipart", "stream")
    ] = Field(default="json", description="what is answered or taken; `raw`, `multipart` and `stream` are HTTP only")
    input: SchemaNode = Field(default=None, description="JSON Schema of the arguments; closed, empty")
    send: Maybe[Mapping[str, Any]] = Field(
        default=None, description="where an argument goes and how; by name and method"
    )
    output: SchemaNode = Field(
        default=None, description="JSON Schema of the full 2xx answer, or a map of them by status"
    )
    validate_mode: Annotated[Literal["strict", "observe"], *choice("strict", "observe")] = Field(
        default="strict", alias="validate", description="what happens to an answer that breaks `output`"
    )
    errors: Mapping[str, DeclaredErrorWritten] = Field(default={}, description="codes of the backend's own")
    idempotent: Maybe[Switch] = Field(
        default=None, description="repeating it does no harm; `true`, for POST and PATCH `false`"
    )
    timeout: Maybe[Duration] = Field(default=None, description="deadline; the backend's")
    scopes: tuple[Scope, ...] = Field(default=(), description="what a principal must hold")
    consumers: tuple[Text, ...] = Field(default=(), description="who relies on it")
    examples: tuple[ExampleWritten, ...] = Field(default=(), description="sample calls and answers")
    durable: Maybe[DurableWritten] = Field(
        default=None, description="a call that finishes later (checked, and not acted on by this version)"
    )
    tool: Maybe[ToolWritten] = Field(default=None, description="what tool surfaces read")


class ContractWritten(Shape):
    """The whole file."""

    version: Any = Field(description="`1`")
    include: tuple[Text, ...] = Field(
        default=(), description="patterns of other files whose schemas and endpoints are merged"
    )
    gateway: Maybe[GatewayWritten] = Field(default=None, description="the process")
    backends: Mapping[str, BackendWritten] = Field(default={}, description="the legacy APIs by name")
    schemas: Mapping[str, Any] = Field(default={}, description='JSON Schemas by name, for `$ref: "#/schemas/NAME"`')
    endpoints: Mapping[str, EndpointWritten] = Field(default={}, description="what may be called, by id")


# what load builds


@dataclass(frozen=True)
class Budget:
    """The largest answer in bytes, and how to cut it down to that."""

    bytes: int
    trim: str | None
    note: str | None


@dataclass(frozen=True)
class View:
    """What a tool's caller gets instead of the full answer."""

    defaults: Mapping[str, Any]
    output: Schema | None
    project: Projection | None
    budget: Budget | None


@dataclass(frozen=True)
class Card:
    """A page that hosts with a screen show a tool's answer in (MCP Apps)."""

    #: Below the contract's folder, as it is written.
    file: str
    #: What clients read it by.
    uri: str
    html: str = field(repr=False)
    #: Who sees the tool: `model`, `app` or both.
    visibility: tuple[str, ...]


@dataclass(frozen=True)
class Tool:
    """What tool surfaces read of an endpoint."""

    #: Given or derived, always set.
    name: str
    title: str | None
    view: View | None
    #: MCP hints, derived where not written.
    annotations: Mapping[str, Any]
    safety_tier: str | None
    ui: Card | None
    mcp: ToolMcp | None
    cost: str | None
    latency: str | None


@dataclass(frozen=True)
class Endpoint:
    """`endpoints.ID`, ready to be called."""

    id: str
    backend: str
    method: str
    #: The template, with its placeholders.
    path: str
    description: str
    title: str | None
    expose: frozenset[str]
    kind: Literal["json", "media", "raw", "multipart", "stream"]
    #: Closed unless the contract says otherwise.
    input: Schema
    request: RequestBuilder
    #: By status "200", or "2XX" where one schema serves all; empty where none is declared.
    outputs: Mapping[str, Schema]
    #: The full output for views: the single one, or the lowest 2xx of a map.
    output: Schema | None
    validate_mode: Literal["strict", "observe"]
    errors: Mapping[str, DeclaredError]
    idempotent: bool
    #: Seconds: the endpoint's, else the backend's.
    timeout: float
    scopes: frozenset[str]
    consumers: tuple[str, ...]
    examples: tuple[Example, ...]
    durable: DurableWritten | None
    #: Set for every endpoint that exposes mcp, agent or cli, else None.
    tool: Tool | None

    @cached_property
    def slices_at_once(self) -> bool:
        """Whether a view's slice drops all that the full outputs do not declare: one cut then does for both."""
        view = None if self.tool is None else self.tool.view
        if view is None or view.output is None or view.project is not None:
            return False
        return all(view.output.drops_all_of(full) for full in self.outputs.values())


@dataclass(frozen=True)
class Contract:
    """A contract that exists can be served."""

    gateway: Gateway
    backends: Mapping[str, Backend]
    endpoints: Mapping[str, Endpoint]
    #: 16 hex of the canonical contract as written, placeholders of secrets unresolved.
    digest: str
    folder: str
    #: Faults that refuse nothing.
    warnings: tuple[Refusal, ...] = ()
    #: The contract as written, merged, secrets out: what `/-/contract` shows.
    written: Mapping[str, Any] = field(default_factory=dict, repr=False)
    #: Files that were read, for `--watch`.
    files: tuple[str, ...] = ()
