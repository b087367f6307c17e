"""A drawing for the column of a paper can be read there."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

import composer
from composer.draw.figure import Figure, NotDrawn, draw
from tests.draw.cases import CASES, REST_CASES, each_case, each_of, programs
from tests.draw.checks import borders, overlaps, texts
from tests.draw.test_parameters import by_path, folded, holder, modules

NAMED = [case for case in CASES if not case.startswith("chunk")]


def smallest(svg: str) -> float:
    """Return the size in points of the smallest letters of a picture whose width is given in points."""
    root = ET.fromstring(svg)
    scale = float(root.attrib["width"].removesuffix("pt")) / float(root.attrib["viewBox"].split()[2])
    return scale * min(float(element.attrib["font-size"]) for element in root.iter() if element.tag.endswith("text"))


def column(case: str) -> Figure:
    """Return the first model of a case, 240 points wide."""
    return draw(programs(case)[0][1], width="240pt")


@each_of(NAMED, REST_CASES)
def test_letters_have_seven_points_in_a_column(case: str) -> None:
    """And nothing is cut short for it."""
    figure = column(case)
    assert smallest(figure.svg()) >= 7
    assert not [
        text.text for text in texts(figure.scene) if re.search(r"[^· ] ?…$", text.text)
    ]  # ` · …` says that there are more


@each_case
def test_nothing_lies_on_anything_else_there_either(case: str) -> None:
    """As on a page of its natural size."""
    for name, typed in programs(case):
        scene = draw(typed, width="240pt").scene
        assert [*overlaps(scene), *borders(scene)] == [], name


@each_of(NAMED, REST_CASES)
def test_all_parameters_are_there(case: str) -> None:
    """What stood beside a block is in it."""
    scene = column(case).scene
    things = by_path(scene)
    assert all(holder(folded(name), things) for name in modules(case)[0])
    told = sum(thing.about.parameters for thing in (*scene.boxes, *scene.merges, *scene.frames))
    assert told == sum(modules(case)[0].values())


def test_a_width_that_is_wide_enough_changes_nothing() -> None:
    """But the size."""
    recipe = composer.load("gpt2")
    assert recipe.draw(width="17cm").scene == recipe.draw().scene
    assert recipe.draw(width="100%").scene == recipe.draw().scene


@pytest.mark.parametrize("width", ["0", "0.0pt", "-1", "1e3", "nan", "240PT", " 240pt", "pt"])
def test_what_is_no_width_is_refused(width: str) -> None:
    """In words."""
    with pytest.raises(NotDrawn, match="is not a valid width"):
        composer.load("gpt2").draw(width=width)


@pytest.mark.slow
def test_long_titles_are_broken_into_lines() -> None:
    """Between words, and the figure stays as wide as it is."""
    scene = composer.load("gpt2").draw(width="240pt", title="What a small language model consists of, block by block").scene
    assert len([text for text in scene.texts if text.role == "heading"]) > 1
    assert 240 / scene.width * 10 >= 7
