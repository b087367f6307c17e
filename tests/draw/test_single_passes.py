"""Repeats of few passes that others read one by one: a closed box for each pass, with ordinary wires; mirrored ones as a U."""

from __future__ import annotations

import pytest

import composer
from composer.draw.scene import Scene
from tests.draw.checks import borders, ends, overlaps, starts
from tests.draw.read_back import Model, lies, loose, read
from tests.draw.read_passes import misread
from tests.draw.test_drawings import assert_every_edge

SIDES = """recipe: sides
inputs: {x: "float[batch, 8]"}
graph:
  stages:
    repeat: 3
    as: stage
    graph:
      layers: {repeat: 2 + stage, graph: {map: {type: linear, out: 8 * 2 ** stage}, act: relu}}
  side0: {type: linear, out: 3, in: stages(0)}
  side1: {type: linear, out: 3, in: stages(1)}
  side2: {type: linear, out: 3, in: stages}
  all: {type: concat, axis: -1, in: [side0, side1, side2]}
outputs: {y: all}
"""
MIRRORED = """recipe: mirrored
inputs: {image: "float[batch, 8, 16, 16]", time: "float[batch, 4]"}
graph:
  wide: {type: linear, out: 8, in: time}
  silu: silu
  t: {type: linear, out: 8}
  stem: {type: conv2d, out: 8, kernel_size: 3, padding: 1, in: image}
  down:
    repeat: 3
    as: level
    graph:
      layers:
        repeat: 2
        graph:
          conv: {type: conv2d, out: 8, kernel_size: 3, padding: 1}
          timed: {compute: conv + t, axes: {conv: b c h w, t: b c}}
  middle:
    graph:
      first: {type: conv2d, out: 8, kernel_size: 1, in: down}
      second: {type: conv2d, out: 8, kernel_size: 1}
  up:
    repeat: 3
    as: step
    graph:
      join: {type: concat, axis: -3, in: [input, "down(2 - step).layers(1)"]}
      conv: {type: conv2d, out: 8, kernel_size: 3, padding: 1}
      other: {type: concat, axis: -3, in: [conv, "down(2 - step).layers(0)"]}
      back: {type: conv2d, out: 8, kernel_size: 3, padding: 1}
  head: {type: conv2d, out: 3, kernel_size: 1}
outputs: {logits: head}
"""
LAST = """recipe: last
inputs: {x: "float[batch, 8]"}
graph:
  updates:
    repeat: 3
    graph:
      map: {type: linear, out: 8, in: input}
      sum: {type: add, in: [input, map]}
      more: {type: linear, out: 5}
    outputs: {state: sum, told: more}
  head: {type: linear, out: 3, in: updates.told}
outputs: {y: head}
"""


def drawn(text: str, **options: object) -> Scene:
    """Return a drawing in which nothing is wrong."""
    recipe = composer.load(text)
    figure = recipe.draw(**options)  # type: ignore[arg-type]
    assert [fault for check in (overlaps, borders, ends, starts) for fault in check(figure.scene)] == []
    picture = read(figure.svg())
    assert [*lies(picture, Model(recipe.program)), *loose(picture), *misread(picture, recipe.program)] == []
    assert_every_edge("", recipe.program, figure.scene)
    return figure.scene


def test_each_pass_is_a_box_with_a_wire_to_what_reads_it() -> None:
    """It is called by its number and tells what is in it; no name stands in place of a wire."""
    scene = drawn(SIDES)
    wires = {(wire.source, wire.target) for wire in scene.wires if wire.arrow}
    assert {(f"stages.{index}", f"side{index}") for index in range(3)} <= wires
    assert {("stages.0", "stages.1"), ("stages.1", "stages.2")} <= wires
    assert not scene.references and not scene.frames
    lines = {box.about.path: [text.text for text in box.texts] for box in scene.boxes}
    assert "Stage 1" in lines["stages.1"] and "× 3 Layer (Linear 8, 16 → 16, ReLU)" in lines["stages.1"]


@pytest.mark.parametrize(("there", "planted"), [("Stage 1", "Stage 2"), ("× 3 Layer", "× 2 Layer"), ("→ 32", "→ 24")])
def test_what_is_not_so_of_one_pass_is_found(there: str, planted: str) -> None:
    """Also where it is so of another one."""
    recipe = composer.load(SIDES)
    svg = recipe.draw().svg()
    assert there in svg and [*lies(read(svg.replace(there, planted)), Model(recipe.program))]


@pytest.mark.parametrize(
    ("old", "new"),
    [("in: stages(1)", "in: stages"), ("in: stages(1)", "in: stages(0)"), ("repeat: 3", "repeat: 6")],
)
def test_other_repeats_stay_frames(old: str, new: str) -> None:
    """Where one pass before the last is read, by one or by several, and where there are many passes."""
    scene = composer.load(SIDES.replace(old, new)).draw().scene
    assert not any(box.about.path == "stages.0" for box in scene.boxes)


@pytest.mark.parametrize(
    "option",
    [{"open": ["stages"]}, {"labels": {"stages": "Trunk"}}, {"hide": ["stages.layers.act"]}, {"unroll": {"stages": "0:1"}}],
)
def test_what_an_option_names_is_drawn_together(option: dict[str, object]) -> None:
    """As a frame, or with the other passes as one box."""
    scene = composer.load(SIDES).draw(**option).scene  # type: ignore[arg-type]
    assert not any(box.about.path == "stages.2" for box in scene.boxes)


def test_mirrored_repeats_are_a_u() -> None:
    """Levels face each other, one wire goes straight over for both layers of each, and the middle is at the bottom; what all
    read of another column has a name.
    """
    scene = drawn(MIRRORED)
    boxes = {box.about.path: box.area for box in scene.boxes}
    for index in range(3):
        (wire,) = (one for one in scene.wires if (one.source, one.target) == (f"down.{index}", f"up.{2 - index}"))
        (_, start), *_, (_, end) = wire.points
        assert abs(start - end) < 0.5 and len(wire.points) == 2
        assert boxes[f"down.{index}"].right < boxes[f"up.{2 - index}"].left
    assert boxes["middle.first"].top > boxes["up.0"].bottom
    assert boxes["down.0"].top < boxes["down.1"].top < boxes["down.2"].top
    assert [text.text for text in scene.texts].count("layers(0:2)") == 3
    assert "t" in {one.text.text for one in scene.references}


@pytest.mark.parametrize("planted", ["layers(0:3)", "layers(1:3)"])
def test_a_wrong_name_of_several_values_is_found(planted: str) -> None:
    """There is no such layer."""
    recipe = composer.load(MIRRORED)
    assert [*misread(read(recipe.draw().svg().replace("layers(0:2)", planted)), recipe.program)]


def test_what_enters_a_group_from_around_it_comes_in_from_below() -> None:
    """Where its first node reads that, though the recipe hands the group nothing."""
    scene = drawn(MIRRORED)
    assert ("middle", "middle.first") in {(wire.source, wire.target) for wire in scene.wires}


def test_all_that_is_read_of_a_closed_repeat_goes_up_from_it() -> None:
    """Without words, since the last pass is what leaves a repeat."""
    scene = drawn(LAST, level="overview")
    (wire,) = (one for one in scene.wires if (one.source, one.target) == ("updates", "head"))
    assert len(wire.points) == 2 and wire.points[0][0] == wire.points[1][0]
    assert not any("last" in text.text for text in scene.texts)
