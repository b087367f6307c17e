"""Boxes with several inputs and outputs: each of these has a place of its own, and goes straight."""

from __future__ import annotations

from pathlib import Path

import pytest

import composer
from composer.draw.scene import Scene
from tests.draw.checks import borders, ends, overlaps, starts
from tests.draw.lane_shapes import lanes, parts
from tests.draw.read_back import Model, lies, loose, read
from tests.draw.test_drawings import assert_every_edge

PAPERS = Path(__file__).parent / "papers"
COUNT, MORE = 8, 200


def assert_true(name: str, text: str, level: str = "block", direction: str = "up") -> Scene:
    """Assert that all that a figure says holds, and that nothing lies on anything; return it."""
    recipe = composer.load(text)
    figure = recipe.draw(level, direction=direction)
    drawn = read(figure.svg())
    assert [*lies(drawn, Model(recipe.program)), *loose(drawn)] == [], name
    assert [fault for check in (overlaps, borders, ends, starts) for fault in check(figure.scene)] == [], name
    assert_every_edge(name, recipe.program, figure.scene)
    return figure.scene


@pytest.mark.parametrize("direction", ["up", "right"])
@pytest.mark.parametrize("level", ["overview", "block"])
@pytest.mark.parametrize(
    "seed", [*range(COUNT), *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(COUNT, MORE))]
)
def test_streams_through_closed_stages_are_told_as_they_are(seed: int, level: str, direction: str) -> None:
    """Two to four, which begin and end anywhere."""
    assert_true(f"lanes {seed}", lanes(seed), level, direction)


@pytest.mark.parametrize("direction", ["up", "right"])
@pytest.mark.parametrize(
    "seed", [*range(COUNT), *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(COUNT, MORE))]
)
def test_parts_of_a_split_are_led_to_what_reads_them(seed: int, direction: str) -> None:
    """Up to six, read alone or together."""
    assert_true(f"parts {seed}", parts(seed), "block", direction)
