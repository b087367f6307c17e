"""What is made inside of a frame and read beside it: wires begin where it is made, and tell which passes are read."""

from __future__ import annotations

from pathlib import Path

import pytest

import composer
from composer.draw.scene import Scene
from tests.draw.checks import borders, ends, overlaps, starts
from tests.draw.read_back import Model, lies, loose, read
from tests.draw.read_passes import misread

PAPERS = Path(__file__).parent / "papers"
SKIPS = """recipe: skips
inputs: {tokens: "int[batch, time]"}
graph:
  embed: {type: embedding, vocab: 61, dim: 16}
  layers:
    repeat: 5
    graph:
      gate: {type: linear, out: 16, in: input}
      skip: {type: linear, out: 24}
      back: {type: linear, out: 16, in: gate}
      sum: {type: add, in: [input, back]}
    outputs: {x: sum, skip: skip}
  skips: {type: add, in: "layers(READ).skip"}
  head: {type: linear, out: 61}
outputs: {logits: head}
"""
DENSE = """recipe: dense
inputs: {signal: "float[batch, 8]"}
graph:
  layers:
    repeat: 4
    in: {x: signal, start: signal}
    graph:
      all: {type: concat, axis: -1, in: [start, "layers(:layer)"]}
      map: {type: linear, out: 8}
    outputs: {x: map}
  head: {type: linear, out: 3}
outputs: {logits: head}
"""
STACKED = """recipe: stacked
inputs: {series: "float[batch, 8]", future: "float[batch, 4]?"}
graph:
  nothing: {type: zeros, shape: [4], in: series}
  stacks:
    repeat: 3
    in: {x: series, forecast: nothing}
    graph:
      back: {type: linear, out: 8, in: x}
      ahead: {type: linear, out: 4, in: x}
      rest: {compute: x - back}
      sum: {type: add, in: [forecast, ahead]}
    outputs: {x: rest, forecast: sum}
outputs: {forecast: stacks.forecast}
losses: {forecast: {type: mse, in: "stacks(:).forecast", target: future}}
"""


def drawn(text: str, **options: str) -> tuple[composer.Recipe, Scene]:
    """Return a recipe and its drawing, in which nothing is wrong."""
    recipe = composer.load(text)
    figure = recipe.draw(**options)
    assert [fault for check in (overlaps, borders, ends, starts) for fault in check(figure.scene)] == []
    picture = read(figure.svg())
    assert [*lies(picture, Model(recipe.program)), *loose(picture), *misread(picture, recipe.program)] == []
    return recipe, figure.scene


def texts(scene: Scene) -> set[str]:
    """Return what stands on the page by itself."""
    return {text.text for text in scene.texts}


@pytest.mark.parametrize(
    ("passes", "said"),
    [(":", "all 5 layers"), ("1:4", "layers 1 … 3"), ("-1:", "last layer"), ("2:3", "layer 2")],
)
def test_a_wire_leads_from_what_makes_a_second_output_to_its_reader_above_the_frame(passes: str, said: str) -> None:
    """And tells which passes are read, counted as in the recipe."""
    _, scene = drawn(SKIPS.replace("READ", passes))
    places = {thing.about.path: thing.area for thing in (*scene.boxes, *scene.merges)}
    (wire,) = (one for one in scene.wires if (one.source, one.target) == ("layers.skip", "skips"))
    (x, y), maker = wire.points[0], places["layers.skip"]
    assert maker.left < x < maker.right and abs(y - maker.top) < 1
    (frame,) = scene.frames
    assert places["skips"].bottom < frame.y
    assert said in texts(scene) and not scene.references


def test_a_closed_repeat_tells_it_too() -> None:
    """From the side of its box."""
    _, scene = drawn(SKIPS.replace("READ", ":"), level="overview")
    assert "all 5 layers" in texts(scene)


