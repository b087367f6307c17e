"""A whole page: the model's columns side by side, its inputs and outputs, the title and the facts below it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from composer.draw.diagram import Flow, Group, Item, Leaf, Titles
from composer.draw.edges import DiagramEdge, DiagramSource, InnerOutput, Origin, PassOutput
from composer.draw.geometry import Text
from composer.draw.layout.beside.choice import clearest, once
from composer.draw.layout.beside.ladder import ladder_fragment
from composer.draw.layout.beside.pyramid import pyramid_fragment
from composer.draw.layout.beside.u_shape import u_on_page
from composer.draw.layout.boxes import MAX_BOX_WIDTH, TWO_COLUMNS_WIDTH, WIDTH, needed
from composer.draw.layout.column import column
from composer.draw.layout.ends.framed_inputs import NOTHING_LED, lead_into_repeats, name_in_own_frames
from composer.draw.layout.ends.named_values import with_names_above
from composer.draw.layout.ends.port_names import names_at_ends, with_outputs_told
from composer.draw.layout.ends.shapes import room_for_shapes
from composer.draw.layout.fragment import Fragment, Pieces, shift
from composer.draw.layout.named_inputs import input_leaf, many_named, names_alone, with_named_inputs, with_plain_names
from composer.draw.layout.narrow import fit_to_width, lines, shorten_losses
from composer.draw.layout.parallel_columns import place_columns
from composer.draw.layout.spine import LANE_SIDE, FrameMemo, LayoutOptions
from composer.draw.layout.wrapped import NoColumnEnd, broken, wrapped
from composer.draw.passes.alternatives import name_in_alternatives, name_once
from composer.draw.passes.heads import output_leaf, with_end_boxes
from composer.draw.passes.inner_outputs import join_passes, lead_out_of_frames
from composer.draw.passes.ladder import split_ladder
from composer.draw.passes.layer_exits import lead_out_of_layers
from composer.draw.passes.order import sort_topologically
from composer.draw.passes.passages import open_passages
from composer.draw.passes.pyramid import split_pyramid
from composer.draw.passes.side_inputs import inputs_of_losses, split_side_inputs, stand_by_readers
from composer.draw.passes.split_columns import by_name_where_needed, sent_from, split_into_columns
from composer.draw.paths import is_output
from composer.draw.scene import Scene
from composer.draw.style.text_metrics import wrapped as in_lines
from composer.draw.style.typography import Typography
from composer.memo import Memo

MARGIN, TITLE_LINE = 24.0, 25.0
"""Around everything; from one line of the title, of 20 pixels, to the next."""
MAX_TITLE_LINES = 4
"""Lines of a title that are drawn; the page's own title, which screen readers read, has all of it."""
FACTS_WIDTH = 570.0
"""How wide a line of facts may be, however narrow the drawing: about as wide as one column with lanes at both sides."""
HEADS_APART = 36.0
"""Between heads above each other: more than from one block to the next."""
HEADER_ROOM = 70.0
"""In a frame, for its header and for the wire over its columns."""
NARROW_WIDTHS, NARROW_MARGIN = (268.0, 240.0, 216.0, 192.0, 170.0, 150.0, 136.0, 124.0), 6.0
"""Widths of boxes in the column of a paper, which are tried from the usual one down, each about a tenth less; and the margin of
such a page, as the paper has one of its own.
"""


def page(
    flow: Flow,
    titles: Titles,
    typography: Typography,
    *,
    shapes: bool = True,
    high: float | None = None,
    break_after: Sequence[str] = (),
    upright: bool = True,
    frames: FrameMemo | None = None,
) -> Scene:
    """Return the scene of a model; one column ends above the nodes of `break_after`, or is wrapped where it is higher than `high`
    pixels and can be. One that is not to stay `upright` has nothing above a column that does not go on from it: turned, the two
    would come near to each other.

    Raises:
        NoColumnEnd: if a column cannot end above such a node, as in a model of several columns.
    """
    frames = Memo() if frames is None else frames
    whole = body(flow, titles, typography, shapes=shapes, high=high, break_after=break_after, frames=frames)
    if named := many_named(whole, titles):
        alone = names_alone(flow, named)
        whole = body(alone, titles, typography, shapes=shapes, high=high, break_after=break_after, frames=frames)
        whole = with_names_above(with_plain_names(whole), typography)
        whole = with_named_inputs(whole, named, titles, typography, above=upright)
    else:
        whole = with_names_above(with_plain_names(whole), typography)
    return with_head(whole, titles, typography)


