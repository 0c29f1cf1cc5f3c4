"""Shell completion: what may stand where the cursor is, and the scripts by which bash, zsh and fish ask.

Knows no shell's quoting: a word that any of them would have to quote is not offered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from gateway import json_text
from gateway.contract.model import Contract
from gateway.generation import index
from gateway.surfaces.cli import SURFACE

#: Each asks `toolview completion words -- WORD…`, whose last word is the one to complete, and may be empty.
SCRIPTS: Mapping[str, str] = {
    "bash": """\
# To use it: source <(toolview completion bash)
_toolview() {
    local found
    mapfile -t found < <("${COMP_WORDS[0]}" completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    COMPREPLY=()
    if [[ ${#found[@]} -gt 0 && -n ${found[0]} ]]; then COMPREPLY=("${found[@]}"); fi
}
complete -o default -F _toolview toolview
""",
    "zsh": """\
#compdef toolview
# To use it: source <(toolview completion zsh), after compinit
_toolview() {
    local -a found
    found=("${(@f)$("${words[1]}" completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    found=(${found:#})
    if (( ${#found} )); then compadd -Q -- $found; else _files; fi
}
compdef _toolview toolview
""",
    "fish": """\
# To use it: toolview completion fish | source
function __toolview
    set -l before (commandline -opc)
    $before[1] completion words -- $before[2..-1] (commandline -ct) 2>/dev/null
end
complete -c toolview -f -a '(__toolview)'
complete -c toolview -F -n 'test -z "$(__toolview)"'
""",
}

#: Flags of ours beside those of a tool, and those of them that take a value.
_OURS = ("--json", "--dry-run", "--output", "--config", "--help")
_WITH_VALUE = frozenset({"--json", "--output", "--config"})
_PLAIN = re.compile(r"[\w@%+=,./-]+", re.ASCII)

#: The contract at a path, the default one for None; or None where there is none.
Load = Callable[[str | None], Contract | None]


def candidates(words: Sequence[str], commands: Mapping[str, Sequence[str]], load: Load) -> list[str]:
    """The words that may stand last; none where a file may, or where nothing is known."""
    given = [word for word in words if word != "="]  # bash gives `--name=va` as three words
    if words and words[-1] == "=":
        given.append("")
    *before, current = given or [""]
    found = _found(before, commands, load)
    return [word for word in found if word.startswith(current) and _PLAIN.fullmatch(word)]


def _found(before: Sequence[str], commands: Mapping[str, Sequence[str]], load: Load) -> list[str]:
    if not before:
        return sorted(commands)
    if before[0] != "call":
        return [flag for flag in commands.get(before[0], ()) if flag.startswith("--") and flag not in before]
    if before[-1] in ("--config", "--output"):
        return []
    contract = load(_config(before))
    if contract is None:
        return []
    generation = index(contract)
    tool = next(_positional(before[1:]), None)
    if tool is None:
        return [*sorted(generation.catalog(SURFACE, None).by_name), "--config", "--help"]
    endpoint = generation.find(tool, SURFACE, None)
    if endpoint is None:
        return []
    return _flags({name: endpoint.input.property_document(name) for name in endpoint.input.property_names}, before)


def _flags(properties: Mapping[str, Any], before: Sequence[str]) -> list[str]:
    """The values of the flag that stands before, or the flags that may still come."""
    name = before[-1][2:] if before[-1].startswith("--") else ""
    if name in properties and (values := list(_values(properties[name]))):
        return values
    if before[-1] in _WITH_VALUE or (name in properties and not _is_switch(properties[name])):
        return []
    flags = [f"--{name}" for name in properties if f"--{name}" not in before or _repeats(properties[name])]
    return [*flags, *(flag for flag in _OURS if flag not in before and flag[2:] not in properties)]


def _is_switch(schema: Any) -> bool:
    return isinstance(schema, Mapping) and schema.get("type") == "boolean"


def _repeats(schema: Any) -> bool:
    return isinstance(schema, Mapping) and schema.get("type") == "array"


def _positional(words: Sequence[str]) -> Iterator[str]:
    left = list(words)
    while left:
        word = left.pop(0)
        if word == "--config":
            del left[:1]
        elif not word.startswith("-"):
            yield word


def _config(words: Sequence[str]) -> str | None:
    for at, word in enumerate(words):
        if word == "--config" and at + 1 < len(words):
            return words[at + 1]
        if word.startswith("--config="):
            return word.partition("=")[2]
    return None


def _values(schema: Any) -> Iterator[str]:
    """What a flag takes, where its schema says so in so many words."""
    if not isinstance(schema, Mapping):
        return
    if schema.get("type") == "array":
        yield from _values(schema.get("items"))
    elif schema.get("type") == "boolean":
        yield from ("true", "false")
    for value in schema.get("enum", ()):
        yield value if isinstance(value, str) else json_text.encode(value).decode()
