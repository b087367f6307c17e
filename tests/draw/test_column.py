"""A column laid out: blocks on a spine, gaps between them, lanes beside them."""

from __future__ import annotations

from itertools import pairwise

import pytest

import composer
from composer.draw.edges import DiagramSource, FrameInput, NodeOutput
from composer.draw.figure import draw
from composer.draw.layout.column import column, first_reader
from composer.draw.layout.fragment import Fragment
from composer.draw.layout.lanes import LANE, LANES
from composer.draw.layout.spacing import ARROW, GAP, TAP
from composer.draw.layout.spine import LayoutOptions, Spine, Station
from composer.draw.scene import Box, WirePath
from composer.draw.style.typography import Typography
from tests.draw.cases import sources
from tests.draw.checks import overlaps
from tests.draw.flows import flow

WIDTH = 120.0


def boxes(of: Fragment) -> dict[str, Box]:
    return {box.about.path: box for box in of.pieces.boxes}


def wires(of: Fragment) -> dict[tuple[str, str], WirePath]:
    return {(wire.source, wire.target): wire for wire in of.pieces.wires}


def test_blocks_of_a_chain_stand_in_line_and_do_not_touch() -> None:
    """The first below, each in the middle of the spine, at least the usual gap apart."""
    placed = boxes(column(flow("a: x", "b: a", "c: b"), WIDTH, LayoutOptions(Typography(), 1)))
    assert {box.x + box.width / 2 for box in placed.values()} == {0}
    for below, above in pairwise([placed[name] for name in "abc"]):
        assert below.area.top - above.area.bottom >= GAP


def test_wire_of_a_chain_goes_straight_from_border_to_border() -> None:
    """Without corners."""
    found = column(flow("a: x", "b: a"), WIDTH, LayoutOptions(Typography(), 1))
    placed = boxes(found)
    assert wires(found)["a", "b"].points == ((0, placed["a"].area.top), (0, placed["b"].area.bottom))


def test_value_that_skips_a_block_goes_through_a_lane_beside_it() -> None:
    """On the side where lanes go, clear of the block that it passes."""
    for side in (1, -1):
        found = column(flow("a: x", "b: a", "c: b, a"), WIDTH, LayoutOptions(Typography(), side))
        far = max(wires(found)["a", "c"].points, key=lambda point: abs(point[0]))
        assert far[0] * side >= boxes(found)["b"].area.reach(side) + LANE


def test_lanes_over_the_same_heights_keep_apart() -> None:
    """The shorter one is nearer to the blocks."""
    found = column(flow("a: x", "b: a", "c: b", "d: c, b, a"), WIDTH, LayoutOptions(Typography(), 1))
    short, long = (max(x for x, _ in wires(found)[source, "d"].points) for source in ("b", "a"))
    assert long - short >= LANES


def test_value_that_is_read_twice_forks_at_a_dot() -> None:
    """Above the block that gives it; a chain has no fork."""
    found = column(flow("a: x", "b: a", "c: b, a"), WIDTH, LayoutOptions(Typography(), 1))
    (dot,) = found.pieces.dots
    assert dot.x == 0
    assert boxes(found)["b"].area.bottom < dot.y < boxes(found)["a"].area.top
    assert column(flow("a: x", "b: a"), WIDTH, LayoutOptions(Typography(), 1)).pieces.dots == []


def test_fragment_covers_its_boxes_and_lanes() -> None:
    """Its left, right and height are those of what it holds."""
    found = column(flow("a: x", "b: a", "c: b, a"), WIDTH, LayoutOptions(Typography(), 1))
    corners = [point for wire in found.pieces.wires for point in wire.points]
    assert found.right >= max(x for x, _ in corners)
    assert found.left >= WIDTH / 2
    assert found.height >= -min(box.y for box in found.pieces.boxes)


def test_first_reader_is_the_first_station_that_reads_a_value() -> None:
    """Counted from what comes in, which is station 0."""
    written = flow("a: x", "b: a", "c: b, bias", "d: c, bias")
    assert first_reader("bias", written) == 3


def test_spine_tells_its_own_values_from_those_of_elsewhere() -> None:
    """What a frame is given comes from below; what stands beside the spine is its own too."""
    numbers = {"layer.a": 1, "layer.b": 2}
    spine = Spine(
        flow("layer.a: layer", "layer.b: layer.a", owner="layer"),
        WIDTH,
        LayoutOptions(Typography(), 1),
        frozenset(),
        {},
        {},
        numbers,
    )
    assert spine.number(DiagramSource(FrameInput("layer"))) == 0
    assert spine.number(DiagramSource(NodeOutput("layer.b"))) == 2
    assert not spine.local(DiagramSource(NodeOutput("memory")))


@pytest.mark.parametrize(("left", "fits"), [(WIDTH / 2, True), (WIDTH / 2 + 30, False)])
def test_station_fits_its_box_where_nothing_stands_beside_it(left: float, fits: bool) -> None:
    """Half a box to either side of the spine."""
    written = flow("a: x")
    spine = Spine(written, WIDTH, LayoutOptions(Typography(), 1), frozenset(), {}, {}, {"a": 1})
    assert spine.fits_box_width(Station("a", written.items[0], fragment=Fragment(left=left))) == fits


def test_a_column_between_others_is_fed_at_the_left() -> None:
    """What reads another column, and is an output of its own, has nothing run through it."""
    text = composer.load("switch").text.replace("logits: head", "logits: head\n  table: bias")
    scene = draw(composer.load(text).program, "overview").scene
    assert [*overlaps(scene)] == []


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("paper detr", ("place output · 825 × 256", "encoder output · B × 825 × 256")),
        ("zoo universal_transformer", ("steps output", "6 × 1024", "encoder output · B × S × 1024")),
    ],
)
def test_values_that_leave_for_another_column_side_by_side_are_all_labeled(name: str, told: tuple[str, ...]) -> None:
    """Each at its start, whether they come from one column or from several; a shape that stands above a block is told once."""
    ((_, source),) = sources(name)
    scene = composer.load(source).draw().scene
    assert {*told} <= {text.text for text in scene.texts}
    assert [*overlaps(scene)] == []


@pytest.mark.parametrize(
    ("name", "below", "above"), [("paper raft", "level3", "context"), ("zoo universal_transformer", "embed", "steps")]
)
def test_flow_that_another_one_does_not_lead_to_stands_apart_from_it(name: str, below: str, above: str) -> None:
    """At least twice as far as blocks of one flow, where a wire leaves in between: it would seem to go on there."""
    ((_, source),) = sources(name)
    drawn = {box.about.path: box for box in composer.load(source).draw().scene.boxes}
    assert drawn[below].y - drawn[above].y - drawn[above].height >= 2 * (TAP + ARROW)
