"""Shell completion: what may stand where the cursor is, and the scripts by which bash, zsh and fish ask.

Knows no shell's quoting: a word that any of them would have to quote is not offered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gateway import json_text
from gateway.generation import CONSOLE, index
from gateway.surfaces.cli import SURFACE
from gateway.surfaces.command_line import Load, Misused, contract_of, is_tools, properties_of
from gateway.surfaces.switches import OF_COMMAND, Switch

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
    set -l found ($before[1] completion words -- $before[2..-1] (commandline -ct) 2>/dev/null | string match -r '.+')
    if set -q found[1]
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c toolview -f -a '(__toolview)'
""",
}

_PLAIN = re.compile(r"[\w@%+=,./-]+", re.ASCII)


def candidates(words: Sequence[str], commands: Mapping[str, Sequence[str]], load: Load) -> list[str]:
    """The words that may stand last; none where a file may, or where nothing is known."""
    given = [word for word in words if word != "="]  # bash gives `--name=va` as three words
    if words and words[-1] == "=":
        given.append("")
    *before, current = given or [""]
    flag, equals, _ = current.partition("=")
    if equals and flag.startswith("--"):  # zsh and fish give it as one, and want it back as one
        found = [f"{flag}={word}" for word in _found([*before, flag], commands, load) if not word.startswith("--")]
    else:
        found = _found(before, commands, load)
    return [word for word in found if word.startswith(current) and _PLAIN.fullmatch(word)]


def _found(before: Sequence[str], commands: Mapping[str, Sequence[str]], load: Load) -> list[str]:
    if not before:
        return sorted(commands)
    command, words = before[0], before[1:]
    switches = OF_COMMAND.get(command)
    if before == ["import"]:
        return ["openapi"]
    if before == ["completion"]:
        return list(SCRIPTS)
    if switches is None:
        return [flag for flag in commands.get(command, ()) if flag.startswith("--") and flag not in words]
    own, tool, behind = _parted(words, switches)
    if tool is None and words and _awaits_value(words[-1], switches):
        return []
    surface = SURFACE if command == "call" else CONSOLE
    if tool is None:
        contract = load(own.get("config"))
        names = [] if contract is None else sorted(index(contract).catalog(surface, None).by_name)
        return [*names, *(f"--{name}" for name in switches if name not in own)]
    path: str | Misused | None = own.get("config") or contract_of(tool, behind, switches, load, surface)
    contract = None if isinstance(path, Misused) else load(path)
    properties = None if contract is None else properties_of(contract, tool, surface)
    return [] if properties is None else _flags(properties, behind, switches, own)


def _parted(words: Sequence[str], switches: Mapping[str, Switch]) -> tuple[dict[str, str], str | None, list[str]]:
    """The switches before a tool's name, the tool, and the words behind it."""
    own: dict[str, str] = {}
    left = list(words)
    while left:
        word = left.pop(0)
        if not word.startswith("-"):
            return own, word, left
        name, equals, text = word[2:].partition("=")
        if not equals and _awaits_value(word, switches):
            text = left.pop(0) if left else ""
        own[name] = text
    return own, None, []


def _awaits_value(word: str, switches: Mapping[str, Switch]) -> bool:
    switch = switches.get(word[2:]) if word.startswith("--") else None
    return switch is not None and switch.value is not None


def _flags(
    properties: Mapping[str, Any], behind: Sequence[str], switches: Mapping[str, Switch], own: Mapping[str, str]
) -> list[str]:
    """The values of the flag that stands before, or the flags and switches that may still come."""
    last = behind[-1] if behind else ""
    name = last[2:] if last.startswith("--") else ""
    known = name if name in properties else name.replace("-", "_")
    if known in properties and (values := list(_values(properties[known]))):
        return values
    if known in properties and not _is_switch(properties[known]):
        return []
    if known not in properties and _awaits_value(last, switches):
        return []
    flags = [f"--{name}" for name in properties if f"--{name}" not in behind or _repeats(properties[name])]
    ours = [name for name in switches if name not in own and not is_tools(name, properties)]
    return [*flags, *(f"--{name}" for name in ours if f"--{name}" not in behind)]


def _is_switch(schema: Any) -> bool:
    return isinstance(schema, Mapping) and schema.get("type") == "boolean"


def _repeats(schema: Any) -> bool:
    return isinstance(schema, Mapping) and schema.get("type") == "array"


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
