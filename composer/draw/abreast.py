"""Columns beside each other, and the wires between them."""

from __future__ import annotations

from collections.abc import Sequence

from composer.draw.fragment import Fragment, areas, extent, shift, stretch
from composer.draw.metrics import text_width
from composer.draw.scene import Dot, Point, Style, Text, Wire, straightened
from composer.draw.structure import Edge, Net
from composer.draw.words import spoken

COLUMN_GAP, NEAREST = 56.0, 28.0
"""Between columns where wires go between them, and elsewhere."""


def level(down: Fragment, up: Fragment) -> None:
    """Stretches the way down of a U, so that what is read on the way up stands at the height of its reader."""
    for edge, points in sorted(up.ends.items(), key=lambda end: -end[1][0][1]):
        tap = down.taps[edge.source.net][-1][1]
        if tap > points[0][1] + 1 and len(points) == 1:
            stretch(down, tap + 0.1, tap - points[0][1])


def beside_each_other(laid: Sequence[Fragment], turn: str = "") -> Fragment:
    """Columns on one page, and the wires between them; at the `turn` of a U the stream itself goes over."""
    whole = Fragment(height=max(one.height for one in laid))
    taps: dict[Net, tuple[int, tuple[Point, ...]]] = {}
    gutters: list[float] = []
    turns: dict[Net, list[Point]] = {}
    x = 0.0
    for number, one in enumerate(laid):
        coming = [(edge, points) for edge, points in one.ends.items() if edge.source.net in taps]
        gutters.append(x - COLUMN_GAP / 2)
        if len(laid) == 2 and number and not turn:
            x, gutters[1] = packed(laid[0], one, [(taps[e.source.net][1], points) for e, points in coming])
        shift(one, x + one.left, 0)
        whole.pieces.take(one.pieces)
        coming = [(edge, one.ends[edge]) for edge, _ in coming]
        orders = {
            read: order for order, read in enumerate(dict.fromkeys(map(_read, sorted(coming, key=lambda end: -end[1][0][1]))))
        }
        for edge, points in sorted(coming, key=lambda end: -end[1][0][1]):
            order = orders[_read((edge, points))]
            column, start = taps[edge.source.net]
            aside_ = 10 * (order - (len(orders) - 1) / 2)
            gutter, level = gutters[number] + aside_, start[-1][1]
            way: list[Point] = [*start]
            if column + 1 < number:  # over the columns between
                over = min(-between.height for between in laid[column + 1 : number]) - 16 - 8 * order
                level = min(level, over)
                rise = gutters[column + 1] + aside_
                way += [(rise, start[-1][1]), (rise, level)]
            way += [(gutter, level), (gutter, points[0][1]), *points]
            turns.setdefault(edge.source.net, []).append((gutter, level))
            style: Style = "loss" if edge.trains else "main" if edge.target == turn else "cross"
            whole.pieces.wires.append(Wire(edge.source.path, edge.target, straightened(way), edge.port, style))
            name = spoken(edge.source.path.partition(".")[0]).lower()
            for said in (
                (f"{name} output · {edge.source.shape}", edge.source.shape) if edge.source.shape and not edge.trains else ()
            ):
                if label_above(whole, said, (start[-1][0], start[-1][1]), gutter, order):
                    break
        taps |= {net: (number, points) for net, points in one.taps.items()}
        x += one.left + one.right + (COLUMN_GAP if number < len(laid) - 1 else 0)
    whole.right = max([x, *(area.right for one in laid for area in areas(one))]) if len(laid) == 2 else x
    for corners in turns.values():  # the last one to turn off leaves no fork behind
        whole.pieces.dots += [Dot(*corner) for corner in sorted(set(corners))[:-1]]
    return whole


def _read(end: tuple[Edge, tuple[Point, ...]]) -> tuple[Net, float]:
    """A value, and the height at which it comes in: wires that agree in both are drawn as one that forks."""
    edge, points = end
    return edge.source.net, points[0][1]


def packed(before: Fragment, after: Fragment, between: Sequence[tuple[Sequence[Point], Sequence[Point]]]) -> tuple[float, float]:
    """Where a column begins beside the one before, and where wires go up and down between them: these have a straight way, and
    elsewhere the columns come as near to each other as what stands in them lets them.
    """
    ys = [y for ends in between for points in ends for _, y in points]
    high, low = (min(ys), max(ys)) if ys else (0.0, 0.0)
    near, far = extent(before, 1, high, low), extent(after, -1, high, low)
    left, right = areas(before), areas(after)
    rooms = [
        a.right - b.left + NEAREST
        for a in left
        for b in right
        if a.top < b.bottom + NEAREST / 2 and b.top < a.bottom + NEAREST / 2
    ]
    apart = max([near + far + COLUMN_GAP, after.left, *rooms])
    return apart - after.left, near + (apart - near - far) / 2


def label_above(whole: Fragment, said: str, start: Point, gutter: float, order: int) -> bool:
    """Writes above a wire between columns what it carries; whether there is room."""
    if order or gutter - start[0] < text_width(said, 10) + 24:
        return False
    text = Text((start[0] + gutter) / 2, start[1] - 6, said, "shape")
    solid = [box.area for box in whole.pieces.boxes] + [frame.area for frame in whole.pieces.frames]
    if any(text.area.grown(4).meets(area) for area in (*solid, *(other.area for other in whole.pieces.texts))):
        return False
    whole.pieces.texts.append(text)
    return True
