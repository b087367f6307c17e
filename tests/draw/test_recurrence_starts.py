"""What a recurrence starts with: its name beside the block that reads it at first, or a small box."""

from __future__ import annotations

import pytest

import composer
from composer.draw.scene import Box, Scene
from tests.draw.cases import PAPERS
from tests.draw.checks import borders, ends, idle_dots, overlaps, starts
from tests.draw.read_back import Model, lies, loose, read
from tests.draw.test_drawings import assert_every_edge

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
ZEROS = """cut: {{type: slice, axis: last, start: 0, stop: 6, in: signal}}
  first: {{type: select, axis: time, index: 0, in: cut}}
  nowhere: {{compute: {formula}}}"""
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


@pytest.mark.parametrize(
    ("start", "reader", "text"),
    [("start_h", "cell", "(16, learned)"), ("start_c", "cell", "(16, learned)"), ("start_seen", "all", "(6, learned)")],
)
def test_learned_starts_are_no_boxes(scene: Scene, start: str, reader: str, text: str) -> None:
    """A frame has what each step computes: the block that reads one at first names it, and stands for its parameters."""
    assert not [one for one in scene.boxes if one.about.path == start]
    (named,) = (one for one in scene.references if one.source == start)
    assert (named.target, named.text.text) == (f"steps.{reader}", f"{start} {text} at first")
    (at,) = (one.about for one in (*scene.boxes, *scene.merges) if one.about.path == f"steps.{reader}")
    assert start in at.covers and f"starts with {start} (Parameter" in at.description


def test_a_second_reader_of_a_start_says_no_shape() -> None:
    """It is told at the first one."""
    page = composer.load(MEMORY.replace("place: nowhere}", "place: start_seen}").replace("  nowhere: {", "  #")).draw().scene
    said = {one.target: one.text.text for one in page.references if one.source == "start_seen"}
    assert [*said.values()] == ["start_seen (6, learned) at first", "start_seen at first"]


def test_an_option_that_names_a_start_keeps_its_box() -> None:
    """Beside the block that reads it first, in the frame."""
    page = composer.load(MEMORY).draw(highlight=["start_seen"]).scene
    (frame,) = page.frames
    assert frame.area.top < box(page, "start_seen").area.top < frame.area.bottom
    (said,) = (text for text in page.texts if text.text == "at first")
    assert said.area.top > frame.area.top


def test_states_of_one_cell_come_back_as_one(scene: Scene) -> None:
    """By one wire with the names of both."""
    into = [wire for wire in scene.wires if wire.source == wire.target == "steps.cell"]
    assert [(wire.port, wire.style) for wire in into] == [("h, c", "loop")]
    assert [text.text for text in scene.texts if text.role == "port"] == ["h, c"]


@pytest.mark.parametrize(
    ("there", "instead"),
    [
        ("low: {type: linear, out: 6, in: cell}", "both: {type: concat, in: [cell, cell.c]}\n      low: {type: linear, out: 6}"),
        ("outputs: {logits: head}", "  tail: {type: linear, out: 5, in: steps.c}\noutputs: {logits: head, last: tail}"),
        ("outputs: {logits: head}", "outputs: {logits: head, last: steps.c}"),
    ],
)
def test_a_state_that_something_else_reads_has_a_loop_of_its_own(there: str, instead: str) -> None:
    """In the step or around it: its wire leaves the cell by itself, and the loop turns off that, at a dot."""
    recipe = composer.load(MEMORY.replace(there, instead))
    page = recipe.draw().scene
    loops = [wire for wire in page.wires if wire.source == wire.target == "steps.cell"]
    assert sorted(wire.port for wire in loops) == ["c", "h"]
    (loop,) = (wire for wire in loops if wire.port == "c")
    assert loop.points[0][0] == loop.points[-1][0] == box(page, "steps.cell").area.right
    assert {*loop.points} & {(dot.x, dot.y) for dot in page.dots}
    assert [fault for check in (overlaps, borders, ends, starts, idle_dots) for fault in check(page)] == []
    assert_every_edge("memory", recipe.program, page)


def test_what_a_state_starts_with_joins_its_loop(scene: Scene) -> None:
    """They are one input: the wire from the name ends in a dot on the loop, and the loop has the one arrowhead."""
    (loop,) = (wire for wire in scene.wires if wire.source == wire.target == "steps.cell")
    starts = [wire for wire in scene.wires if wire.source in ("start_h", "start_c")]
    (left, height), (right, _) = loop.points[-2:]
    assert loop.arrow and [wire.arrow for wire in starts] == [False, False]
    assert all(left < wire.points[-1][0] < right and wire.points[-1][1] == height for wire in starts)
    assert {wire.points[-1] for wire in starts} <= {(dot.x, dot.y) for dot in scene.dots}


