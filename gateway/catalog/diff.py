"""What changed from one surface to another, and whom it breaks. Pure; knows no file.

One question decides each change: what does it mean to somebody who changes nothing on their side? An unchanged call
that is refused, or that means something else, and an answer that an unchanged reader does not understand, are breaking.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from gateway import json_text
from gateway.catalog.diff_change import Change, SchemaChange, Shown, Verdict, short
from gateway.catalog.diff_schema import Side, compare, compiled
from gateway.catalog.diff_words import compare_inner_defaults, compare_words
from gateway.catalog.snapshot import Operation, Snapshot

Json = Any

BREAKING, COMPATIBLE, DOCS = Verdict.BREAKING, Verdict.COMPATIBLE, Verdict.DOCS

_TIERS = ("pure", "read", "write", "exec")
#: MCP hints: the value that promises a client the most.
_PROMISES = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
_ABSENT = object()


def diff(old: Snapshot, new: Snapshot) -> tuple[Change, ...]:
    """Every change, the breaking ones first, then by operation and path."""
    before = {operation.id: operation for operation in old.operations}
    after = {operation.id: operation for operation in new.operations}
    changes = list(_formats(old, new))
    for name in sorted(before.keys() | after.keys()):
        was, now = before.get(name), after.get(name)
        if was is None:
            assert now is not None
            changes.append(_whole(now, COMPATIBLE, "is new"))
        elif now is None:
            changes.append(_whole(was, BREAKING, "is gone; every call of it fails"))
        else:
            changes += _Comparison(was, now, _stricter(old, new)).changes()
    gravity = list(Verdict)
    # By path, since a snapshot keeps no order of keys.
    return tuple(sorted(changes, key=lambda it: (gravity.index(it.verdict), it.operation, it.path, it.message)))


def _stricter(old: Snapshot, new: Snapshot) -> str:
    return "assert" if "assert" in (old.formats, new.formats) else "annotate"


def _formats(old: Snapshot, new: Snapshot) -> Iterator[Change]:
    if old.formats == new.formats:
        return
    at = ("gateway", "formats")
    used = any(b'"format":' in json_text.canonical(_schemas(each)) for each in (*old.operations, *new.operations))
    if not used:
        yield Change(
            DOCS, "behaviour", "", "formats", "no schema names a `format`, so nothing is judged otherwise", at=at
        )
        return
    message = {
        "assert": "a `format` refuses values now; old calls that broke one are refused",
        "annotate": "a `format` refuses nothing now; answers may break one",
    }[new.formats]
    yield Change(BREAKING, "behaviour", "", "formats", message, at=at)


def _schemas(operation: Operation) -> list[Json]:
    return [operation.input, dict(operation.outputs), None if operation.view is None else operation.view.output]


def _whole(operation: Operation, verdict: Verdict, message: str) -> Change:
    return Change(
        verdict,
        "operation",
        operation.id,
        "",
        message,
        surfaces=tuple(operation.facts["expose"]),
        consumers=tuple(operation.facts["consumers"]),
        at=("endpoints", operation.id),
    )


class _Comparison:
    """One operation that both surfaces have."""

    def __init__(self, old: Operation, new: Operation, formats: str) -> None:
        self.old = old
        self.new = new
        self.formats = formats
        #: The surfaces on which somebody can have relied on it.
        self.surfaces = tuple(on for on in old.facts["expose"] if on in new.facts["expose"])
        self.is_tool = old.tool is not None and new.tool is not None
        self.on_tools = tuple(on for on in self.surfaces if on != "http") if self.is_tool else ()
        self.on_http = tuple(on for on in self.surfaces if on == "http")

    def changes(self) -> list[Change]:
        found = [
            *self._exposure(),
            *self._scopes(),
            *self._request(),
            *self._places(),
            *self._facts(),
            *self._errors(),
            *self._input(),
            *self._defaults(),
            *self._outputs(),
            *self._tool(),
            *self._words(),
        ]
        consumers = tuple(sorted({*self.old.facts["consumers"], *self.new.facts["consumers"]}))
        return [replace(change, consumers=consumers) for change in _once(found)]

    def _change(
        self,
        verdict: Verdict,
        aspect: str,
        path: str,
        message: str,
        at: Iterable[str | int],
        shown: Shown | None = None,
        surfaces: tuple[str, ...] | None = None,
    ) -> Change:
        place = ("endpoints", self.old.id, *at)
        met = self.surfaces if surfaces is None else surfaces
        return Change(verdict, aspect, self.old.id, path, message, shown, met, at=place)

    # what the endpoint says in plain values

    def _exposure(self) -> Iterator[Change]:
        before, after = self.old.facts["expose"], self.new.facts["expose"]
        for on in sorted({*before, *after}):
            if on not in after:
                yield self._change(
                    BREAKING, "exposure", "expose", f"{on} has it no longer", ("expose",), surfaces=(on,)
                )
            elif on not in before:
                yield self._change(COMPATIBLE, "exposure", "expose", f"{on} has it now", ("expose",), surfaces=(on,))

    def _scopes(self) -> Iterator[Change]:
        before, after = self.old.facts["scopes"], self.new.facts["scopes"]
        for scope in sorted({*before, *after}):
            if scope not in before:
                message = f"`{scope}` is asked for now; who lacks it no longer finds the tool"
                yield self._change(
                    BREAKING, "scope", "scopes", message, ("scopes",), Shown(list(before)), self.on_tools
                )
            elif scope not in after:
                message = f"`{scope}` is asked for no longer"
                yield self._change(COMPATIBLE, "scope", "scopes", message, ("scopes",), surfaces=self.on_tools)

    def _request(self) -> Iterator[Change]:
        before, after = self.old.facts["request"], self.new.facts["request"]
        if before == after:
            return
        if self.on_http:
            message = f"was `{before}`, and is `{after}` now; existing HTTP clients keep the old one"
            yield self._change(BREAKING, "request", "request", message, ("request",), Shown(before), self.on_http)
        else:
            message = f"was `{before}`, and is `{after}` now; callers of a tool do not see it"
            yield self._change(COMPATIBLE, "request", "request", message, ("request",))

    def _places(self) -> Iterator[Change]:
        """Where arguments go is nothing to a tool's callers, and all to who writes the requests."""
        before, after = self.old.facts["send"], self.new.facts["send"]
        for name in sorted(before.keys() & after.keys()) if self.on_http else ():
            if before[name] != after[name]:
                message = f"went as `{before[name]}`, and goes as `{after[name]}` now"
                at, shown = ("send", name), Shown(before[name])
                yield self._change(BREAKING, "request", f"send.{name}", message, at, shown, self.on_http)

    def _facts(self) -> Iterator[Change]:
        before, after = self.old.facts, self.new.facts
        if before["kind"] != after["kind"]:
            message = f"was `{before['kind']}`, and is `{after['kind']}` now; its answers are of another form"
            yield self._change(BREAKING, "behaviour", "kind", message, ("kind",))
        if before["validate"] != after["validate"]:
            if after["validate"] == "observe":
                message = "answers that break `output` are passed on now"
                yield self._change(BREAKING, "behaviour", "validate", message, ("validate",))
            else:
                message = "answers that break `output` are failures now, never passed on"
                yield self._change(COMPATIBLE, "behaviour", "validate", message, ("validate",))
        if before["idempotent"] != after["idempotent"] and not self.is_tool:
            verdict = COMPATIBLE if after["idempotent"] else BREAKING
            message = "repeating it does no harm now" if after["idempotent"] else "repeating it may do harm now"
            yield self._change(verdict, "behaviour", "idempotent", message, ("idempotent",))
        if before["consumers"] != after["consumers"]:
            listed = ", ".join(after["consumers"]) or "nobody"
            yield self._change(DOCS, "consumers", "consumers", f"relied on by {listed} now", ("consumers",))

    def _errors(self) -> Iterator[Change]:
        before, after = self.old.facts["errors"], self.new.facts["errors"]
        for code in sorted(before.keys() | after.keys()):
            at, path = ("errors", code), f"errors.{code}"
            if code not in after:
                message = "is declared no longer; callers that look for it get the code of its status"
                yield self._change(BREAKING, "error", path, message, at, Shown(code), self.on_tools)
                continue
            if code not in before:
                message = "is new; `retryable` says what callers that do not know it need"
                yield self._change(COMPATIBLE, "error", path, message, at, surfaces=self.on_tools)
                continue
            was, now = before[code], after[code]
            if was["status"] != now["status"]:
                message = f"had status {was['status']}, and has {now['status']} now"
                shown = Shown(now["status"])
                yield self._change(BREAKING, "error", f"{path}.status", message, (*at, "status"), shown, self.on_tools)
            if was["retryable"] != now["retryable"]:
                message = f"`retryable` was {_word(was['retryable'])}, and is {_word(now['retryable'])} now"
                message += "; each failure says so itself"
                at_retryable = (*at, "retryable")
                yield self._change(
                    COMPATIBLE, "error", f"{path}.retryable", message, at_retryable, surfaces=self.on_tools
                )
            if was["hint"] != now["hint"]:
                yield self._change(DOCS, "error", f"{path}.hint", "is worded otherwise", (*at, "hint"))

    # arguments

    def _input(self) -> Iterator[Change]:
        if self.on_tools:
            changes = compare(self._called(self.old), self._called(self.new), Side.CALLERS, formats=self.formats)
            yield from self._schema_changes("input", changes, self.on_tools)
        if self.on_http:
            changes = compare(self.old.input, self.new.input, Side.CALLERS, formats=self.formats)
            yield from self._schema_changes("input", changes, self.on_http)
        yield from self._schema_changes("input", compare_words(self.old.input, self.new.input), self.surfaces)

    def _called(self, operation: Operation) -> Json:
        """The input as callers of the tool meet it: what has a default of the view may be left out."""
        defaults = () if operation.view is None else tuple(operation.view.defaults)
        return compiled(operation.input, self.formats).optional(defaults)

    def _defaults(self) -> Iterator[Change]:
        """A changed default is breaking: the same call, which leaves the argument out, means something else."""
        if not self.on_tools:
            return
        before, after = self._filled(self.old), self._filled(self.new)
        passed = compiled(self._called(self.old), self.formats).required
        for name in sorted((before.keys() | after.keys()) - passed):
            was, now = before.get(name, _ABSENT), after.get(name, _ABSENT)
            if json_text.canonical([was] if was is not _ABSENT else []) == json_text.canonical(
                [now] if now is not _ABSENT else []
            ):
                continue
            message = _default_moved(was, now)
            shown = Shown({}) if not passed else None
            yield self._change(
                BREAKING, "default", f"input.{name}", message, self._default_at(name), shown, self.on_tools
            )
        inner = compare_inner_defaults(self.old.input, self.new.input)
        yield from self._schema_changes("input", inner, self.on_tools, aspect="default")

    def _filled(self, operation: Operation) -> dict[str, Json]:
        """What an argument is where a tool's caller leaves it out."""
        given = {} if operation.view is None else dict(operation.view.defaults)
        filled: dict[str, Json] = compiled(operation.input, self.formats).fill(given)
        return filled

    def _default_at(self, name: str) -> tuple[str, ...]:
        by_view = any(each.view is not None and name in each.view.defaults for each in (self.old, self.new))
        return ("tool", "view", "defaults", name) if by_view else ("input", "properties", name, "default")

    # answers

    def _outputs(self) -> Iterator[Change]:
        if self.on_http or (self.on_tools and not (_has_view(self.old) and _has_view(self.new))):
            yield from self._shown_outputs()
        if not self.on_tools:
            return
        before, after = self.old.view, self.new.view
        if before is not None and after is not None and before.output is not None and after.output is not None:
            changes = compare(before.output, after.output, Side.READERS, formats=self.formats)
            changes += compare_words(before.output, after.output)
            yield from self._schema_changes("tool.view.output", changes, self.on_tools, at=("tool", "view", "output"))
        elif _has_view(self.old) or _has_view(self.new):
            yield from self._card_against_full()
        if self._wraps(self.old) != self._wraps(self.new):
            message = "the answer's root is an object now" if self._wraps(self.old) else "the root may be no object now"
            message += ", so that MCP shows it in another place (`result`)"
            yield self._change(BREAKING, "output", "output", message, ("output",), surfaces=self.on_tools)
        yield from self._view_facts()

    def _shown_outputs(self) -> Iterator[Change]:
        """The full answers, by status, to all who see them."""
        shows_full = not _has_view(self.old) and not _has_view(self.new)
        met = self.surfaces if shows_full else self.on_http
        before, after = self.old.outputs, self.new.outputs
        for status in sorted(before.keys() | after.keys()):
            wanted, given = before.get(status), after.get(status)
            path, at = _output_place(status, self.new if given is not None else self.old)
            if wanted is not None and given is None:
                given = after.get("2XX")
            elif wanted is None and status == "2XX" and before:
                continue  # each status that readers know is compared with it
            elif wanted is None:
                wanted = before.get("2XX")
            if wanted is None and given is not None:
                verdict = COMPATIBLE if not before else BREAKING
                message = "is told now" if not before else f"status {status} is an answer now that readers do not know"
                yield self._change(verdict, "output", path, message, at, surfaces=met)
            elif wanted is not None and given is None:
                verdict = COMPATIBLE if after else BREAKING
                message = f"status {status} comes no longer" if after else "is declared no longer; the answer is empty"
                if status == "2XX" and after:
                    continue  # each status that is left is compared with it
                yield self._change(verdict, "output", path, message, at, surfaces=met)
            else:
                changes = compare(wanted, given, Side.READERS, formats=self.formats) + compare_words(wanted, given)
                yield from self._schema_changes(path, changes, met, at=at)

    def _card_against_full(self) -> Iterator[Change]:
        """A view's output came or went: what tools showed before against what they show now."""
        before, after = _shown(self.old), _shown(self.new)
        for wanted in before:
            for given in after:
                changes = compare(wanted, given, Side.READERS, formats=self.formats)
                at = ("tool", "view", "output")
                yield from self._schema_changes("tool.view.output", changes, self.on_tools, at=at)

    def _wraps(self, operation: Operation) -> bool:
        return not all(compiled(each, self.formats).is_object for each in _shown(operation))

    def _view_facts(self) -> Iterator[Change]:
        before, after = self.old.view, self.new.view
        was, now = before is not None and before.project, after is not None and after.project
        if was != now:
            message = "a projection makes the answer now" if now else "no projection makes the answer any more"
            at = ("tool", "view", "project")
            message += "; its schema is told above where it moved"
            yield self._change(COMPATIBLE, "output", "tool.view.project", message, at, surfaces=self.on_tools)
        yield from self._budget(before.budget if before else None, after.budget if after else None)

    def _budget(self, before: Mapping[str, Json] | None, after: Mapping[str, Json] | None) -> Iterator[Change]:
        if before == after:
            return
        path, at = "tool.view.budget", ("tool", "view", "budget")
        if after is None:
            yield self._change(
                COMPATIBLE, "output", path, "no budget bounds the answer now", at, surfaces=self.on_tools
            )
        elif before is None or after["bytes"] < before["bytes"]:
            what = "is refused" if after["trim"] is None else f"loses rows of `{after['trim']}`"
            message = f"an answer of more than {after['bytes']} bytes {what} now"
            yield self._change(BREAKING, "output", path, message, at, surfaces=self.on_tools)
        elif (before["trim"], before["note"]) != (after["trim"], after["note"]):
            message = "an answer over the budget is cut in another place now"
            yield self._change(BREAKING, "output", path, message, at, surfaces=self.on_tools)
        else:
            message = f"answers up to {after['bytes']} bytes are shown now"
            yield self._change(COMPATIBLE, "output", path, message, at, surfaces=self.on_tools)

    # what the tool says of itself

    def _tool(self) -> Iterator[Change]:
        if self.old.tool is None or self.new.tool is None or not self.on_tools:
            return
        before, after = self.old.tool, self.new.tool
        if before["name"] != after["name"]:
            message = f"was `{before['name']}`, and is `{after['name']}` now; calls of the old name find nothing"
            at, shown = ("tool", "name"), Shown(before["name"])
            yield self._change(BREAKING, "name", "tool.name", message, at, shown, self.on_tools)
        yield from self._safety(before, after)
        if before["confirm"] != after["confirm"]:
            verdict = BREAKING if before["confirm"] is None else COMPATIBLE if after["confirm"] is None else DOCS
            message = {
                BREAKING: "asks the person first now; a client that cannot ask can no longer call it",
                COMPATIBLE: "asks nobody any more",
                DOCS: "the question is worded otherwise",
            }[verdict]
            yield self._change(verdict, "behaviour", "tool.mcp.confirm", message, ("tool", "mcp", "confirm"))
        seen, sees = _visible(before), _visible(after)
        if seen != sees:
            lost = sorted(seen - sees)
            message = f"is hidden from the {lost[0]} now" if lost else "is shown to more now"
            verdict = BREAKING if lost else COMPATIBLE
            yield self._change(verdict, "exposure", "tool.ui.visibility", message, ("tool", "ui", "visibility"))

    def _safety(self, before: Mapping[str, Json], after: Mapping[str, Json]) -> Iterator[Change]:
        tier, tier_now = before["safetyTier"] or "write", after["safetyTier"] or "write"
        if tier != tier_now:
            graver = _TIERS.index(tier_now) > _TIERS.index(tier) if {tier, tier_now} <= set(_TIERS) else True
            message = f"was `{tier}`, and is `{tier_now}` now"
            message += "; who let it run unasked may have to ask" if graver else ""
            at = ("tool", "safety_tier")
            verdict = BREAKING if graver else COMPATIBLE
            yield self._change(verdict, "behaviour", "tool.safety_tier", message, at, surfaces=self.on_tools)
        for hint, promised in _PROMISES.items():
            was, now = before["annotations"].get(hint), after["annotations"].get(hint)
            if was == now:
                continue
            message = f"was {_word(was)}, and is {_word(now)} now"
            verdict = BREAKING if was == promised else COMPATIBLE
            place = ("tool", "annotations", hint)
            yield self._change(verdict, "behaviour", f"tool.annotations.{hint}", message, place, surfaces=self.on_tools)

    def _words(self) -> Iterator[Change]:
        for key in ("title", "description"):
            if self.old.facts[key] != self.new.facts[key]:
                yield self._change(DOCS, "description", key, "is worded otherwise", (key,))
        if self.old.tool is None or self.new.tool is None:
            return
        for key in ("title", "cost", "latency"):
            if self.old.tool[key] != self.new.tool[key] and (key != "title" or self._own_title_moved()):
                message = f"was {_word(self.old.tool[key])}, and is {_word(self.new.tool[key])} now"
                yield self._change(DOCS, "description", f"tool.{key}", message, ("tool", key), surfaces=self.on_tools)

    def _own_title_moved(self) -> bool:
        """Whether it is the tool's title that changed, and not the endpoint's, which is told already."""
        return bool(self.old.facts["title"] == self.new.facts["title"])

    def _schema_changes(
        self,
        path: str,
        changes: Iterable[SchemaChange],
        surfaces: tuple[str, ...],
        *,
        at: tuple[str, ...] | None = None,
        aspect: str | None = None,
    ) -> Iterator[Change]:
        root = (path,) if at is None else at
        for change in changes:
            inner = change.path if not change.path or change.path[0] in "[|" else f".{change.path}"
            told = aspect or ("input" if root[0] == "input" else "output")
            told = "description" if change.verdict is DOCS else told
            yield self._change(
                change.verdict,
                told,
                path + inner,
                change.message,
                (*root, *change.at),
                change.counterexample,
                surfaces,
            )


