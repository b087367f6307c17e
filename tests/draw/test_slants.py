"""Boxes that give fewer or more places than they read: slanted sides, in all formats, where wires meet them, and in words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

import composer
from composer.draw.build.levels import Level
from composer.draw.build.resolution import resolution
from composer.draw.layout.ends.slants import FREE, LEAST, border
from composer.draw.scene import Box, Direction, Side
from composer.graph.dims import Dim, symbol
from tests.draw.checks import borders, ends, overlaps, starts
from tests.draw.read_back import read
from tests.draw.read_slants import mislanted

PAPERS = Path(__file__).parent / "papers"
IMAGES = """recipe: images
inputs: {image: "float[batch, 3, 64, 64]"}
graph:
  stem: {type: conv2d, out: 8, kernel_size: 3, padding: 1}
  down: {type: conv2d, out: 16, kernel_size: 3, stride: 2, padding: 1}
  wide: {type: conv2d, out: 64, kernel_size: 1}
  up: {type: interpolate2d, scale: 2}
  few: {type: conv2d, out: 3, kernel_size: 1}
outputs: {y: few}
"""
ROWS = """recipe: rows
inputs: {x: "float[batch, time, 8]"}
graph:
  pairs: {type: rearrange, pattern: "b (t two) c -> b t (two c)", lengths: {two: 2}}
  first: {type: conv1d, out: 8, kernel_size: 3, stride: 2}
  start: {type: slice, axis: -2, stop: 3}
  linear: {type: linear, out: 64}
outputs: {y: linear}
"""
STAGES = """recipe: stages
inputs: {image: "float[batch, 3, 64, 64]"}
graph:
  all:
    repeat: 3
    graph:
      conv: {type: conv2d, out: 8, kernel_size: 3, stride: 2, padding: 1}
      relu: relu
  some:
    repeat: 3
    as: stage
    graph:
      conv: {type: conv2d, out: 8, kernel_size: 3, stride: 1 if stage == 1 else 2, padding: 1}
      relu: relu
outputs: {y: some}
"""


def boxes(recipe: str, level: Level = "block", direction: Direction = "up") -> dict[str, Box]:
    """Return the boxes of a figure by their paths."""
    scene = composer.load(recipe).draw(level, direction=direction).scene
    return {box.about.path: box for box in scene.boxes}


def slants(recipe: str, level: Level = "block", direction: Direction = "up") -> dict[str, Side]:
    """Return at which side boxes are narrower, of those that are so."""
    return {path: box.slant.toward for path, box in boxes(recipe, level, direction).items() if box.slant}


def test_a_box_is_narrower_where_fewer_places_leave_and_where_few_come_in() -> None:
    """Not where only channels change; the description tells how many there are."""
    assert slants(IMAGES) == {"down": "top", "up": "bottom"}
    assert slants(IMAGES, direction="right") == {"down": "right", "up": "left"}
    assert "fewer places: 64 × 64 → 32 × 32" in boxes(IMAGES)["down"].about.description


def test_rows_of_an_open_length_count() -> None:
    """A half of them is fewer whatever their number; what is cut off is no other resolution."""
    found = slants(ROWS)
    assert found.get("first") == found.get("pairs") == "top" and {*found} == {"pairs", "first"}


def test_a_box_of_several_passes_is_slanted_if_all_are() -> None:
    """As a closed box, for what comes out of the last one."""
    assert slants(STAGES) == {"all.conv": "top"}
    assert slants(STAGES, "overview") == {"all": "top", "some": "top"}


TIME, HIGH = symbol("time"), symbol("height")


@pytest.mark.parametrize(
    ("before", "after", "places"),
    [
        ((2, 8, 64, 64), (2, 16, 32, 32), "fewer"),
        ((2, 64, 64, 8), (2, 32, 32, 16), "fewer"),
        ((2, 64, 128, 128), (2, 128, 64, 64), "fewer"),
        ((2, 5, 3, 64, 64), (2, 5, 8, 128, 128), "more"),
        ((2, 8, HIGH, HIGH), (2, 8, (HIGH + 1) // 2, (HIGH + 1) // 2), "fewer"),
        ((2, TIME, 8), (2, TIME // 2, 8), "fewer"),
        ((2, TIME, 8), (2, 2 * TIME, 8), "more"),
        ((2, TIME, 8), (2, TIME - 2, 8), ""),
        ((2, TIME, 8), (2, 16, 8), ""),
        ((2, 8, 64, 64), (2, 16, 64, 64), ""),
        ((2, 64, 64, 8), (2, 64, 64, 16), ""),
        ((2, 3, 128, 256), (2, 128, 256, 3), ""),
        ((2, 9, 9, 8), (2, 7, 7, 8), ""),
        ((2, 64, 8), (4, 32, 8), ""),
        ((2, 64), (2, 32), ""),
    ],
)
def test_what_becomes_of_places_is_told_by_shapes(before: Sequence[Dim], after: Sequence[Dim], places: str) -> None:
    """Neither channels nor another order of the axes nor a border that is cut off, and nothing of lengths that may be any."""
    assert resolution(before, after).places == places


@pytest.mark.parametrize("direction", ["up", "right"])
@pytest.mark.parametrize("paper", ["centernet", "hed", "latent_diffusion"])
def test_papers_have_slanted_boxes_where_their_nodes_change_the_resolution(paper: str, direction: Direction) -> None:
    """And wires that end at these sides, with all texts inside of them."""
    recipe = composer.load(str(PAPERS / f"{paper}.yaml"))
    figure = recipe.draw(direction=direction)
    drawn = read(figure.svg())
    assert sum(bool(box.corners) for box in drawn.boxes) > 4
    assert [*mislanted(drawn, recipe.program)] == []
    assert [fault for check in (overlaps, borders, ends, starts) for fault in check(figure.scene)] == []


def test_all_formats_have_their_own_shapes_for_them(tmp_path: Path) -> None:
    """Of DOT, a polygon whose ends differ; of Mermaid, a trapezoid; LaTeX has a name for such a box too."""
    figure = composer.load(IMAGES).draw()
    for ending in ("dot", "mmd", "tex"):
        figure.save(tmp_path / f"images.{ending}")
    dot, mermaid, tikz = ((tmp_path / f"images.{ending}").read_text() for ending in ("dot", "mmd", "tex"))
    assert len(re.findall("distortion", dot)) == 2 and "distortion=-0.0" in dot
    assert re.search(r'\[/"Convolution[^\n]*"\\\]', mermaid) and re.search(r'\[\\"Interpolation[^\n]*"/\]', mermaid)
    assert "(down)" in tikz and "(up)" in tikz


def test_words_are_free_of_the_sides_beside_them() -> None:
    """However wide they are: a long line makes a box slant less."""
    for path, box in boxes(str(PAPERS / "centernet.yaml")).items():
        if box.slant and box.slant.by > LEAST:
            for text in box.texts:
                for y in (text.area.top, text.area.bottom):
                    assert text.area.left - border(box, "left", (text.x, y))[0] > FREE - 0.01, path
                    assert border(box, "right", (text.x, y))[0] - text.area.right > FREE - 0.01, path


def test_each_of_several_stages_tells_its_shape() -> None:
    """Also one that keeps that of what it reads: else its wire alone would have none."""
    scene = composer.load(str(PAPERS / "centernet.yaml")).draw().scene
    stages = [box for box in scene.boxes if box.about.path.startswith("stages.")]
    shapes = [text for text in scene.texts if text.role == "shape"]
    assert len(stages) == 4
    assert all(any(0 < box.y - text.y < 30 and box.x < text.x < box.x + box.width for text in shapes) for box in stages)
