"""A whole page: the model's columns side by side, its inputs and outputs, the title and the facts below it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from composer.draw.boxes import WIDEST, WIDTH, Fragment, areas, extent, needed, shift, stretch, turn_over
from composer.draw.column import Column, Net, Shown
from composer.draw.looks import Look
from composer.draw.metrics import enlarged, fitted, text_width
from composer.draw.narrow import lines, narrowed, without_losses
from composer.draw.scene import FONTS, About, Dot, Pieces, Point, Scene, Style, Text, Wire, straightened
from composer.draw.shape import aside, bent, in_line
from composer.draw.structure import Edge, Fan, Flow, Group, Leaf, Sink, Source
from composer.draw.words import spoken

MARGIN, HEADING = 24.0, 25.0
"""Around everything; from one line of the title to the next."""
MOST_HEADINGS = 4
"""Lines of a title; a reader who cannot see is told all of it."""
COLUMN_GAP, NEAREST = 56.0, 28.0
"""Between columns where wires go between them, and elsewhere."""
FACTS = 570.0
"""How wide a line of facts may be, however narrow the drawing."""
TWO_COLUMNS = 240.0
"""Width of boxes where a model has several columns."""
NARROWER, SLIM = (268.0, 240.0, 216.0, 192.0, 170.0, 150.0, 136.0, 124.0), 6.0
"""Widths of boxes in the column of a paper, and the margin of such a page."""


@dataclass(frozen=True, slots=True)
class Titles:
    """What stands at the head of a page, and how inputs and outputs are called."""

    title: str
    facts: tuple[str, ...]
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    description: str = ""


def page(flow: Flow, titles: Titles, *, shapes: bool = True) -> Scene:
    """The scene of a model."""
    columns = by_name_where_needed(parts(with_ends(flow, titles)))
    halves = bent(in_line(columns[0])) if len(columns) == 1 else None
    columns = list(halves) if halves else columns
    usual = WIDTH if len(columns) == 1 else TWO_COLUMNS
    laid: list[Fragment] = []
    for number, column in enumerate(columns):
        leaves = [leaf for leaf in column.leaves() if isinstance(leaf, Leaf)]
        width = min(max([usual, *map(needed, leaves)]), WIDEST)
        ports = any(e.source.port and not e.source.chip for e in column.edges)  # these leave at the right
        side = -1 if number < len(columns) - 1 and not ports else 1
        out = -1 if any(e.trains for sink in column.sinks for e in sink.edges) else 1
        laid.append(Column(column, width, Shown(shapes, side=side, out=out), sent_from(column, columns)).lay())
    if halves:
        turn_over(laid[0])
        level(*laid)
    whole = beside_each_other(laid, halves[1].items[0].about.path if halves else "")
    return with_head(whole, titles)


def narrow_page(flow: Flow, titles: Titles, room: float, *, shapes: bool = True) -> Scene:
    """The scene of a model in one column, so that it is no wider than there is room, or as narrow as it can be."""
    ends = with_ends(flow, titles)
    found: list[Scene] = []
    for width in NARROWER:
        column = narrowed(ends, width)
        if found and any(needed(leaf) > width for leaf in column.leaves() if isinstance(leaf, Leaf)):
            break  # a word is longer
        for flow in (column, without_losses(column)):
            whole = Column(flow, width, Shown(shapes, narrow=True, alone=True)).lay()
            shift(whole, whole.left, 0)
            whole.right += whole.left
            found.append(with_head(whole, titles, SLIM, room - 2 * SLIM))
            if found[-1].width <= room:
                return found[-1]
            if width > NARROWER[-1] or not column.sinks:
                break
    return min(found, key=lambda scene: scene.width)


def with_ends(flow: Flow, titles: Titles) -> Flow:
    """The flow with boxes for the inputs that go into its stream and for its first output; other inputs go by their names."""
    rest = aside(flow).flow
    paths = {item.about.path for item in rest.items}
    streams = {
        e.source.path: e.source for e in rest.edges if e.source.given and e.main and not e.source.chip and e.target in paths
    }
    ins = tuple(
        Leaf(About(path, f"the model's input {path} — {source.shape}"), Look(titles.inputs[path], hue="io"), "", source.shape)
        for path, source in streams.items()
    )
    stays = {(e.target, e.port) for e in rest.edges if e.main}
    edges = [
        e
        if not e.source.given or e.source.chip or (e.source.path in streams and (e.target, e.port) in stays)
        else replace(e, source=replace(e.source, chip=e.source.path))
        for e in flow.edges
    ]
    outs: tuple[Leaf, ...] = ()
    if flow.outlet is not None and flow.exits and not flow.outlet.given:
        name = flow.exits[0][0]
        path = f"outputs:{name}"
        outs = (Leaf(About(path, f"the model's output {name} — {flow.outlet.shape}"), Look(titles.outputs[name], hue="io")),)
        edges.append(Edge(flow.outlet, path, "", True))
    return replace(flow, items=(*ins, *flow.items, *outs), edges=tuple(edges), outlet=None, exits=flow.exits[1:])


def parts(flow: Flow) -> list[Flow]:
    """The columns: blocks between which the stream flows; the one with the model's output last."""
    group = {item.about.path: item.about.path for item in flow.items}

    def root(path: str) -> str:
        while group[path] != path:
            path = group[path]
        return path

    alone = {item.about.path for item in flow.items} - {item.about.path for item in aside(flow).flow.items}
    for edge in flow.edges:
        if (
            edge.source.path in group
            and not edge.source.chip
            and (edge.main or edge.target in alone or edge.source.path in alone)
        ):
            group[root(edge.source.path)] = root(edge.target)
    for item in flow.items:  # a block by itself that reads nothing stands in the column that reads it
        path = item.about.path
        if isinstance(item, Leaf) and group[path] == path and (path in alone or not any(e.target == path for e in flow.edges)):
            steps = next((e.target.split(".") for e in flow.all_edges() if e.source.path == path), [])
            holders = [".".join(steps[: end + 1]) for end in range(len(steps))]
            group[path] = next((root(one) for one in holders if one in group and root(one) != path), path)
    last = root(flow.items[-1].about.path)
    roots = dict.fromkeys(root(item.about.path) for item in flow.items)
    ordered = [one for one in roots if one != last] + [last]
    columns = []
    for one in ordered:
        items = tuple(item for item in flow.items if root(item.about.path) == one)
        paths = {item.about.path for item in items}
        edges = tuple(e for e in flow.edges if e.target in paths)
        exits = tuple((name, source) for name, source in flow.exits if belongs(source, paths))
        columns.append(replace(flow, items=items, edges=edges, exits=exits, sinks=()))
    return with_sinks(columns, flow.sinks)


