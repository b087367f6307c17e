"""Which closed blocks are worth a detail: those that few words do not tell, the rarest first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from composer.draw.brief.block import LETTERS
from composer.draw.build.closed_groups import holds_layers
from composer.draw.build.group_places import GroupPlace, branching, contents, has_streams, is_repeat, nodes_in
from composer.draw.build.walks import each_graph_once
from composer.draw.style.looks import look
from composer.graph.typed import TypedBlock, TypedGroup, TypedRepeat
from composer.graph.visit import walk

MIN_NODES = 3
"""Nodes of a block from which on it is worth a detail of its own."""
OFTEN = 3
"""Boxes that one detail stands for from which on it tells as much as what there is no room for in its place."""
TELLING = 4
"""How far from a chain a block is that a model is about, such as the step of a recurrence with all that it reads."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Closed blocks that are alike but for their numbers."""

    places: tuple[GroupPlace, ...]
    """In the order of the data."""
    pulled_out: bool = False
    """Whether several uses of the block that they are of are closed to fit a page: a detail tells what these would in place."""
    passes: str = ""
    """The path of the repeat of which each pass is a box that it is in; nothing for one that is a box itself."""

    @property
    def path(self) -> str:
        """That of the first one, which stands for all."""
        return self.places[0].path

    @property
    def called(self) -> str:
        """The paths of all, as a reader calls these: a branch by its own name."""
        return ", ".join(one.path.removesuffix(".body") for one in self.places)

    @property
    def names(self) -> frozenset[str]:
        """By what it may be asked for: the paths, and the name of its block in the recipe."""
        return frozenset([*(one.path for one in self.places), self.places[0].block])

    @property
    def branching(self) -> int:
        """How much of it is no chain; 0 where it is so small that its box tells all."""
        graph = contents(self.places[0].node)
        return 0 if graph is None or is_small(self.places[0]) else branching(graph)

    @property
    def has_streams(self) -> bool:
        """Whether several streams go through it, each by one name: of stages of such, one detail asks for another."""
        return has_streams(self.places[0].node)

    @property
    def is_urgent(self) -> bool:
        """Whether the page has no room for it in its place, or it stands for several boxes."""
        return self.pulled_out or len(self.places) >= OFTEN

    @property
    def rank(self) -> tuple[int, int]:
        """The smaller, the more it is worth a detail: the block that the model is about, what the page has no room for in its
        place or what is used often, and then what is least like a chain.
        """
        return 0 if self.branching >= TELLING or self.passes else 1 if self.is_urgent else 2, -self.branching * len(self.places)


def is_other_use(one: Candidate, other: Candidate) -> bool:
    """Return whether two are of one block that the recipe defines, which then differs inside in more than numbers."""
    return one.places[0].block == other.places[0].block != ""


def is_small(place: GroupPlace) -> bool:
    """Return whether a block has so few nodes that its box tells all."""
    graph = contents(place.node)
    return graph is None or nodes_in(graph) < MIN_NODES


def tells_passes(one: Candidate, said: str) -> bool:
    """Return whether what a box says names all that is in it, a repeat that is nothing but a chain of primitives."""
    place = one.places[0]
    if one.branching > 0 or not is_repeat(place) or not isinstance(place.node, TypedGroup):
        return False
    inside = (visit.node for visit in walk(place.node.graph, each_graph_once))
    looks = [look(node) for node in inside if isinstance(node, TypedBlock)]
    words = [seen.brief[-1] if seen.brief else LETTERS.get(seen.title, seen.title) for seen in looks]
    return all(word.lower() in said.lower() for word in words)


def candidates(
    groups: Sequence[GroupPlace],
    boxes: Collection[str],
    frames: Collection[str],
    closed: Collection[str] = (),
    apart: Collection[str] = (),
) -> Iterator[Candidate]:
    """Yield the closed blocks of a drawing, given the paths of its boxes and of its frames, that stand open nowhere in it; some
    are `closed` to fit a page. Of repeats of which each pass is a box, `apart`, also the blocks of the recipe in these that hold
    layers: such as an hourglass, of which a model stacks two.
    """
    opened = {one.form for one in groups if one.path in frames}
    uses = Counter(one.block for one in groups if one.block and one.path in closed)
    alike: dict[object, list[GroupPlace]] = {}
    for one in groups:
        if one.path in boxes and one.form not in opened:
            alike.setdefault(one.form, []).append(one)
    yield from (Candidate(tuple(places), uses[places[0].block] > 1) for places in alike.values())
    repeats = {one.path: one.node for one in groups if one.path in apart}
    for one in groups:
        around, _, name = one.path.rpartition(".")
        repeat, graph = repeats.get(around), contents(one.node)
        if not (one.block and graph is not None and isinstance(repeat, TypedRepeat)) or one.form in {*opened, *alike}:
            continue
        if holds_layers(graph) and all(name in each.by_name for each in repeat.passes):
            yield Candidate((one,), passes=around)


def wanted(found: Iterable[Candidate], details: Sequence[str]) -> list[Candidate]:
    """Return those that a figure shows, what comes first first: the named ones in their order, or what is worth it most."""
    if not details:
        return sorted(
            (one for one in found if one.branching > 0 or (one.pulled_out and not is_small(one.places[0]))),
            key=lambda one: one.rank,
        )
    every = list(found)
    return [one for name in details for one in every if name in one.names]
