"""A value that satisfies some schemas and breaks others, or the proof that none does; knows no reports and no slices.

One question decides everything: is there a value of `narrow` and not of `wide`? The search unfolds both into choices of
single moves, one JSON type at a time, and asks the same question again of properties and items. A question met again
inside itself is answered with no: a smallest value would hold a smaller one. That answer is provisional until the outer
question ends, so what was learned on its ground is forgotten where the outer one finds a value after all.
"""

from __future__ import annotations

from gateway.schema.relation_container import Arrays, Finder, Objects
from gateway.schema.relation_graph import KINDS, Graph, Values, kind_of, shallow
from gateway.schema.relation_judge import Judge
from gateway.schema.relation_moves import (
    Alternative,
    Among,
    At,
    Choice,
    Demands,
    Doubt,
    Fact,
    Goal,
    Has,
    Lacks,
    Move,
)
from gateway.schema.relation_scalar import EMPTY, Empty, Found, Numbers, Plain, Result, Stuck, Texts

_DEEPEST = 1000
_NEVER = 1 << 30

State = Objects | Arrays | Texts | Numbers | Plain


class Search(Finder):
    """One question over one graph."""

    def __init__(self, graph: Graph, *, bold: bool = False, most: int = 10_000) -> None:
        self.graph = graph
        self.judge = Judge(graph)
        self.demands = Demands(graph, bold=bold)
        self._idle = (Fact(graph.anything, True), Fact(graph.nothing, False))
        self._known: dict[Goal, Result] = {}
        self._active: dict[Goal, int] = {}
        self._grounds: dict[Goal, int] = {}
        self._provisional: list[Goal] = []
        self._ground = _NEVER
        self._steps = 0
        self._most = most
        #: What was met on the way and is not modelled.
        self.doubts: list[str] = []

    def find(self, goal: Goal) -> Result:
        """A value of which every fact of the goal holds."""
        goal = self._tidy(goal)
        if self._contradicts(goal):
            return EMPTY
        known = self._known.get(goal)
        if known is not None:
            self._ground = min(self._ground, self._grounds.get(goal, _NEVER))
            return known
        if goal in self._active:
            self._ground = min(self._ground, self._active[goal])
            return EMPTY
        depth = len(self._active)
        self._steps += 1
        if self._steps > self._most:
            return Stuck("there are too many combinations of alternatives to go through")
        if depth >= _DEEPEST:
            return Stuck("the schemas refer to each other through too many levels to be followed")
        return self._settled(goal, depth)

    def _settled(self, goal: Goal, depth: int) -> Result:
        self._active[goal] = depth
        outer, self._ground, first = self._ground, _NEVER, len(self._provisional)
        try:
            result = self._decide(goal)
        finally:
            del self._active[goal]
        ground, self._ground = self._ground, outer
        self._known[goal] = result
        if not isinstance(result, Empty):
            # Whoever counted on this question having no answer counted wrong.
            for other in self._provisional[first:]:
                self._known.pop(other, None)
                self._grounds.pop(other, None)
            del self._provisional[first:]
        elif ground < depth:
            self._grounds[goal] = ground
            self._provisional.append(goal)
            self._ground = min(outer, ground)
        else:
            for other in self._provisional[first:]:
                self._grounds.pop(other, None)
            del self._provisional[first:]
        return result

    def _tidy(self, goal: Goal) -> Goal:
        facts = (
            fact if "$ref" not in fact.node.words else Fact(self.graph.plain(fact.node), fact.holds) for fact in goal
        )
        return frozenset(facts).difference(self._idle)

    def _contradicts(self, goal: Goal) -> bool:
        if Fact(self.graph.nothing, True) in goal or Fact(self.graph.anything, False) in goal:
            return True
        return any(not fact.holds and fact.opposite() in goal for fact in goal)

    def _decide(self, goal: Goal) -> Result:
        best: Result = EMPTY
        for kind in _kinds(goal):
            result = _better(best, self._branch(kind, _Clause(goal, _state(kind, self))))
            if isinstance(result, Found) and result.sure:
                return result
            best = result
        return best

    def _branch(self, kind: str, clause: _Clause) -> Result:
        if not self._saturate(kind, clause):
            return EMPTY
        if clause.values is not None:
            return self._among(kind, clause.goal, clause.values)
        if not clause.choices:
            return self._checked(clause, clause.state.settle(frozenset(clause.barred)))
        self._steps += 1
        if self._steps > self._most:
            return Stuck("there are too many combinations of alternatives to go through")
        choice = min(clause.choices, key=lambda choice: (not _of_schemas(choice), len(choice)))
        best: Result = EMPTY
        for alternative in choice:
            copy = clause.copy(without=choice)
            if not self._do(copy, alternative):
                continue
            best = _better(best, self._branch(kind, copy))
            if isinstance(best, Found) and best.sure:
                break
        return best

    def _checked(self, clause: _Clause, result: Result) -> Result:
        """Hold a value against the whole question, since what is not modelled was left out on the way."""
        if not isinstance(result, Found):
            return result
        verdicts = [self._verdict(fact, result.value) for fact in clause.goal]
        if False in verdicts:
            return Stuck(clause.doubts[0] if clause.doubts else "no value was found that shows a difference")
        return Found(result.value, result.sure and None not in verdicts)

    def _verdict(self, fact: Fact, value: object) -> bool | None:
        verdict = self.judge.holds(fact.node, value)
        return None if verdict is None else verdict == fact.holds

    def _among(self, kind: str, goal: Goal, values: Values) -> Result:
        best: Result = EMPTY
        for value in values.members:
            if kind_of(value) != kind:
                continue
            verdicts = [self._verdict(fact, value) for fact in goal]
            if False not in verdicts:
                best = _better(best, Found(value, None not in verdicts))
        return best

    def _saturate(self, kind: str, clause: _Clause) -> bool:
        """Do everything that has to be done, until only real choices are left; False where it cannot be done.

        Which of several schemas holds is left open before keys and items are looked at: what is known of those is
        little before, and much after.
        """
        while True:
            if not self._unfold(kind, clause):
                return False
            if clause.values is not None:
                return True
            if clause.facts:
                continue
            if isinstance(clause.state, Objects) and clause.state.clashes():
                return False
            if not clause.choices or any(map(_of_schemas, clause.choices)):
                return True
            waiting, clause.choices = clause.choices, []
            for choice in waiting:
                alive = self._alive(clause, choice, len(waiting) > 1)
                if alive is None:
                    continue
                if not alive:
                    return False
                clause.choices.append(alive)
            if all(len(choice) > 1 for choice in clause.choices):
                return True

    def _unfold(self, kind: str, clause: _Clause) -> bool:
        """Read all facts and make every move without an alternative, children left aside."""
        while True:
            while clause.facts:
                fact = clause.facts.pop()
                if fact in clause.seen:
                    continue
                if fact.opposite() in clause.seen:
                    return False
                clause.seen.add(fact)
                clause.choices.extend(self.demands.of(fact, kind))
            waiting, clause.choices = clause.choices, []
            for place, choice in enumerate(waiting):
                alive = tuple(one for one in choice if len(choice) == 1 or self._possible(kind, clause, one))
                if not alive:
                    return False
                if any(isinstance(one[0], Fact) and clause.seen.issuperset(one) if one else True for one in alive):
                    continue
                if len(alive) > 1:
                    clause.choices.append(alive)
                elif not self._do(clause, alive[0]):
                    return False
                if clause.values is not None:
                    clause.choices.extend(waiting[place + 1 :])
                    return True
            if not clause.facts:
                return True

    def _possible(self, kind: str, clause: _Clause, alternative: Alternative) -> bool:
        """Whether nothing plainly forbids an alternative."""
        for move in alternative:
            if isinstance(move, Fact):
                if move.opposite() in clause.seen or () in self.demands.of(move, kind):
                    return False
            elif isinstance(move, Has) and isinstance(clause.state, Objects):
                if move.name in clause.state.lacks:
                    return False
            elif not isinstance(move, Among | Doubt) and not clause.state.copy().add(move):
                return False
        return True

    def _do(self, clause: _Clause, alternative: Alternative) -> bool:
        return all(self._move(clause, move) for move in alternative)

    def _move(self, clause: _Clause, move: Move) -> bool:
        match move:
            case Fact():
                clause.facts.append(move)
                return not self._contradicts(frozenset([move])) and move.opposite() not in clause.seen
            case Among(values=values, holds=True):
                clause.values = values
                return True
            case Among(values=values):
                clause.barred.update(values.marks)
                return True
            case Doubt(reason=reason):
                clause.doubts.append(reason)
                self.doubts.append(reason)
                return True
        return clause.state.add(move)

    def _alive(self, clause: _Clause, choice: Choice, many: bool) -> Choice | None:
        """The alternatives not yet ruled out; None where one already holds."""
        alive: list[Alternative] = []
        for alternative in choice:
            if self._implied(clause, alternative, many):
                return None
            if not self._ruled_out(clause, alternative):
                alive.append(alternative)
        return tuple(alive)

    def _ruled_out(self, clause: _Clause, alternative: Alternative) -> bool:
        """Whether a key or item that the alternative speaks of can have no value."""
        for move in alternative:
            if isinstance(move, Has | At) and move.fact is not None and isinstance(clause.state, Objects | Arrays):
                goal = clause.state.goal_at(move)
                if isinstance(self.find(goal), Empty):
                    return True
        return False

    def _implied(self, clause: _Clause, alternative: Alternative, many: bool) -> bool:
        return all(self._given(clause, move, many) for move in alternative)

    def _given(self, clause: _Clause, move: Move, many: bool) -> bool:
        """Whether a move is made already; where there are several choices, a tag's value is looked at too."""
        match move:
            case Fact():
                return move in clause.seen
            case Lacks(name=name) if isinstance(clause.state, Objects):
                return name in clause.state.lacks
            case Has(name=name, fact=fact) if isinstance(clause.state, Objects):
                if name not in clause.state.has:
                    return False
                if fact is None or fact in clause.state.has[name]:
                    return True
                goal = clause.state.goal_at(move, opposite=True)
                return (
                    many
                    and all(shallow(self.graph.plain(one.node)) for one in goal)
                    and isinstance(self.find(goal), Empty)
                )
        return False


