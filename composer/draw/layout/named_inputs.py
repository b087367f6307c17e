"""Boxes of the inputs of a model that go by their names wherever they are read: what these are stands at one place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

from blocks.core import Look, spoken
from composer.draw.about import About
from composer.draw.diagram import Flow, Leaf, Sink, Titles
from composer.draw.edges import OPTIONAL_INPUT, REQUIRED_INPUT, DiagramEdge
from composer.draw.geometry import Point
from composer.draw.layout.boxes import MIN_COLUMN_WIDTH, box, box_height, needed
from composer.draw.layout.ends.framed_inputs import is_told
from composer.draw.layout.fragment import Fragment, areas
from composer.draw.layout.parallel_columns import COLUMN_GAP, MIN_COLUMN_GAP, place_columns
from composer.draw.layout.references import reference_above
from composer.draw.paths import is_output
from composer.draw.scene import Reference
from composer.draw.style.typography import Typography

MIN_READ = 3
"""Blocks that an input with a box goes to by its name: of fewer, that it is an input stands at each."""


def input_leaf(path: str, shape: str, titles: Titles) -> Leaf:
    """Return the box of an input of the model."""
    told = (titles.types[path],) if path in titles.types else ()
    return Leaf(About(path, f"the model's input {path} — {shape}"), Look(titles.inputs[path], told, "io"), model_input=True)


def many_named(whole: Fragment, titles: Titles) -> tuple[str, ...]:
    """Return the required inputs that several blocks of a page read by their names and that have no box there, where the figure
    tells what inputs are.
    """
    read = Counter(one.source for one in whole.pieces.references if _names_input(one))
    drawn = {one.about.path for one in whole.pieces.boxes}
    many = (path for path in titles.inputs if read[path] >= MIN_READ and path not in drawn)
    return tuple(path for path in many if is_told(path, titles))


def _names_input(one: Reference) -> bool:
    """Return whether a name in place of a wire is that of a required input, and says so."""
    said = one.text.text
    return said.endswith(REQUIRED_INPUT) and said.removesuffix(REQUIRED_INPUT).partition(" (")[0] == one.source


def with_plain_names(whole: Fragment) -> Fragment:
    """Return a page, below its head, on which an input that has a box is called by its name alone: that it is an input, the box
    tells, if no other one is called so.
    """
    if not any(one.text.text.endswith((REQUIRED_INPUT, OPTIONAL_INPUT)) for one in whole.pieces.references):
        return whole
    boxes = whole.pieces.boxes
    said = Counter(word for one in boxes for word in {text.text.lower() for text in one.texts})
    said.update(one.text.text.lower() for one in whole.pieces.references if is_output(one.target))
    drawn = {one.about.path for one in boxes if all(said[word.lower()] <= 1 for word in (one.about.path, spoken(one.about.path)))}

    def plain(one: Reference) -> Reference:
        said = one.text.text.removesuffix(REQUIRED_INPUT).removesuffix(OPTIONAL_INPUT)
        return replace(one, text=replace(one.text, text=said)) if one.source in drawn else one

    whole.pieces.references = [*map(plain, whole.pieces.references)]
    return whole


def names_alone(flow: Flow, named: Collection[str]) -> Flow:
    """Return a flow in which some inputs have nothing behind their names, in its frames too: their boxes tell what they are."""

    def alone(edge: DiagramEdge) -> DiagramEdge:
        source = edge.source
        return edge.reading(replace(source, suffix="")) if source.is_model_input and source.path in named else edge

    def of_sink(sink: Sink) -> Sink:
        return replace(sink, edges=tuple(map(alone, sink.edges)))

    return flow.map_edges(alone).map_sinks(of_sink).map_groups(lambda inner: names_alone(inner, named))


def with_named_inputs(whole: Fragment, named: Sequence[str], titles: Titles, typography: Typography, *, above: bool) -> Fragment:
    """Return a page, below its head, with boxes for some inputs, each with an arrow to its name: at the left in the row of
    inputs, or `above` the first column, where that leaves room for them.
    """
    leaves = (input_leaf(path, titles.types[path].partition(" · ")[0], titles) for path in named)
    row = [_with_name(leaf, typography) for leaf in leaves]
    boxes = row[0] if len(row) == 1 else place_columns(row, typography, apart=MIN_COLUMN_GAP)
    free = _above_first_column(whole, boxes) if above else None
    if free is None:
        return place_columns([boxes, whole], typography)
    whole.pieces.take(boxes.pieces, *free)
    return whole


def _above_first_column(whole: Fragment, boxes: Fragment) -> Point | None:
    """Return where boxes stand in the middle of the first column of a page, above it; none where that is too high."""
    reach = boxes.left + boxes.right + MIN_COLUMN_GAP
    last = min((one for one in whole.pieces.boxes if one.area.left < reach), key=lambda one: one.area.top, default=None)
    middle = max(boxes.left, last.x + last.width / 2 + (boxes.left - boxes.right) / 2) if last else boxes.left
    left, right = middle - boxes.left - MIN_COLUMN_GAP, middle + boxes.right + MIN_COLUMN_GAP
    low = min((one.top for one in areas(whole) if one.left < right and one.right > left), default=0.0) - COLUMN_GAP
    return (middle, low) if last and low - boxes.height >= -whole.height else None


def _with_name(leaf: Leaf, typography: Typography) -> Fragment:
    """Return the box of an input with an arrow to its name."""
    width, height = max(MIN_COLUMN_WIDTH, needed(leaf, typography)), box_height(leaf, typography)
    found = Fragment(left=width / 2, right=width / 2)
    found.pieces.boxes.append(box(leaf, 0, 0, width, height, typography))
    name = reference_above(found, leaf.about.path, leaf.about.path, -height, typography)
    found.left = found.right = max(width / 2, name.right)
    found.height = -name.top
    return found
