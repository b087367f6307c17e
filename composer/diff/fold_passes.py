"""Folding of passes: the same change in several passes of a repeat, or in several layers that are written one by one, is reported
as one, under a name that stands for all of its nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from composer.cost.units import ranges
from composer.diff.changes import Nodes
from composer.diff.flat_graph import INPUT, FlatModel, FlatSource
from composer.graph.describe import phrases
from composer.graph.passes.roll_layers.roll_layers import roll_layers

EVERY = "*"
MAX_NAMES = 4
"""Names that one change lists."""
MIN_RANGE = 3
"""Layers in a row, written one by one, of which only the first and the last are named."""
PassedPath: TypeAlias = tuple[str, tuple[int, ...]]
"""A path with a star for each pass, and the numbers of the passes."""
T = TypeVar("T", bound=Hashable)


@dataclass(slots=True)
class NodeNames:
    """The names of a model's nodes, of single ones and of several that are reported as one."""

    model: FlatModel
    written: dict[str, PassedPath] = field(default_factory=dict)
    """For each path, its steps and passes as the recipe has them."""
    rolled: dict[str, PassedPath] = field(default_factory=dict)
    """The same where layers that are written one by one are the passes of a repeat. It decides what is reported as one,
    and is shown nowhere, since its names are not the recipe's."""
    count: Counter[str] = field(default_factory=Counter)
    """For each path with stars, how many nodes it stands for."""

    def __post_init__(self) -> None:
        self.written[""] = self.rolled[""] = "", ()
        _, names = roll_layers(self.model.program)
        for path, place in self.model.places.items():
            above, _, step = path.rpartition(".")
            pattern, passes = self.written.get(above, ("", ()))  # of a loss, `losses` is no node
            own = (EVERY, (*passes, place.number)) if place.number is not None else (step, passes)
            self.written[path] = f"{pattern}.{own[0]}".removeprefix("."), own[1]
            self.rolled[path] = _passed(names.called(path))
            self.count[self.pattern(path)] += 1

    def pattern(self, path: str) -> str:
        """Return a path with a star for each pass."""
        return self.written[path][0]

    def passes(self, path: str) -> tuple[int, ...]:
        """Return the passes that a path leads through."""
        return self.written[path][1]

    def called(self, paths: Sequence[str]) -> str:
        """Return the name of some nodes; of layers that are written one by one, the names of the first and the last."""
        alike: dict[str, list[str]] = {}
        for path in paths:
            alike.setdefault(self.pattern(path), []).append(path)
        return _listed(self._ranges([(several, self._called(pattern, several)) for pattern, several in alike.items()]))

    def _called(self, pattern: str, paths: Sequence[str]) -> str:
        if len(paths) == 1:
            return paths[0]
        if len(paths) == self.count[pattern]:
            return pattern
        each = [sorted({self.passes(path)[level] for path in paths}) for level in range(pattern.split(".").count(EVERY))]
        several = [f"({ranges(found)})" if len(found) > 1 else str(found[0]) for found in each]
        steps = iter(several)
        return ".".join(next(steps) if step == EVERY else step for step in pattern.split("."))

    def each(self, said: Sequence[tuple[str, str]]) -> list[str]:
        """Return what is said of some nodes, each given with its path: once where it is the same in passes of a repeat, and
        by the first and the last of layers that are written one by one."""
        alike: dict[tuple[str, str], list[str]] = {}
        for path, text in said:
            alike.setdefault((self.pattern(path), text), []).append(path)
        return list(dict.fromkeys(self._ranges([(paths, text) for (_, text), paths in alike.items()])))

    def read(self, said: Sequence[tuple[str, str]]) -> str:
        """Return what some nodes read, each given with its path, as one text."""
        return _listed(self.each(said))

    def _ranges(self, named: Sequence[tuple[Sequence[str], str]]) -> list[str]:
        """Return the texts that belong to some nodes; of those of layers in a row, `h0 … h11`."""
        rows: list[list[tuple[Sequence[str], str]]] = []
        for paths, text in named:
            if rows and self._follow(rows[-1][-1][0], paths):
                rows[-1].append((paths, text))
            else:
                rows.append([(paths, text)])
        return [text for row in rows for text in _range([text for _, text in row])]

    def _follow(self, one: Sequence[str], other: Sequence[str]) -> bool:
        """Return whether nodes are those of the layer after another one, in the same passes of what repeats in it."""
        (pattern, first), (next_pattern, second) = self.rolled[one[0]], self.rolled[other[0]]
        steps = sorted(b - a for a, b in zip(first, second, strict=False))
        in_a_row = pattern == next_pattern and steps[-1:] == [1] and not any(steps[:-1])
        return in_a_row and {*map(self.passes, one)} == {*map(self.passes, other)}

    def nodes(self, paths: Sequence[str]) -> Nodes:
        """Return the nodes at some paths."""
        place = self.model.places[paths[0]]
        line = place.span.line if place.span is not None else 0
        return Nodes(self.called(paths), place.kind, self.detail(paths[0]), tuple(paths), line)

    def detail(self, path: str) -> str:
        """Return the values of the fields of a node, or how much a group contains."""
        place = self.model.places[path]
        node = self.model.nodes[place.end - 1]
        if node.path == path:
            if place.kind == INPUT:
                return str(self.model.program.written_inputs[path])
            return ", ".join(phrases(node.block)) if node.block is not None else ""
        blocks = f"{place.end - place.start} block{'s' * (place.end - place.start != 1)}"
        return f"{place.passes} passes, {blocks}" if place.passes else blocks

    def source(self, source: FlatSource, reader: str) -> str:
        """Return what a node reads, seen from that node: in a repeat, `*` is the same pass and `*-1` the one before."""
        return self._seen(source, reader, self.written)

    def place(self, source: FlatSource, reader: str) -> str:
        """Return a key of what a node reads, seen from that node: equal for the nodes of two layers if both read the same node of
        their own layer."""
        return self._seen(source, reader, self.rolled)

    def _seen(self, source: FlatSource, reader: str, known: Mapping[str, PassedPath]) -> str:
        if source.node < 0:
            return "its holder"
        node = self.model.nodes[source.node]
        pattern, own = known[node.path]
        around, passes = known[reader]
        steps, others = pattern.split("."), around.split(".")
        shared, shown = True, list[str]()
        numbers = iter(zip(own, (*passes, *(-1 for _ in own)), strict=False))
        for place, step in enumerate(steps):
            shared = shared and others[place : place + 1] == [step]
            if step != EVERY:
                shown.append(step)
                continue
            number, mine = next(numbers)
            apart = mine - number
            shown.append(EVERY if shared and not apart else f"({EVERY}-{apart})" if shared and apart == 1 else str(number))
            shared = shared and not apart
        port = list(node.block.outputs)[source.port] if node.block is not None and source.port else ""
        return ".".join(shown) + (f".{port}" if port else "")


