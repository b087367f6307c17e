"""The inside of a frame: several streams, in at the bottom and out at the top, what comes in beside the stream, and a U."""

from __future__ import annotations

from itertools import pairwise

import pytest

import composer
from composer.draw.details.inside import in_order
from composer.draw.edges import FrameInput, NodeOutput, Origin
from composer.draw.scene import Scene
from composer.graph.typed import TypedRepeat
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
TWICE = """recipe: twice
inputs: {signal: "float[batch, 8]"}
graph:
  first: {type: linear, out: 8, in: signal}
  both:
    in: {a: first, b: first}
    graph:
      low: {type: linear, out: 8, in: a}
      high: {type: linear, out: 8, in: b}
      sum: {type: add, in: [low, high]}
  head: {type: linear, out: 4}
outputs: {logits: head}
"""
U = """recipe: u
inputs: {signal: "float[batch, 8]"}
graph:
  first: {type: linear, out: 8, in: signal}
  net:
    graph:
      down1: {type: linear, out: 16, in: first}
      down2: {type: linear, out: 32}
      turn: {type: linear, out: 32}
      join2: {type: add, in: [turn, down2]}
      up2: {type: linear, out: 16}
      join1: {type: add, in: [up2, down1]}
      up1: {type: linear, out: 8}
  head: {type: linear, out: 4}
outputs: {logits: head}
"""
SCALED = """recipe: scaled
inputs: {signal: "float[batch, 8]", ids: "int[batch]"}
graph:
  scales: {type: embedding, vocab: 7, dim: 24, in: ids}
  parts: {type: rearrange, pattern: "b (layers two d) -> b layers two d", lengths: {layers: 3, two: 2}}
  first: {type: linear, out: 4, in: signal}
  layers:
    repeat: 3
    graph:
      own: {type: select, axis: layers, index: layer, in: parts}
      gain: {type: select, axis: two, index: 0, in: own}
      shift: {type: select, axis: two, index: 1, in: own}
      scaled: {compute: x * gain + shift}
    in: {x: first}
  head: {type: linear, out: 5}
outputs: {logits: head}
"""
LEVELS = """recipe: levels
inputs: {image: "float[batch, 3, 64, 64]"}
blocks:
  fuse:
    inputs: {a: "float[batch, 8, high, wide]", b: "float[batch, 8, high, wide]"}
    graph: {sum: {type: add, in: [a, b]}, conv: {type: conv2d, out: 8, kernel_size: 3, padding: 1}}
graph:
  first: {type: conv2d, out: 8, kernel_size: 3, padding: 1, in: image}
  second: {type: max_pool2d, kernel_size: 2, stride: 2}
  third: {type: max_pool2d, kernel_size: 2, stride: 2}
  pyramid:
    repeat: 3
    in: {p1: first, p2: second, p3: third}
    graph:
      up3: {type: interpolate2d, scale: 2, in: p3}
      mid2: {type: fuse, in: {a: p2, b: up3}}
      up2: {type: interpolate2d, scale: 2, in: mid2}
      out1: {type: fuse, in: {a: p1, b: up2}}
      down1: {type: max_pool2d, kernel_size: 2, stride: 2}
      out2: {type: fuse, in: {a: mid2, b: down1}}
      down2: {type: max_pool2d, kernel_size: 2, stride: 2}
      out3: {type: fuse, in: {a: p3, b: down2}}
    outputs: {p1: out1, p2: out2, p3: out3}
  high: {type: conv2d, out: 2, kernel_size: 1, in: pyramid.p1}
  middle: {type: conv2d, out: 2, kernel_size: 1, in: pyramid.p2}
  low: {type: conv2d, out: 2, kernel_size: 1, in: pyramid.p3}
outputs: {high: high, middle: middle, low: low}
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


def faultless(text: str) -> Scene:
    """Return the drawing of a recipe, in which nothing is wrong."""
    recipe = composer.load(text)
    figure = recipe.draw()
    assert [*lies(read(figure.svg()), Model(recipe.program)), *loose(read(figure.svg()))] == []
    assert [fault for check in (overlaps, borders, ends, starts) for fault in check(figure.scene)] == []
    assert_every_edge(recipe.name, recipe.program, figure.scene)
    return figure.scene


def test_a_u_in_a_frame_is_a_u() -> None:
    """The way down flows downwards at the left, and each skip connection goes straight over."""
    scene = faultless(U)
    areas = {one.about.path: one.area for one in (*scene.boxes, *scene.merges)}
    assert areas["net.down1"].bottom < areas["net.down2"].top and areas["net.up1"].bottom < areas["net.up2"].top
    assert areas["net.down1"].right < areas["net.up1"].left
    over = [
        wire for wire in scene.wires if (wire.source, wire.target) in {("net.down1", "net.join1"), ("net.down2", "net.join2")}
    ]
    assert len(over) == 2 and all(
        wire.points[-2][1] == wire.points[-1][1] and areas[wire.target].left == wire.points[-1][0] for wire in over
    )


def test_a_stream_goes_straight_past_what_comes_in_beside_it() -> None:
    """A value of another column comes in at the lower border, and what it goes through stands beside the stream."""
    scene = faultless(SCALED)
    areas = {one.about.path: one.area for one in (*scene.boxes, *scene.merges)}
    (stream,) = (wire for wire in scene.wires if wire.source == "layers" and wire.from_inside and not wire.passage)
    (beside,) = (wire for wire in scene.wires if wire.target == "layers" and wire.passage == "parts")
    x = stream.points[0][0]
    assert stream.from_inside and beside.points[-1][1] == stream.points[0][1]
    assert not any(areas[f"layers.{one}"].left < x < areas[f"layers.{one}"].right for one in ("own", "gain", "shift"))


def test_one_value_comes_in_once_under_all_its_names() -> None:
    """As the stream of a group, from which it forks inside."""
    scene = faultless(TWICE)
    assert [wire.target for wire in scene.wires if wire.source == "first"] == ["both"]


def test_inputs_of_a_pass_stand_in_the_order_of_the_recipe() -> None:
    """In a detail, whatever the order in which blocks read them: streams that have columns of their own do not cross then."""
    (pyramid,) = (node for node in composer.load(LEVELS).program.root.nodes if isinstance(node, TypedRepeat))
    ports: dict[Origin, str] = {NodeOutput("third"): "p3", FrameInput("pyramid"): "p1", NodeOutput("second"): "p2"}
    assert [*in_order(ports, pyramid.passes[-1].graph).values()] == ["p1", "p2", "p3"]