class _Clause:
    """What is decided and what is open about a value of one type, on one way through the choices."""

    __slots__ = ("barred", "choices", "doubts", "facts", "goal", "seen", "state", "values")

    def __init__(self, goal: Goal, state: State) -> None:
        self.goal = goal
        self.state = state
        self.facts: list[Fact] = list(goal)
        self.seen: set[Fact] = set()
        self.choices: list[Choice] = []
        self.values: Values | None = None
        self.barred: set[object] = set()
        self.doubts: list[str] = []

    def copy(self, without: Choice | None = None) -> _Clause:
        copy = _Clause(self.goal, self.state.copy())
        copy.facts = list(self.facts)
        copy.seen = set(self.seen)
        copy.choices = [choice for choice in self.choices if choice is not without]
        copy.values = self.values
        copy.barred = set(self.barred)
        copy.doubts = list(self.doubts)
        return copy


def _state(kind: str, search: Search) -> State:
    match kind:
        case "object":
            return Objects(search)
        case "array":
            return Arrays(search)
        case "string":
            return Texts()
        case "number":
            return Numbers()
    return Plain((None,) if kind == "null" else (True, False))


def _better(first: Result, second: Result) -> Result:
    """A sure value, else a value, else a doubt, else the proof."""
    ranks = [0 if isinstance(r, Empty) else 1 if isinstance(r, Stuck) else 3 if r.sure else 2 for r in (first, second)]
    return second if ranks[1] > ranks[0] else first


def _kinds(goal: Goal) -> list[str]:
    """The JSON types that the goal's own `type` keywords leave."""
    written = [fact.node.words["type"] for fact in goal if fact.holds and "type" in fact.node.words]
    return [
        kind for kind in KINDS if all(kind in types or (kind == "number" and "integer" in types) for types in written)
    ]


def _of_schemas(choice: Choice) -> bool:
    return all(alternative and all(isinstance(move, Fact) for move in alternative) for alternative in choice)
