"""A mixture of experts: the router, some of the experts, and the sum of those that are visited."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from blocks.core import Look
from composer.draw.about import About
from composer.draw.diagram import Leaf, OpenMixture
from composer.draw.geometry import PlacedIcon, Point, Swatch, Text
from composer.draw.layout.boxes import MIN_SIDE_WIDTH, box, needed, swatches
from composer.draw.layout.fragment import Fragment, moved, straightened
from composer.draw.layout.frames import LINE, PADDING, header_lines
from composer.draw.layout.outgoing_edges import OutgoingEdge, draw_outgoing, room
from composer.draw.layout.stations import SideInput, block, stacked
from composer.draw.scene import RADIUS, Box, Dot, Frame, MergeCircle, Style, WirePath
from composer.draw.style.typography import Role, Typography

MAX_DRAWN_VISITS = 3
"""Visits that are drawn where not all experts are, so that some of those that are drawn stay idle."""
EXPERT_WIDTH, EXPERT_HEIGHT, EXPERT_GAP = 62.0, 34.0, 8.0
"""Of a box that says `Expert 128`, as high as one with an icon; between two."""
OMITTED_GAP = 44.0
"""Between two experts where others are left out: room for three dots."""


def open_mixture(
    item: OpenMixture,
    width: float,
    outgoing: Sequence[OutgoingEdge],
    lefts: Sequence[SideInput],
    typography: Typography,
    out: int = 1,
) -> Fragment:
    """Return the mixture in a frame of its own; what the router tells leaves at the side `out`."""
    path = item.about.path
    found = Fragment()
    router_wide = max(width, needed(item.router, typography))
    router = block(item.router, router_wide, typography, lefts)
    entry = -20.0 - (12.0 if item.shared else 0.0)
    found.pieces.take(router.pieces, 0, entry)
    found.pieces.wires.append(WirePath(path, item.router.about.path, ((0, 0), (0, entry + router.foot)), from_inside=True))
    found.pieces.texts.append(Text(8, -6, "x", "note", "start", typography.scale))
    fork = entry + router.top
    row = min(fork - 28.0, entry - router.height - 8.0)
    numbers = shown(item.experts, item.most)
    chosen = visited_among(numbers, item.visited if len(numbers) == item.experts else min(item.visited, MAX_DRAWN_VISITS))
    wide = EXPERT_WIDTH * typography.scale
    places, dots, half = spread(numbers, wide)
    sum_y = row - EXPERT_HEIGHT - 30.0 - RADIUS
    foot = sum_y + RADIUS
    for number in numbers:
        x, hot = places[number], number in chosen
        about = About(f"{path}.expert.{number - 1}", f"expert {number} of {item.experts} — {item.expert.title}", item.about.lines)
        named = (Text(x, row - EXPERT_HEIGHT / 2 + 4, f"Expert {number}", "expert", scale=typography.scale),)
        found.pieces.boxes.append(
            Box(about, "moe", x - wide / 2, row - EXPERT_HEIGHT, wide, EXPERT_HEIGHT, named, dashed=not hot)
        )
        style: Style = "expert" if hot else "idle"
        found.pieces.wires.append(
            WirePath(item.router.about.path, about.path, _curve(0, fork, x, row), style=style, arrow=hot, curved=True)
        )
        if hot:
            found.pieces.wires.append(
                WirePath(about.path, f"{path}.sum", _curve(x, row - EXPERT_HEIGHT, 0, foot), style="expert", curved=True)
            )
    if dots is not None:
        found.pieces.dots += [Dot(dots + step, row - EXPERT_HEIGHT / 2) for step in (-8.0, 0.0, 8.0)]
    found.pieces.merges.append(MergeCircle(About(f"{path}.sum", "weighed sum of what the visited experts give"), 0, sum_y, "Σ"))
    weighed = Text(-RADIUS - 6, sum_y + 3.5, "router weight × expert(x)", "note", "end", typography.scale)
    found.pieces.texts.append(weighed)
    reach = max(half, router.left, -weighed.area.left - PADDING + 2)
    left, right = max(reach, header_room(item, typography)) + PADDING, reach + PADDING
    if item.shared is not None:
        right = _shared(found, item, item.shared, reach, entry, row, sum_y, typography) + PADDING
    lines = header(item, left - 14 - 10, typography)
    line_height = LINE * typography.scale
    height = -sum_y + RADIUS + 12 + 24 + line_height * (len(lines) - 1)
    texts, icons = [], []
    for number, line in enumerate(lines):
        x, y = 14 - left, 19 - height + line_height * number
        if line.kinds:
            icons.append(PlacedIcon(Swatch(line.kinds), x, y - 8.5))
        texts.append(Text(x + line.indent, y, line.text, line.role, "start", typography.scale))
    found.pieces.enclose(Frame(item.about, -left, -height, left + right, height, tuple(texts), icons=tuple(icons), key=path))
    found.pieces.wires.append(WirePath(f"{path}.sum", path, ((0, sum_y - RADIUS), (0, -height)), arrow=False, to_inside=True))
    found.left, found.right, found.height, found.top = left, right, height, -height
    for edge, points in router.ends.items():
        inner = moved(points, 0, entry)
        found.ends[edge] = straightened(((-left, inner[0][1]), *inner))
    middle = entry - (router.height - router.foot) / 2
    for out_edge, y in zip(outgoing, stacked([room(out_edge, typography) for out_edge in outgoing], middle), strict=True):
        side = router_wide / 2 * out, right if out > 0 else -left
        draw_outgoing(found, out_edge, ((side[0], y), (side[1], y)), typography)
    return found


@dataclass(frozen=True, slots=True)
class Line:
    """Of the header."""

    text: str
    role: Role = "header"
    kinds: tuple[int, ...] = ()
    indent: float = 0.0


def header(item: OpenMixture, room: float, typography: Typography) -> list[Line]:
    """Return what the mixture is; where only some passes have it, after what the others have."""
    if item.row is None:
        return [Line(text) for text in header_lines(item.header, room, typography)]
    lines: list[Line] = []
    entries = [(leaf.rows[0], leaf.look.title, (*leaf.look.facts, leaf.params)) for leaf in item.instead]
    for row, title, facts in [*entries, (item.row, item.header[0], item.header[1:])]:
        indent = swatches(row)
        lines.append(Line(typography.fitted(f"{row.share}: {title}", "row", room - indent), "row", row.kinds, indent))
        lines += [Line(text, indent=indent) for text in header_lines([fact for fact in facts if fact], room - indent, typography)]
    return lines


def header_room(item: OpenMixture, typography: Typography) -> float:
    """Return how far left of the spine the header reaches where there are rows in it, nothing broken."""
    if item.row is None:
        return 0.0
    rows = [(leaf.rows[0], leaf.look.title, leaf.look.facts) for leaf in item.instead]
    return max(
        swatches(row)
        + max(typography.width(f"{row.share}: {title}", "row"), *(typography.width(fact, "header") for fact in facts), 0)
        + 9
        for row, title, facts in [*rows, (item.row, item.header[0], item.header[1:])]
    )


def _shared(
    found: Fragment, item: OpenMixture, shared: Leaf, reach: float, entry: float, row: float, sum_y: float, typography: Typography
) -> float:
    """Draw what every token visits, right of the experts; return how far it reaches."""
    path = item.about.path
    seen = replace(
        shared, look=Look("Shared expert", (shared.look.title,) if shared.look.title != "Shared expert" else (), "moe")
    )
    wide = max(MIN_SIDE_WIDTH, needed(seen, typography, narrow=True))
    x = reach + 24 + wide / 2
    found.pieces.boxes.append(box(seen, x, row, wide, 42, typography, narrow=True))
    tap = -18.0
    found.pieces.dots.append(Dot(0, tap))
    found.pieces.wires.append(WirePath(path, seen.about.path, ((0, tap), (x, tap), (x, row)), from_inside=True))
    found.pieces.wires.append(WirePath(seen.about.path, f"{path}.sum", ((x, row - 42), (x, sum_y), (RADIUS, sum_y))))
    return x + wide / 2


def shown(experts: int, most: int) -> list[int]:
    """Return the experts that are drawn, by number: all, or the first ones and the last ones, one less than would have room."""
    last = (most - 1) // 2
    return list(range(1, experts + 1)) if experts <= most else [*range(1, most - last), *range(experts - last + 1, experts + 1)]


def visited_among(numbers: Sequence[int], count: int) -> set[int]:
    """Return which of the drawn ones are visited, for example; the middle ones first."""
    order = [numbers[1 % len(numbers)], numbers[-2:][0], *numbers]
    return set(list(dict.fromkeys(order))[:count])


def spread(numbers: Sequence[int], wide: float) -> tuple[dict[int, float], float | None, float]:
    """Return where each expert stands, where the dots for the others are, and half of the width."""
    gap = next((index for index in range(1, len(numbers)) if numbers[index] != numbers[index - 1] + 1), None)
    total = len(numbers) * wide + (len(numbers) - 1) * EXPERT_GAP + (OMITTED_GAP if gap else 0)
    x, places, dots = -total / 2, {}, None
    for index, number in enumerate(numbers):
        if index == gap:
            dots = x + (OMITTED_GAP - EXPERT_GAP) / 2
            x += OMITTED_GAP
        places[number] = x + wide / 2
        x += wide + EXPERT_GAP
    return places, dots, total / 2


def _curve(x: float, y: float, to_x: float, to_y: float) -> tuple[Point, ...]:
    middle = (y + to_y) / 2
    return (x, y), (x, middle), (to_x, middle), (to_x, to_y)
