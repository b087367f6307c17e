"""Blocks as boxes and circles, with what stands beside them: each with the points where wires begin and end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from composer.draw.metrics import enlarged, fitted, text_width
from composer.draw.scene import (
    FONTS,
    ICON,
    RADIUS,
    SWATCH,
    About,
    Area,
    Box,
    Chip,
    Frame,
    Merge,
    Pieces,
    PlacedIcon,
    Point,
    Style,
    Swatch,
    Text,
    Wire,
)
from composer.draw.structure import Edge, Leaf, Row, Sink

WIDTH, WIDEST = 268.0, 430.0
"""Of the boxes of a column: usually, and at most."""
NARROW = 132.0
"""The least width of boxes that stand side by side."""
PAD, ICON_ROOM = 9.0, 28.0 + 2 * 9.0
LINE = 14.0
"""From one line to the next, where there are several."""
ROW, PLAIN_ROW = 32.0, 18.0
"""Of several kinds of a block, one below the other: with an icon or a detail, and without."""
SIDE_GAP = 26.0
"""Between a block and what stands beside it: an arrow fits in."""
CLEAR = 6.0
"""Between a wire beside a fragment and the end of what stands below or above it there."""
PLAIN_MASKS = {"causal": "causal", "full": "bidirectional"}
"""Those that are known by their pictures."""
SLOT = 14.0
"""From one wire at a side of a box to the next."""


@dataclass(frozen=True, slots=True)
class Beside:
    """What acts on a block from one side: a wire that ends there, the name of a value, or a small box."""

    edge: Edge | None = None
    """What a wire carries that somebody else draws up to here."""
    chip: str = ""
    leaf: Leaf | None = None
    style: Style = "main"
    inner: tuple[Edge, ...] = ()
    """What a small box reads, by name."""


@dataclass(frozen=True, slots=True)
class Leaving:
    """What is read of a block at its side: by a wire, or as an output of the model."""

    port: str
    name: str = ""
    """Of the model's output; none for a wire."""
    source: str = ""
    """The path of what makes it, where that is inside of the block."""
    sink: Sink | None = None
    """What reads it there and gives nothing."""
    said: bool = True
    """Whether the port's name stands at the wire."""

    @property
    def net(self) -> tuple[str, str]:
        """What is read, where that is inside of the block."""
        edge = self.sink.edges[0] if self.sink else None
        return (edge.source.path, edge.source.port) if edge else (self.source, self.port)

    @property
    def height(self) -> float:
        """How much room it takes at the side."""
        return SLOT if self.sink is None or self.sink.leaf is None else box_height(self.sink.leaf, narrow=True) + 8


@dataclass(slots=True)
class Fragment:
    """A piece of the drawing around a spine: x counts from it, y from the lower end upwards, which is negative."""

    pieces: Pieces = field(default_factory=Pieces)
    left: float = 0.0
    right: float = 0.0
    height: float = 0.0
    foot: float = 0.0
    """Where the stream comes in, from below."""
    top: float = 0.0
    """Where it goes out."""
    out: tuple[Point, ...] = ()
    """How the output of a flow goes to the upper end; nobody has drawn it."""
    ends: dict[Edge, tuple[Point, ...]] = field(default_factory=dict)
    """How wires that come from outside go on, from the border to what they end at."""
    taps: dict[tuple[str, str], tuple[Point, ...]] = field(default_factory=dict)
    """Where wires start that leave at a side, by path and port, up to the border."""


