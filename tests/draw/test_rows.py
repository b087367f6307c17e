"""Blocks that are parallel or alike stand in one row, wherever what they read comes from, and whatever reads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path as FilePath

import composer
from composer.draw.export.marks import Mark, MarkGroup, MarkShape, MoveTo, Path, Polygon, QuadraticBy
from composer.draw.export.paint import paint_scene
from composer.draw.export.polylines import crossings, parting, rounded
from composer.draw.scene import Box, Scene, WirePath
from tests.draw.read_back import from_the_left, loose, read

PAPERS = FilePath(__file__).parent / "papers"


@cache
def paper(name: str) -> Scene:
    """Return the drawing of a model of a paper."""
    return composer.load(PAPERS / f"{name}.yaml").draw().scene


@cache
def pyramid() -> Scene:
    """Return the drawing of a pyramid whose first head is an output too, so that it is more than a trunk with a row for each
    level.
    """
    text = (PAPERS / "retinanet.yaml").read_text(encoding="utf-8")
    return composer.load(text.replace("outputs: {", "outputs: {first: class3, ")).draw().scene


def boxes(scene: Scene, *paths: str) -> list[Box]:
    """Return the boxes of some blocks."""
    by_path = {one.about.path: one for one in scene.boxes}
    return [by_path[path] for path in paths]


def middle(box: Box) -> float:
    """Return how far to the right the middle of a box is."""
    return round(box.x + box.width / 2, 1)


MIDDLE = 0.5
"""Where boxes of unlike heights stand level."""


def in_a_row(row: list[Box], share: float = 1) -> bool:
    """Return whether the feet of boxes, or what is at another share of their height, stand on one line, from left to right, none
    beside another's place.
    """
    lines = {round(one.y + share * one.height, 1) for one in row}
    return len(lines) == 1 and all(a.x + a.width < b.x for a, b in pairwise(row))


def wire(scene: Scene, source: str, target: str) -> WirePath:
    """Return the one wire from a block to another."""
    (found,) = (one for one in scene.wires if (one.source, one.target) == (source, target))
    return found


def test_values_of_another_column_and_of_a_frame_meet_in_one_row() -> None:
    """Those of the other column at the side from where their wire comes; each goes up to the sum that it is in."""
    scene = paper("wavenet")
    paths = ["layers.voice_filter", "layers.filter", "layers.voice_gate", "layers.gate"]
    assert in_a_row(boxes(scene, *paths))
    assert all(len(leaving.points) == 3 for path in paths for leaving in scene.wires if leaving.source == path)
    assert scene.width < 1200


def test_what_is_read_outside_of_a_frame_alone_stands_beside_what_goes_on() -> None:
    """That goes straight up into the sum, which has its residual at its side; the other leaves the frame at its left."""
    scene = paper("wavenet")
    skip, out = boxes(scene, "layers.skip", "layers.out")
    (add,) = (one for one in scene.merges if one.about.path == "layers.sum")
    assert in_a_row([skip, out])
    products = [round(one.x, 1) for one in scene.merges if one.sign == "×"]
    assert middle(out) == round(add.x, 1) == products[-1]
    assert len(wire(scene, "layers.out", "layers.sum").points) == 2
    frame = next(one for one in scene.frames if one.about.path == "layers")
    led = wire(scene, "layers.skip", "total").points
    assert round(led[0][0], 1) == middle(skip)
    assert min(x for x, _ in led) < frame.x


def test_a_block_with_starts_and_wires_back_at_its_left_begins_a_row() -> None:
    """Its loops go around it where no other block of the row is, and come in there."""
    scene = paper("neural_turing_machine")
    paths = ["steps.write_head", "steps.erase", "steps.write"]
    row = boxes(scene, *paths)
    assert in_a_row(row)
    assert all(len(wire(scene, path, "steps.new_memory").points) == 2 for path in paths)
    loops = [one for one in scene.wires if one.style == "loop" and one.target == "steps.write_head"]
    assert len(loops) == 1  # the memory has a box
    assert all(one.points[-2][0] < one.points[-1][0] == row[0].x for one in loops)


def test_alike_blocks_that_one_block_reads_stand_in_a_row_in_its_order() -> None:
    """The subnets of a pyramid, though some levels of it are made of others; none goes around the figure."""
    scene = pyramid()
    rows = [[f"{head}{level}" for level in range(3, 8)] for head in ("class", "box")]
    for row, joined in zip(rows, ("all_classes", "all_boxes"), strict=True):
        assert in_a_row(boxes(scene, *row), MIDDLE)
        ends = [wire(scene, path, joined).points for path in row]
        assert [points[-1][0] for points in ends] == sorted(points[-1][0] for points in ends)
        assert all(len(points) <= 4 for points in ends)
    assert in_a_row(boxes(scene, *rows[0], *rows[1]), MIDDLE)


def test_a_row_that_is_wider_than_a_page_has_its_texts_in_lines() -> None:
    """All that say alike are equally high, and the figure is hardly wider than a page."""
    scene = pyramid()
    row = boxes(scene, *(f"{head}{level}" for head in ("class", "box") for level in range(3, 8)))
    first = {row[0].height, row[5].height}  # the others say only whose parameters they have
    assert len(first) == 1
    assert len({box.height for box in row if box not in (row[0], row[5])}) == 1
    assert scene.width < 1700


def test_a_loss_of_several_values_stands_at_each() -> None:
    """As a box at the first, by its name at the others, as high above each; what gives the values is a column."""
    scene = paper("hed")
    sides = [f"side{number}" for number in range(1, 6)]
    assert len({*map(middle, boxes(scene, *sides))}) == 1
    wires = [wire(scene, side, "losses.sides") for side in sides]
    assert {one.style for one in wires} == {"loss"}
    assert len({round(one.points[0][1] - one.points[-1][1], 1) for one in wires}) == 1
    named = [one.text.text for one in scene.references if one.target == "losses.sides"]
    assert sorted(named) == ["Sides loss"] * 4 + ["edges (optional input)"]


def test_another_name_at_a_value_than_that_of_its_loss_is_found() -> None:
    """In the picture, as one reads it, also where the stream runs to the right."""
    recipe = composer.load(PAPERS / "hed.yaml")
    svg = recipe.draw().svg()
    assert [*loose(read(svg))] == []
    assert [*loose(from_the_left(read(recipe.draw(direction="right").svg())))] == []
    before, name, after = svg.rpartition(">Sides loss<")
    planted = f"{before}{name.replace('Sides', 'Fused')}{after}"
    assert [*loose(read(planted))] == ["side4 → losses.sides: the arrow ends elsewhere"]


def test_blocks_that_say_the_same_are_level_at_the_ends_of_columns() -> None:
    """Though what is below them is not equally high."""
    scene = paper("tensor_fusion")
    row = boxes(scene, "z_l", "z_v", "z_a")
    assert in_a_row(row)
    assert all(len(wire(scene, box.about.path, "fusion").points) == 2 for box in row)


def test_an_input_that_joins_a_row_goes_by_its_name_as_those_like_it() -> None:
    """It is no trunk of the frame, whose wire would go around to the block that joins it."""
    scene = paper("wide_and_deep")
    named = [one.text for one in scene.references if one.target == "deep.features"]
    assert [one.text for one in sorted(named, key=lambda one: one.y)] == [
        f"{name} (input)" for name in ("age", "installs", "sessions")
    ]
    assert "age" not in [box.about.path for box in scene.boxes]
    places = [one.place for one in scene.wires if one.target == "deep.features"]
    assert sorted(map(int, places)) == [*range(1, 11)]


def test_a_level_wire_that_parts_up_and_down_ends_in_its_dot() -> None:
    """Both ways have a corner there that is not round."""
    parted = parting([[(0, 0), (9, 0), (9, 9)], [(0, 0), (9, 0), (9, -9)], [(0, 5), (3, 5), (3, 9)]])
    assert parted == {(9, 0)}
    assert [type(step).__name__ for step in rounded([(0, 0), (9, 0), (9, 9)], parted).steps] == ["MoveTo", "LineBy", "LineBy"]


def test_wires_that_cross_have_a_gap_and_wires_that_meet_have_none() -> None:
    """Without a gap, a crossing looks like a joint whose dot was left out."""
    level, upright, branch = [(0.0, 50.0), (100.0, 50.0)], [(40.0, 100.0), (40.0, 0.0)], [(70.0, 50.0), (70.0, 0.0)]
    gaps = crossings([level, upright, branch], [(70.0, 50.0)])
    assert gaps == ({50.0: [40.0]}, {})
    assert crossings([level, upright, branch], [(70.0, 50.0)], broken=1) == ({}, {40.0: [50.0]})
    assert crossings([level, upright], [(40.0, 50.0)]) == ({}, {}), "a dot stands where they meet"
    for points in (level, level[::-1]):
        names = [type(step).__name__ for step in rounded(points, gaps=gaps).steps]
        assert names == ["MoveTo", "LineBy", "MoveTo", "LineBy"]
    assert len(rounded(upright, gaps=gaps).steps) == 2


def test_a_wire_that_crosses_just_behind_a_corner_has_a_gap_too() -> None:
    """The corner is less round there, and ends where the gap begins."""
    bent, upright = [(30.0, 100.0), (30.0, 50.0), (90.0, 50.0)], [(39.0, 80.0), (39.0, 0.0)]
    gaps = crossings([bent, upright], [])
    assert gaps == ({50.0: [39.0]}, {})
    for points in (bent, bent[::-1]):
        steps = rounded(points, gaps=gaps).steps
        assert sum(isinstance(step, QuadraticBy) for step in steps) == 1
        (behind,) = (step for step in steps[1:] if isinstance(step, MoveTo))
        assert (behind.x, behind.y) == (42.5 if points is bent else 35.5, 50.0)


def test_neighbors_that_one_wire_crosses_have_the_gaps_themselves() -> None:
    """A wire with many short pieces would look like a dashed one, which only some passes have."""
    level = [(0.0, 50.0), (100.0, 50.0)]
    bundle = [[(x, 100.0), (x, 0.0)] for x in (40.0, 54.0, 68.0)]
    assert crossings([level, *bundle], []) == ({}, {40.0: [50.0], 54.0: [50.0], 68.0: [50.0]})
    second = [(0.0, 60.0), (100.0, 60.0)]
    assert crossings([level, second, *bundle], []) == ({50.0: [40.0, 54.0, 68.0], 60.0: [40.0, 54.0, 68.0]}, {})


def test_wires_with_gaps_begin_and_end_where_they_did() -> None:
    """The figure of a model whose streams are exchanged has many crossings."""
    drawn = paper("hrnet")
    wires = [wire for scene in drawn.drawings for wire in scene.wires if wire.source and wire.arrow]
    groups = [
        mark for mark in flat_groups(paint_scene(drawn)) if mark.kind.startswith("edge") and len(mark.marks) == 2 and mark.data
    ]
    assert len(groups) == len(wires)
    gaps = 0
    for wire, group in zip(wires, groups, strict=True):
        line, head = (mark.geometry for mark in group.marks if isinstance(mark, MarkShape))
        assert isinstance(line, Path) and isinstance(head, Polygon)
        first, *others = line.steps
        assert first == MoveTo(round(wire.points[0][0], 1), round(wire.points[0][1], 1))
        assert head.corners[0] == (round(wire.points[-1][0], 1), round(wire.points[-1][1], 1))
        gaps += sum(isinstance(step, MoveTo) for step in others)
    assert gaps >= 12


def flat_groups(marks: Iterable[Mark]) -> Iterator[MarkGroup]:
    """Yield all groups of marks in the order of painting."""
    for mark in marks:
        if isinstance(mark, MarkGroup):
            yield mark
            yield from flat_groups(mark.marks)
