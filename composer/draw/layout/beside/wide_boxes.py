"""Closed boxes that several streams go through, as wide as these stand apart: each comes in and goes out in its own place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from composer.draw.diagram import Flow, Group, Leaf
from composer.draw.edges import DiagramEdge, InnerOutput
from composer.draw.layout.beside.tracks import RankNode
from composer.draw.passes.layers import ItemLink

MIN_STREAMS = 2
"""Streams from which on a box is as wide as they stand apart."""


@dataclass(frozen=True, slots=True)
class WideBox:
    """Where streams go through a box, seen from its middle."""

    line: str
    """The lowest thing that its streams go through."""
    middle: float
    """How far it stands from the middle of that."""
    width: float
    below: Mapping[DiagramEdge, float]
    """Where each value comes in."""
    above: Mapping[str, float]
    """Where each goes out."""


@dataclass(frozen=True, slots=True)
class Streams:
    """What a box reads from below, and what of it is read above, each by the name that both have for a stream."""

    into: Mapping[str, ItemLink]
    out: Mapping[str, str]

    @property
    def through(self) -> list[str]:
        """The names of what goes through it."""
        return [name for name in self.into if name in self.out]


def wide_paths(flow: Flow, links: Sequence[ItemLink]) -> dict[str, Streams]:
    """Return the closed boxes that several streams go through, or that read several of what comes out of one such: in the order
    of the flow, in which each comes after what it reads.
    """
    found: dict[str, Streams] = {}
    several = {path for path, item in flow.by_path.items() if isinstance(item, Group) and item.passages}
    for path, item in flow.by_path.items():
        if not isinstance(item, Leaf):
            continue
        streams = _streams(path, links)
        if streams is None:
            continue
        given = Counter(link.source for link in streams.into.values() if link.source in several)
        if len(streams.through) >= MIN_STREAMS or max(given.values(), default=0) >= MIN_STREAMS:
            found[path] = streams
            several.add(path)
    return found


def _streams(path: str, links: Sequence[ItemLink]) -> Streams | None:
    """Return what goes into a box and out of it; none where it reads one value in several places, or one place several values."""
    into = [link for link in links if link.target == path]
    out: dict[str, str] = {}
    for link in links:
        origin = link.edge.source.origin
        if link.source == path:
            if isinstance(origin, InnerOutput) and origin.passes:
                return None
            out[origin.port.rpartition(".")[2]] = link.net
    names = {link.edge.port: link for link in into}  # neither what a closed box is handed first nor what it gives first has one
    if len(names) < len(into) or len({link.net for link in into}) < len(into) or any(link.edge.target != path for link in into):
        return None
    return Streams(names, out)


@dataclass(slots=True)
class StreamLanes:
    """Where streams stand while boxes across them are measured, from below."""

    links: Sequence[ItemLink]
    apart: float
    """From a new stream to the next."""
    room: Callable[[str], float]
    """Returns the width that an output needs with its name."""
    lanes: dict[str, tuple[str, float]] = field(default_factory=dict)
    """Of each value that comes out of something that several streams go through, the lowest such, and how far from the middle of
    that it stands.
    """

    def begin(self, path: str, node: RankNode) -> None:
        """Note where streams come out of a frame."""
        self.lanes |= {net: (path, x) for net, x in node.above.items()}

    def box(self, path: str, streams: Streams, margin: float) -> WideBox:
        """Return how a box stands across its streams, which reaches at least some way beside each."""
        begun = {name: lane for name, link in streams.into.items() if (lane := self._lane(link)) is not None}
        lines = Counter(line for line, _ in begun.values())
        line = max(lines, key=lambda one: lines[one]) if lines else path
        places = self._entries(streams, {name: x for name, (one, x) in begun.items() if one == line})
        exits = {net: places[name] for name, net in streams.out.items() if name in places}
        x = max(places.values())
        for net in streams.out.values():
            if net not in exits:
                exits[net] = x = x + self.room(net)
        xs = [*places.values(), *exits.values()]
        low, high = min(xs) - margin, max(xs) + margin
        self.lanes |= {net: (line, x) for net, x in exits.items()}
        middle = (low + high) / 2
        below = {streams.into[name].edge: x - middle for name, x in places.items()}
        return WideBox(line, middle, high - low, below, {net: x - middle for net, x in exits.items()})

    def _lane(self, link: ItemLink) -> tuple[str, float] | None:
        """Return where a value comes from, straight or by blocks that read nothing else; none where that is no stream."""
        while link.net not in self.lanes:
            before = [one for one in self.links if one.target == link.source]
            if len(before) != 1:
                return None
            link = before[0]
        return self.lanes[link.net]

    def _entries(self, streams: Streams, known: Mapping[str, float]) -> dict[str, float]:
        """Return where values come in: what comes from below straight up, and what is new beside that as the box names them. Of
        what one stream forks into, that stays on it which comes straight.
        """
        places: dict[str, float] = {}
        for name in sorted(known, key=lambda name: streams.into[name].net not in self.lanes):
            if known[name] not in places.values():
                places[name] = known[name]
        ordered = [*streams.into]
        first = next((place for place, name in enumerate(ordered) if name in places), 0)
        for name in reversed(ordered[:first]):
            places[name] = min(places.values()) - self.apart
        for name in ordered:
            if name not in places:
                places[name] = max(places.values()) + self.apart if places else 0.0
        return places