def needed(leaf: Leaf, *, narrow: bool = False) -> float:
    """The width that a block's texts want; a narrow one has its parameters behind the detail."""
    look = leaf.look
    icon = ICON_ROOM if look.icon is not None else PAD
    if leaf.lines:
        return max(text_width(line, FONTS[role].size, bold=FONTS[role].bold) for role, line in leaf.lines) + icon + PAD
    params = 0.0 if not leaf.params or (narrow and leaf.look.facts) else text_width(leaf.params, 10) + PAD + 8
    title = text_width(look.title, 13, bold=True) + 2 * max(icon, params)
    detail = text_width(detail_of(leaf, narrow=narrow), 10.5) + icon + PAD
    rows = [ICON_ROOM + 6 + swatches(row) + text_width(row.share, 10.5, bold=True) + PAD for row in leaf.rows]
    rows += [ICON_ROOM + 6 + swatches(row) + text_width(row.look.detail, 10.5) + PAD for row in leaf.rows]
    return min(max(title, detail, *rows) + 1, WIDEST)


def detail_of(leaf: Leaf, *, narrow: bool = False) -> str:
    """The line below the title."""
    said = [leaf.look.detail] if leaf.look.detail else []
    if leaf.look.mask not in ("", *PLAIN_MASKS):
        said.append(leaf.look.mask)
    if narrow and leaf.params and said:
        said.append(leaf.params)
    return " · ".join(said)


def with_mask(leaf: Leaf, detail: str, room: float) -> str:
    """The line below the title, with a mask that its picture already tells in words where there is room for them."""
    word = PLAIN_MASKS.get(leaf.look.mask, "") if leaf.look.hue != "cross" and not leaf.look.double else ""
    longer = f"{detail} · {word}"
    return longer if word and text_width(longer, 10.5) <= room else detail


def box_height(leaf: Leaf, *, narrow: bool = False) -> float:
    """How high a block is."""
    if leaf.lines:
        return max(LINE * enlarged.get() * len(leaf.lines) + 14, 34 if leaf.look.icon is not None else 28) + row_height(
            leaf
        ) * len(leaf.rows)
    detail = bool(detail_of(leaf, narrow=narrow))
    if leaf.rows:
        return (44 if detail else 30) + row_height(leaf) * len(leaf.rows)
    return 42 if detail else 34 if leaf.look.icon is not None else 28


def row_height(leaf: Leaf) -> float:
    """How high each row of a block is."""
    return ROW if any(row.look.icon is not None or row.look.detail for row in leaf.rows) else PLAIN_ROW


def swatches(row: Row) -> float:
    """How much room the cells of a row take before its texts."""
    return SWATCH * len(row.kinds) + 6 if row.kinds else 0.0


def box(leaf: Leaf, x: float, y: float, width: float, height: float, *, narrow: bool = False) -> Box:
    """A block as a box around a middle x, its lower edge at y."""
    look, top = leaf.look, y - height
    left, right = x - width / 2, x + width / 2
    own = box_height(leaf, narrow=narrow)
    icons = []
    if look.icon is not None and not leaf.rows:
        icons.append(PlacedIcon(look.icon, left + PAD, top + (height - ICON) / 2))
    row_high = row_height(leaf)
    middle = top + height / 2 if not leaf.rows else top + (own - row_high * len(leaf.rows)) / 2
    icon = ICON_ROOM if icons else PAD
    texts = line_by_line(leaf, x + (icon - PAD) / 2, middle) if leaf.lines else headed(leaf, x, middle, width, icon, narrow)
    for number, row in enumerate(leaf.rows):
        upper = top + own - row_high * (len(leaf.rows) - number) - 3
        start = left + PAD
        above = any(one.look.icon is not None for one in leaf.rows)
        if row.look.icon is not None:
            icons.append(PlacedIcon(row.look.icon, start, upper))
        start += ICON + 9 if above else 0
        if row.kinds:
            icons.append(PlacedIcon(Swatch(row.kinds), start, upper + (2.5 if row.look.detail else row_high / 2 - 5.5)))
            start += swatches(row)
        space = right - PAD - start
        below = row.look.detail
        line = 11 if below else row_high / 2 + 3 * enlarged.get()
        texts.append(Text(start, upper + line, fitted(row.share, 10.5, space, bold=True), "row", "start"))
        if below:
            texts.append(Text(start, upper + 22 + 2 * enlarged.get(), fitted(below, 10.5, space), "detail", "start"))
    return Box(leaf.about, look.hue, left, top, width, height, tuple(texts), tuple(icons), double=look.double)


