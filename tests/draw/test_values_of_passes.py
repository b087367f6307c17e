"""Several values of a repeat that one box reads: one wire, or one name, that says which."""

from __future__ import annotations

import re

import pytest

import composer
from composer.draw.passes.inner_outputs import range_of_names
from composer.draw.scene import Scene
from tests.draw.checks import borders, ends, overlaps, starts
from tests.draw.read_back import Model, lies, loose, read
from tests.draw.read_passes import misread
from tests.draw.test_drawings import assert_every_edge

UNET = """recipe: unet
inputs: {image: "float[batch, 8, 16, 16]"}
graph:
  stem: {type: conv2d, out: 8, kernel_size: 3, padding: 1, in: image}
  down:
    repeat: 3
    graph:
      layers:
        repeat: 2
        graph:
          conv: {type: conv2d, out: 8, kernel_size: 3, padding: 1}
          relu: relu
  middle: {type: conv2d, out: 8, kernel_size: 1}
  up:
    repeat: 3
    graph:
      join: {type: concat, axis: -3, in: [input, "down(2 - layer).layers(1)"]}
      conv: {type: conv2d, out: 8, kernel_size: 3, padding: 1}
      other: {type: concat, axis: -3, in: [conv, "down(2 - layer).layers(0)"]}
      back: {type: conv2d, out: 8, kernel_size: 3, padding: 1}
  head: {type: conv2d, out: 3, kernel_size: 1}
outputs: {logits: head}
"""
INSIDE = """recipe: inside
inputs: {signal: "float[batch, 8]"}
graph:
  layers:
    repeat: 6
    in: {x: signal}
    graph:
      map: {type: linear, out: 8}
      relu: relu
  reader:
    graph:
      first: {type: linear, out: 8, in: layers}
      all: {type: concat, axis: -1, in: [first, layers(0), layers(1), layers(4)]}
      second: {type: linear, out: 4}
  head: {type: linear, out: 3}
outputs: {logits: head}
"""


def closed(text: str) -> tuple[composer.Recipe, Scene]:
    """Return a recipe and its drawing with closed repeats."""
    recipe = composer.load(text)
    return recipe, recipe.draw("overview").scene


def test_one_wire_leads_from_the_box_that_gives_several_values() -> None:
    """From the way down to the way up, with what they are called together; no name stands there."""
    _, scene = closed(UNET)
    (wire,) = (one for one in scene.wires if one.source.startswith("down") and one.target == "up")
    boxes = {one.about.path: one.area for one in scene.boxes}
    (start, *_, end) = wire.points
    assert start[0] in (boxes["down"].left, boxes["down"].right) and end[0] in (boxes["up"].left, boxes["up"].right)
    assert "down(0:3).layers(0:2)" in [text.text for text in scene.texts]
    assert not scene.references


def test_what_it_says_holds() -> None:
    """All values are told, and no other; nothing lies on anything."""
    recipe, scene = closed(UNET)
    svg = recipe.draw("overview").svg()
    assert [*lies(read(svg), Model(recipe.program)), *loose(read(svg)), *misread(read(svg), recipe.program)] == []
    assert [fault for check in (overlaps, borders, ends, starts) for fault in check(scene)] == []
    assert_every_edge("unet", recipe.program, scene)
    for planted in ("down(0:2).layers(0:2)", "down(0:3).layers(0:3)", "5 values"):
        assert [*misread(read(svg.replace("down(0:3).layers(0:2)", planted)), recipe.program)]


def test_several_names_are_one_where_no_wire_leads() -> None:
    """In a frame that holds only the reader."""
    recipe = composer.load(INSIDE)
    scene = recipe.draw().scene
    names = [one.text.text for one in scene.references if one.target == "reader.all"]
    assert names == ["3 values"]
    assert [*misread(read(recipe.draw().svg()), recipe.program)] == []


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["layers(0)", "layers(1)", "layers(2)"], "layers(0:3)"),
        (["layers(2).skip", "layers(3).skip"], "layers(2:4).skip"),
        (["down(0).layers(1)", "down(1).layers(1)", "down(0)"], "down(0:2).layers(1), down(0)"),
        (["layers(0)", "layers(2)"], "2 values"),
        (["stages(0).attention.body", "stages(0).feedforward.norm", "stages(1)"], "3 values"),
    ],
)
def test_names_together(names: list[str], said: str) -> None:
    """A range where all are in a row, in each repeat; else how many they are, also where the names are long."""
    assert range_of_names(names) == said


@pytest.mark.parametrize(
    ("dilation", "said"),
    [
        ("2 ** (layer % 6)", "dilation 1, 2, 4, 8, 16, 32, twice"),
        ("2 ** (layer % 4)", "dilation 1, 2, 4, 8, 3 times"),
        ("2 ** min(layer, 5)", "dilation 1, 2, 4, 8, 16, 32"),
    ],
)
def test_values_that_follow_one_another_several_times_say_so(dilation: str, said: str) -> None:
    """The dilations of stacks of layers: 1, 2, 4 … and again."""
    recipe = composer.load(f"""recipe: dilated
inputs: {{x: "float[batch, time, 8]"}}
graph:
  layers:
    repeat: 12
    each: {{reach: "{dilation}"}}
    graph: {{conv: {{type: conv1d, out: 8, kernel_size: 2, causal: true, dilation: reach}}, act: relu, norm: layernorm}}
outputs: {{y: layers}}
""")
    without_picture = recipe.draw(details=["none"]).svg()
    assert re.findall(r">[^<—]*(dilation [^<—|;]*)<", without_picture) == [said]
    assert [*lies(read(recipe.draw().svg()), Model(recipe.program))] == []
