"""Inputs of a model that several blocks read by their names: what they are stands in a box of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

import composer
from composer.draw.scene import Scene
from composer.draw.steps import steps
from tests.draw.checks import borders, ends, overlaps, starts

CROSS = "{{type: residual, norm: layernorm, body: {{type: cross_attention, heads: {heads}, in: {{memory: text}}}}}}"
READERS = """recipe: named
inputs: {{x: "float[batch, time, 16]", text: "{type}"}}
graph:
  start: {{type: linear, out: 16, in: x}}
{readers}
"""
PAPERS = Path(__file__).parent / "papers"


def text_of(count: int, type_: str = "float[batch, words, 24]") -> str:
    """Return a model in which so many blocks read its second input."""
    lines = (
        f"  cross{number}: {CROSS.format(heads=2**number)}\n  wider{number}: {{type: linear, out: {32 + 16 * number}}}"
        for number in range(count)
    )
    return READERS.format(type=type_, readers="\n".join(lines))


def drawn(text: str | Path, **options: object) -> Scene:
    """Return a drawing in which nothing is wrong."""
    scene = composer.load(text).draw(**options).scene  # type: ignore[arg-type]
    assert [fault for check in (overlaps, borders, ends, starts) for fault in check(scene)] == []
    return scene


def test_an_input_that_several_blocks_read_has_a_box() -> None:
    """In the row of inputs, with its type and an arrow to the name by which the blocks call it."""
    scene = drawn(text_of(3))
    boxes = {box.about.path: box for box in scene.boxes}
    assert [text.text for text in boxes["text"].texts] == ["Text", "B × words × 24 · float"]
    assert boxes["text"].area.bottom == boxes["x"].area.bottom and boxes["text"].area.right < boxes["x"].area.left
    assert [one.text.text for one in scene.references] == ["text"] * 4
    (arrow,) = (wire for wire in scene.wires if wire.source == "text" and not wire.target)
    (name,) = (one.text for one in scene.references if not one.target)
    assert arrow.arrow and 0 < arrow.points[-1][1] - name.area.bottom < 5


def test_of_few_readers_each_tells_that_it_is_an_input() -> None:
    """The box would stand farther away than what it tells."""
    scene = drawn(text_of(2))
    assert "text" not in {box.about.path for box in scene.boxes}
    assert [one.text.text for one in scene.references] == ["text (input)"] * 2


@pytest.mark.parametrize("options", [{"shapes": False}, {"level": "overview"}])
def test_where_no_types_are_told_there_is_no_box(options: dict[str, object]) -> None:
    """It would say nothing."""
    assert "text" not in {box.about.path for box in drawn(text_of(3), **options).boxes}


def test_a_page_with_room_above_its_first_column_is_no_wider() -> None:
    """The box stands there, and nothing leads to it; turned to the right, it begins where the column does."""
    path = PAPERS / "latent_diffusion.yaml"
    boxes = {box.about.path: box.area for box in drawn(path).boxes}
    assert boxes["text"].bottom < boxes["t"].top and boxes["t"].left < boxes["text"].left < boxes["text"].right < boxes["t"].right
    boxes = {box.about.path: box.area for box in drawn(path, direction="right").boxes}
    assert boxes["text"].left == boxes["time"].left and boxes["text"].bottom < boxes["time"].top


@pytest.mark.parametrize("options", [{}, {"direction": "right"}])
def test_a_value_that_goes_by_its_name_alone_has_an_arrow_to_that(options: dict[str, object]) -> None:
    """No wire leaves its box, which would seem to be read by nobody."""
    scene = drawn(PAPERS / "latent_diffusion.yaml", **options)
    (name,) = (one.text for one in scene.references if (one.source, one.target) == ("t", ""))
    (arrow,) = (wire for wire in scene.wires if wire.source == "t" and wire.style != "far")
    assert name.text == "t" and arrow.arrow and not arrow.target


def test_in_steps_it_comes_with_its_first_reader() -> None:
    """Its arrow and its name come with it."""
    shown = []
    for one in steps(composer.load(text_of(3)).draw()):
        scene = one.figure.scene
        box = any(box.about.path == "text" for box in scene.boxes)
        assert box == any(not one.target for one in scene.references)
        assert box == any(wire.source == "text" and not wire.target for wire in scene.wires)
        shown.append(box)
    assert shown[-1] and shown == sorted(shown)


STEPS = """recipe: steps
inputs: {{seen: "float[batch, time, 8]", {inputs}}}
graph:
  start: {{type: linear, out: 8, in: seen}}
  nothing: {{type: zeros, shape: [8], in: seen}}
  steps:
    scan: time
    in: {{x: start, h: nothing, {given}}}
    graph:
      both: {{type: concat, in: [x, {read}]}}
      cell: {{type: gru_cell, hidden: 8, in: {{x: both, h: h}}}}
    outputs: {{y: cell, h: cell}}
outputs: {{y: steps}}
"""


def steps_of(*names: str) -> str:
    """Return a recurrence of which each step takes in some inputs."""
    inputs = ", ".join(f'{name}: "float[batch, time, 4]"' for name in names)
    given = ", ".join(f"{name}: {name}" for name in names)
    return STEPS.format(inputs=inputs, given=given, read=", ".join(names))


def test_a_wire_leads_into_a_step_from_the_box_of_what_it_takes_in() -> None:
    """In the row of inputs, straight below its wire."""
    scene = drawn(steps_of("action"))
    boxes = {box.about.path: box for box in scene.boxes}
    assert [text.text for text in boxes["action"].texts] == ["Action", "B × T × 4 · float"]
    assert boxes["action"].area.bottom == boxes["seen"].area.bottom and boxes["action"].area.right < boxes["seen"].area.left
    (wire,) = (wire for wire in scene.wires if wire.source == "action")
    assert wire.target == "steps.both" and len(wire.points) == 3
    assert wire.points[0][0] == boxes["action"].x + boxes["action"].width / 2
    assert "action" not in {one.source for one in scene.references}


@pytest.mark.parametrize(
    "text",
    [
        steps_of("one", "two", "three"),
        steps_of("action").replace('"float[batch, time, 4]"', '{type: "float[batch, time, 4]", default: 0}'),
    ],
)
def test_many_inputs_of_a_step_and_those_that_may_be_missing_go_by_their_names(text: str) -> None:
    """Wires from all of them would be the figure."""
    scene = drawn(text)
    assert [box.about.path for box in scene.boxes if box.hue == "io"] == ["seen", "outputs/y"]


def test_what_the_column_itself_begins_with_goes_by_its_name_in_a_step() -> None:
    """A wire would go around all that is between; that it is an input, its box says."""
    scene = drawn(steps_of("seen").replace(', seen: "float[batch, time, 4]"', ""))
    assert [one.text.text for one in scene.references if one.source == "seen"] == ["seen"]


def test_a_wire_over_columns_leads_from_an_input_that_others_begin_with() -> None:
    """It forks from that of its own column."""
    first = "  first: {type: mean, axis: time, in: features}\n  nothing: {type: linear, out: 8, in: first}"
    scene = drawn(steps_of("features").replace("  nothing: {type: zeros, shape: [8], in: seen}", first))
    assert {wire.target for wire in scene.wires if wire.source == "features"} == {"first", "steps.both"}
