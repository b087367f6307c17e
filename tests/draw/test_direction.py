"""Figures whose stream runs to the right: nothing lies on anything else, and they say what those say whose stream runs up."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

import composer
from composer.draw.build.levels import LEVELS, Level
from composer.draw.figure import Figure, draw
from composer.draw.paths import is_output
from tests.draw.cases import CASES, MORE_CASES, each_of, programs
from tests.draw.checks import borders, ends, overlaps, starts
from tests.draw.read_back import Model, Picture, from_the_left, lies, loose, read


@cache
def figures(case: str, level: Level) -> tuple[tuple[str, Model, Figure], ...]:
    """Return the drawings of a case to the right."""
    return tuple((name, Model(typed), draw(typed, level, direction="right")) for name, typed in programs(case))


def picture(figure: Figure) -> Picture:
    """Return what a figure to the right shows."""
    return from_the_left(read(figure.svg()))


@each_of(CASES, MORE_CASES)
def test_nothing_lies_on_anything_else(case: str) -> None:
    """Texts have room, wires reach what they lead to, and borders go through nothing."""
    for name, _, figure in figures(case, "block"):
        scene = figure.scene
        assert [*overlaps(scene), *borders(scene), *ends(scene), *starts(scene)] == [], name


@each_of(CASES, MORE_CASES)
def test_a_picture_says_what_holds_in_every_pass(case: str) -> None:
    """Read back as every other: values, counts, colors of maps, arrowheads."""
    for name, model, figure in figures(case, "block"):
        assert [*lies(picture(figure), model), *loose(picture(figure))] == [], name


@pytest.mark.exhaustive
@pytest.mark.parametrize("level", [level for level in LEVELS if level != "block"])
@each_of(CASES)
def test_other_levels_hold_as_well(case: str, level: Level) -> None:
    """Closed repeats, and the pieces of blocks."""
    for name, model, figure in figures(case, level):
        scene = figure.scene
        assert [*overlaps(scene), *borders(scene), *ends(scene), *starts(scene)] == [], name
        assert [*lies(picture(figure), model), *loose(picture(figure))] == [], name


@pytest.mark.parametrize("name", ["gpt2", "gemma3", "mixtral", pytest.param("t5", marks=pytest.mark.slow)])
def test_it_says_what_the_other_direction_says(name: str) -> None:
    """The same nodes and wires, and in each box every word, but for what its picture tells."""
    up, right = (composer.load(name).draw(direction=direction) for direction in ("up", "right"))
    assert [box.about.path for box in up.scene.boxes] == [box.about.path for box in right.scene.boxes]
    assert {(wire.source, wire.target) for wire in up.scene.wires} == {(wire.source, wire.target) for wire in right.scene.wires}
    for one, other in zip(read(up.svg()).boxes, read(right.svg()).boxes, strict=True):
        lost = words(one.lines) - words(other.lines) - {"causal", "full"}
        assert not lost, one.path


def words(lines: list[str]) -> set[str]:
    """Return the words and numbers of a box."""
    return set(re.findall(r"\w+", " ".join(lines)))


@pytest.mark.parametrize("name", ["gpt2", "t5", "mixtral"])
def test_the_stream_runs_to_the_right(name: str) -> None:
    """What reads the stream stands right of what it reads."""
    scene = composer.load(name).draw("overview", direction="right").scene
    boxes = {box.about.path: box.area for box in scene.boxes}
    pairs = [(wire.source, wire.target) for wire in scene.wires if wire.style == "main" and not is_output(wire.target)]
    known = [(boxes[a], boxes[b]) for a, b in pairs if a in boxes and b in boxes]
    assert len(known) > 1 and all(a.right < b.left for a, b in known)
    assert scene.width > scene.height


def test_the_map_of_layers_begins_at_the_left() -> None:
    """A cell for each layer, in a row along the frame, with the numbers of those that differ above them."""
    scene = composer.load("gemma3").draw(direction="right").scene
    (frame,) = (one for one in scene.frames if one.strip)
    assert frame.strip and frame.strip.width > 20 * frame.strip.height and frame.strip.area.bottom < frame.y
    cell = frame.strip.width / len(frame.strip.kinds)
    for tick in frame.strip.ticks[1:]:
        number = int(tick.text)
        assert frame.strip.x + cell * number < tick.x < frame.strip.x + cell * (number + 1)
    assert read(composer.load("gemma3").draw(direction="right").svg()).frames[0].cells


def test_a_long_stream_goes_on_in_further_rows() -> None:
    """Each no longer than a page is wide, from the left again, below the one before."""
    figure = composer.load("gpt2").draw(unroll={"layers": "0:3"}, direction="right")
    places = {box.about.path: box.area for box in figure.scene.boxes}
    assert figure.scene.width <= 2000 and places["tokens"].bottom < places["head"].top


def test_other_formats_and_engines_run_to_the_right(tmp_path: Path) -> None:
    """Mermaid says so, and Graphviz lays out in ranks from left to right."""
    figure = composer.load("gpt_mini").draw(direction="right")
    figure.save(tmp_path / "right.mmd")
    assert "\nflowchart LR\n" in (tmp_path / "right.mmd").read_text(encoding="utf-8")
    boxes = {box.about.path: box for box in composer.load("gpt_mini").draw(direction="right", engine="dot").scene.boxes}
    assert boxes["tokens"].x < boxes["embed"].x < boxes["norm"].x < boxes["head"].x
