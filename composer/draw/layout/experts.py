"""A mixture of experts: the router, some of the experts, and the sum of those that are visited."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from blocks.core import Look
from composer.draw.diagram import Fan, Leaf
from composer.draw.layout.boxes import LEAST, box, needed, swatches
from composer.draw.layout.fragment import Fragment
from composer.draw.layout.frames import LINE, PADDING, header_lines
from composer.draw.layout.outgoing_edges import OutgoingEdges, leave_at, room
from composer.draw.layout.pieces import moved, straightened
from composer.draw.layout.stations import Beside, block, stacked
from composer.draw.scene import (
    FONTS,
    RADIUS,
    About,
    Box,
    Dot,
    Frame,
    MergeCircle,
    PlacedIcon,
    Point,
    Role,
    Style,
    Swatch,
    Text,
    WirePath,
)
from composer.draw.style.text_metrics import enlarged, fitted, text_width

MANY = 3
"""Visits that are drawn where not all experts are."""
EXPERT, HIGH, GAP = 62.0, 34.0, 8.0


def fan(item: Fan, width: float, leaving: Sequence[OutgoingEdges], lefts: Sequence[Beside], out: int = 1) -> Fragment:
    """The mixture in a frame of its own; what the router tells leaves at the side `out`."""
    path = item.about.path
    found = Fragment()
    router_wide = max(width, needed(item.router))
    router = block(item.router, router_wide, lefts)
    entry = -20.0 - (12.0 if item.shared else 0.0)
    found.pieces.take(router.pieces, 0, entry)
    found.pieces.wires.append(WirePath(path, item.router.about.path, ((0, 0), (0, entry + router.foot))))
    found.pieces.texts.append(Text(8, -6, "x", "shape", "start"))
    fork = entry + router.top
    row = min(fork - 28.0, entry - router.height - 8.0)
    numbers = shown(item.experts, item.most)
    chosen = visited_among(numbers, item.visited if len(numbers) == item.experts else min(item.visited, MANY))
    wide = EXPERT * enlarged.get()
    places, dots, half = spread(numbers, wide)
    sum_y = row - HIGH - 30.0 - RADIUS
    foot = sum_y + RADIUS
    for number in numbers:
        x, hot = places[number], number in chosen
        about = About(f"{path}.expert.{number - 1}", f"expert {number} of {item.experts} — {item.expert.title}", item.about.lines)
        named = (Text(x, row - HIGH / 2 + 4, f"Expert {number}", "expert"),)
        found.pieces.boxes.append(Box(about, "moe", x - wide / 2, row - HIGH, wide, HIGH, named, dashed=not hot))
        style: Style = "expert" if hot else "idle"
        found.pieces.wires.append(
            WirePath(item.router.about.path, about.path, _curve(0, fork, x, row), style=style, arrow=hot, curved=True)
        )
        if hot:
            found.pieces.wires.append(
                WirePath(about.path, f"{path}.sum", _curve(x, row - HIGH, 0, foot), style="expert", curved=True)
            )
    if dots is not None:
        found.pieces.dots += [Dot(dots + step, row - HIGH / 2) for step in (-8.0, 0.0, 8.0)]
    found.pieces.merges.append(MergeCircle(About(f"{path}.sum", "weighed sum of what the visited experts give"), 0, sum_y, "Σ"))
    weighed = Text(-RADIUS - 6, sum_y + 3.5, "router weight × expert(x)", "shape", "end")
    found.pieces.texts.append(weighed)
    reach = max(half, router.left, -weighed.area.left - PADDING + 2)
    left, right = max(reach, header_room(item)) + PADDING, reach + PADDING
    if item.shared is not None:
        right = _shared(found, item, item.shared, reach, entry, row, sum_y) + PADDING
    lines = header(item, left - 14 - 10)
    line_height = LINE * enlarged.get()
    height = -sum_y + RADIUS + 12 + 24 + line_height * (len(lines) - 1)
    texts, icons = [], []
    for number, line in enumerate(lines):
        x, y = 14 - left, 19 - height + line_height * number
        if line.kinds:
            icons.append(PlacedIcon(Swatch(line.kinds), x, y - 8.5))
        texts.append(Text(x + line.indent, y, line.text, line.role, "start"))
    found.pieces.frames.insert(0, Frame(item.about, -left, -height, left + right, height, tuple(texts), icons=tuple(icons)))
    found.pieces.wires.append(WirePath(f"{path}.sum", path, ((0, sum_y - RADIUS), (0, -height)), arrow=False))
    found.left, found.right, found.height, found.top = left, right, height, -height
    for edge, points in router.ends.items():
        inner = moved(points, 0, entry)
        found.ends[edge] = straightened(((-left, inner[0][1]), *inner))
    middle = entry - (router.height - router.foot) / 2
    for leave, y in zip(leaving, stacked(list(map(room, leaving)), middle), strict=True):
        side = router_wide / 2 * out, right if out > 0 else -left
        leave_at(found, leave, ((side[0], y), (side[1], y)))
    return found


@dataclass(frozen=True, slots=True)
class Line:
    """Of the header."""

    text: str
    role: Role = "header"
    kinds: tuple[int, ...] = ()
    indent: float = 0.0


def header(item: Fan, room: float) -> list[Line]:
    """What the mixture is; where only some passes have it, after what the others have."""
    if item.row is None:
        return [Line(text) for text in header_lines(item.header, room)]
    lines: list[Line] = []
    entries = [(leaf.rows[0], leaf.look.title, (*leaf.look.facts, leaf.params)) for leaf in item.instead]
    for row, title, facts in [*entries, (item.row, item.header[0], item.header[1:])]:
        indent = swatches(row)
        lines.append(Line(fitted(f"{row.share}: {title}", FONTS["row"].size, room - indent, bold=True), "row", row.kinds, indent))
        lines += [Line(text, indent=indent) for text in header_lines([fact for fact in facts if fact], room - indent)]
    return lines


def header_room(item: Fan) -> float:
    """How far left of the spine the header reaches where there are rows in it, nothing broken."""
    if item.row is None:
        return 0.0
    rows = [(leaf.rows[0], leaf.look.title, leaf.look.facts) for leaf in item.instead]
    return max(
        swatches(row)
        + max(text_width(f"{row.share}: {title}", 10.5, bold=True), *(text_width(fact, 11) for fact in facts), 0)
        + 9
        for row, title, facts in [*rows, (item.row, item.header[0], item.header[1:])]
    )


def _shared(found: Fragment, item: Fan, shared: Leaf, reach: float, entry: float, row: float, sum_y: float) -> float:
    """What every token visits, right of the experts; gives how far it reaches."""
    path = item.about.path
    seen = replace(
        shared, look=Look("Shared expert", (shared.look.title,) if shared.look.title != "Shared expert" else (), "moe")
    )
    wide = max(LEAST, needed(seen, narrow=True))
    x = reach + 24 + wide / 2
    found.pieces.boxes.append(box(seen, x, row, wide, 42, narrow=True))
    tap = -18.0
    found.pieces.dots.append(Dot(0, tap))
    found.pieces.wires.append(WirePath(path, seen.about.path, ((0, tap), (x, tap), (x, row))))
    found.pieces.wires.append(WirePath(seen.about.path, f"{path}.sum", ((x, row - 42), (x, sum_y), (RADIUS, sum_y))))
    return x + wide / 2


def shown(experts: int, most: int) -> list[int]:
    """The experts that are drawn, by number: all, or the first ones and the last ones, one less than would have room."""
    last = (most - 1) // 2
    return list(range(1, experts + 1)) if experts <= most else [*range(1, most - last), *range(experts - last + 1, experts + 1)]


def visited_among(numbers: Sequence[int], count: int) -> set[int]:
    """Which of the drawn ones are visited, for example; the middle ones first."""
    order = [numbers[1 % len(numbers)], numbers[-2], *numbers]
    return set(list(dict.fromkeys(order))[:count])


def spread(numbers: Sequence[int], wide: float) -> tuple[dict[int, float], float | None, float]:
    """Where each expert stands, where the dots for the others are, and half of the width."""
    gap = next((index for index in range(1, len(numbers)) if numbers[index] != numbers[index - 1] + 1), None)
    total = len(numbers) * wide + (len(numbers) - 1) * GAP + (44 if gap else 0)
    x, places, dots = -total / 2, {}, None
    for index, number in enumerate(numbers):
        if index == gap:
            dots = x + 22 - GAP / 2
            x += 44
        places[number] = x + wide / 2
        x += wide + GAP
    return places, dots, total / 2


def _curve(x: float, y: float, to_x: float, to_y: float) -> tuple[Point, ...]:
    middle = (y + to_y) / 2
    return (x, y), (x, middle), (to_x, middle), (to_x, to_y)
