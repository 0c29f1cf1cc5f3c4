"""Objects and arrays that meet a set of moves, or the proof that none does; asks a finder about what they hold."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, Protocol

from gateway.schema.relation_graph import Graph, Items, Properties, mark, shallow
from gateway.schema.relation_judge import Judge, rule_at, rules_for
from gateway.schema.relation_moves import (
    At,
    Beyond,
    Demands,
    Distinct,
    Every,
    Fact,
    Goal,
    Has,
    Holding,
    Lacks,
    Move,
    Names,
    Obeys,
    Size,
    Some,
)
from gateway.schema.relation_scalar import EMPTY, Empty, Found, Result, Stuck

_MOST_ITEMS, _MOST_KEYS, _MOST_PATTERNS = 2000, 200, 4


class Finder(Protocol):
    """Who answers questions about the values under keys and at indexes."""

    graph: Graph
    judge: Judge
    demands: Demands

    @abstractmethod
    def find(self, goal: Goal) -> Result: ...


class Objects:
    """What is demanded of an object."""

    def __init__(self, finder: Finder) -> None:
        self._finder = finder
        self._rules: list[Properties] = []
        self.has: dict[str, frozenset[Fact]] = {}
        self.lacks: set[str] = set()
        self._some: list[Some] = []
        self._names: frozenset[Fact] = frozenset()
        self._low = 0
        self._high: int | None = None

    def copy(self) -> Objects:
        copy = Objects(self._finder)
        copy._rules, copy.has, copy.lacks = list(self._rules), dict(self.has), set(self.lacks)
        copy._some, copy._names, copy._low, copy._high = list(self._some), self._names, self._low, self._high
        return copy

    def add(self, move: Move) -> bool:
        """Take a demand; False where it plainly contradicts another."""
        match move:
            case Has(name=name, fact=fact):
                self.has[name] = self.has.get(name, frozenset()) | ({fact} if fact is not None else set())
            case Lacks(name=name):
                self.lacks.add(name)
            case Obeys(rule=rule) if isinstance(rule, Properties):
                self._rules.append(rule)
            case Some():
                self._some.append(move)
            case Names(fact=fact):
                self._names |= {fact}
            case Size(low=low, high=high):
                self._low = max(self._low, low)
                self._high = high if self._high is None else self._high if high is None else min(high, self._high)
        if self.lacks and not self.lacks.isdisjoint(self.has):
            return False
        return self._high is None or max(self._low, len(self.has), 1 if self._some else 0) <= self._high

    def goal_at(self, move: Has | At, *, opposite: bool = False) -> Goal:
        """What is known of the value under a key, with the move's own fact or its opposite."""
        assert isinstance(move, Has)
        assert move.fact is not None
        return self._under(move.name) | {move.fact.opposite() if opposite else move.fact}

    def settle(self, barred: frozenset[Any]) -> Result:
        value: dict[str, Any] = {}
        sure = True
        stuck: Stuck | None = None
        for name in self.has:
            result = self._named(name, self._under(name))
            if isinstance(result, Empty):
                return EMPTY
            if isinstance(result, Stuck):
                stuck = stuck or result
                continue
            value[name] = result.value
            sure = sure and result.sure
        for some in self._some:
            outcome = self._place(some, value)
            if isinstance(outcome, Empty):
                return EMPTY
            stuck = stuck or (outcome if isinstance(outcome, Stuck) else None)
        if stuck is not None:
            return stuck
        filled = self._fill(value)
        if filled is not None:
            return filled
        if self._high is not None and len(value) > self._high:
            return Stuck("`maxProperties` cannot be weighed against everything else that is demanded")
        return self._unbarred(value, sure, barred)

    def clashes(self) -> bool:
        """Whether a key that has to be there can have no value, as far as that is cheap to see."""
        goals = (self._under(name) for name in self.has)
        return any(
            all(shallow(self._finder.graph.plain(fact.node)) for fact in goal)
            and isinstance(self._finder.find(goal), Empty)
            for goal in goals
        )

    def _unbarred(self, value: dict[str, Any], sure: bool, barred: frozenset[Any]) -> Result:
        # The value is checked against the whole question afterwards; a barred one is only worth a second try here.
        if mark(value) not in barred:
            return Found(value, sure)
        for name, goal in itertools.islice(self._spare(value), _MOST_KEYS):
            result = self._named(name, goal)
            if isinstance(result, Found) and (self._high is None or len(value) < self._high):
                grown = {**value, name: result.value}
                if mark(grown) not in barred:
                    return Found(grown, sure and result.sure)
        for name in value:
            result = self._named(name, self._under(name) | {Fact(self._finder.graph.values([value[name]]), False)})
            if isinstance(result, Found):
                changed = {**value, name: result.value}
                if mark(changed) not in barred:
                    return Found(changed, sure and result.sure)
        return Stuck("no object was found beside those an `enum` names")

    def _under(self, name: str) -> frozenset[Fact]:
        rules = (Fact(node, True) for rule in self._rules for node in rules_for(rule, name))
        return self.has.get(name, frozenset()).union(rules)

    def _named(self, name: str, goal: Goal) -> Result:
        """A value under a key, if the key's name is allowed."""
        for fact in self._names:
            verdict = self._finder.judge.holds(fact.node, name)
            if verdict is None:
                return Stuck("`propertyNames` cannot be weighed", (name,))
            if verdict != fact.holds:
                return EMPTY
        result = self._finder.find(goal)
        return Stuck(result.reason, (name, *result.path)) if isinstance(result, Stuck) else result

    def _known(self) -> list[str]:
        named = (name for rule in self._rules for name, _ in rule.named)
        return list(dict.fromkeys(itertools.chain(self.has, named, sorted(self.lacks))))

    def _place(self, some: Some, value: dict[str, Any]) -> Result:
        """Put a key of the wanted name and value into the object."""
        wanted = frozenset() if some.fact is None else frozenset([some.fact])
        stuck: Stuck | None = None
        for name in self._known():
            if name in self.lacks:
                continue
            verdicts = [self._judged(fact, name) for fact in some.name]
            if False in verdicts:
                continue
            result = self._named(name, self._under(name) | wanted)
            if isinstance(result, Found) and None not in verdicts:
                value[name] = result.value
                return result
            if not isinstance(result, Empty):
                stuck = stuck or (result if isinstance(result, Stuck) else Stuck("a pattern of keys cannot be weighed"))
        for fresh, goal in self._fresh(some.name, {*self._known(), *value}):
            if isinstance(fresh, Stuck):
                stuck = stuck or fresh
                continue
            result = self._named(fresh, goal | wanted)
            if isinstance(result, Found):
                value[fresh] = result.value
                return result
            stuck = stuck or (result if isinstance(result, Stuck) else None)
        if stuck is None and not value.keys() <= set(self._known()):
            # A new key put in for another demand might have served this one too.
            stuck = Stuck("two demands on the same new key cannot be weighed together")
        return stuck or EMPTY

    def _judged(self, fact: Fact, name: str) -> bool | None:
        verdict = self._finder.judge.holds(fact.node, name)
        return None if verdict is None else verdict == fact.holds

    def _fresh(self, wanted: Goal, taken: set[str]) -> Iterator[tuple[str | Stuck, Goal]]:
        """One new name for each combination of patterns that a name may match, with what is said of its value."""
        patterns = sorted({text for rule in self._rules for text, _ in rule.patterns})
        if len(patterns) > _MOST_PATTERNS:
            yield Stuck("there are too many `patternProperties` to go through"), frozenset()
            return
        text = Fact(self._finder.graph.make({"type": "string"}), True)
        outside = [Fact(self._finder.graph.values(sorted(taken)), False)] if taken else []
        for signs in itertools.product((False, True), repeat=len(patterns)):
            signed = (self._finder.demands.matching(p, sign) for p, sign in zip(patterns, signs, strict=True))
            result = self._finder.find(frozenset([*wanted, *self._names, text, *outside, *signed]))
            if isinstance(result, Stuck):
                yield result, frozenset()
            elif isinstance(result, Found):
                yield result.value, self._under(result.value)

    def _spare(self, value: dict[str, Any]) -> Iterator[tuple[str, Goal]]:
        for name in self._known():
            if name not in value and name not in self.lacks:
                yield name, self._under(name)
        yield from (
            (name, goal)
            for name, goal in self._fresh(frozenset(), {*self._known(), *value})
            if not isinstance(name, Stuck)
        )

    def _fill(self, value: dict[str, Any]) -> Result | None:
        """Add keys until there are enough; None when there are."""
        if self._low > _MOST_KEYS:
            return Stuck("a `minProperties` this large is not tried")
        stuck: Stuck | None = None
        for name in self._known():
            if len(value) >= self._low:
                return None
            if name in value or name in self.lacks:
                continue
            result = self._named(name, self._under(name))
            if isinstance(result, Found):
                value[name] = result.value
            stuck = stuck or (result if isinstance(result, Stuck) else None)
        grown = True
        while len(value) < self._low and grown:
            grown = False
            for fresh, goal in self._fresh(frozenset(), {*self._known(), *value}):
                result = fresh if isinstance(fresh, Stuck) else self._named(fresh, goal)
                if isinstance(result, Found) and isinstance(fresh, str):
                    value[fresh] = result.value
                    grown = True
                    break
                stuck = stuck or (result if isinstance(result, Stuck) else None)
        return None if len(value) >= self._low else stuck or EMPTY


