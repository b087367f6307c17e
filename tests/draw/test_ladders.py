"""A trunk whose values are read beside it has a row for each of these."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

import composer
from composer.draw.scene import Box, Scene, WirePath
from tests.draw.checks import borders, ends, overlaps, starts

PAPERS = Path(__file__).parent / "papers"


@cache
def scene(name: str) -> Scene:
    """Return the drawing of a model of a paper."""
    return composer.load(PAPERS / f"{name}.yaml").draw().scene


def box(name: str, path: str) -> Box:
    """Return the box of a block."""
    return next(one for one in scene(name).boxes if one.about.path == path)


def height(name: str, path: str) -> float:
    """Return at which height the middle of a block is."""
    return round(box(name, path).y + box(name, path).height / 2, 1)


def wire(name: str, source: str, target: str) -> WirePath:
    """Return the one wire from a block to another."""
    (found,) = (one for one in scene(name).wires if (one.source, one.target) == (source, target))
    return found


def is_level(one: WirePath) -> bool:
    """Return whether a wire goes straight to the side."""
    return len({round(y, 1) for _, y in one.points}) == 1


@pytest.mark.parametrize("name", ["hed", "retinanet"])
def test_nothing_lies_on_anything_in_a_ladder(name: str) -> None:
    """Every wire ends where it should."""
    assert [fault for check in (overlaps, borders, ends, starts) for fault in check(scene(name))] == []


def test_side_outputs_are_level_with_their_stages() -> None:
    """Wires go straight to them, and from there to what joins them, which is as high as all; outputs are in their order."""
    taps = [wire("hed", f"stages.{level}", f"side{level + 1}") for level in range(4)]
    joined = [wire("hed", f"side{level}", "all") for level in range(1, 6)]
    assert all(map(is_level, [*taps, *joined]))
    assert box("hed", "all").y < height("hed", "side5") < height("hed", "side1") < box("hed", "all").area.bottom
    outputs = [height("hed", f"outputs/{name}") for name in ("side1", "side2", "side3", "side4", "side5", "fused")]
    assert outputs == sorted(outputs, reverse=True)
    assert scene("hed").width * scene("hed").height < 1425 * 1060  # with all side outputs in a row


def test_levels_of_a_pyramid_are_rows_of_a_ladder() -> None:
    """The pyramid is a column, with wires from level to level straight down; so are the heads of each kind."""
    rows = [(f"side{level}", f"p{level}", f"box{level}") for level in (3, 4, 5)]
    assert all(len({height("retinanet", path) for path in row}) == 1 for row in rows)
    for upper, lower in pairwise(("side5", "side4", "side3")):
        assert len({round(x, 1) for x, _ in wire("retinanet", upper, lower).points}) == 1
    for head in ("class", "box"):
        column = [box("retinanet", f"{head}{level}") for level in range(3, 8)]
        assert len({round(one.x, 1) for one in column}) == 1
        assert all(upper.area.bottom < lower.y for lower, upper in pairwise(column))
        joined = [wire("retinanet", f"{head}{level}", "all_classes" if head == "class" else "all_boxes") for level in range(3, 8)]
        assert all(len(one.points) == 3 for one in joined)  # each turns once


def test_a_ladder_flows_to_the_right_too() -> None:
    """Its trunk at the top, and rows below it."""
    drawn = composer.load(PAPERS / "hed.yaml").draw(direction="right").scene
    taps = [one for one in drawn.wires if one.source.startswith("stages.") and one.target.startswith("side")]
    assert len(taps) == 5
    assert sum(len({round(x, 1) for x, _ in one.points}) == 1 for one in taps) == 4
    assert [fault for check in (overlaps, borders, ends, starts) for fault in check(drawn)] == []