def test_a_second_output_comes_back_from_the_side() -> None:
    """A closed block that reads its own second output of the step before gives it at its side, where it comes back; so does what
    it starts with.
    """
    recipe = composer.load(next(path for path in PAPERS if path.stem == "tacotron2"))
    scene = recipe.draw(details=["none"]).scene
    (loop,) = (wire for wire in scene.wires if (wire.target, wire.port, wire.style) == ("decoder.attend", "before", "loop"))
    attend = box(scene, "decoder.attend").area
    assert loop.points[0][0] == loop.points[-1][0] == attend.right
    assert attend.top < loop.points[-1][1] < loop.points[0][1] < attend.bottom
    (start,) = (wire for wire in scene.wires if wire.target == "decoder.attend" and wire.source == "nowhere")
    assert not start.arrow and start.points[-1][1] == loop.points[-1][1]
    assert not any("previous step" in one.text.text for one in scene.references)
    assert_every_edge("tacotron", recipe.program, scene)


@pytest.mark.parametrize(("formula", "told"), [("0 * first", True), ("-(first * 0.0) + 0", True), ("0 + first", False)])
def test_formulas_of_zero_are_no_boxes(formula: str, told: bool) -> None:
    """Nor is what these alone read, which has no parameters."""
    text = MEMORY.replace("nowhere: {type: zeros, shape: [6], in: signal}", ZEROS.format(formula=formula))
    recipe = composer.load(text)
    page = recipe.draw().scene
    boxes = {one.about.path for one in page.boxes}
    assert (not boxes & {"cut", "first", "nowhere"}) == told
    assert ("0 at first" in {one.text.text for one in page.references}) == told
    assert_every_edge("zeros", recipe.program, page)


def test_what_zeros_alone_read_stays_where_it_has_parameters() -> None:
    """A figure shows all that is learned."""
    text = MEMORY.replace("nowhere: {type: zeros, shape: [6], in: signal}", ZEROS.format(formula="0 * first"))
    page = (
        composer.load(
            text.replace("{type: slice, axis: last, start: 0, stop: 6, in: signal}", "{type: linear, out: 6, in: signal}")
        )
        .draw()
        .scene
    )
    assert {"cut", "first", "nowhere"} <= {one.about.path for one in page.boxes}


def test_zeros_at_first_are_no_box(scene: Scene) -> None:
    """What reads them says so, once for all of a block's states, and its description tells what gives them."""
    assert not [one for one in scene.boxes if one.about.path == "nowhere"]
    named = {one.target: one for one in scene.references if one.source == "nowhere"}
    assert {path: one.text.text for path, one in named.items()} == {"steps.place": "0 at first"}
    assert "starts with nowhere (Zeros — shape 6; shape 6; sizes of signal)" in box(scene, "steps.place").about.description
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
    assert sizes.text.text == "sizes of signal"


def test_all_that_is_said_holds(scene: Scene) -> None:
    """Parameters are counted once, and nothing lies on anything."""
    recipe = composer.load(MEMORY)
    picture = read(recipe.draw().svg())
    assert [*lies(picture, Model(recipe.program)), *loose(picture)] == []
    assert [fault for check in (overlaps, borders, ends, starts) for fault in check(scene)] == []
    assert sum(one.about.parameters for one in [*scene.boxes, *scene.merges, *scene.frames]) == Model(recipe.program).owned[""]


def test_a_stream_that_is_carried_stays_outside() -> None:
    """What is made of an input of the model flows into the frame."""
    scene = composer.load(TRACKS).draw().scene
    (frame,) = scene.frames
    assert box(scene, "second").frame == "" and box(scene, "second").area.top > frame.area.bottom


def test_detail_of_what_reads_its_own_second_output_has_an_input_for_it() -> None:
    """And no name beside that, as if the value of the step before were another one."""
    figure = composer.load(next(path for path in PAPERS if path.stem == "tacotron2")).draw()
    (detail,) = figure.scene.details
    assert detail.about.path == "decoder.attend"
    assert "previous step" not in {text.text for text in detail.texts}
    assert figure.svg().count('data-b="decoder.attend.so_far"') == 2
