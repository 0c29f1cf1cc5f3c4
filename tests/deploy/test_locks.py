"""The image's lock satisfies pyproject.toml, holds every version to hashes, and has nothing that nobody asked for."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import PackageNotFoundError, requires

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.deploy.conftest import ROOT

LOCKS = ROOT / "deploy" / "locks"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
AGAIN = "; run `make lock` and commit what it wrote"


def locked(name: str) -> dict[str, tuple[str, list[str]]]:
    """Version and hashes of each package in a lock, by its canonical name."""
    text = (LOCKS / f"{name}.txt").read_text().replace("\\\n", "")
    found: dict[str, tuple[str, list[str]]] = {}
    for line in text.splitlines():
        pin, *hashes = re.split(r"\s+--hash=", line.strip())
        package, version = re.match(r"([A-Za-z0-9._-]+)==([^\s;]+)", pin).groups()  # type: ignore[union-attr]  # each line is a pin
        found[canonicalize_name(package)] = (version, hashes)
    return found


def asked(name: str) -> list[Requirement]:
    lines = (line.partition("#")[0].strip() for line in (LOCKS / f"{name}.in").read_text().splitlines())
    return [Requirement(line) for line in lines if line]


WANTED = {
    "runtime": [
        Requirement(each)
        for each in (
            *PROJECT["project"]["dependencies"],
            # whoever runs the image cannot install an extra
            *(
                each
                for name, all_ in PROJECT["project"]["optional-dependencies"].items()
                if name != "test"
                for each in all_
            ),
        )
    ],
    **{name: asked(name) for name in ("build", "checks", "supply")},
}


@pytest.mark.parametrize(
    ("name", "requirement"), [(name, each) for name, all_ in WANTED.items() for each in all_], ids=str
)
def test_a_lock_satisfies_what_it_was_written_from(name: str, requirement: Requirement) -> None:
    pins = locked(name)
    assert canonicalize_name(requirement.name) in pins, requirement.name + AGAIN
    version, _ = pins[canonicalize_name(requirement.name)]
    assert requirement.specifier.contains(version, prereleases=True), f"{requirement} against {version}{AGAIN}"


@pytest.mark.parametrize("name", WANTED)
def test_every_version_is_held_to_hashes(name: str) -> None:
    assert {package for package, (_, hashes) in locked(name).items() if not hashes} == set()
    assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", each) for _, hashes in locked(name).values() for each in hashes)


def test_what_builds_the_wheel_is_what_the_project_asks_for() -> None:
    (floor,) = (Requirement(each) for each in PROJECT["build-system"]["requires"])
    assert floor.specifier.contains(locked("build")[floor.name][0])


def test_the_image_carries_nothing_that_nobody_asked_for() -> None:
    """Every locked package is reached from the project's own dependencies, as what is installed here says it."""
    reached: set[str] = set()
    seen: set[tuple[str, tuple[str, ...]]] = set()
    waiting = [(each.name, tuple(each.extras)) for each in WANTED["runtime"]]
    while waiting:
        package, extras = waiting.pop()
        if (package, extras) in seen:
            continue
        seen.add((package, extras))
        reached.add(package := canonicalize_name(package))
        try:
            needs = requires(package) or []
        except PackageNotFoundError:  # for another Python or system
            continue
        for each in map(Requirement, needs):
            marker = str(each.marker or "")
            if "extra" not in marker or any(f'extra == "{extra}"' in marker for extra in extras):
                waiting.append((each.name, tuple(each.extras)))
    assert set(locked("runtime")) - reached == set()
    # a lock for every system; what the running Python lacks may be in it, and nothing that is needed here may not
    assert {each for each in reached if each not in locked("runtime") and _applies(each)} == set()


def _applies(package: str) -> bool:
    try:
        requires(package)
    except PackageNotFoundError:
        return False
    return True


def test_no_lock_names_an_index() -> None:
    for path in LOCKS.iterdir():
        assert "://" not in path.read_text(), path