def body(
    flow: Flow,
    titles: Titles,
    typography: Typography,
    *,
    shapes: bool = True,
    high: float | None = None,
    break_after: Sequence[str] = (),
    led: bool = True,
    frames: FrameMemo | None = None,
) -> Fragment:
    """Return all of a page below its head, counted from the left border; inputs may be `led` into the frames of repeats, but for
    a column that is to end after a node, or that can be wrapped without their boxes.

    Raises:
        NoColumnEnd: if a column cannot end above a node of `break_after`.
    """
    flow = join_passes(stand_by_readers(flow))
    frames = Memo() if frames is None else frames
    options = LayoutOptions(typography, LANE_SIDE, shapes, inputs=tuple(titles.inputs), frames=frames)
    opens = once(options)
    framed, inputs = lead_into_repeats(flow, titles) if led and not break_after else (flow, NOTHING_LED)
    ends = lead_out_of_frames(with_ends(framed, titles, inputs, beside=False))
    whole_flow = open_passages(lead_out_of_frames(with_ends(framed, titles, inputs)), opens)
    columns = by_name_where_needed(lead_out_of_layers([*map(name_in_own_frames, split_into_columns(whole_flow))]))
    u = u_on_page(columns, typography, column, shapes=shapes)
    if u is not None:
        if break_after:
            raise NoColumnEnd(break_after[0], ())
        return u
    if len(columns) == 1 and not break_after:
        rows = in_rows(sort_topologically(with_end_boxes(columns[0])), options)
        if rows is not None:
            return rows
    columns = [*map(with_outputs_told, columns)]
    laid: list[Fragment] = []
    sent, called = [sent_from(one, columns) for one in columns], called_at_ends(columns)
    columns = [with_end_boxes(one, given) for one, given in zip(columns, sent, strict=True)]
    for number, one in enumerate(columns):
        leaves = [leaf for leaf in one.leaves() if isinstance(leaf, Leaf)]
        usual = WIDTH if len(columns) == 1 else TWO_COLUMNS_WIDTH
        usual = max(usual, room_for_shapes((leaf.shape for leaf in leaves if shapes), WIDTH, typography))
        width = min(max([usual, *(needed(leaf, typography) for leaf in leaves)]), MAX_BOX_WIDTH)
        ports = any(e.source.port and not e.source.reference for e in one.all_edges())  # these leave at the right
        given = frozenset().union(*sent[:number])
        # these come in at the left, where no lanes are
        fed = any(e.source.origin in given for e in one.all_edges())
        side = LANE_SIDE if number == len(columns) - 1 else 1 if ports or fed else -1
        out = -1 if any(e.trains for sink in one.sinks for e in sink.edges) else 1
        own = LayoutOptions(typography, side, shapes, out=out, given=given, called=called, frames=frames)
        if reads_frame(one):
            one = highest_first(one, {origin: points[-1][1] for before in laid for origin, points in before.taps.items()})
        laid.append(column(one, width, own, sent[number]))
    if break_after:
        if len(columns) > 1:
            raise NoColumnEnd(break_after[0], ())
        ordered = sort_topologically(columns[0])
        return broken(ordered, break_after, lambda part, on: column(part, width, own, on))
    if len(laid) == 1:
        found = clearest(laid[0], ends, opens, options)
        if found is not laid[0]:
            return found
    if high is not None and len(laid) == 1 and laid[0].height > high:
        ordered = sort_topologically(columns[0])
        several = wrapped(ordered, laid[0], high, lambda part, given_on: column(part, width, own, given_on))
        if several is not None:
            return several
        laid = [
            with_broken_frame(columns[0], laid[0], high, lambda broken: column(columns[0], width, replace(own, broken=broken)))
        ]
    whole = place_columns(above_each_other(columns, outputs_on_top(columns, laid)), typography)
    if high is not None and inputs and whole.height > high:
        alone = body(flow, titles, typography, shapes=shapes, high=high, led=False, frames=frames)
        if alone.height <= high:
            return alone
    if len(laid) > 1:
        whole = clearest(whole, ends, opens, options)
    return whole


def in_rows(flow: Flow, options: LayoutOptions) -> Fragment | None:
    """Return a flow, in order, that is a trunk with a row for each of several values of it; none for any other."""
    pyramid, ladder = split_pyramid(flow), split_ladder(flow)
    if pyramid is not None:
        return pyramid_fragment(pyramid, TWO_COLUMNS_WIDTH, options)
    if ladder is None:
        return None
    leaves = (leaf for leaf in ladder.trunk.leaves() if isinstance(leaf, Leaf))
    width = max([TWO_COLUMNS_WIDTH, *(needed(leaf, options.typography) for leaf in leaves)])
    return ladder_fragment(ladder, min(width, MAX_BOX_WIDTH), options)