def headed(leaf: Leaf, x: float, middle: float, width: float, icon: float, narrow: bool) -> list[Text]:
    """Title, detail and parameters around a height."""
    detail = detail_of(leaf, narrow=narrow)
    params = "" if narrow and detail else leaf.params
    room = width - 2 * max(icon, text_width(params, 10) + PAD + 8 if params else 0)
    size = enlarged.get()
    texts = [Text(x, middle - 3 if detail else middle + 4.5 * size, fitted(leaf.look.title, 13, room, bold=True), "title")]
    if detail:
        free = width - icon - PAD
        said = fitted(with_mask(leaf, detail, free), 10.5, free)
        aside = max(0.0, text_width(said, 10.5) / 2 - width / 2 + icon)  # in the middle as far as the icon lets it
        texts.append(Text(x + aside, middle + 9 + 3.5 * size, said, "detail"))
    if params:
        texts.append(Text(x + width / 2 - PAD, middle - 4 if detail else middle + 3.5 * size, params, "params", "end"))
    return texts


def line_by_line(leaf: Leaf, x: float, middle: float) -> list[Text]:
    """All that a block says on a narrow page."""
    line_height = LINE * enlarged.get()
    first = middle - line_height * (len(leaf.lines) - 1) / 2 + 4
    return [Text(x, first + line_height * number, line, role) for number, (role, line) in enumerate(leaf.lines)]


def circle(leaf: Leaf, lefts: Sequence[Beside], rights: Sequence[Beside]) -> Fragment:
    """A merge, with at most one thing at each side."""
    assert leaf.look.sign is not None
    found = Fragment(left=RADIUS, right=RADIUS, height=2 * RADIUS, top=-2 * RADIUS)
    found.pieces.merges.append(Merge(leaf.about, 0, -RADIUS, leaf.look.sign))
    for side, besides in ((-1, lefts), (1, rights)):
        for beside in besides:
            _one_beside(found, leaf, beside, side, -RADIUS, -RADIUS, side * RADIUS, side * RADIUS)
    _upright(found)
    return found


def block(
    leaf: Leaf,
    width: float,
    lefts: Sequence[Beside] = (),
    rights: Sequence[Beside] = (),
    leaving: Sequence[Leaving] = (),
    *,
    narrow: bool = False,
) -> Fragment:
    """A box with what stands at both sides."""
    rooms = [
        *(SLOT if beside.leaf is None else _beside_height(beside) + 8 for beside in rights),
        *(leave.height for leave in leaving),
    ]
    height = max(box_height(leaf, narrow=narrow), SLOT * len(lefts) + 6, sum(rooms) - SLOT + 20 if rooms else 0)
    if len(lefts) > 2 and lefts[0].leaf is not None:
        height = max(height, 2 * (17 + SLOT * (len(lefts) - 2)))  # names come in below the box that stands level
    found = Fragment(left=width / 2, right=width / 2, height=height, top=-height)
    found.pieces.boxes.append(box(leaf, 0, 0, width, height, narrow=narrow))
    _stack(found, leaf, lefts, -1, width / 2, height)
    places = stacked(rooms, -height / 2)
    for beside, y in zip(rights, places, strict=False):
        _one_beside(found, leaf, beside, 1, y, y, width / 2, width / 2)
    for leave, y in zip(leaving, places[len(rights) :], strict=True):
        leave_at(found, leaf.about.path, leave, ((width / 2, y),))
    _upright(found)
    return found


def stacked(rooms: Sequence[float], middle: float) -> list[float]:
    """The middles of things of some heights, one below the other around a middle."""
    y, places = middle - sum(rooms) / 2, []
    for room in rooms:
        places.append(y + room / 2)
        y += room
    return places


