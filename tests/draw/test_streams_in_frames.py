"""A group of several streams: these are columns in its frame, in at the bottom and out at the top."""

from __future__ import annotations

from itertools import pairwise

import pytest

import composer
from composer.draw.scene import Scene
from tests.draw.checks import borders, ends, overlaps, starts
from tests.draw.read_back import Model, lies, loose, read
from tests.draw.test_drawings import assert_every_edge

STAGE = """recipe: stage
inputs: {image: "float[batch, 3, 32, 32]"}
blocks:
  branch:
    inputs: {x: "float[batch, channels, high, wide]"}
    graph:
      units: {repeat: 2, graph: {conv: {type: conv2d, out: channels, kernel_size: 3, padding: 1}, relu: relu}}
graph:
  stem: {type: conv2d, out: 8, kernel_size: 3, padding: 1, in: image}
  to1: {type: conv2d, out: 8, kernel_size: 3, padding: 1}
  to2: {type: conv2d, out: 16, kernel_size: 3, stride: 2, padding: 1, in: stem}
  stage:
    in: {a: to1, b: to2}
    graph:
      branch1: {type: branch, in: a}
      branch2: {type: branch, in: b}
      up: {type: conv2d, out: 8, kernel_size: 1, in: branch2}
      larger: {type: interpolate2d, scale: 2}
      down: {type: conv2d, out: 16, kernel_size: 3, stride: 2, padding: 1, in: branch1}
      sum1: {type: add, in: [branch1, larger]}
      y1: relu
      sum2: {type: add, in: [down, branch2]}
      y2: relu
    outputs: {a: y1, b: y2}
  low: {type: conv2d, out: 8, kernel_size: 1, in: stage.b}
  high: {type: conv2d, out: 8, kernel_size: 1, in: stage}
outputs: {high: high, low: low}
"""
JOINED = """recipe: joined
inputs: {signal: "float[batch, 8]"}
blocks:
  both:
    inputs: {x: "float[batch, dim]", other: "float[batch, dim]"}
    graph: {low: {type: linear, out: 8, in: x}, high: {type: linear, out: 8, in: other}, sum: {type: add, in: [low, high]}}
graph:
  stage:
    in: {x: signal}
    graph:
      first: {type: linear, out: 8, in: x}
      second: {type: linear, out: 8, in: first}
    outputs: {x: second, other: first}
  both: {type: both, in: {x: stage, other: stage.other}}
outputs: {logits: both}
"""


@pytest.fixture(scope="module")
def scene() -> Scene:
    """Return the figure of a stage of two resolutions."""
    return composer.load(STAGE).draw().scene


def test_streams_stand_side_by_side(scene: Scene) -> None:
    """Each branch with what goes on from it is a column of its own, which what comes in goes straight up to."""
    middle = {one.about.path: (one.area.left + one.area.right) / 2 for one in (*scene.boxes, *scene.merges)}
    for stream in (("branch1.units.conv", "sum1", "y1"), ("branch2.units.conv", "sum2", "y2")):
        assert len({round(middle[f"stage.{one}"]) for one in stream}) == 1
    assert middle["stage.y1"] < middle["stage.y2"]
    for below, above in (("stage.y1", "high"), ("stage.y2", "low")):  # also where the recipe has these in another order
        assert middle[below] == pytest.approx(middle[above], abs=1)
    assert middle["to1"] == pytest.approx(middle["stage.y1"], abs=1) and middle["to2"] == pytest.approx(middle["stage.y2"], abs=1)


def test_streams_go_through_the_lower_and_the_upper_border(scene: Scene) -> None:
    """No wire goes through a side of the frame."""
    frame = next(one.area for one in scene.frames if one.about.path == "stage")
    ways = [pair for wire in scene.wires for pair in pairwise(wire.points)]
    sides = [(a, b) for a, b in ways for x in (frame.left, frame.right) if min(a[0], b[0]) < x < max(a[0], b[0])]
    assert not [(a, b) for a, b in sides if frame.top < a[1] < frame.bottom]
    for y in (frame.top, frame.bottom):
        assert len({a[0] for a, b in ways if a[0] == b[0] and frame.left < a[0] < frame.right and y in (a[1], b[1])}) == 2


def test_all_that_is_said_holds(scene: Scene) -> None:
    """Every value is led to what reads it, and nothing lies on anything."""
    recipe = composer.load(STAGE)
    svg = recipe.draw().svg()
    assert [*lies(read(svg), Model(recipe.program)), *loose(read(svg))] == []
    assert [fault for check in (overlaps, borders, ends, starts) for fault in check(scene)] == []
    assert_every_edge("stage", recipe.program, scene)


def test_a_second_output_is_led_to_a_side_of_a_box() -> None:
    """By a wire from where it is made, in place of its name."""
    recipe = composer.load(JOINED)
    scene = recipe.draw().scene
    ways = sorted((wire.source, wire.port) for wire in scene.wires if wire.target == "both")
    assert ways == [("stage", ""), ("stage.first", "other")] and not scene.references
    assert_every_edge("joined", recipe.program, scene)