def with_broken_frame(flow: Flow, whole: Fragment, high: float, lay: Callable[[tuple[str, float]], Fragment]) -> Fragment:
    """Return a column that is too high with the highest of its frames in columns, if it is no higher then."""
    paths = [item.about.path for item in flow.items if isinstance(item, Group) and len(item.flows) == 1]
    frames = [one for one in whole.pieces.frames if one.about.path in paths]
    if not frames:
        return whole
    highest = max(frames, key=lambda one: one.height)
    room = high - (whole.height - highest.height) - HEADER_ROOM
    broken = lay((highest.about.path, room)) if room > 0 else whole
    return broken if broken.height <= high else whole


def above_each_other(columns: Sequence[Flow], laid: Sequence[Fragment]) -> list[Fragment]:
    """Return columns as they are laid out, but some above each other: heads that read passes of a repeat, as these are, and
    those that no wire leads to or from.
    """
    pairs = list(zip(columns, laid, strict=True))
    heads = [laid_out for one, laid_out in pairs if reads_frame(one)]
    alone = [laid_out for one, laid_out in pairs if not (laid_out.ends or laid_out.taps or any(map(is_input, one.items)))]
    rest = [one for one in laid if one not in heads and (one not in alone or len(alone) == 1)]
    taps = {origin: points[-1][1] for one in rest for origin, points in one.taps.items()}
    before = [stacked(alone, {})] if len(alone) > 1 else []
    return [*before, *rest, *([stacked(heads, taps)] if heads else [])]


def outputs_on_top(columns: Sequence[Flow], laid: Sequence[Fragment]) -> Sequence[Fragment]:
    """Return columns as they are laid out, those of nothing but outputs, which read values by their names, at the upper end."""
    highest = max(one.height for one in laid)
    for flow, one in zip(columns, laid, strict=True):
        if all(is_output(item.about.path) for item in flow.items):
            shift(one, 0, one.height - highest)
    return laid


def reads_frame(flow: Flow) -> bool:
    """Return whether a column is a head that reads a pass of a repeat, or a value from inside of a frame, in another column."""
    read = [edge.source for edge in flow.edges if isinstance(edge.source.origin, PassOutput | InnerOutput)]
    return any(one.path not in flow.by_path for one in read) and not any(map(is_input, flow.items))


def highest_first(head: Flow, taps: Mapping[Origin, float]) -> Flow:
    """Return a head whose blocks read what comes over from `taps` from the highest to the lowest, where names at the ends of the
    wires tell which is which: these do not cross.
    """
    edges = list(head.edges)
    for path in head.by_path:
        places = [number for number, edge in enumerate(edges) if edge.target == path]
        named = names_at_ends([edges[number] for number in places], head.by_path)
        far = [number for number in places if edges[number].source.origin in taps and not edges[number].source.reference]
        if all(edges[number] in named and not edges[number].place for number in far):
            ordered = sorted((edges[number] for number in far), key=lambda edge: taps[edge.source.origin])
            for number, edge in zip(far, ordered, strict=True):
                edges[number] = edge
    return head.with_edges(edges)


def called_at_ends(columns: Sequence[Flow]) -> frozenset[Origin]:
    """Return the values that have a name at the end of each wire that leads from them."""
    named = {e for one in columns for path in one.by_path for e in names_at_ends(one.edges_into(path), one.by_path)}
    edges = [e for one in columns for e in (*one.all_edges(), *(e for sink in one.sinks for e in sink.edges))]
    unnamed = {e.source.origin for e in edges if e not in named}
    return frozenset({e.source.origin for e in named} - unnamed)


def is_input(item: Item) -> bool:
    """Return whether something stands for an input of the model."""
    return isinstance(item, Leaf) and item.model_input


def stacked(laid: Sequence[Fragment], taps: Mapping[Origin, float]) -> Fragment:
    """Return columns above each other, the first one below, each as high as what it reads of `taps`, or above the one below."""
    stack = Fragment(left=max(one.left for one in laid), right=max(one.right for one in laid))
    low = 0.0
    for one in laid:
        level = (taps[edge.source.origin] - points[0][1] for edge, points in one.ends.items() if edge.source.origin in taps)
        offset = min([low, *level])
        shift(one, 0, offset)
        stack.pieces.take(one.pieces)
        stack.ends |= one.ends
        stack.taps |= one.taps
        stack.height = one.height - offset
        low = -stack.height - HEADS_APART
    return stack