@pytest.mark.parametrize(("there", "planted"), [("all 5 layers", "all 4 layers"), ("all 5 layers", "last layer")])
def test_a_wrong_label_is_found(there: str, planted: str) -> None:
    """The other passes are not what is read."""
    recipe = composer.load(SKIPS.replace("READ", ":"))
    svg = recipe.draw().svg()
    assert there in svg and [*misread(read(svg.replace(there, planted)), recipe.program)]


def test_all_earlier_passes_are_one_arrow() -> None:
    """The pass before is one of them, and is not drawn a second time."""
    recipe, scene = drawn(DENSE)
    into = [wire for wire in scene.wires if wire.target == "layers.all" and wire.arrow]
    assert sorted(wire.style for wire in into if wire.source == "layers.map") == ["loop"] and len(into) == 2
    assert "all earlier layers" in texts(scene)
    svg = recipe.draw().svg().replace("all earlier layers", "all earlier stacks")
    assert [*misread(read(svg), recipe.program)]


def test_what_the_first_pass_reads_instead_is_said_once() -> None:
    """A sum of two values has two arrows; what it reads at first in place of the loop joins this."""
    _, scene = drawn(STACKED)
    into = sorted(wire.source for wire in scene.wires if wire.target == "stacks.sum" and wire.arrow)
    assert into == ["stacks.ahead", "stacks.sum"]
    assert [wire.source for wire in scene.wires if wire.target == "stacks.sum" and not wire.arrow] == ["nothing"]
    assert [one.text.text for one in scene.references if one.target == "stacks.sum"] == ["0 at first"]


def test_a_loss_and_an_output_lead_from_what_they_read() -> None:
    """The loss of all passes says so, and begins at the sum as the output does."""
    _, scene = drawn(STACKED)
    loss, output = (
        next(one for one in scene.wires if one.source == "stacks.sum" and one.target.endswith(end) and one.style == style)
        for end, style in ((".forecast", "loss"), ("forecast", "main"))
    )
    assert loss.target != output.target
    (box,) = (one for one in scene.boxes if one.hue == "loss")
    assert any("of all 3 stacks" in text.text for text in box.texts) and "last stack" in texts(scene)


def test_what_a_head_calls_by_names_comes_from_the_highest_to_the_lowest() -> None:
    """So that the wires to it do not cross; what it calls them has no other name where they leave the frame."""
    scene = composer.load(PAPERS / "planet.yaml").draw().scene
    ways = sorted((one for one in scene.wires if one.target == "divergence"), key=lambda one: one.points[-1][1])
    assert [one.source.split(".")[1] for one in ways] == ["posterior", "posterior", "prior", "prior"]
    heights = [one.points[0][1] for one in ways]
    assert heights == sorted(heights)
    turns = [one.points[-2][0] for one in ways[1:]]  # the first one comes straight over
    assert turns == sorted(turns)
    said = [text.text for text in scene.texts]
    assert {"q_mean", "p_std"} <= {*said} and not {"prior_mean", "prior_std"} & {*said}


def test_cells_of_a_map_count_as_the_language_does() -> None:
    """`layers(1)` leaves the cell with the number 1; turned, wires start at their cells as well."""
    text = """recipe: cells
inputs: {tokens: "int[batch, time]"}
graph:
  embed: {type: embedding, vocab: 61, dim: 16}
  layers: {repeat: 6, graph: {map: {type: linear, out: 16}, act: relu}}
  early: {type: linear, out: 3, in: layers(1)}
  head: {type: linear, out: 61, in: layers}
outputs: {logits: head, early: early}
"""
    for direction in ("up", "right"):
        _, scene = drawn(text, direction=direction)
        (strip,) = (frame.strip for frame in scene.frames if frame.strip)
        assert [tick.text for tick in strip.ticks][::5] == ["layer 0"] or strip.ticks[-1].text == "5"
        (wire,) = (one for one in scene.wires if one.target == "early" and one.source == "layers")
        assert wire.points[0] == pytest.approx(strip.exit_of(1), abs=0.1)