NamesOfBoth: TypeAlias = tuple[NodeNames, NodeNames]
ChangeGroup: TypeAlias = list[tuple[T, str, str]]
"""Equal findings, each with its path in either model."""


def folded(found: Iterable[tuple[T, str, str]], names: NamesOfBoth) -> list[ChangeGroup[T]]:
    """Group equal findings at the same node of several passes or layers."""
    together: dict[Hashable, ChangeGroup[T]] = {}
    for what, ours, theirs in found:
        patterns = names[0].rolled[ours][0], names[1].rolled[theirs][0]
        starred = [pattern for pattern in patterns if EVERY in pattern.split(".")]
        # Where one side has a repeat and the other has unequal layers, that side says which nodes are alike.
        together.setdefault((what, *(starred[:1] or patterns)), []).append((what, ours, theirs))
    return list(together.values())


def paths_of(group: ChangeGroup[T]) -> tuple[list[str], list[str]]:
    """Return the paths of a group in either model, each once."""
    ours, theirs = (dict.fromkeys(paths) for paths in zip(*((one, other) for _, one, other in group), strict=True))
    return [*filter(None, ours)], [*filter(None, theirs)]


def _passed(path: str) -> PassedPath:
    steps = path.split(".")
    pattern = ".".join(EVERY if step.isdecimal() else step for step in steps)
    return pattern, tuple(int(step) for step in steps if step.isdecimal())


def _range(texts: Sequence[str]) -> Sequence[str]:
    if len({*texts}) == 1:
        return texts[:1]
    return [f"{texts[0]} … {texts[-1]}"] if len(texts) >= MIN_RANGE else texts


def _listed(names: Sequence[str]) -> str:
    return " / ".join(names if len(names) <= MAX_NAMES else [*names[: MAX_NAMES - 1], "…"])