def leave_at(found: Fragment, path: str, leave: Leaving, start: tuple[Point, ...]) -> None:
    """What leaves at a side: the start of a wire, or an arrow to the name of an output, to a loss, to a state."""
    (x, y), side = start[-1], 1 if start[-1][0] > 0 else -1
    if leave.sink is not None:
        sink_at(found, leave.sink, start, side)
        return
    path = leave.source or path
    if leave.name:
        target = f"outputs:{leave.name}"
        found.pieces.wires.append(Wire(path, target, (*start, (x + side * SIDE_GAP, y)), leave.port))
        text = Text(x + side * (SIDE_GAP + 4), y + 3.5, leave.name, "chip", "start" if side > 0 else "end")
        found.pieces.chips.append(Chip(About(target, f"the model's output {leave.name}"), text, path, target, leave.port))
        _widen(found, side, max(abs(text.area.left), abs(text.area.right)))
        return
    reach = abs(x)
    if leave.said:
        label = Text(x + side * 6, y - 3, leave.port, "port", "start" if side > 0 else "end")
        found.pieces.texts.append(label)
        reach = max(abs(label.area.left), abs(label.area.right))
    _widen(found, side, reach)
    found.taps[path, leave.port] = (*start, (side * (found.right if side > 0 else found.left), y))


def sink_at(found: Fragment, sink: Sink, start: tuple[Point, ...], side: int = 1) -> None:
    """An arrow to what gives nothing that flows on; what else that reads comes in at its other side."""
    (x, y), first = start[-1], sink.edges[0]
    end = x + side * SIDE_GAP
    source = first.source.path
    if sink.leaf is None:
        found.pieces.wires.append(Wire(source, sink.path, (*start, (end, y)), first.port, "loop"))
        text = Text(end + side * 4, y + 3.5, sink.name, "chip", "start" if side > 0 else "end")
        found.pieces.chips.append(Chip(About(sink.path, sink.name), text, source, sink.path, first.port))
        _widen(found, side, max(abs(text.area.left), abs(text.area.right)))
        return
    width = max(0.0 if sink.leaf.lines else 104.0, needed(sink.leaf, narrow=True))
    height = box_height(sink.leaf, narrow=True)
    drawn = box(sink.leaf, end + side * width / 2, y + height / 2, width, height, narrow=True)
    found.pieces.boxes.append(replace(drawn, dashed=True))
    found.pieces.wires.append(Wire(source, sink.path, (*start, (end, y)), first.port, "loss"))
    reach = abs(end) + width
    for number, edge in enumerate(sink.edges[1:]):
        at = y + SLOT * (number - (len(sink.edges) - 2) / 2)
        if edge.trains:
            found.ends[edge] = ((end + side * width, at),)
        else:
            reach = max(reach, name_of_value(found, edge, edge.named, side, end + side * width, at, at, ()))
    _widen(found, side, reach)


def _stack(found: Fragment, leaf: Leaf, besides: Sequence[Beside], side: int, edge: float, height: float) -> None:
    """Things above each other at a side, each with its own wire into the box."""
    sizes = [_beside_height(beside) for beside in besides]
    total = sum(sizes) + 8 * (len(sizes) - 1)
    step = min(SLOT, (height - 14) / max(len(sizes) - 1, 1))
    y = -height / 2 - total / 2
    boxes = [index for index, beside in enumerate(besides) if beside.leaf is not None]
    if boxes == [0] and sizes[0] <= height + 1:
        y = -height / 2 - sizes[0] / 2  # one box stands level with the block, names below it
    half = (len(sizes) - 1) / 2
    for index, (beside, size) in enumerate(zip(besides, sizes, strict=True)):
        middle = y + size / 2
        target = -height / 2 + step * (index - half)
        if boxes == [0] and index:
            target = -7 - SLOT * (len(sizes) - 1 - index)
        if beside.leaf is not None and abs(middle + height / 2) < height / 2 - 7:
            target = middle  # straight in, wherever it can
        rank = len(sizes) - 1 - index if boxes == [0] else min(index, len(sizes) - 1 - index)
        turn = edge + 12 + 6 * rank
        _one_beside(found, leaf, beside, side, middle, target, side * edge, side * turn)
        y += size + 8


