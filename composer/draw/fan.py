"""A mixture of experts: the router, some of the experts, and the sum of those that are visited."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from composer.draw.boxes import Beside, Fragment, Leaving, block, box, leave_at, needed, stacked
from composer.draw.frame import LINE, PADDING, wrapped
from composer.draw.looks import Look
from composer.draw.scene import RADIUS, About, Box, Dot, Frame, Merge, Point, Style, Text, Wire, moved, straightened
from composer.draw.structure import Fan, Leaf

SHOWN = 6
"""Experts that are drawn where there are more."""
MANY = 3
"""Visits that are drawn where not all experts are."""
EXPERT, HIGH, GAP = 62.0, 34.0, 8.0


def fan(item: Fan, width: float, leaving: Sequence[Leaving], lefts: Sequence[Beside]) -> Fragment:
    """The mixture in a frame of its own."""
    path = item.about.path
    found = Fragment()
    router = block(item.router, max(width, needed(item.router)), lefts)
    entry = -20.0 - (12.0 if item.shared else 0.0)
    found.pieces.take(router.pieces, 0, entry)
    found.pieces.wires.append(Wire(path, item.router.about.path, ((0, 0), (0, entry + router.foot))))
    fork = entry + router.top
    row = min(fork - 28.0, entry - router.height - 8.0)
    numbers = shown(item.experts)
    chosen = visited_among(numbers, item.visited if len(numbers) == item.experts else min(item.visited, MANY))
    places, dots, half = spread(numbers)
    sum_y = row - HIGH - 30.0 - RADIUS
    foot = sum_y + RADIUS
    for number in numbers:
        x, hot = places[number], number in chosen
        about = About(f"{path}.expert.{number - 1}", f"expert {number} of {item.experts} — {item.expert.title}", item.about.lines)
        named = (Text(x, row - HIGH / 2 + 4, f"Expert {number}", "expert"),)
        found.pieces.boxes.append(Box(about, "moe", x - EXPERT / 2, row - HIGH, EXPERT, HIGH, named, dashed=not hot))
        style: Style = "expert" if hot else "idle"
        found.pieces.wires.append(
            Wire(item.router.about.path, about.path, _curve(0, fork, x, row), style=style, arrow=hot, curved=True)
        )
        if hot:
            found.pieces.wires.append(
                Wire(about.path, f"{path}.sum", _curve(x, row - HIGH, 0, foot), style="expert", curved=True)
            )
    if dots is not None:
        found.pieces.dots += [Dot(dots + step, row - HIGH / 2) for step in (-8.0, 0.0, 8.0)]
    found.pieces.merges.append(Merge(About(f"{path}.sum", "weighed sum of what the visited experts give"), 0, sum_y, "Σ"))
    found.pieces.texts.append(Text(-RADIUS - 6, sum_y + 3.5, "weighted by the router", "shape", "end"))
    reach = max(half, router.left)
    left, right = reach + PADDING, reach + PADDING
    if item.shared is not None:
        right = _shared(found, item, item.shared, reach, entry, row, sum_y) + PADDING
    lines = wrapped(item.header, left - 14 - 10)
    height = -sum_y + RADIUS + 12 + 24 + LINE * (len(lines) - 1)
    texts = tuple(Text(14 - left, 19 - height + LINE * number, line, "header", "start") for number, line in enumerate(lines))
    found.pieces.frames.insert(0, Frame(item.about, -left, -height, left + right, height, texts))
    found.pieces.wires.append(Wire(f"{path}.sum", path, ((0, sum_y - RADIUS), (0, -height)), arrow=False))
    found.left, found.right, found.height, found.top = left, right, height, -height
    for edge, points in router.ends.items():
        inner = moved(points, 0, entry)
        found.ends[edge] = straightened(((-left, inner[0][1]), *inner))
    for leave, y in zip(leaving, stacked([leave.height for leave in leaving], -height / 2), strict=True):
        leave_at(found, path, leave, right, y)
    return found


def _shared(found: Fragment, item: Fan, shared: Leaf, reach: float, entry: float, row: float, sum_y: float) -> float:
    """What every token visits, right of the experts; gives how far it reaches."""
    path = item.about.path
    seen = replace(
        shared, look=Look("Shared expert", (shared.look.title,) if shared.look.title != "Shared expert" else (), "moe")
    )
    wide = max(104.0, needed(seen, narrow=True))
    x = reach + 24 + wide / 2
    found.pieces.boxes.append(box(seen, x, row, wide, 42, narrow=True))
    tap = -18.0
    found.pieces.dots.append(Dot(0, tap))
    found.pieces.wires.append(Wire(path, seen.about.path, ((0, tap), (x, tap), (x, row))))
    found.pieces.wires.append(Wire(seen.about.path, f"{path}.sum", ((x, row - 42), (x, sum_y), (RADIUS, sum_y))))
    return x + wide / 2


def shown(experts: int) -> list[int]:
    """The experts that are drawn, by number: all, or the first three and the last two."""
    return list(range(1, experts + 1)) if experts <= SHOWN else [1, 2, 3, experts - 1, experts]


def visited_among(numbers: Sequence[int], count: int) -> set[int]:
    """Which of the drawn ones are visited, for example; the middle ones first."""
    order = [numbers[1 % len(numbers)], numbers[-2], *numbers]
    return set(list(dict.fromkeys(order))[:count])


def spread(numbers: Sequence[int]) -> tuple[dict[int, float], float | None, float]:
    """Where each expert stands, where the dots for the others are, and half of the width."""
    gap = next((index for index in range(1, len(numbers)) if numbers[index] != numbers[index - 1] + 1), None)
    total = len(numbers) * EXPERT + (len(numbers) - 1) * GAP + (44 if gap else 0)
    x, places, dots = -total / 2, {}, None
    for index, number in enumerate(numbers):
        if index == gap:
            dots = x + 22 - GAP / 2
            x += 44
        places[number] = x + EXPERT / 2
        x += EXPERT + GAP
    return places, dots, total / 2


def _curve(x: float, y: float, to_x: float, to_y: float) -> tuple[Point, ...]:
    middle = (y + to_y) / 2
    return (x, y), (x, middle), (to_x, middle), (to_x, to_y)
