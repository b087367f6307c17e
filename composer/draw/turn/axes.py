"""Coordinates along the stream and across it: which keep their order, and how far apart they must be."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

GAP = 18.0
"""Pixels that are kept between neighboring coordinates at most: between boxes, an arrow of 7 with a piece of line."""
BESIDE = 3.0
"""So near to each other, two things across the stream count as beside one another."""
ON = 1.5
"""So near is a point that lies on a border."""


class Across:
    """Coordinates across the stream in their order, and how far apart they must be."""

    def __init__(self) -> None:
        self.known: set[float] = set()
        self.spans: list[tuple[float, float, float]] = []
        self.old: list[float] = []
        self.new: list[float] = []

    def add(self, *values: float) -> None:
        """Add coordinates that keep their order."""
        self.known |= {near(value) for value in values}

    def span(self, low: float, high: float, least: float) -> None:
        """Add two coordinates that will be at least so far apart."""
        self.add(low, high)
        if near(low) < near(high):
            self.spans.append((near(low), near(high), least))

    def centered(self, low: float, middle: float, high: float, least: float) -> None:
        """Add two coordinates around a third one, with half of the room on either side."""
        self.span(low, middle, least / 2)
        self.span(middle, high, least / 2)

    def solve(self) -> None:
        """Place all coordinates, each as far to the front as the others let it."""
        self.old = sorted(self.known)
        number = {value: at for at, value in enumerate(self.old)}
        before: dict[int, list[tuple[int, float]]] = {}
        for low, high, least in self.spans:
            before.setdefault(number[high], []).append((number[low], least))
        self.new = []
        for at, value in enumerate(self.old):
            steps = [self.new[-1] + min(value - self.old[at - 1], GAP)] if at else [0.0]
            steps += [self.new[low] + least for low, least in before.get(at, ())]
            self.new.append(max(steps))

    def __call__(self, value: float) -> float:
        """Return where a coordinate is now; one that was not added lies between its neighbors as it did."""
        value = near(value)
        at = bisect_left(self.old, value)
        if at == len(self.old):
            return self.new[-1] + value - self.old[-1]
        if self.old[at] == value or not at:
            return self.new[at] + value - self.old[at]
        low, high = self.old[at - 1 : at + 1]
        return self.new[at - 1] + (self.new[at] - self.new[at - 1]) * (value - low) / (high - low)


@dataclass(slots=True)
class AcrossLine:
    """What stands at one place along the stream, from one coordinate across it to another."""

    place: float
    low: float
    high: float
    new: float = 0.0
    pull: float = 0.0
    """How much of the way to what comes next it goes on: all of it for what is read only there."""


class Along:
    """Lines across the stream. Those that a wire along the stream could meet keep their order; others do not know each other."""

    def __init__(self) -> None:
        self.drawn: dict[float, list[tuple[float, float]]] = {}
        self.spans: list[tuple[float, float, float, float]] = []
        self.lines: dict[float, list[AcrossLine]] = {}
        self.pulled: list[tuple[float, float, float]] = []
        self.ties: list[tuple[tuple[float, float], tuple[float, float], float]] = []
        self.end = 0.0

    def add(self, place: float, low: float, high: float) -> None:
        """Add a line; lines of one place that touch are one."""
        self.drawn.setdefault(near(place), []).append((min(low, high), max(low, high)))

    def span(self, start: float, end: float, across: tuple[float, float], least: float) -> None:
        """Add two lines that will be at least so far apart."""
        self.add(start, *across)
        self.add(end, *across)
        if near(start) < near(end):
            self.spans.append((near(start), near(end), across[0], least))

    def centered(self, start: float, middle: float, end: float, across: tuple[float, float], least: float) -> None:
        """Add two lines around a third one, with half of the room on either side."""
        self.span(start, middle, across, least / 2)
        self.span(middle, end, across, least / 2)

    def tie(self, start: tuple[float, float], end: tuple[float, float], least: float) -> None:
        """Keep two lines at least so far apart, each of which is at a place and a coordinate across the stream."""
        self.ties.append(((near(start[0]), start[1]), (near(end[0]), end[1]), least))

    def solve(self) -> None:
        """Place all lines, each as far to the front as the others let it."""
        self.lines = {place: _joined(place, pieces) for place, pieces in self.drawn.items()}
        before: dict[int, list[tuple[AcrossLine, float]]] = {}
        for start, end, across, least in self.spans:
            before.setdefault(id(self.line(end, across)), []).append((self.line(start, across), least))
        for first, last, least in self.ties:
            before.setdefault(id(self.line(*last)), []).append((self.line(*first), least))
        for place, across, pull in self.pulled:
            self.line(place, across).pull = pull
        placed: list[AcrossLine] = []
        after: dict[int, list[tuple[AcrossLine, float]]] = {}
        for place in sorted(self.lines):
            for line in self.lines[place]:
                met = [one for one in placed if one.low <= line.high + BESIDE and line.low <= one.high + BESIDE]
                steps = [(one, min(place - one.place, GAP)) for one in met] + before.get(id(line), [])
                line.new = max([0.0, *(one.new + least for one, least in steps)])
                for one, least in steps:
                    after.setdefault(id(one), []).append((line, least))
            placed += self.lines[place]
        for line in reversed(placed):
            if line.pull and id(line) in after:
                line.new += line.pull * (min(one.new - least for one, least in after[id(line)]) - line.new)
        self.end = max(line.new for line in placed)

    def line(self, place: float, across: float) -> AcrossLine:
        """Return the line of a place that goes through a coordinate across the stream, or ends next to it."""
        return min(self.lines[near(place)], key=lambda line: max(line.low - across, across - line.high, 0.0))

    def __call__(self, place: float, across: float) -> float:
        """Return where something is now that lies on a line."""
        return self.line(place, across).new


def _joined(place: float, pieces: Iterable[tuple[float, float]]) -> list[AcrossLine]:
    """Return the lines of some pieces, those that touch in one."""
    found: list[AcrossLine] = []
    for low, high in sorted(pieces):
        if found and low <= found[-1].high + ON:
            found[-1].high = max(found[-1].high, high)
        else:
            found.append(AcrossLine(place, low, high))
    return found


def near(value: float) -> float:
    """Return a coordinate as all that are equal to the eye share it."""
    return round(value, 1)


def on(value: float, *borders: float) -> bool:
    """Return whether a coordinate is that of a border."""
    return any(abs(value - border) < ON for border in borders)
