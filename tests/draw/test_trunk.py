"""What stands on the trunk of a figure and what stands beside it, and how small plumbing is."""

from __future__ import annotations

from itertools import pairwise

import composer
from composer.draw.layout.boxes import LOW_LINE
from composer.draw.scene import Box, Scene
from tests.draw.checks import borders, ends, overlaps, starts
from tests.draw.read_back import Model, lies, loose, read
from tests.draw.test_drawings import assert_every_edge

TURNED = """recipe: turned
inputs: {points: "float[batch, n, 3]"}
graph:
  turn:
    in: {x: points}
    graph:
      wide: {type: linear, out: 9, in: x}
      most: {type: max, axis: n}
      square: {type: rearrange, pattern: "b (i j) -> b i j", lengths: {i: 3}}
      unit: {type: constant, over: {i: 3, j: 3}, value: i == j}
      matrix: {compute: square + float(unit), axes: {square: b i j, unit: i j}}
      turned: {type: einsum, pattern: "b n i, b i j -> b n j", in: [x, matrix]}
      product: {type: einsum, pattern: "b i j, b k j -> b i k", in: [matrix, matrix]}
      off: {compute: (product - float(unit)) ** 2, axes: {product: b i k, unit: i k}}
      rows: {type: sum, axis: last, in: off}
      all: {type: sum, axis: last}
      crooked: {type: mean, axis: batch}
    outputs: {x: turned, crooked: crooked}
  head: {type: linear, out: 4, in: turn}
outputs: {y: head}
losses: {crooked: {in: turn.crooked, weight: 0.1}}
"""


def box(scene: Scene, path: str) -> Box:
    """Return a box."""
    (found,) = (one for one in scene.boxes if one.about.path == path)
    return found


def test_what_only_a_loss_reads_is_beside_the_way_to_the_output() -> None:
    """In a column of its own, up from the value that it begins with; the output goes straight up, wherever nodes are written."""
    recipe = composer.load(TURNED)
    scene = recipe.draw().scene
    trunk = [box(scene, f"turn.{name}") for name in ("wide", "most", "square", "matrix", "turned")]
    aside = [box(scene, f"turn.{name}") for name in ("product", "off", "all", "crooked")]
    for column in (trunk, aside):
        assert len({round(one.x + one.width / 2, 3) for one in column}) == 1
        assert all(above.area.bottom < below.area.top for below, above in pairwise(column))
    assert all(one.area.left > max(each.area.right for each in trunk) for one in aside)
    (out,) = (wire for wire in scene.wires if wire.source == "turn.turned")
    assert len({x for x, _ in out.points}) == 1
    assert [one.text.text for one in scene.references if one.target == "turn.off"] == ["unit"]
    assert [fault for check in (overlaps, borders, ends, starts) for fault in check(scene)] == []
    assert_every_edge("turned", recipe.program, scene)
    picture = read(recipe.draw().svg())
    assert [*lies(picture, Model(recipe.program)), *loose(picture)] == []


def test_what_puts_numbers_elsewhere_is_low() -> None:
    """One line of small letters, which are not smaller than others; also in the middle of a column."""
    square = box(composer.load(TURNED).draw().scene, "turn.square")
    assert square.height == LOW_LINE
    assert [text.text for text in square.texts] == ["Rearrange", "b (i j) → b i j", "square"]
    assert len({text.y for text in square.texts}) == 1
    assert min(text.font.size for text in square.texts) >= 10


def test_a_long_detail_stands_alone() -> None:
    """So that a column is no wider for a box that computes nothing."""
    text = """recipe: long
inputs: {x: "float[batch, time, 1000]"}
graph:
  pairs: {type: rearrange, pattern: "batch time (maxout pair) -> batch time maxout pair", sizes: [500]}
  larger: {type: max, axis: last}
outputs: {y: larger}
"""
    pairs = box(composer.load(text).draw().scene, "pairs")
    assert [text.text for text in pairs.texts] == ["batch time (maxout pair) → batch time maxout pair"]
    assert pairs.width < 300