def _beside_height(beside: Beside) -> float:
    if beside.leaf is not None:
        return box_height(beside.leaf, narrow=True)
    return SLOT - 8  # so that names stand as far apart as the wires into the box


def _one_beside(
    found: Fragment, leaf: Leaf, beside: Beside, side: int, y: float, target: float, edge: float, turn: float
) -> None:
    """One thing at a side: `y` is its own middle, `target` where its wire ends at the border x = `edge`; it turns at `turn`."""
    start = edge + side * (SIDE_GAP + (abs(turn - edge) if y != target else 0))
    bend: tuple[Point, ...] = () if abs(y - target) < 0.5 else ((turn, y), (turn, target))
    path: tuple[Point, ...] = ((start, y), *bend, (edge, target))
    if beside.edge is not None and beside.leaf is None and not beside.chip:
        found.ends[beside.edge] = path if bend else ((edge, target),)
        return
    if beside.leaf is not None:
        width = max(104.0, needed(beside.leaf, narrow=True))
        height = box_height(beside.leaf, narrow=True)
        x = start + side * width / 2
        found.pieces.boxes.append(box(beside.leaf, x, y + height / 2, width, height, narrow=True))
        reach = abs(start) + width
        source, port = beside.leaf.about.path, beside.edge.port if beside.edge else ""
        for number, edge_ in enumerate(beside.inner):
            at = y + SLOT * (number - (len(beside.inner) - 1) / 2)
            reach = max(reach, name_of_value(found, edge_, edge_.named, side, start + side * width, at, at, ()))
    else:
        assert beside.edge is not None
        reach = name_of_value(found, beside.edge, beside.chip, side, edge, y, target, bend)
        _widen(found, side, reach)
        return
    found.pieces.wires.append(Wire(source, leaf.about.path, path, port, beside.style))
    _widen(found, side, reach)


def name_of_value(
    found: Fragment, edge: Edge, name: str, side: int, border: float, y: float, target: float, bend: tuple[Point, ...]
) -> float:
    """The name of a value with an arrow; gives how far it reaches."""
    start = (bend[0][0] + side * 10) if bend else border + side * 16
    said = name + ("*" if edge.partial else "") + edge.source.word
    text = Text(start + side * 4, y + 3.5, said, "chip", "end" if side < 0 else "start")
    about = About(edge.source.path, f"{name}, from elsewhere")
    found.pieces.chips.append(Chip(about, text, edge.source.path, edge.target, edge.port))
    points = ((start, y), *bend, (border, target))
    found.pieces.wires.append(Wire(edge.source.path, edge.target, points, edge.port, "far", partial=edge.partial))
    return max(abs(text.area.left), abs(text.area.right))


def _widen(found: Fragment, side: int, reach: float) -> None:
    if side < 0:
        found.left = max(found.left, reach)
    else:
        found.right = max(found.right, reach)


def _upright(found: Fragment) -> None:
    """Moves a fragment so that nothing of it lies below its lower end, and its height covers all."""
    areas = [box.area for box in found.pieces.boxes] + [merge.area for merge in found.pieces.merges]
    areas += [chip.text.area for chip in found.pieces.chips]
    low, high = max(area.bottom for area in areas), min(area.top for area in areas)
    found.height = max(found.height, -high)
    if low > 0:
        found.height += low
        shift(found, 0, -low)


def shift(found: Fragment, dx: float, dy: float) -> None:
    """Moves all of a fragment."""
    pieces = Pieces()
    pieces.take(found.pieces, dx, dy)
    found.pieces = pieces
    found.foot, found.top = found.foot + dy, found.top + dy
    found.out = _moved(found.out, dx, dy)
    found.ends = {edge: _moved(points, dx, dy) for edge, points in found.ends.items()}
    found.taps = {key: _moved(points, dx, dy) for key, points in found.taps.items()}


