"""Whether JavaScript compiles a pattern with its `u` flag (ECMA-262 section 22.2.1); when in doubt, no. Pure."""

from __future__ import annotations

import re
from functools import lru_cache

_QUANTIFIER = re.compile(r"(?:[*+?]|\{(\d+)(?:(,)(\d*))?\})\??")
_GROUP = re.compile(r"\((?:\?(?::|=|!|<=|<!|<([A-Za-z_$][A-Za-z0-9_$]*)>))?")
_LOOK = ("(?=", "(?!", "(?<=", "(?<!")
_CHARACTER = re.compile(
    r"\\(?:[fnrtv]|c[A-Za-z]|0(?![0-9])|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|u\{([0-9A-Fa-f]{1,8})\}|[\^$\\.*+?()\[\]{}|/])"
)
_SET = re.compile(r"\\(?:[dDsSwW]|[pP]\{([^}]*)\})")
_BACK = re.compile(r"\\(?:([1-9][0-9]{0,3})|k<([^>]*)>)")
# Of the properties that JavaScript knows, those that schemas use; another one is doubt.
_CATEGORIES = (
    "L Letter Lu Uppercase_Letter Ll Lowercase_Letter Lt Lm Lo M Mark Mn Mc Me N Number Nd Decimal_Number Nl No"
    " P Punctuation Pc Pd Ps Pe Pi Pf Po S Symbol Sm Sc Sk So Z Separator Zs Zl Zp C Other Cc Cf Co Cn"
)
_BINARY = "Any ASCII Alphabetic Lowercase Uppercase White_Space Emoji"
_SCRIPTS = "Latin Greek Cyrillic Han Hiragana Katakana Hangul Arabic Hebrew Thai Devanagari Armenian Georgian"
_SHORT = {"f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "0": 0}


@lru_cache(maxsize=1024)
def compiles(pattern: str) -> bool:
    """Whether `new RegExp(pattern, "u")` is known to succeed."""
    reader = _Reader(pattern)
    return reader.whole() and reader.references_hold()


class _Reader:
    """Reads a pattern once from left to right; every method says whether what it read is allowed."""

    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0
        self._depth = 0
        self._groups = 0
        self._names: set[str] = set()
        self._numbers_used: set[int] = set()
        self._names_used: set[str] = set()

    def whole(self) -> bool:
        open_groups: list[bool] = []  # for each open parenthesis, whether a quantifier may follow it
        while self._at < len(self._text):
            here = self._text[self._at]
            if here == "(":
                quantifiable = self._opened()
                if quantifiable is None:
                    return False
                open_groups.append(quantifiable)
                continue
            if here == ")":
                if not open_groups:
                    return False
                self._at += 1
                if open_groups.pop() and not self._quantified():
                    return False
                continue
            if not self._term(here):
                return False
        return not open_groups

    def references_hold(self) -> bool:
        return all(number <= self._groups for number in self._numbers_used) and self._names_used <= self._names

    def _opened(self) -> bool | None:
        group = _GROUP.match(self._text, self._at)
        assert group is not None
        name = group[1]
        if self._text.startswith("(?", self._at) and len(group[0]) == 1:
            return None
        if name is not None:
            if name in self._names:
                return None
            self._names.add(name)
        if name is not None or group[0] == "(":
            self._groups += 1
        self._at = group.end()
        return group[0] not in _LOOK

    def _term(self, here: str) -> bool:
        if here in "^$|":
            self._at += 1
            return True
        if here in "*+?{}]":
            return False
        if here == "[":
            return self._class() and self._quantified()
        if here != "\\":
            self._at += 1
            return not "\ud800" <= here <= "\udfff" and self._quantified()
        if self._text.startswith(("\\b", "\\B"), self._at):
            self._at += 2
            return True
        back = _BACK.match(self._text, self._at)
        if back is not None:
            if back[1] is not None:
                self._numbers_used.add(int(back[1]))
            else:
                self._names_used.add(back[2])
            self._at = back.end()
            return self._quantified()
        return (self._set() or self._character() is not None) and self._quantified()

    def _quantified(self) -> bool:
        """After an atom: no quantifier, or one whose bounds are in order."""
        quantifier = _QUANTIFIER.match(self._text, self._at)
        if quantifier is None:
            return True
        self._at = quantifier.end()
        return not quantifier[3] or int(quantifier[1]) <= int(quantifier[3])

    def _set(self) -> bool:
        found = _SET.match(self._text, self._at)
        if found is None or (found[1] is not None and not _is_property(found[1])):
            return False
        self._at = found.end()
        return True

    def _character(self) -> int | None:
        """The code point of an escaped character."""
        found = _CHARACTER.match(self._text, self._at)
        if found is None:
            return None
        self._at = found.end()
        body = found[0][1:]
        if found[1] is not None:
            point = int(found[1], 16)
            return point if point <= 0x10FFFF else None
        if body[0] in "xu" and len(body) > 1:
            return int(body[1:], 16)
        if body[0] == "c" and len(body) > 1:
            return ord(body[1]) % 32
        return _SHORT.get(body, ord(body))

    def _class(self) -> bool:
        self._at += 2 if self._text.startswith("[^", self._at) else 1
        while self._at < len(self._text):
            if self._text[self._at] == "]":
                self._at += 1
                return True
            low = self._class_atom()
            if low is None:
                return False
            dashed = self._text.startswith("-", self._at) and not self._text.startswith("-]", self._at)
            if dashed:
                self._at += 1
                high = self._class_atom() if self._at < len(self._text) else None
                # -1 is a set like \d, which is no end of a range
                if high is None or low < 0 or high < low:
                    return False
        return False

    def _class_atom(self) -> int | None:
        here = self._text[self._at]
        if here != "\\":
            self._at += 1
            return None if "\ud800" <= here <= "\udfff" else ord(here)
        if self._text.startswith(("\\b", "\\-"), self._at):
            self._at += 2
            return 8 if self._text[self._at - 1] == "b" else ord("-")
        return -1 if self._set() else self._character()


def _is_property(name: str) -> bool:
    key, equals, value = name.partition("=")
    if not equals:
        return key in (*_CATEGORIES.split(), *_BINARY.split())
    if key in ("Script", "sc", "Script_Extensions", "scx"):
        return value in _SCRIPTS.split()
    return key in ("General_Category", "gc") and value in _CATEGORIES.split()
