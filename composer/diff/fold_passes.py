"""What is found node by node as changes for a reader: the same in every pass of a repeat is told once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from composer.cost.units import ranges
from composer.diff.changes import Nodes
from composer.diff.flat_graph import INPUT, FlatModel, FlatSource
from composer.graph.describe import phrases

EVERY = "*"
NAMED = 4
"""Nodes that are written one by one and named in one change."""
T = TypeVar("T", bound=Hashable)


@dataclass(slots=True)
class NodeNames:
    """How the nodes of a model are called where passes are folded."""

    model: FlatModel
    known: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    count: Counter[str] = field(default_factory=Counter)
    """How many nodes a pattern stands for."""

    def __post_init__(self) -> None:
        self.known[""] = "", ()
        for path, place in self.model.places.items():
            above, _, step = path.rpartition(".")
            pattern, passes = self.known.get(above, ("", ()))
            name = EVERY if place.number is not None else step
            inner = passes if place.number is None else (*passes, place.number)
            self.known[path] = f"{pattern}.{name}" if pattern else name, inner
            self.count[self.known[path][0]] += 1

    def pattern(self, path: str) -> str:
        """Return a path with a star for each pass."""
        return self.known[path][0]

    def passes(self, path: str) -> tuple[int, ...]:
        """Return the passes that a path leads through."""
        return self.known[path][1]

    def called(self, paths: Sequence[str]) -> str:
        """Return the name of some nodes; where they are written one by one, the names of the first."""
        alike: dict[str, list[str]] = {}
        for path in paths:
            alike.setdefault(self.pattern(path), []).append(path)
        shown = [self._called(pattern, several) for pattern, several in alike.items()]
        return " / ".join(shown if len(shown) <= NAMED else [*shown[: NAMED - 1], "…"])

    def _called(self, pattern: str, paths: Sequence[str]) -> str:
        if len(paths) == 1:
            return paths[0]
        if len(paths) == self.count[pattern]:
            return pattern
        each = [sorted({self.passes(path)[level] for path in paths}) for level in range(pattern.split(".").count(EVERY))]
        several = [f"({ranges(found)})" if len(found) > 1 else str(found[0]) for found in each]
        steps = iter(several)
        return ".".join(next(steps) if step == EVERY else step for step in pattern.split("."))

    def nodes(self, paths: Sequence[str]) -> Nodes:
        """Return the nodes at some paths."""
        place = self.model.places[paths[0]]
        line = place.span.line if place.span is not None else 0
        return Nodes(self.called(paths), place.kind, self.detail(paths[0]), tuple(paths), line)

    def detail(self, path: str) -> str:
        """Return what is set in a node, or how much a group holds."""
        place = self.model.places[path]
        node = self.model.nodes[place.end - 1]
        if node.path == path:
            if place.kind == INPUT:
                return str(self.model.program.inputs[path])
            return ", ".join(phrases(node.block)) if node.block is not None else ""
        blocks = f"{place.end - place.start} block{'s' * (place.end - place.start != 1)}"
        return f"{place.passes} passes, {blocks}" if place.passes else blocks

    def source(self, source: FlatSource, reader: str) -> str:
        """Return what a node reads, seen from that node: in a repeat, `*` is the same pass and `*-1` the one before."""
        if source.node < 0:
            return "its holder"
        node = self.model.nodes[source.node]
        pattern, own = self.known[node.path]
        around, passes = self.known[reader]
        steps, others = pattern.split("."), around.split(".")
        shared, told = True, list[str]()
        numbers = iter(zip(own, (*passes, *(-1 for _ in own)), strict=False))
        for place, step in enumerate(steps):
            shared = shared and others[place : place + 1] == [step]
            if step != EVERY:
                told.append(step)
                continue
            number, mine = next(numbers)
            apart = mine - number
            told.append(EVERY if shared and not apart else f"({EVERY}-{apart})" if shared and apart == 1 else str(number))
            shared = shared and not apart
        port = list(node.block.outputs)[source.port] if node.block is not None and source.port else ""
        return ".".join(told) + (f".{port}" if port else "")


def folded(found: Iterable[tuple[T, str, str]], before: NodeNames, after: NodeNames) -> list[tuple[T, list[str], list[str]]]:
    """Group equal findings at nodes of one pattern: what is found, and the paths on both sides."""
    together: dict[Hashable, tuple[T, dict[str, None], dict[str, None]]] = {}
    for what, ours, theirs in found:
        patterns = before.pattern(ours) if ours else "", after.pattern(theirs) if theirs else ""
        starred = [pattern for pattern in patterns if EVERY in pattern.split(".")]
        # Where one side has a repeat and the other has written its layers out, that side says which nodes are alike.
        entry = together.setdefault((what, *(starred[:1] or patterns)), (what, {}, {}))
        entry[1].update({ours: None} if ours else {})
        entry[2].update({theirs: None} if theirs else {})
    return [(what, list(ours), list(theirs)) for what, ours, theirs in together.values()]
