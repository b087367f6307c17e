"""The checks see what they are for: each of many ways to spoil a drawing is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

import composer
from composer.draw.export.svg import svg
from composer.draw.figure import draw
from composer.draw.geometry import Text
from composer.draw.scene import Box, Scene, WirePath
from tests.draw.checks import borders, overlaps, starts
from tests.draw.read_back import loose, read


def sound() -> Scene:
    """Return a drawing with a map of layers, icons, side inputs and wires of all kinds."""
    return draw(composer.load("gemma3").program).scene


def second(scene: Scene) -> Box:
    """Return the scene with a box in the middle of a wire."""
    return next(box for box in scene.boxes if box.about.path == "layers.attn.body")


def with_box(scene: Scene, box: Box) -> Scene:
    """Return the box in place of the one with its path."""
    return replace(scene, boxes=tuple(box if one.about.path == box.about.path else one for one in scene.boxes))


def with_text(scene: Scene, text: Text) -> Scene:
    """Return the scene with one more text on the page."""
    return replace(scene, texts=(*scene.texts, text))


def with_wire(scene: Scene, *points: tuple[float, float]) -> Scene:
    """Return the scene with one more wire, from a thing that has none."""
    return replace(scene, wires=(*scene.wires, WirePath("nothing", "nobody", points)))


def moved(box: Box, dx: float = 0, dy: float = 0) -> Box:
    """Return the border alone: what stands in it stays."""
    return replace(box, x=box.x + dx, y=box.y + dy)


def across(scene: Scene) -> Scene:
    """Return a wire through a box."""
    area = second(scene).area
    middle = (area.top + area.bottom) / 2
    return with_wire(scene, (area.left - 3, middle), (area.right + 3, middle))


def beside_a_wire(scene: Scene) -> Scene:
    """Return a wire that runs along another."""
    long = max(scene.wires, key=lambda wire: abs(wire.points[-1][1] - wire.points[0][1]) * (len(wire.points) == 2))
    return with_wire(scene, *long.points)


def through_the_map(scene: Scene) -> Scene:
    """Return a wire through the map of layers."""
    strip = next(frame.strip for frame in scene.frames if frame.strip)
    y = strip.y + strip.height / 2 + 1
    return with_wire(scene, (strip.x - 3, y), (strip.x + strip.width + 3, y))


def over_the_border(scene: Scene) -> Scene:
    """Return a text on the border of a frame, where nothing else is."""
    area = scene.frames[0].area
    return with_text(scene, Text(area.left, area.top + 50, "on the border", "shape"))


def taller(scene: Scene) -> Scene:
    """Return a box that reaches up to the next one."""
    box = second(scene)
    return with_box(scene, replace(box, y=box.y - 60, height=box.height + 60))


def icon_outside(scene: Scene) -> Scene:
    """Return the scene with an icon above its box."""
    box = next(box for box in scene.boxes if box.about.path == "layers.ffn.body")
    return with_box(scene, replace(box, icons=tuple(replace(icon, y=icon.y - 20) for icon in box.icons)))


def text_on_icon(scene: Scene) -> Scene:
    """Return a title where the curve is."""
    box = next(box for box in scene.boxes if box.about.path == "layers.ffn.body")
    return with_box(scene, replace(box, texts=(replace(box.texts[0], x=box.icons[0].x + 14, anchor="middle"), *box.texts[1:])))


SPOILED: list[tuple[Callable[[Scene], Scene], str]] = [
    (lambda s: with_text(s, replace(s.texts[0], x=s.texts[0].x + 1)), "lies on"),
    (lambda s: with_text(s, Text(1, s.height - 30, "outside", "shape", "start")), "leaves the page"),
    (lambda s: replace(s, height=s.height - 40), "leaves the page"),
    (lambda s: with_text(s, Text(second(s).x + 40, second(s).y + 2, "T", "shape")), "lies on layers.attn.body"),
    (lambda s: with_box(s, moved(second(s), dx=90)), "leaves its box"),
    (taller, "lies on"),
    (across, "crosses layers.attn.body"),
    (lambda s: with_wire(s, (0, s.texts[0].y - 4), (s.width, s.texts[0].y - 4)), "crosses `Gemma"),
    (lambda s: with_wire(s, (3, 90), (9, 97)), "is not upright"),
    (beside_a_wire, "runs on"),
    (through_the_map, "crosses the layers of layers"),
    (over_the_border, "goes through `on the border`"),
    (icon_outside, "leaves its box"),
    (text_on_icon, "lies on an icon"),
]


@pytest.mark.parametrize(("spoil", "told"), SPOILED, ids=range(len(SPOILED)))
def test_what_is_spoiled_is_found(spoil: Callable[[Scene], Scene], told: str) -> None:
    """And nothing was found before."""
    scene = sound()
    assert [*overlaps(scene), *borders(scene)] == []
    found = [*overlaps(spoil(scene)), *borders(spoil(scene))]
    assert any(told in one for one in found), found


def test_wires_that_start_at_nothing_are_found() -> None:
    """Inside of a frame, and where one starts at another that does not lead from its block either."""
    scene = sound()
    assert [*starts(scene), *loose(read(svg(scene)))] == []
    area = second(scene).area
    higher = [(area.left - 3, area.top - 30 - at) for at in (0, 0, 200)]
    planted = [WirePath("layers.attn.body", "nobody", ((x, y), (x - 5, y), (x - 5, y - 9))) for x, y in higher]
    spoiled = replace(scene, wires=(*scene.wires, *planted))
    assert [*starts(spoiled)] == ["layers.attn.body → nobody starts elsewhere"] * 3
    assert [*loose(read(svg(spoiled)))] == ["layers.attn.body → nobody: the wire starts at nothing"] * 3
