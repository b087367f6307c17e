"""What stands where the stream leaves a frame: its shape, and who reads it where nothing around the frame does."""

from __future__ import annotations

import pytest

import composer
from composer.draw.build.levels import Level
from composer.draw.scene import Direction, Frame, Scene
from tests.draw.checks import borders, ends, inside, overlaps, starts

NARROWING = """recipe: narrowing
inputs: {x: "float[batch, 64]"}
graph:
  parts:
    repeat: 5
    as: part
    graph:
      fc: {type: linear, out: 128 // 2 ** part}
      relu: relu
  one: {graph: {first: {type: linear, out: 12}, relu: relu}}
  other: {graph: {norm: layernorm, relu: relu}}
  head: {type: linear, out: 2}
outputs: {y: head}
"""
HANDED_ON = """recipe: handed_on
inputs: {x: "float[batch, 12]"}
graph:
  layers:
    repeat: 6
    graph:
      mix: {type: linear, out: 12}
      skip: {type: linear, out: 5}
      sum: {type: add, in: [input, mix]}
  total: {type: add, in: "layers(:).skip"}
  head: {type: linear, out: 7, in: READ}
outputs: {y: head}
"""
STATES = """recipe: states
inputs: {x: "float[batch, 12]"}
graph:
  start: {type: linear, out: 20}
  no_read: {type: zeros, shape: [12], in: x}
  no_sum: {type: zeros, shape: [12], in: x}
  steps:
    repeat: 4
    as: step
    share: true
    in: {h: start, read: no_read, sum: no_sum}
    graph:
      seen: {type: concat, in: [x, read, sum]}
      cell: {type: linear, out: 20}
      new_h: {compute: tanh(cell) * h}
      new_read: {type: linear, out: 12}
      new_sum: {compute: new_read + sum}
    outputs: {h: new_h, read: new_read, sum: new_sum}
  head: {type: linear, out: 7, in: READ}
outputs: {y: head}
"""


def texts(scene: Scene) -> list[str]:
    """Return what stands on the page by itself."""
    return [text.text for text in scene.texts]


def frame_of(scene: Scene, path: str) -> Frame:
    """Return the frame of a group or a repeat."""
    return next(frame for frame in scene.frames if frame.about.path == path)


@pytest.mark.parametrize("level", ["block", "full"])
def test_the_shape_that_leaves_a_frame_stands_above_it(level: Level) -> None:
    """Once: of a group whose inside tells it, and where it does not change, nothing stands above the frame."""
    scene = composer.load(NARROWING).draw(level).scene
    said = [text for text in scene.texts if text.text in ("B × 8", "B × 12")]
    assert [text.text for text in said].count("B × 8") == 1
    assert [text.text for text in said].count("B × 12") == 1
    eight, twelve = (next(text for text in said if text.text == shape) for shape in ("B × 8", "B × 12"))
    assert frame_of(scene, "one").area.bottom > twelve.area.bottom > frame_of(scene, "one").area.top
    assert frame_of(scene, "parts").area.top > eight.area.bottom > frame_of(scene, "one").area.bottom
    assert "B × 8" not in texts(composer.load(NARROWING).draw(level, shapes=False).scene)


@pytest.mark.parametrize("direction", ["up", "right"])
def test_what_only_the_next_pass_reads_ends_inside_of_the_frame(direction: Direction) -> None:
    """With an arrow to words, and not at the border under what stands above."""
    scene = composer.load(HANDED_ON.replace("READ", "total")).draw(direction=direction).scene
    frame = frame_of(scene, "layers")
    words = next(text for text in scene.texts if text.text == "next layer")
    assert inside(words.area, frame.area)
    wire = next(wire for wire in scene.wires if wire.to_inside)
    assert wire.arrow
    (x, y), area = wire.points[-1], frame.area
    assert area.left + 20 < x < area.right - 20
    assert area.top + 20 < y < area.bottom - 20
    assert [*overlaps(scene), *borders(scene), *ends(scene), *starts(scene)] == []