def with_sinks(columns: Sequence[Flow], sinks: Sequence[Sink]) -> list[Flow]:
    """The columns, each with what gives nothing that flows on: beside what it reads first. A loss that reads routers of two
    columns stands between them, and wires lead to it from either side.
    """
    found = list(columns)
    for sink in sinks:
        first, *others = sink.edges
        column, *of = (number_of(edge.source, columns) for edge in sink.edges)
        fans = {leaf.about.path for one in columns for leaf in one.leaves() if isinstance(leaf, Fan)}
        if len(others) == 1 and of[0] > column and {edge.source.path for edge in sink.edges} <= fans:
            here = replace(first, source=replace(first.source, chip=""), trains=True)
            sink, column = replace(sink, edges=(others[0], here)), of[0]
        found[column] = replace(found[column], sinks=(*found[column].sinks, sink))
    return found


def number_of(source: Source, columns: Sequence[Flow]) -> int:
    """The column that a value comes from; the last one for an input of the model."""
    numbers = (n for n, column in enumerate(columns) if belongs(source, {item.about.path for item in column.items}))
    return next(numbers, len(columns) - 1)


def by_name_where_needed(columns: Sequence[Flow]) -> list[Flow]:
    """The columns, where what a later one gives goes by its name: wires lead to the right."""
    found = []
    for number, column in enumerate(columns):
        later = {item.about.path for other in columns[number + 1 :] for item in other.items}
        found.append(_by_name(column, later))
    return found


def _by_name(flow: Flow, paths: set[str]) -> Flow:
    edges = tuple(
        replace(e, source=replace(e.source, chip=e.source.path)) if e.source.path in paths and not e.source.chip else e
        for e in flow.edges
    )
    items = tuple(
        replace(item, flows=tuple(_by_name(inner, paths) for inner in item.flows)) if isinstance(item, Group) else item
        for item in flow.items
    )
    return replace(flow, items=items, edges=edges)


def belongs(source: Source, paths: set[str]) -> bool:
    """Whether a value comes from one of some items, or from inside of it."""
    steps = source.path.split(".")
    return any(".".join(steps[:end]) in paths for end in range(1, len(steps) + 1))


def sent_from(column: Flow, columns: Sequence[Flow]) -> frozenset[Net]:
    """Values of a column that others read."""
    own = {item.about.path for item in column.items}
    others = [other for other in columns if other is not column]
    read = [e.source for other in others for e in other.all_edges() if e.source.path in own]
    read += [e.source for other in others for sink in other.sinks for e in sink.edges if e.trains and belongs(e.source, own)]
    return frozenset((source.path, source.port) for source in read if not source.chip)


