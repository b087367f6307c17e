"""Wires between two ranks: where they come in above, and how high each turns off."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from composer.draw.edges import DiagramEdge
from composer.draw.geometry import Point

APART = 7.0
"""Between wires that stand side by side: one arrowhead, so that theirs do not touch."""
SIDE = 20.0
"""From the middle of a circle to a wire that comes in at its side: its radius of 9 pixels, and room for the arrowhead."""


@dataclass(frozen=True, slots=True)
class Pin:
    """Where a wire comes in from below."""

    net: str
    x: float
    edge: DiagramEdge | None
    """None for a wire that only passes."""
    end: tuple[Point, ...] = ()
    """How it goes on from the height of the block's foot, seen from there."""


def around(x: float) -> Iterator[float]:
    """Yield the places beside a place, the nearest first."""
    yield from (x + sign * step * APART / 2 for step in range(200) for sign in (1, -1))


def outwards(x: float, side: int) -> Iterator[float]:
    """Yield the places at one side of a circle."""
    yield from (x + side * (SIDE + step * APART / 2) for step in range(200))


def clear(x: float, net: str, start: Mapping[str, float]) -> bool:
    """Return whether no other value rises from just below."""
    return all(abs(x - other) >= APART - 1 for name, other in start.items() if name != net)


def assigned(start: Mapping[str, float], pins: Sequence[Pin]) -> dict[str, int]:
    """Return the height, counted from below, of each value that turns between two ranks: where one rises
    above another's end, lower.
    """
    ends: dict[str, list[float]] = {}
    for pin in pins:
        ends.setdefault(pin.net, [start[pin.net]]).append(pin.x)
    spans = {net: (min(xs), max(xs)) for net, xs in ends.items() if max(xs) > min(xs)}
    lower = {
        net: {pin.net for pin in pins if pin.net != net and abs(pin.x - start[net]) < APART - 1 and pin.net in spans}
        for net in spans
    }
    found: dict[str, int] = {}
    left = sorted(spans, key=lambda net: (spans[net][1] - spans[net][0], net))
    while left:
        free = [net for net in left if not any(net in lower[other] for other in left if other != net)]
        net = (free or left)[0]
        left.remove(net)
        number = 1 + max((found[other] for other in found if net in lower[other]), default=-1)
        (low, high) = spans[net]
        while any(found[other] == number and spans[other][0] < high + APART and low < spans[other][1] + APART for other in found):
            number += 1
        found[net] = number
    return found