def narrow_page(flow: Flow, titles: Titles, room: float, typography: Typography, *, shapes: bool = True) -> Scene:
    """Return the scene of a model in one column, so that it is no wider than there is room, or as narrow as it can be."""
    ends = with_ends(flow, titles)
    found: list[Scene] = []
    for width in NARROW_WIDTHS:
        narrowed = fit_to_width(ends, width, typography)
        if found and any(needed(leaf, typography) > width for leaf in narrowed.leaves() if isinstance(leaf, Leaf)):
            break  # a word is longer
        for one in (narrowed, shorten_losses(narrowed)):
            whole = column(one, width, LayoutOptions(typography, LANE_SIDE, shapes, narrow=True, alone=True))
            shift(whole, whole.left, 0)
            whole.right += whole.left
            found.append(with_head(whole, titles, typography, NARROW_MARGIN, room - 2 * NARROW_MARGIN))
            if found[-1].width <= room:
                return found[-1]
            if width > NARROW_WIDTHS[-1] or not narrowed.sinks:
                break
    return min(found, key=lambda scene: scene.width)


def with_ends(flow: Flow, titles: Titles, led: Mapping[str, DiagramSource] = NOTHING_LED, *, beside: bool = True) -> Flow:
    """Return the flow with boxes for the inputs that go into its stream or are outputs as they are, for those that are `led` into
    frames, and for its first output; other inputs go by their names, as do those that only blocks read that may stand `beside`
    others.
    """
    rest = split_side_inputs(flow, trunk=next(iter(titles.inputs), "")).flow if beside else flow
    paths = {item.about.path for item in rest.items}
    streams = {
        e.source.path: e.source
        for e in rest.edges
        if e.source.is_model_input and e.main and not e.source.reference and e.target in paths
    }
    streams = {path: source for path, source in streams.items() if path not in inputs_of_losses(flow)}
    streams |= {source.path: source for _, source in flow.exits if source.is_model_input}
    streams |= led
    ins = tuple(input_leaf(path, source.shape, titles) for path, source in streams.items())
    stays = {(e.target, e.port) for e in rest.edges if e.main}
    edges = [
        e
        if not e.source.is_model_input or e.source.reference or (e.source.path in streams and (e.target, e.port) in stays)
        else e.by_name()
        for e in flow.edges
    ]
    outs: tuple[Leaf, ...] = ()
    if flow.exits:
        name, returned = flow.exits[0]
        outs = (output_leaf(name, returned),)
        edges.append(DiagramEdge(returned, outs[0].about.path, "", True))
    whole = flow.with_items((*ins, *flow.items, *outs)).with_edges(edges).with_exits(flow.exits[1:])
    return name_once(name_in_alternatives(replace(whole, outlet=None)))


def with_head(
    whole: Fragment, titles: Titles, typography: Typography, margin: float = MARGIN, room: float = FACTS_WIDTH
) -> Scene:
    """Return the page around everything, with its title."""
    room = max(whole.right, room)
    facts = lines_of(titles.facts, room, typography)
    named = [typography.fitted(line, "heading", room) for _, line in lines("heading", titles.title, room, typography)][
        :MAX_TITLE_LINES
    ]
    size = typography.scale
    said = [Text(margin, 34 + TITLE_LINE * size * number, line, "heading", "start", size) for number, line in enumerate(named)]
    under = 34 + TITLE_LINE * size * (len(named) - 1)
    said += [Text(margin, under + (19 + 15 * number) * size, line, "facts", "start", size) for number, line in enumerate(facts)]
    head = under + ((19 + 15 * (len(facts) - 1)) * size + 19 if facts else 22)
    areas = [t.area for t in whole.pieces.texts] + [reference.text.area for reference in whole.pieces.references]
    ys = [y for wire in whole.pieces.wires for _, y in wire.points]
    high = min([-whole.height, *(area.top for area in areas), *ys])
    low = max([0.0, *(area.bottom for area in areas), *ys])
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
        tuple(pieces.references),
        description=titles.description,
    )


def lines_of(facts: Sequence[str], room: float, typography: Typography) -> list[str]:
    """Return the facts in lines as long as the drawing is wide."""
    return in_lines(facts, " · ", lambda said: typography.width(said, "facts") <= room)
