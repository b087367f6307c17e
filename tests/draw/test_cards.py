"""What stands for passes side by side looks like a stack of cards."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

import composer
from composer.draw.build.levels import Level
from composer.draw.scene import CARD_ROOM, CARDS, Direction, card_areas
from tests.draw.read_back import SVG, place
from tests.draw.test_closed_boxes import EXPERTS

RADIUS = 12.0
"""Of the corners of a frame, the rounder ones."""


def stacked(svg: str) -> dict[str, int]:
    """Return how many cards are seen behind each frame and box, by their paths; nothing for those without."""
    found = {}
    for group in ET.fromstring(svg).iter(f"{SVG}g"):
        kinds = (group.get("class") or "").split()
        lines = [one for one in group.findall(f"{SVG}path[@class='i']") if "a" in (one.get("d") or "")]
        if "frame" in kinds or ("node" in kinds and len(lines) > 1):
            front = place(group)
            for number, line in enumerate(lines, 1):
                x, y = map(float, re.findall(r"-?[\d.]+", line.get("d") or "")[:2])
                assert front.left < x < front.right, "it begins behind the front card"
                assert front.top - CARD_ROOM * number / CARDS < y < front.top + RADIUS
            if lines:
                found[group.get("data-id", "")] = len(lines)
    return found


@pytest.mark.parametrize("level", ["overview", "block", "full"])
@pytest.mark.parametrize("direction", ["up", "right"])
def test_passes_side_by_side_are_cards(level: Level, direction: Direction) -> None:
    """A frame as well as a closed box; layers one after the other are none."""
    assert stacked(composer.load(EXPERTS).draw(level, direction=direction).svg()) == {"experts": CARDS}
    assert stacked(composer.load(EXPERTS.replace(", in: stem}", "}")).draw(level, direction=direction).svg()) == {}


@pytest.mark.parametrize("level", ["overview", "block"])
@pytest.mark.parametrize("direction", ["up", "right"])
def test_nothing_is_written_on_cards(level: Level, direction: Direction) -> None:
    """Texts beside wires, and other boxes, stand clear of them."""
    scene = composer.load(EXPERTS).draw(level, direction=direction).scene
    cards = [*card_areas(scene.boxes, scene.frames)]
    assert cards
    written = [*(text.area for text in scene.texts), *(box.area for box in scene.boxes)]
    assert not [(area, card) for area in written for card in cards if area.meets(card)]
