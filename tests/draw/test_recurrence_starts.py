"""What a recurrence starts with: a small box beside the block that reads it at first, or its name."""

from __future__ import annotations

import pytest

import composer
from composer.draw.scene import Box, Scene
from tests.draw.checks import borders, ends, overlaps, starts
from tests.draw.read_back import Model, lies, loose, read

MEMORY = """recipe: memory
inputs: {signal: "float[batch, time, 8]"}
graph:
  start_h: {type: parameter, shape: [16], init: zeros}
  start_c: {type: parameter, shape: [16]}
  start_seen: {type: parameter, shape: [6]}
  nowhere: {type: zeros, shape: [6], in: signal}
  steps:
    scan: time
    in: {x: signal, h: start_h, c: start_c, seen: start_seen, place: nowhere}
    graph:
      all: {type: concat, in: [x, seen]}
      cell: {type: lstm_cell, hidden: 16, in: {x: all, h: h, c: c}}
      low: {type: linear, out: 6, in: cell}
      moved: {compute: low + place}
      next: {compute: tanh(moved) * place}
    outputs: {y: next, h: cell, c: cell.c, seen: low, place: next}
  head: {type: linear, out: 3, in: steps}
outputs: {logits: head}
"""
TRACKS = """recipe: tracks
inputs: {signal: "float[batch, 8]", other: "float[batch, 8]"}
graph:
  first: {type: linear, out: 8, in: signal}
  second: {type: linear, out: 8, in: other}
  layers:
    repeat: 3
    in: {x: first, state: second}
    graph:
      low: {type: linear, out: 8, in: x}
      sum: {type: add, in: [low, state]}
      high: {type: linear, out: 8}
    outputs: {x: low, state: high}
  head: {type: linear, out: 3}
outputs: {logits: head}
"""


@pytest.fixture(scope="module")
def scene() -> Scene:
    """Return the figure of a scan with four starts."""
    return composer.load(MEMORY).draw().scene


def box(scene: Scene, path: str) -> Box:
    """Return a box."""
    (found,) = (one for one in scene.boxes if one.about.path == path)
    return found


@pytest.mark.parametrize(("start", "reader"), [("start_h", "cell"), ("start_c", "cell"), ("start_seen", "all")])
def test_a_start_stands_beside_its_first_reader(scene: Scene, start: str, reader: str) -> None:
    """In the frame, near the block that reads it, with a wire that does not go around anything."""
    things = [*scene.boxes, *scene.merges]
    (frame,) = scene.frames
    (at,) = (one.area for one in things if one.about.path == f"steps.{reader}")
    here = box(scene, start).area
    assert frame.area.left < here.left and here.bottom < frame.area.bottom
    assert 0 < at.left - here.right < 100
    assert here.top - 60 < (at.top + at.bottom) / 2 < here.bottom + 60
    (wire,) = (one for one in scene.wires if one.source == start and one.style != "far")
    assert len(wire.points) <= 4


def test_what_reads_it_at_first_says_so(scene: Scene) -> None:
    """At each wire."""
    assert sum(text.text == "at first" for text in scene.texts) == 3


def test_zeros_at_first_are_no_box(scene: Scene) -> None:
    """Each block that reads them says so, once for all of its states, and its description tells what gives them."""
    assert not [one for one in scene.boxes if one.about.path == "nowhere"]
    named = {one.target: one for one in scene.references if one.source == "nowhere"}
    assert {path: one.text.text for path, one in named.items()} == dict.fromkeys(["steps.moved", "steps.next"], "0 at first")
    assert "starts with nowhere (Zeros — shape 6; shape 6; sizes of signal)" in box(scene, "steps.moved").about.description
    both = MEMORY.replace("h: start_h, c: start_c", "h: nothing, c: nothing").replace(
        "start_c: {type: parameter, shape: [16]}", ""
    )
    both = both.replace("start_h: {type: parameter, shape: [16], init: zeros}", "nothing: {type: zeros, shape: [16], in: signal}")
    page = composer.load(both).draw().scene
    (once,) = (one for one in page.references if one.source == "nothing")
    assert (once.text.text, once.port) == ("0 at first", "h, c")


def test_full_detail_has_the_zeros() -> None:
    """As a box, with what they read the sizes of."""
    page = composer.load(MEMORY).draw("full").scene
    assert box(page, "nowhere").area
    (sizes,) = (one for one in page.references if one.target == "nowhere")
    assert sizes.text.text == "sizes of signal (input)"


def test_all_that_is_said_holds(scene: Scene) -> None:
    """Parameters are counted once, and nothing lies on anything."""
    recipe = composer.load(MEMORY)
    picture = read(recipe.draw().svg())
    assert [*lies(picture, Model(recipe.program)), *loose(picture)] == []
    assert [fault for check in (overlaps, borders, ends, starts) for fault in check(scene)] == []
    assert sum(one.about.parameters for one in [*scene.boxes, *scene.frames]) == Model(recipe.program).owned[""]


def test_a_stream_that_is_carried_stays_outside() -> None:
    """What is made of an input of the model flows into the frame."""
    scene = composer.load(TRACKS).draw().scene
    (frame,) = scene.frames
    assert box(scene, "second").frame == "" and box(scene, "second").area.top > frame.area.bottom