def _moved(points: Sequence[Point], dx: float, dy: float) -> tuple[Point, ...]:
    return tuple((x + dx, y + dy) for x, y in points)


def areas(found: Fragment) -> list[Area]:
    """What a fragment covers, piece by piece."""
    pieces = found.pieces
    solid: list[Box | Merge | Frame | Text] = [*pieces.boxes, *pieces.merges, *pieces.frames, *pieces.texts]
    solid += [chip.text for chip in pieces.chips]
    strips = [frame.strip for frame in pieces.frames if frame.strip]
    solid += [tick for strip in strips for tick in strip.ticks]
    covered = [thing.area for thing in solid]
    covered += [Area(one.x, one.y, one.x + one.width, one.y + one.height) for one in strips]
    for wire in pieces.wires:
        covered += [Area(min(a, c), min(b, d), max(a, c), max(b, d)) for (a, b), (c, d) in pairwise(wire.points)]
    return covered


def extent(found: Fragment, side: int, high: float, low: float) -> float:
    """How far a fragment reaches to a side between two heights."""
    near = [area for area in areas(found) if area.top < low + CLEAR and area.bottom > high - CLEAR]
    return max([0.0, *(area.right if side > 0 else -area.left for area in near)])


def turn_over(found: Fragment) -> None:
    """Lets a column without frames flow downwards; what is written stays upright."""
    high = found.height
    pieces = found.pieces

    def over(y: float) -> float:
        return -high - y

    def text(one: Text) -> Text:
        middle = one.y - 0.35 * one.font.size  # of its letters
        return replace(one, y=one.y + over(middle) - middle)

    def points(old: Sequence[Point]) -> tuple[Point, ...]:
        return tuple((x, over(y)) for x, y in old)

    def box(one: Box) -> Box:
        dy = over(one.y + one.height) - one.y
        icons = tuple(replace(icon, y=icon.y + dy) for icon in one.icons)
        return replace(one, y=one.y + dy, texts=tuple(replace(t, y=t.y + dy) for t in one.texts), icons=icons)

    pieces.boxes = [box(one) for one in pieces.boxes]
    pieces.merges = [replace(one, y=over(one.y)) for one in pieces.merges]
    pieces.dots = [replace(one, y=over(one.y)) for one in pieces.dots]
    pieces.wires = [replace(one, points=points(one.points)) for one in pieces.wires]
    pieces.texts = [text(one) for one in pieces.texts]
    pieces.chips = [replace(one, text=text(one.text)) for one in pieces.chips]
    found.ends = {edge: points(old) for edge, old in found.ends.items()}
    found.taps = {key: points(old) for key, old in found.taps.items()}


def stretch(found: Fragment, y: float, by: float) -> None:
    """Moves everything above a height further up; wires that cross it become longer."""

    def moved(old: float) -> float:
        return old - by if old <= y else old

    def points(old: Sequence[Point]) -> tuple[Point, ...]:
        return tuple((a, moved(b)) for a, b in old)

    above, rest = Pieces(), Pieces()
    pieces = found.pieces
    for box in pieces.boxes:
        (above if box.y + box.height <= y else rest).boxes.append(box)
    rest.take(above, 0, -by)
    rest.merges = [replace(one, y=moved(one.y)) for one in pieces.merges]
    rest.dots = [replace(one, y=moved(one.y)) for one in pieces.dots]
    rest.wires = [replace(one, points=points(one.points)) for one in pieces.wires]
    rest.texts = [replace(one, y=moved(one.y)) for one in pieces.texts]
    rest.chips = [replace(one, text=replace(one.text, y=moved(one.text.y))) for one in pieces.chips]
    found.pieces = rest
    found.taps = {key: points(old) for key, old in found.taps.items()}
    found.height += by
