"""Frames above each other that the same streams go through: as far apart as in the widest, so that each goes straight up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from composer.draw.layout.beside.tracks import RankNode
from composer.draw.passes.layers import ItemLink

SAME = 1.0
"""How far from where it comes in a stream may go out."""
MIN_SHARED = 2
"""Streams that go through two frames from which on these are in line."""


@dataclass(slots=True)
class StreamsInLine:
    """The streams that go through frames, from below, each with a number."""

    links: Sequence[ItemLink]
    of_net: dict[str, int] = field(default_factory=dict)
    """Of each value that comes out of a frame or into one, its stream."""
    lanes: dict[str, dict[int, float]] = field(default_factory=dict)
    """Of each frame, where each stream goes through it, seen from its middle."""
    count: int = 0
    """How many streams there are."""

    def add(self, path: str, frame: RankNode) -> None:
        """Add a frame that stands above those before."""
        into = {link.edge.passage: link for link in self.links if link.target == path}
        entries = {port: into[port] for port in frame.below if port in into}
        found = {port: self.of_net[link.net] for port, link in entries.items() if link.net in self.of_net}
        for port, link in entries.items():
            if port not in found:
                stream = self.led_to(link)
                found[port] = self.begin() if stream is None or stream in found.values() else stream
                self.of_net.setdefault(link.net, found[port])
        here = {stream: frame.below[port] for port, stream in found.items()}
        for net, x in frame.above.items():
            stream = next((one for one, place in here.items() if abs(place - x) < SAME), None)
            self.of_net[net] = self.begin() if stream is None else stream
            here.setdefault(self.of_net[net], x)
        self.lanes[path] = here

    def begin(self) -> int:
        """Return the number of a new stream."""
        self.count += 1
        return self.count

    def led_to(self, link: ItemLink) -> int | None:
        """Return the stream that a value comes from by blocks that read nothing else."""
        while link.net not in self.of_net:
            before = [one for one in self.links if one.target == link.source]
            if len(before) != 1:
                return None
            (link,) = before
        return self.of_net[link.net]

    def lines(self) -> Iterator[list[str]]:
        """Yield the frames, from below, through which several of the same streams go."""
        rest = [*self.lanes]
        while rest:
            line = [rest.pop(0)]
            streams = {*self.lanes[line[0]]}
            for path in [*rest]:
                if len(streams & {*self.lanes[path]}) >= MIN_SHARED:
                    line.append(path)
                    rest.remove(path)
                    streams |= {*self.lanes[path]}
            if len(line) > 1:
                yield line

    def places(self, line: Sequence[str]) -> dict[int, float] | None:
        """Return where each stream goes through all frames of a line: no two nearer than in any of these; none where they
        cross between frames.
        """
        rows = [sorted(self.lanes[path], key=self.lanes[path].__getitem__) for path in line]
        order = TopologicalSorter[int]()
        for row in rows:
            for stream in row:
                order.add(stream)
            for left, right in pairwise(row):
                order.add(right, left)
        found: dict[int, float] = {}
        try:
            for stream in order.static_order():
                apart = [
                    found[left] + self.lanes[path][stream] - self.lanes[path][left]
                    for path, row in zip(line, rows, strict=True)
                    if stream in row
                    for left in row[: row.index(stream)][-1:]
                ]
                found[stream] = max(apart, default=0.0)
        except CycleError:
            return None
        return found


@dataclass(frozen=True, slots=True)
class InLine:
    """Where a frame stands among others that the same streams go through."""

    line: str
    """The lowest of them."""
    apart: Sequence[tuple[float, float, float]]
    """Between which two streams there is more room, from the left, and how much."""
    middle: float
    """How far its middle is then from where all streams are counted from."""
    width: float


def in_line(frames: Mapping[str, RankNode], links: Sequence[ItemLink]) -> dict[str, InLine]:
    """Return how frames, from below, stand above each other where the same streams go through them, if they can."""
    streams, found = StreamsInLine(links), dict[str, InLine]()
    for path, frame in frames.items():
        streams.add(path, frame)
    for line in streams.lines():
        places = streams.places(line)
        if places is not None:
            found |= {path: _in_line(line[0], frames[path], streams.lanes[path], places) for path in line}
    return found


def _in_line(line: str, frame: RankNode, lanes: Mapping[int, float], places: Mapping[int, float]) -> InLine:
    """Return how a frame stands with its streams where they should be."""
    order = sorted(lanes, key=lanes.__getitem__)
    more = [(lanes[a], lanes[b], places[b] - places[a] - (lanes[b] - lanes[a])) for a, b in pairwise(order)]
    wider = sum(by for *_, by in more)
    middle = places[order[0]] - lanes[order[0]] + wider / 2
    return InLine(line, [one for one in more if one[-1] > SAME], middle, frame.width + wider)
