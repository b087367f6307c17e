"""Large pictures of outer products tell the lengths of the vectors, and which of them end in a 1."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

import composer
from tests.draw.read_back import SVG

PRODUCT = """recipe: fusion
inputs: {{text: "float[batch, 40]", image: "float[batch, 12]", sound: "float[batch, 7]"}}
graph:
  t: {{type: pad, axis: last, {first}, in: text}}
  i: {{type: pad, axis: last, {second}, in: image}}
  s: {{type: pad, axis: last, {third}, in: sound}}
  fusion: {{compute: {formula}, axes: {axes}}}
outputs: {{y: fusion, third: s}}
"""
ONE, ZERO = "after: 1, value: 1", "after: 1"
"""With a 1 behind it, and with a 0."""
AXES = {2: "{t: b w, i: b places}", 3: "{t: b w, i: b places, s: b f}"}


def pictures(svg: str) -> dict[str, ET.Element]:
    """Return the large picture in each box that has one, by the path of the box."""
    nodes = ET.fromstring(svg).iter(f"{SVG}g")
    found = ((node.get("data-id", ""), node.find(f"{SVG}g[@class='picture']")) for node in nodes)
    return {path: picture for path, picture in found if picture is not None}


def corners(shape: ET.Element) -> list[tuple[float, float]]:
    """Return the corners of a path of straight lines."""
    steps = re.findall(r"([Mlhv])(-?[\d.]+)(?: (-?[\d.]+))?", shape.get("d") or "")
    x = y = 0.0
    points = []
    for kind, one, other in steps:
        dx, dy = {"h": (float(one), 0.0), "v": (0.0, float(one))}.get(kind, (float(one), float(other or 0)))
        x, y = (dx, dy) if kind == "M" else (x + dx, y + dy)
        points.append((round(x, 1), round(y, 1)))
    return points


@pytest.mark.parametrize("ones", [(ONE, ONE, ONE), (ONE, ZERO, ZERO), (ZERO, ONE, ZERO), (ZERO, ZERO, ONE), (ZERO, ZERO, ZERO)])
@pytest.mark.parametrize("many", [2, 3])
def test_edges_tell_lengths(ones: tuple[str, str, str], many: int) -> None:
    """Of each vector, with the 1 that a node appends, and not with a 0; on the front, the slice of a 1 lies at the end."""
    text = PRODUCT.format(first=ones[0], second=ones[1], third=ones[2], formula=" * ".join("tis"[:many]), axes=AXES[many])
    recipe = composer.load(text)
    (picture,) = pictures(recipe.draw().svg()).values()
    written = [text.text for text in picture.findall(f"{SVG}text")]
    sizes = [node.outputs["y"].sizes[1] for node in (recipe.program.root[name] for name in "tis"[:many])]  # type: ignore[union-attr]
    lengths = [f"{one - 1} + 1" if own == ONE else str(one) for one, own in zip(sizes, ones, strict=False)]
    assert written == [name + length for name, length in zip(("w = ", "", "f = "), lengths, strict=False)]
    shaded = picture.findall(f"{SVG}path[@class='light']")
    seen = [3, 3, 2] if many == 3 else [1, 1]  # the slice at the back is not seen on the front
    assert len(shaded) == sum(faces for faces, one in zip(seen, ones, strict=False) if one == ONE)
    borders = [corners(one) for one in picture.findall(f"{SVG}path[@class='i']") if "z" in (one.get("d") or "")]
    assert len(borders) == (3 if many == 3 else 1)
    front = borders[0]
    slices = [corners(one) for one in shaded if on(front, corners(one))]
    assert len(slices) == ones[:2].count(ONE)
    for one, side in zip(slices, [side for side in (0, 1) if ones[side] == ONE], strict=True):
        spans = [(min(at), max(at)) for at in zip(*one, strict=True)]
        whole = [(min(at), max(at)) for at in zip(*front, strict=True)]
        assert spans[1 - side] == whole[1 - side], "all along the other edge"
        assert spans[side][1 if side == 0 else 0] == whole[side][1 if side == 0 else 0], "at the right, or above"
        assert 0 < spans[side][1] - spans[side][0] < (whole[side][1] - whole[side][0]) / 3


def on(front: list[tuple[float, float]], part: list[tuple[float, float]]) -> bool:
    """Return whether a part lies on the front of a picture: it is a rectangle in it."""
    (left, right), (top, bottom) = ((min(at), max(at)) for at in zip(*front, strict=True))
    level = len({x for x, _ in part}) == len({y for _, y in part}) == 2
    return level and all(left <= x <= right and top <= y <= bottom for x, y in part)


PAIR = """recipe: p
inputs: {{p: "float[batch, {axis}]", q: "float[batch, 5]"}}
graph: {{y: {{compute: p * q, axes: {{p: b i, q: b j}}}}}}
"""


def test_unknown_lengths_keep_the_small_picture() -> None:
    """None of it is a number: an axis of the model has the letter that shapes have, and one with a long name has no picture."""
    (picture,) = pictures(composer.load(PAIR.format(axis="time")).draw().svg()).values()
    assert [one.text for one in picture.findall(f"{SVG}text")] == ["i = T", "j = 5"]
    assert not pictures(composer.load(PAIR.format(axis="measurements")).draw().svg())


@pytest.mark.parametrize("direction", ["up", "right"])
@pytest.mark.parametrize("theme", ["light", "slide"])
def test_pictures_lie_in_their_boxes(direction: str, theme: str) -> None:
    """With all that is written at them, and on no other text."""
    text = PRODUCT.format(first=ONE, second=ONE, third=ONE, formula="t * i * s", axes=AXES[3])
    for options in ({"direction": direction}, {"width": "160pt"}):
        scene = composer.load(text).draw(theme=theme, **options).scene  # type: ignore[arg-type]
        (box, icon), *others = ((box, icon) for box in scene.boxes for icon in box.icons if icon.picture)
        assert not others
        area = icon.area
        assert box.area.left < area.left < area.right < box.area.right
        assert box.area.top < area.top < area.bottom < box.area.bottom
        assert not any(text.area.meets(area) for text in box.texts)
        large = icon.picture
        assert large is not None
        for label in large.labels():
            assert 0 <= label.y <= large.height