@pytest.mark.parametrize("direction", ["up", "right"])
def test_what_goes_on_below_others_ends_beside_them(direction: Direction) -> None:
    """No higher than these, so that it is not what the last one of them gives."""
    text = HANDED_ON.replace("READ", "total").replace("in: [input, mix]}", "in: [input, mix]}\n      on: {type: linear, out: 5}")
    text = text.replace("      skip: {type: linear, out: 5}\n", "").replace('"layers(:).skip"}', '"layers(:).on"}')
    text = text.replace("  total:", "    outputs: {sum: sum, on: on}\n  total:")
    scene = composer.load(text).draw(direction=direction).scene
    assert [*overlaps(scene), *borders(scene), *ends(scene), *starts(scene)] == []
    words = next(text for text in scene.texts if text.text == "next layer")
    wire = next(wire for wire in scene.wires if wire.to_inside and wire.target == "layers" and wire.arrow)
    box = next(box for box in scene.boxes if box.about.path == "layers.on").area
    assert wire.source == "layers.sum" and len(wire.points) == 3
    if direction == "up":
        assert wire.points[-1][0] == wire.points[-2][0] > box.right and words.area.left > box.right
        assert box.top < wire.points[-1][1] < wire.points[0][1]


@pytest.mark.parametrize("head", ["{type: linear, out: 7, in: layers}", '{type: concat, axis: -1, in: [total, "layers(5)"]}'])
def test_what_is_read_around_the_frame_goes_on(head: str) -> None:
    """Of the last pass, by whatever name."""
    text = HANDED_ON.replace("{type: linear, out: 7, in: READ}", head).replace("{y: head}", "{y: head, total: total}")
    assert "next layer" not in texts(composer.load(text).draw().scene)


def test_parallel_passes_hand_nothing_on() -> None:
    """Experts of one input have no next one."""
    text = HANDED_ON.replace("READ", "total").replace("mix: {type: linear, out: 12}", "mix: {type: linear, out: 12, in: x}")
    text = text.replace("in: [input, mix]", "in: [x, mix]")
    assert not [said for said in texts(composer.load(text).draw().scene) if said.startswith("next")]


def backward(scene: Scene) -> set[tuple[str, str]]:
    """Return which blocks read what which others gave in the step before, by a wire."""
    return {(wire.source, wire.target) for wire in scene.wires if wire.style == "loop"}


@pytest.mark.parametrize("direction", ["up", "right"])
def test_of_several_states_none_is_the_stream(direction: Direction) -> None:
    """Each leads back from what gives it, with what it is at first, where nothing around the frame reads the first one."""
    scene = composer.load(STATES.replace("READ", "steps.sum")).draw(direction=direction).scene
    read = {("steps.new_h", "steps.new_h"), ("steps.new_read", "steps.seen"), ("steps.new_sum", "steps.new_sum")}
    assert backward(scene) == read | {("steps.new_sum", "steps.seen")}
    assert not [said for said in texts(scene) if said.startswith("next")]
    assert [*overlaps(scene), *borders(scene), *ends(scene), *starts(scene)] == []
    stream = composer.load(STATES.replace("READ", "steps")).draw(direction=direction).scene
    assert ("steps.new_h", "steps.new_h") not in backward(stream)


def test_each_of_several_zeros_is_told() -> None:
    """With its place among what is joined."""
    scene = composer.load(STATES.replace("READ", "steps.sum")).draw().scene
    zeros = [one.source for one in scene.references if one.text.text == "0 at first" and one.target == "steps.seen"]
    assert zeros == ["no_read", "no_sum"]


LAST_APART = """recipe: last_apart
inputs: {x: "float[batch, 8]", target: "float[batch, 5]?"}
graph:
  stacks:
    repeat: 3
    as: stack
    graph:
      map: {type: linear, out: 16}
      score: {type: linear, out: 5}
      next: {type: linear, out: 8, in: map, when: stack < 2}
    outputs: {x: next if stack < 2 else score, score: score}
outputs: {score: stacks.score}
losses: {fit: {type: mse, in: "stacks(:).score", target: target}}
"""


def test_what_the_last_pass_returns_joins_no_arrow_to_the_next_one() -> None:
    """Of two frames for kinds of passes, one wire leads to the arrow; the output, which goes by its name, is at the top."""
    scene = composer.load(LAST_APART).draw().scene
    (words,) = (text for text in scene.texts if text.text == "next stack")
    (frame,) = (one for one in scene.frames if one.key == "stacks")
    fans = [wire for wire in scene.wires if not wire.source and wire.partial]
    assert sum(wire.points[-1][1] < frame.y + frame.height / 2 for wire in fans) == 1
    assert words.y < min(box.y for box in scene.boxes if box.about.path.startswith("stacks."))
    (output,) = (box for box in scene.boxes if box.about.path == "outputs/score")
    assert output.y < frame.y + frame.height / 2
