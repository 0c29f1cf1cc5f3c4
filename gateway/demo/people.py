"""The demo's people: made-up records, the same ones on every start, in the shape of an old directory; knows no HTTP."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

#: How many people each team has. `platform` is the one whose list is about 140 KB.
TEAMS = {"platform": 63, "payments": 24, "support": 8}
#: What a caller may ask a list to load on top of the plain record.
BLOCKS = ("stats", "history")

# One name a line would be a page of names.
# fmt: off
_FIRST = (
    "Ada", "Bruno", "Chen", "Dalia", "Emeka", "Farah", "Goran", "Hana", "Ines", "Jonas",
    "Kofi", "Leila", "Mateo", "Nadia", "Omar", "Petra", "Quinn", "Ravi", "Sofia", "Tariq",
)
_LAST = (
    "Almeida", "Becker", "Costa", "Dubois", "Eriksen", "Fischer", "Garcia", "Haddad",
    "Ivanova", "Jansen", "Kowalski", "Larsen", "Moreau", "Novak", "Okafor",
)
# fmt: on
_TITLES = (
    "Software Engineer II",
    "Senior Site Reliability Engineer",
    "Engineering Manager",
    "Staff Data Engineer",
    "Security Analyst",
    "Technical Writer",
)
_OFFICES = ("Lisbon", "Rotterdam", "Gdansk", "Toronto", "Nairobi")
_TAGS = ("on-call", "mentor", "kubernetes", "postgres", "incident lead", "observability", "first aid", "interviewer")
_EVENTS = ("TITLE_CHANGE", "TRANSFER", "SALARY_REVIEW", "LEAVE", "EQUIPMENT")
_STREETS = ("Harbour Street", "Mill Lane", "Station Road", "Orchard Avenue", "Castle Square")


@cache
def team_records(team: str) -> tuple[dict[str, Any], ...]:
    """Everyone of one of the `TEAMS`, in full; made once, so nobody may change a record in place."""
    return tuple(_record(team, number) for number in range(TEAMS[team]))


def new_record(team: str, number: int, name: str, title: str, email: str) -> dict[str, Any]:
    """The record of a person who has just been added: no past, and nothing measured yet."""
    record = _record(team, number)
    record |= {"name": name, "title": title, "email": email, "tags": [], "manager_id": None, "notes": None}
    return record | {"stats": None, "history": None}


def _record(team: str, number: int) -> dict[str, Any]:
    # A seed for each person, so that adding a person or a team moves nobody else.
    rng = random.Random(f"{team}/{number}")  # noqa: S311 (made-up data, not a secret)
    first, last = _pick(rng, _FIRST), _pick(rng, _LAST)
    login = f"{first}.{last}.{number}".lower()
    return {
        "id": _identity(team, number),
        "rec_type": "EMP",
        "rec_ver": 7,
        "name": f"{first} {last}",
        "name_sort": f"{last.upper()}, {first.upper()}",
        "title": _pick(rng, _TITLES),
        "team": team,
        "office": _pick(rng, _OFFICES),
        "email": f"{login}@directory.example",
        "phone": f"+1-555-01{rng.getrandbits(16) % 100:02d}",
        "manager_id": None if number == 0 else _identity(team, 0),
        "tags": [
            {"id": 100 + _TAGS.index(label), "label": label}
            for label in dict.fromkeys(_pick(rng, _TAGS) for _ in range(3))
        ],
        # No such number was ever issued: area 000 does not exist.
        "ssn": f"000-{rng.getrandbits(16) % 100:02d}-{rng.getrandbits(16) % 10000:04d}",
        "home_address": {
            "line1": f"{1 + rng.getrandbits(8)} {_pick(rng, _STREETS)}",
            "line2": None,
            "city": _pick(rng, _OFFICES),
            "postcode": f"{rng.getrandbits(20) % 100000:05d}",
            "geo": {"lat": _decimal(rng, 90, 6), "lon": _decimal(rng, 180, 6)},
        },
        "salary": {"amount": 40_000 + rng.getrandbits(16), "currency": "EUR", "bonus_pct": _decimal(rng, 20, 2)},
        "emergency_contact": {"name": f"{_pick(rng, _FIRST)} {last}", "phone": "+1-555-0100", "relation": None},
        "badge": {"no": f"B{rng.getrandbits(24):08d}", "doors": ["MAIN", "GARAGE", "LAB-2"], "lost": False},
        "notes": None if number % 3 else "Migrated from the 2009 directory. Do not edit by hand.",
        "created_by": "batch_import",
        "created_at": f"20{10 + rng.getrandbits(8) % 14}-0{1 + rng.getrandbits(8) % 9}-12T03:00:00Z",
        "deleted_at": None,
        "stats": _stats(rng),
        "history": [_event(rng, number) for _ in range(7)],
    }


def _identity(team: str, number: int) -> int:
    # Larger than 2**53: a client that reads numbers as doubles gets another person.
    return 1_900_000_000_000_000_000 + random.Random(f"{team}/{number}/id").getrandbits(56)  # noqa: S311 (made-up data)


def _stats(rng: random.Random) -> dict[str, Any]:
    months = [f"2026-{month:02d}" for month in range(1, 7)]
    return {
        "commits": {month: rng.getrandbits(7) for month in months},
        "reviews": {month: rng.getrandbits(6) for month in months},
        "tickets": {"opened": rng.getrandbits(8), "closed": rng.getrandbits(8), "median_hours": _decimal(rng, 72, 2)},
        "leave_days_left": _decimal(rng, 30, 1),
        "last_login_ip": None,
    }


def _event(rng: random.Random, number: int) -> dict[str, Any]:
    return {
        "seq": rng.getrandbits(40),
        "kind": _pick(rng, _EVENTS),
        "at": f"20{12 + rng.getrandbits(8) % 14}-11-0{1 + rng.getrandbits(8) % 9}T08:15:00Z",
        "by": {"id": rng.getrandbits(60), "login": f"hr_admin_{number % 7}"},
        "old": None,
        "new": f"REF-{rng.getrandbits(32):08X}",
    }


def _pick(rng: random.Random, choices: tuple[str, ...]) -> str:
    return choices[rng.getrandbits(32) % len(choices)]


def _decimal(rng: random.Random, below: int, digits: int) -> float:
    return round(rng.getrandbits(32) / 2**32 * below, digits)