def level(down: Fragment, up: Fragment) -> None:
    """Stretches the way down of a U, so that what is read on the way up stands at the height of its reader."""
    for edge, points in sorted(up.ends.items(), key=lambda end: -end[1][0][1]):
        tap = down.taps[edge.source.path, edge.source.port][-1][1]
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
        coming = [(edge, points) for edge, points in one.ends.items() if (edge.source.path, edge.source.port) in taps]
        gutters.append(x - COLUMN_GAP / 2)
        if len(laid) == 2 and number and not turn:
            x, gutters[1] = packed(laid[0], one, [(taps[e.source.path, e.source.port][1], points) for e, points in coming])
        shift(one, x + one.left, 0)
        whole.pieces.take(one.pieces)
        coming = [(edge, one.ends[edge]) for edge, _ in coming]
        orders = {
            read: order for order, read in enumerate(dict.fromkeys(map(_read, sorted(coming, key=lambda end: -end[1][0][1]))))
        }
        for edge, points in sorted(coming, key=lambda end: -end[1][0][1]):
            order = orders[_read((edge, points))]
            column, start = taps[edge.source.path, edge.source.port]
            aside_ = 10 * (order - (len(orders) - 1) / 2)
            gutter, level = gutters[number] + aside_, start[-1][1]
            way: list[Point] = [*start]
            if column + 1 < number:  # over the columns between
                over = min(-between.height for between in laid[column + 1 : number]) - 16 - 8 * order
                level = min(level, over)
                rise = gutters[column + 1] + aside_
                way += [(rise, start[-1][1]), (rise, level)]
            way += [(gutter, level), (gutter, points[0][1]), *points]
            turns.setdefault((edge.source.path, edge.source.port), []).append((gutter, level))
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
    return (edge.source.path, edge.source.port), points[0][1]


def packed(before: Fragment, after: Fragment, between: Sequence[tuple[Sequence[Point], Sequence[Point]]]) -> tuple[float, float]:
    """Where a column begins beside the one before, and where wires go up and down between them: these have a straight way, and
    elsewhere the columns come as near to each other as what stands in them lets them.
    """
    ys = [y for ends in between for points in ends for _, y in points]
    high, low = (min(ys), max(ys)) if ys else (0.0, 0.0)
    near, far = extent(before, 1, high, low), extent(after, -1, high, low)
    rooms = [
        a.right - b.left + NEAREST
        for a in areas(before)
        for b in areas(after)
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


def with_head(whole: Fragment, titles: Titles, margin: float = MARGIN, room: float = FACTS) -> Scene:
    """The page around everything, with its title."""
    room = max(whole.right, room)
    facts = lines_of(titles.facts, room)
    named = [fitted(line, 20, room, bold=True) for _, line in lines("heading", titles.title, room)][:MOST_HEADINGS]
    size = enlarged.get()
    said = [Text(margin, 34 + HEADING * size * number, line, "heading", "start") for number, line in enumerate(named)]
    under = 34 + HEADING * size * (len(named) - 1)
    said += [Text(margin, under + (19 + 15 * number) * size, line, "facts", "start") for number, line in enumerate(facts)]
    head = under + ((19 + 15 * (len(facts) - 1)) * size + 19 if facts else 22)
    areas = [t.area for t in whole.pieces.texts] + [chip.text.area for chip in whole.pieces.chips]
    high = min([-whole.height, *(area.top for area in areas), *(y for wire in whole.pieces.wires for _, y in wire.points)])
    low = max([0.0, *(area.bottom for area in areas)])
    wide = max([whole.right + 2 * margin, *(text.area.right + margin for text in said)])
    pieces = Pieces()
    pieces.take(whole.pieces, (wide - whole.right) / 2, head - high)
    height = head - high + low + margin + 2
    return Scene(
        titles.title,
        wide,
        height,
        (*said, *pieces.texts),
        tuple(pieces.frames),
        tuple(pieces.wires),
        tuple(pieces.dots),
        tuple(pieces.boxes),
        tuple(pieces.merges),
        tuple(pieces.chips),
        description=titles.description,
    )


def lines_of(facts: Sequence[str], room: float) -> list[str]:
    """Facts in lines as long as the drawing is wide."""
    lines: list[str] = []
    for fact in facts:
        longer = f"{lines[-1]} · {fact}" if lines else fact
        if lines and text_width(longer, FONTS["facts"].size) <= room:
            lines[-1] = longer
        else:
            lines.append(fact)
    return lines