class Arrays:
    """What is demanded of an array."""

    def __init__(self, finder: Finder) -> None:
        self._finder = finder
        self._rules: list[Items] = []
        self._at: dict[int, frozenset[Fact]] = {}
        self._every: frozenset[Fact] = frozenset()
        self._beyond: list[Beyond] = []
        self._holding: list[Holding] = []
        self._distinct = False
        self._repeats = False
        self._same: tuple[int, int] | None = None
        self._low = 0
        self._high: int | None = None

    def copy(self) -> Arrays:
        copy = Arrays(self._finder)
        copy._rules, copy._at, copy._every = list(self._rules), dict(self._at), self._every
        copy._beyond, copy._holding = list(self._beyond), list(self._holding)
        copy._distinct, copy._repeats, copy._same = self._distinct, self._repeats, self._same
        copy._low, copy._high = self._low, self._high
        return copy

    def add(self, move: Move) -> bool:
        """Take a demand; False where it plainly contradicts another."""
        match move:
            case Obeys(rule=rule) if isinstance(rule, Items):
                self._rules.append(rule)
            case At(index=index, fact=fact):
                self._at[index] = self._at.get(index, frozenset()) | {fact}
                self._low = max(self._low, index + 1)
            case Beyond(start=start):
                self._beyond.append(move)
                self._low = max(self._low, start + 1)
            case Holding(count=count):
                self._holding.append(move)
                self._low = max(self._low, count)
            case Every(fact=fact):
                self._every |= {fact}
            case Distinct(holds=True):
                self._distinct = True
            case Distinct():
                self._repeats = True
                self._low = max(self._low, 2)
            case Size(low=low, high=high):
                self._low = max(self._low, low)
                self._high = high if self._high is None else self._high if high is None else min(high, self._high)
        return not (self._distinct and self._repeats) and (self._high is None or self._low <= self._high)

    def goal_at(self, move: Has | At, *, opposite: bool = False) -> Goal:
        """What is known of the item at an index, with the move's own fact or its opposite."""
        assert isinstance(move, At)
        return self._under(move.index) | {move.fact.opposite() if opposite else move.fact}

    def settle(self, barred: frozenset[Any]) -> Result:
        if self._beyond:
            return self._placed_beyond(barred)
        if self._holding:
            return self._placed_holding(barred)
        if self._repeats and self._same is None:
            return self._placed_twins(barred)
        return self._built(barred)

    def _under(self, index: int) -> Goal:
        rules = (Fact(rule_at(rule, index), True) for rule in self._rules)
        return self._every.union(rules, self._at.get(index, ()))

    def _horizon(self) -> int:
        """From here on nothing tells one index from another."""
        return max([len(rule.prefix) for rule in self._rules] + [index + 1 for index in self._at], default=0)

    def _with(self, places: dict[int, Fact]) -> Arrays | None:
        copy = self.copy()
        return copy if all(copy.add(At(index, fact)) for index, fact in places.items()) else None

    def _placed_beyond(self, barred: frozenset[Any]) -> Result:
        wanted, *others = self._beyond
        ways = []
        # From the last start on, nothing tells one index from another, so one of those stands for all.
        last = max(self._horizon(), *(beyond.start for beyond in self._beyond))
        for index in range(wanted.start, last + 1):
            way = self._with({index: wanted.fact})
            if way is not None:
                way._beyond = list(others)
                ways.append(way)
        return _first_found(ways, barred)

    def _placed_holding(self, barred: frozenset[Any]) -> Result:
        wanted, *others = self._holding
        if wanted.count > _MOST_ITEMS:
            return Stuck("a `minContains` this large is not tried")
        once = self.copy()
        once._holding = list(others)
        once._beyond.append(Beyond(0, wanted.fact))
        if wanted.count == 1:
            return once.settle(barred)
        # Exact where every index may hold it at the end; elsewhere one of them is the least that is demanded.
        horizon = self._horizon()
        for start in (0, horizon):
            way = self._with(dict.fromkeys(range(start, start + wanted.count), wanted.fact))
            if way is not None:
                way._holding = list(others)
                result = way.settle(barred)
                if isinstance(result, Found):
                    return result
        result = once.settle(barred)
        return EMPTY if isinstance(result, Empty) else Stuck("`minContains` cannot be weighed")

    def _placed_twins(self, barred: frozenset[Any]) -> Result:
        ways = []
        for pair in itertools.combinations(range(self._horizon() + 2), 2):
            way = self.copy()
            if way.add(Size(pair[1] + 1, None)):
                way._same = pair
                ways.append(way)
        return _first_found(ways, barred)

    def _built(self, barred: frozenset[Any]) -> Result:
        if self._low > _MOST_ITEMS:
            return Stuck("a `minItems` this large is not tried")
        value: list[Any] = []
        sure = True
        stuck: Stuck | None = None
        for index in range(self._low):
            result = self._item(index, value)
            if isinstance(result, Empty):
                return EMPTY
            if isinstance(result, Stuck):
                stuck = stuck or result
                value.append(None)
                continue
            value.append(result.value)
            sure = sure and result.sure
        if stuck is not None:
            return stuck
        if mark(value) in barred:
            longer = self._item(len(value), value) if self._high is None or len(value) < self._high else EMPTY
            if isinstance(longer, Found) and mark([*value, longer.value]) not in barred:
                return Found([*value, longer.value], sure and longer.sure)
            return Stuck("no array was found beside those an `enum` names")
        return Found(value, sure)

    def _item(self, index: int, before: list[Any]) -> Result:
        goal = self._under(index)
        if self._same is not None and index in self._same:
            goal = self._under(self._same[0]) | self._under(self._same[1])
        result = self._finder.find(goal)
        if self._distinct and before and not isinstance(result, Empty):
            result = self._other(index, goal, before)
        place: tuple[str | int, ...] = (index,)
        return Stuck(result.reason, (*place, *result.path)) if isinstance(result, Stuck) else result

    def _other(self, index: int, goal: Goal, before: list[Any]) -> Result:
        result = self._finder.find(goal | {Fact(self._finder.graph.values(before), False)})
        # Only among equals does running out prove that there are too few different items.
        if isinstance(result, Empty) and any(self._under(earlier) != goal for earlier in range(index)):
            return Stuck("`uniqueItems` cannot be weighed against the items' own schemas")
        return result


def _first_found(ways: list[Arrays], barred: frozenset[Any]) -> Result:
    best: Result = EMPTY
    for way in ways:
        result = way.settle(barred)
        if isinstance(result, Found) and (result.sure or not isinstance(best, Found)):
            best = result
            if result.sure:
                return best
        elif isinstance(result, Stuck) and isinstance(best, Empty):
            best = result
    return best
