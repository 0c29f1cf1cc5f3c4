"""ECMA-262 patterns (the `u` dialect) written for a linear engine, or why they cannot be; knows nothing of schemas."""

from __future__ import annotations

import re
from functools import lru_cache

from gateway.record import record


@record
class PatternFault:
    """Why a pattern cannot be honoured: one sentence that says what to write instead."""

    reason: str


_BACKTRACKS = {
    "(?=": "a lookahead `(?=`",
    "(?!": "a negative lookahead `(?!`",
    "(?<=": "a lookbehind `(?<=`",
    "(?<!": "a negative lookbehind `(?<!`",
}
# One token of a pattern outside a class. Order matters: the longer form first.
_TOKEN = re.compile(
    r"""
      (?P<look>   \(\?(?:=|!|<=|<!) )
    | (?P<open>   \(\?:|\(\?<[\w$]+>|\((?!\?) )
    | (?P<group>  \(\?.? )
    | (?P<repeat> (?:[*+?]|\{[0-9]+(?:,[0-9]*)?\})\?? )
    | (?P<escape> \\ )
    | (?P<class>  \[\^? )
    | (?P<brace>  \{ )
    | (?P<plain>  . )
    """,
    re.VERBOSE | re.DOTALL,
)
# One escape, from after its backslash. `\u` first: a pair of surrogates is one character.
_ESCAPE = re.compile(
    r"""
      (?P<pair>     u(?P<high>[dD][89abAB][0-9a-fA-F]{2})\\u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2}) )
    | (?P<unicode>  u(?:\{(?P<points>[0-9a-fA-F]+)\}|(?P<point>[0-9a-fA-F]{4})) )
    | (?P<hex>      x[0-9a-fA-F]{2} )
    | (?P<control>  c(?P<letter>[A-Za-z]) )
    | (?P<property> [pP]\{(?P<name>[^}]*)\} )
    | (?P<back>     [1-9]|k )
    | (?P<nul>      0(?![0-9]) )
    | (?P<shared>   [dDwWsSfnrtv] )
    | (?P<boundary> [bB] )
    | (?P<itself>   [^A-Za-z0-9] )
    """,
    re.VERBOSE | re.DOTALL,
)
# Spelling of names in ECMA-262 table 66 ff.: exact, so `lowercase_letter` and `IsGreek` are errors there.
_PROPERTY = re.compile(
    r"(?!Is|In)(?:(?:General_Category|gc|Script|sc|Script_Extensions|scx)=)?[A-Z][A-Za-z]*(?:_[A-Z][a-z]*)*"
)


@lru_cache(maxsize=4096)
def translate(pattern: str) -> str | PatternFault:
    """The same pattern as the linear engine spells it; equal to the pattern itself in the common case."""
    written: list[str] = []
    at, repeatable = 0, False
    while at < len(pattern):
        token = _TOKEN.match(pattern, at)
        assert token is not None
        kind, text, at = token.lastgroup, token[0], token.end()
        if kind == "look":
            return PatternFault(
                f"{_BACKTRACKS[text]} needs backtracking, which can take for ever; write what is allowed instead"
            )
        if kind == "group":
            return PatternFault(f"`{text}` is no group that JavaScript knows; write the cases out, as `[Aa]`")
        if kind == "brace":
            return PatternFault(r"a `{` that repeats nothing must be written `\{`")
        if kind == "repeat":
            if not repeatable:
                return PatternFault(f"`{text}` repeats nothing; write `\\{text[0]}` for the character")
            written.append(text)
            repeatable = False
            continue
        if kind == "open" and text.startswith("(?<"):
            text = "("  # without backreferences a group's name says nothing
        elif kind == "class":
            done = _class(pattern, at, text)
            if isinstance(done, PatternFault):
                return done
            text, at = done
        elif kind == "escape":
            escaped = _escape(pattern, at, inside=False)
            if isinstance(escaped, PatternFault):
                return escaped
            text, at = escaped
        # After `(`, `|`, `^` and at the start there is nothing to repeat.
        repeatable = kind != "open" and text not in ("|", "^", "$")
        written.append(text)
    return "".join(written)


def _class(pattern: str, at: int, opening: str) -> tuple[str, int] | PatternFault:
    """A class from after its `[` or `[^` to after its `]`."""
    written = [opening]
    start = at
    while at < len(pattern):
        character = pattern[at]
        at += 1
        if character == "]":
            if at - 1 == start:  # `[]` matches nothing, `[^]` matches anything
                return ("[^\\s\\S]" if opening == "[" else "[\\s\\S]"), at
            return "".join(written) + "]", at
        if character == "\\":
            escaped = _escape(pattern, at, inside=True)
            if isinstance(escaped, PatternFault):
                return escaped
            character, at = escaped
        elif character in "[&~":  # the engine nests classes and knows set operators; ECMA's `u` dialect has neither
            character = "\\" + character
        written.append(character)
    return PatternFault("a `[` has no `]`")


def _escape(pattern: str, at: int, *, inside: bool) -> tuple[str, int] | PatternFault:
    """An escape from after its backslash."""
    found = _ESCAPE.match(pattern, at)
    if found is None:
        character = pattern[at : at + 1]
        if not character:
            return PatternFault("a backslash at the end escapes nothing")
        return PatternFault(f"`\\{character}` is no escape that JavaScript knows; write the character itself")
    kind, text, end = found.lastgroup, found[0], found.end()
    if found["pair"]:
        high, low = int(found["high"], 16), int(found["low"], 16)
        return f"\\x{{{0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00):X}}}", end
    if found["unicode"]:
        code = int(found["points"] or found["point"], 16)
        if 0xD800 <= code <= 0xDFFF or code > 0x10FFFF:
            return PatternFault("half of a surrogate pair, or a number above 10FFFF, is no character")
        return f"\\x{{{code:X}}}", end
    if found["control"]:
        return f"\\x{ord(found['letter']) % 32:02X}", end
    if found["property"]:
        if not _PROPERTY.fullmatch(found["name"]):
            return PatternFault(
                f"`\\{text}` is no property that JavaScript knows; names are exact, as `Lu` or `Script=Greek`"
            )
        return "\\" + text, end
    if kind == "back":
        return PatternFault("a backreference needs backtracking, which can take for ever; write the repeated text out")
    if kind == "nul":
        return "\\x00", end
    if kind == "boundary":
        if inside:
            return ("\\x08", end) if text == "b" else PatternFault("`\\B` has no meaning in a class")
        return f"(?-u:\\{text})", end  # word characters are ASCII in ECMA-262
    if kind == "itself" and text in "<>":  # the engine reads these as word boundaries
        return text, end
    return "\\" + text, end