def _once(changes: Iterable[Change]) -> Iterator[Change]:
    """What several surfaces meet in the same way is one change."""
    met: dict[tuple[Json, ...], Change] = {}
    for change in changes:
        key = (change.verdict, change.path, change.message)
        known = met.get(key)
        surfaces = sorted({*change.surfaces, *(known.surfaces if known else ())})
        met[key] = replace(known or change, surfaces=tuple(surfaces))
    yield from met.values()


def _has_view(operation: Operation) -> bool:
    return operation.view is not None and operation.view.output is not None


def _shown(operation: Operation) -> list[Json]:
    """The schemas of what a tool shows."""
    if operation.view is not None and operation.view.output is not None:
        return [operation.view.output]
    return list(operation.outputs.values())


def _output_place(status: str, operation: Operation) -> tuple[str, tuple[str, ...]]:
    """A status is named where the contract has a map of them."""
    if status == "2XX" and len(operation.outputs) == 1:
        return "output", ("output",)
    return f"output.{status}", ("output", status)


def _visible(tool: Mapping[str, Json]) -> set[str]:
    return {"model", "app"} if tool["visibility"] is None else set(tool["visibility"])


def _default_moved(was: Json, now: Json) -> str:
    if was is _ABSENT:
        return f"left out, it is {short(now)} now, where nothing was sent; the same call means something else"
    if now is _ABSENT:
        return f"left out, it was {short(was)}, and nothing is sent now; the same call means something else"
    return f"left out, it was {short(was)}, and is {short(now)} now; the same call means something else"


def _word(value: Json) -> str:
    return "not said" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
