"""Every sentence of ADR 0196 and ADR 0187 that binds a gateway, with an id; tests name the ids that they show.

A test carries `@pytest.mark.requirement("196-3-project-raises")`. `tests/test_requirements.py` holds the map both ways.
Sources: `196` and `187` are the decision records; `s12` is the list of acceptance cases derived from them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Requirement:
    """One binding sentence in the project's own words. `later`: why no test shows it yet; None once one must."""

    id: str
    clause: str
    source: str
    later: str | None = None


def _read(table: str) -> dict[str, Requirement]:
    found: dict[str, Requirement] = {}
    for line in table.strip().splitlines():
        name, source, clause, later = (part.strip() for part in line.split("|"))
        assert name not in found, name
        found[name] = Requirement(name, clause, source, later or None)
    return found


REQUIREMENTS = _read("""
196-1-one-group | 196 point 1, s12.14 | All tool options stand in one `tool` group; an unknown key in it is refused with the accepted ones. |
196-1-old-keys-by-name | 196 point 1, s12.14 | Tool options at the old top level are refused by name, never ignored. |
196-1-group-needs-a-tool-surface | 196 points 1 and 6, s12.4 | The whole `tool` group is refused where no tool surface can be reached. |
196-2-defaults-before-the-one-parse | 196 point 2, s12.19 | View defaults are merged into the arguments before the one check, and travel to the backend. |
196-2-callers-value-wins | 196 point 2, s12.20 | A key that was passed keeps the caller's value: empty list, empty text, 0, false. |
196-2-null-is-a-value | 196 point 2, s12.21 | A passed null is the caller's; the default is not used. |
196-2-no-deep-merge | 196 point 2, s12.22 | A caller's object replaces a nested default whole. |
196-2-fresh-copy | 196 point 2, s12.23 | A default changed during one call is the declared one in the next. |
196-2-view-default-beats-schema-default | 196 point 2, s12.24 | On a tool the view's default beats the schema's own. |
196-2-backend-gets-ordinary-input | 196 point 2 | A call that asks for nothing does not pay for the full record's loading. |
196-2-advertised-default | 196 point 2, s12.71 | The advertised input states the view's default and stops requiring its key. |
196-2-default-beside-ref | 196 point 2, s12.71 | A default beside a `$ref` stays visible. |
196-3-full-checked-first | 196 point 3, s12.40 | The full answer is checked against the full output before anything is derived from it. |
196-3-full-invalid-is-the-backends-fault | 196 point 3, s12.41 | A full answer that breaks its schema is a backend fault, never the caller's, and no part of it is shown. |
196-3-project-sees-validated-full | 196 point 3, s12.40 | A projection gets the checked and stripped full answer, the parsed input and the source. |
196-3-input-includes-defaults | 196 point 3, s12.39 | A projection sees the accepted input with its defaults, whether or not the backend saw them. |
196-3-slice | 196 point 3, s12.43 | With an output and no projection the full answer is sliced by the view's schema at every depth. |
196-3-projected-is-checked | 196 point 3, s12.44 | A projection's result is checked against the view's schema. |
196-3-project-only-keeps-full-schema | 196 point 3, s12.45 | With a projection and no output the result must keep the full schema. |
196-3-defaults-only | 196 amended in 0.94.1, s12.7 and 46 | A view of defaults alone is legal and answers the full answer. |
196-3-project-raises | 196 point 3, s12.47 | A projection that raises anything is INTERNAL_SERVER_ERROR, not retryable, and its text is hidden. |
196-3-project-awaitable | 196 point 3, s12.48 | A projection that returns an awaitable is the same fault; it is closed and nothing leaks. |
196-3-project-nothing | s12.49 | A projection that returns nothing where the schema has no null is named as such in the log. |
196-3-project-breaks-schema | 196 point 3, s12.50 | A projection whose result breaks its schema is INTERNAL_SERVER_ERROR. |
196-3-project-cannot-change-others | 196 point 3, s12.51 | A projection that changes its input changes no other call and no pass-through byte. |
196-4-view-schema-is-advertised | 196 point 4, s12.71 | MCP's outputSchema, its structured content and the digest read the view's schema, from one function. |
196-4-snapshot | 196 point 4 and consequences, s12.77 | A surface snapshot carries the view only where one is declared. |
196-5-tool-surfaces-apply-it | 196 point 5, s12.72 | MCP, agent and CLI apply the view and give the same card. |
196-5-code-keeps-full | 196 point 5, s12.72 | The in-process invoke gives the full answer unless it asks for the view. |
196-5-told-by-the-runner | 196 point 5 | A flag of the call decides, never the text of its source. |
196-5-elicitation-sees-defaults | 196 point 5 | What asks a person sees the accepted input with its defaults. |
196-6-no-full-output | 196 point 6, s12.5 | A view without a full output is refused. |
196-6-http-only-kinds | 196 point 6, s12.12 | A view on a raw, multipart or streaming endpoint is refused. |
196-6-means-nothing | 196 point 6, s12.6 | A view with no output, no projection and no non-empty defaults is refused. |
196-6-default-unknown-key | 196 point 6, s12.8 | A default for a key that the input lacks is refused. |
196-6-default-path-key | 196 point 6, s12.9 | A default for a path argument is refused. |
196-6-default-rejected-value | 196 point 6, s12.10 | A default that its own field's schema rejects is refused. |
196-6-default-non-object-input | s12.11 | Defaults on an input that is no object are refused. |
196-6-slice-cannot-hold-full | 196 point 6, s12.15 | A slice that some valid full answer cannot fill is refused at load. |
196-6-projection-resolves | s12.13 | A projection that does not resolve to a plain function of two arguments is refused at load. |
196-c-http-unchanged | 196 consequences, s12.1 and 2 | Plain HTTP answers and requests are the same bytes with and without a view. |
196-c-openapi-unchanged | 196 consequences, s12.3 | The served OpenAPI document is the same text with and without views. |
196-c-projection-strips-reported | 196 consequences, s12.53 | Keys that a projection returns beyond its schema are stripped and reported with their paths. |
196-c-slice-strips-not-reported | 196 consequences, s12.53 | What a slice removes is not reported. |
196-c-full-strips-reported | s12.52 | Keys that the backend sends beyond the full schema are reported, from the first check. |
196-c-no-walk-unasked | s12.54 | Nothing is walked for a diagnostic that nobody asked for. |
196-c-after-sees-the-card | 196 consequences, s12.29 | The after hook records what the caller received and the arguments that it sent, without defaults. |
196-c-stream-is-no-tool | 196 consequences | A streaming endpoint is never a tool. |
196-c-query-empty-list | 196 consequences, s12.18 and 32 | A default with no query form is refused, or travels in the form that the contract declares. |
196-c-description-required | 196 consequences, s12.17 | The one description is written for the model; a blank one is refused. |
187-1-before-replaces | 187 point 1, s12.30 | A before hook's mapping replaces the arguments and is checked like any input; anything else changes nothing. |
187-1-before-refuses | 187 point 1 | A before hook refuses with a declared error, and nothing is sent. |
187-1-effective-apart | 187 point 1, s12.29 | The caller's arguments and the replacement are reported apart. |
187-2-retryable-on-every-refusal | 187 point 2, s12.57 | Every failure says whether a retry can help. |
187-2-derived-from-status | 187 point 2, s12.58 and 61 | It is derived from the status of the error: 408, 429, 502, 503 and 504 yes, others no. |
187-2-declared-wins | 187 point 2, s12.59 | A declared `retryable` wins in either direction and reaches every surface. |
187-2-survives-the-hop | 187 point 2, s12.60 | A `retryable` that the backend's envelope states is kept. |
187-2-never-replays | 187 point 2, s12.66 | `retryable` informs the model; the gateway never sends again because of it. |
187-3-call-id-correlates | 187 point 3, s12.79 | The caller's call id is on the hook, the backend request and the failure, and arguments cannot change it. |
187-3-one-outcome | 187 context, s12.78 | Every ending passes one exit that knows whether it was well and its code; hooks, metrics and log read that. |
187-3-hook-cannot-change | 187 point 3, s12.78 | A hook that raises is logged and changes nothing. |
187-3-error-field-is-success | 187 context, s12.68 | A successful answer that has a field `error` is a success everywhere. |
187-4-durable-steps | 187 point 4 | A recorded step is never run again; deadlines are absolute; an undecodable record is refused. | durable calls are work of their own
187-5-stub | 187 point 5, s12.82 | A declared endpoint without a backend is refused at load, or, where stubs are allowed, answers 501. |
187-r-no-second-callback | 187 refused | There is one outcome callback, the after hook. |
187-r-hint-keeps-its-name | 187 refused, s12.57 | The envelope's hint is `_hint`. |
s12-25-split-by-name | s12.25 | Path and other arguments are split by name; a closed input does not refuse path arguments. |
s12-26-stringified | s12.26 | A stringified list or object is decoded where structure is wanted; text that is wanted stays text. |
s12-27-unknown-keys | s12.27 | Unknown keys follow the input's own policy, which is closed unless it says otherwise. |
s12-28-invalid-sends-nothing | s12.28 | Invalid arguments send nothing and name the field. |
s12-31-list-repeats | s12.31 and 33 | A list travels as its style says, one element too. |
s12-34-scalars | s12.34 | Booleans are true and false; null is left out of a query and kept in a JSON body. |
s12-35-no-form | s12.35 | What has no form in a query is refused before anything is sent. |
s12-36-path-encoding | s12.36 | A path value is one encoded segment. |
s12-37-no-body | s12.37 | No body arguments, no body and no content type. |
s12-38-delete-query | s12.38 | A DELETE's arguments travel as query unless declared as body. |
s12-42-not-json | s12.42 | A 2xx answer that is not JSON, or is empty where an output is declared, is a backend fault. |
s12-55-roots-kept | s12.55 | List, scalar and null roots keep their root on every surface. |
s12-56-no-output | s12.56 | Without a declared output a success is empty. |
s12-61-legacy-errors-hidden | s12.61 | Of a legacy error body nothing undeclared is shown: no HTML, URL, header or credential. |
s12-62-deadline | s12.62 | The gateway's own deadline is retryable only for an idempotent endpoint; the hint says to verify. |
s12-63-unreachable | s12.63 | A refused connection is retryable, since nothing was sent. |
s12-64-caller-leaves | s12.64 | A caller that leaves cancels the backend call. |
s12-65-ceiling | s12.65 | An answer over the byte limit is refused; exactly the limit is taken. |
s12-70-mcp-result | s12.70 | MCP: one text block of the same JSON as the structured content; a failure has no structured content. |
s12-73-cli-streams | s12.73 | CLI: the card on stdout and 0; the envelope on stderr and the code's exit. |
s12-74-cli-explicit | s12.74 | An endpoint that does not expose `cli` is no command. |
s12-75-refusals-reach-hooks | s12.75 | A badly argued call reaches the hooks as VALIDATION_ERROR. |
s12-76-digest | s12.76 | Every listing and result carries the catalog's digest, failures too; it moves with what is advertised only. |
s12-80-bytes | s12.80 | Full bytes are the decoded answer, view bytes what the caller got; a failed call adds none. |
s12-81-scopes | s12.81 | A call without the scopes that an endpoint asks for is refused. |
s12-16-names | s12.16 | Two tools of one name on one surface, or a name outside the class, are refused. |
""")
