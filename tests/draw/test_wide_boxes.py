"""Boxes with several inputs and outputs: each of these has a place of its own, and goes straight."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

import composer
from composer.draw.build.levels import Level
from composer.draw.paths import lies_in
from composer.draw.scene import Direction, Scene
from tests.draw.checks import borders, ends, overlaps, starts
from tests.draw.lane_shapes import lanes, parts
from tests.draw.read_back import Model, lies, loose, read
from tests.draw.test_drawings import assert_every_edge

PAPERS = Path(__file__).parent / "papers"
COUNT, MORE = 8, 200


def assert_true(name: str, text: str, level: Level = "block", direction: Direction = "up") -> Scene:
    """Assert that all that a figure says holds, and that nothing lies on anything; return it."""
    recipe = composer.load(text)
    figure = recipe.draw(level, direction=direction)
    drawn = read(figure.svg())
    assert [*lies(drawn, Model(recipe.program)), *loose(drawn)] == [], name
    assert [fault for check in (overlaps, borders, ends, starts) for fault in check(figure.scene)] == [], name
    assert_every_edge(name, recipe.program, figure.scene)
    return figure.scene


@pytest.mark.parametrize("direction", ["up", "right"])
@pytest.mark.parametrize("level", ["overview", "block"])
@pytest.mark.parametrize(
    "seed", [*range(COUNT), *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(COUNT, MORE))]
)
def test_streams_through_closed_stages_are_told_as_they_are(seed: int, level: Level, direction: Direction) -> None:
    """Two to four, which begin and end anywhere."""
    assert_true(f"lanes {seed}", lanes(seed, told=level == "overview"), level, direction)


@pytest.mark.parametrize("direction", ["up", "right"])
@pytest.mark.parametrize(
    "seed", [*range(COUNT), *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(COUNT, MORE))]
)
def test_parts_of_a_split_are_led_to_what_reads_them(seed: int, direction: Direction) -> None:
    """Up to six, read alone or together."""
    assert_true(f"parts {seed}", parts(seed), "block", direction)


def upright(scene: Scene, source: str, target: str) -> list[float]:
    """Return where wires go straight up from one thing, or from what is in it, to another."""
    ways = [wire.points for wire in scene.wires if lies_in(wire.source, source) and wire.target == target]
    return sorted(points[0][0] for points in ways if len({round(x, 1) for x, _ in points}) == 1)


def test_streams_go_straight_through_closed_stages() -> None:
    """Those of HRNet: each begins in a column of its own, and no wire of them leaves a box at its side."""
    scene = composer.load(str(PAPERS / "hrnet.yaml")).draw("overview").scene
    box = {one.about.path: one.area for one in scene.boxes}
    assert len(upright(scene, "stage2", "stage3")) == 2
    assert len(upright(scene, "stage3", "stage4")) == 3
    lanes_of = [*upright(scene, "stage3", "stage4"), *upright(scene, "to4", "stage4")]
    assert [*map(round, upright(scene, "stage2", "stage3")), *map(round, upright(scene, "to3", "stage3"))] == [
        *map(round, lanes_of[:3])
    ]
    assert all(b - a > box["to4"].right - box["to4"].left for a, b in pairwise(lanes_of))
    said = {text.text for text in scene.texts}
    assert {"a", "b", "c", "d"} <= said


def test_each_stream_has_its_shape_above_a_closed_stage() -> None:
    """Also where it is that with which it came in; of a stage whose other streams nothing reads, that of one."""
    scene = composer.load(str(PAPERS / "hrnet.yaml")).draw("overview").scene
    box = {one.about.path: one.area for one in scene.boxes}
    shapes = sorted((text for text in scene.texts if text.role == "shape"), key=lambda text: text.x)
    above = {path: [text.text for text in shapes if 0 < box[path].top - text.y < 12] for path in ("stage3", "stage4")}
    assert above["stage3"] == ["B × 32 × 64 × 48", "B × 64 × 32 × 24", "B × 128 × 16 × 12"]
    assert above["stage4"] == ["B × 32 × 64 × 48"]
    bare = composer.load(str(PAPERS / "hrnet.yaml")).draw("overview", shapes=False).scene
    assert not [text for text in bare.texts if text.role == "shape"]


def test_a_stream_has_its_shape_below_a_frame_of_several_where_another_one_has_it() -> None:
    """What gives one of them keeps the shape that it reads, and does not say it; without shapes, none of them has one."""
    for shapes in (True, False):
        scene = composer.load(str(PAPERS / "evoformer.yaml")).draw(shapes=shapes).scene
        frame = next(frame for frame in scene.frames if frame.about.path == "blocks").area
        said = [text for text in scene.texts if text.role == "shape" and frame.left < text.x < frame.right]
        below = [text.text for text in said if 0 < text.y - frame.bottom < 30]
        assert sorted(below) == (["B × residues × residues × 128", "B × sequences × residues × 256"] if shapes else [])


def test_parts_leave_a_split_above_it() -> None:
    """Those of PlaNet, in the order in which they go on, so that none of their wires cross, each with its name."""
    scene = composer.load(str(PAPERS / "planet.yaml")).draw(highlight=["parts"]).scene  # else, it is left out
    (split,) = (one.area for one in scene.boxes if one.about.path == "parts")
    ways = [wire.points for wire in scene.wires if wire.source == "parts"]
    assert len(ways) == 6 and all(points[0][1] == pytest.approx(split.top, abs=1) for points in ways)
    assert [*map(round, sorted(points[0][0] for points in ways))] == [
        round(points[0][0]) for points in sorted(ways, key=lambda points: points[-1][0])
    ]
    names = [text.text for text in sorted(scene.texts, key=lambda text: text.x) if split.top - 14 < text.y < split.top]
    assert sorted(names) == ["h", "mean", "prior_mean", "prior_std", "s", "std"]
