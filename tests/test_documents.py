"""Every link of a document to another file, or to a heading in one, leads somewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted(
    {*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("config/*.md"), *ROOT.glob("bench/*.md")}
)


def links(document: Path) -> Iterator[tuple[str, str]]:
    """File and heading of each link that is no address."""
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", document.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if "://" not in target and not target.startswith("mailto:"):
            path, _, heading = target.partition("#")
            yield path, heading


def headings(document: Path) -> set[str]:
    """As code hosts make them: lower case, spaces to hyphens, what is no word gone."""
    found = re.findall(r"(?m)^#+ (.*)$", document.read_text())
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in found}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(document: Path) -> None:
    for path, heading in links(document):
        target = (document.parent / path) if path else document
        assert target.exists(), f"{document.name}: {path}"
        assert not heading or heading in headings(target), f"{document.name}: {path}#{heading}"
