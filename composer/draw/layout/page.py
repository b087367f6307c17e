"""A whole page: the model's columns side by side, its inputs and outputs, the title and the facts below it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from blocks.core import Look
from composer.draw.diagram import DiagramEdge, Flow, Leaf
from composer.draw.layout.boxes import WIDEST, WIDTH, needed
from composer.draw.layout.column import column
from composer.draw.layout.fragment import Fragment, shift, turn_over
from composer.draw.layout.parallel_columns import beside_each_other, level
from composer.draw.layout.pieces import Pieces
from composer.draw.layout.spine import Shown
from composer.draw.passes.narrow import lines, narrowed, without_losses
from composer.draw.passes.order import bent, in_line
from composer.draw.passes.side_inputs import aside
from composer.draw.passes.split_columns import by_name_where_needed, parts, sent_from
from composer.draw.scene import FONTS, About, Scene, Text
from composer.draw.style.text_metrics import enlarged, fitted, text_width, wrapped

MARGIN, HEADING = 24.0, 25.0
"""Around everything; from one line of the title to the next."""
MOST_HEADINGS = 4
"""Lines of a title; a reader who cannot see is told all of it."""
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
    for number, one in enumerate(columns):
        leaves = [leaf for leaf in one.leaves() if isinstance(leaf, Leaf)]
        width = min(max([usual, *map(needed, leaves)]), WIDEST)
        ports = any(e.source.port and not e.source.chip for e in one.edges)  # these leave at the right
        side = -1 if number < len(columns) - 1 and not ports else 1
        out = -1 if any(e.trains for sink in one.sinks for e in sink.edges) else 1
        laid.append(column(one, width, Shown(shapes, side=side, out=out), sent_from(one, columns)))
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
        slim = narrowed(ends, width)
        if found and any(needed(leaf) > width for leaf in slim.leaves() if isinstance(leaf, Leaf)):
            break  # a word is longer
        for one in (slim, without_losses(slim)):
            whole = column(one, width, Shown(shapes, narrow=True, alone=True))
            shift(whole, whole.left, 0)
            whole.right += whole.left
            found.append(with_head(whole, titles, SLIM, room - 2 * SLIM))
            if found[-1].width <= room:
                return found[-1]
            if width > NARROWER[-1] or not slim.sinks:
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
        path = f"outputs/{name}"
        outs = (Leaf(About(path, f"the model's output {name} — {flow.outlet.shape}"), Look(titles.outputs[name], hue="io")),)
        edges.append(DiagramEdge(flow.outlet, path, "", True))
    return replace(flow, items=(*ins, *flow.items, *outs), edges=tuple(edges), outlet=None, exits=flow.exits[1:])


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
    return wrapped(facts, " · ", lambda said: text_width(said, FONTS["facts"].size) <= room)
