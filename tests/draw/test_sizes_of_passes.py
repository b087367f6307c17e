"""Shapes in frames of passes that differ in size: what stands there is so in every pass, and lies on nothing."""

from __future__ import annotations

import re
from random import Random

import pytest

import composer
from tests.draw.cases import PAPERS
from tests.draw.checks import borders, ends, overlaps, starts
from tests.draw.read_back import Model, lies, read
from tests.draw.read_shapes import missized
from tests.draw.test_read_back import wrong

COUNT, MORE = 10, 200
WIDTHS = (8, 16, 32, 64, 128)
CHANGES = (
    "larger: {type: interpolate2d, scale: 2, mode: linear}",
    "smaller: {type: max_pool2d, kernel_size: 2}",
    "wide: {type: conv2d, out: 2 * w, kernel_size: 1}",
    "mix: {type: residual, body: {type: conv2d, out: w, kernel_size: 3, padding: 1}}",
    "last: {type: conv2d, out: w, kernel_size: 7, padding: 3, when: layer > 1}",
)
"""What the passes of a repeat may have beside one convolution."""


def sized(seed: int) -> str:
    """Return a recipe of passes that grow, shrink or both, on images of a size or of any."""
    random = Random(seed)
    widths = [random.choice(WIDTHS) for _ in range(random.choice([2, 3, 4, 5, 8]))]
    order = random.choice([None, False, True])
    if order is not None:
        widths.sort(reverse=order)
    size = random.choice(["height, width", "16384, 16384", "16384, 49152"])
    some = [one for one in CHANGES if random.random() < 0.4]
    body = "\n".join(f"      {one}" for one in [*some[:1], "conv: {type: conv2d, out: w, kernel_size: 3, padding: 1}", *some[1:]])
    return f"""recipe: sized{seed}
inputs: {{x: "float[batch, 24, {size}]"}}
graph:
  stem: {{type: conv2d, out: {widths[0]}, kernel_size: 1}}
  many:
    repeat: {len(widths)}
    each: {{w: {widths}}}
    graph:
{body}
  head: {{type: conv2d, out: 3, kernel_size: 1}}
outputs: {{y: head}}
"""


@pytest.mark.parametrize(
    "seed", [*range(COUNT), *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(COUNT, MORE))]
)
def test_shapes_of_several_passes_are_told_as_they_are(seed: int) -> None:
    """Of each box and frame, in the order of its passes."""
    recipe = composer.load(sized(seed))
    scene = recipe.draw().scene
    assert wrong(recipe, "block") == []
    assert [fault for check in (overlaps, borders, ends, starts) for fault in check(scene)] == []


def test_stages_of_a_generator_tell_their_resolutions() -> None:
    """Not where a figure tells no shapes; and a size that is not so is found."""
    recipe = composer.load(next(path for path in PAPERS if path.stem == "stylegan"))
    svg = recipe.draw().svg()
    said = re.findall(r'class="m shape"[^>]*>([^<]*…[^<]*)<', svg)
    assert said == ["B × 512 … 32 × 8², 16², … 1024²", "B × 512 … 16 × 8², 16², … 1024²"]
    assert "1024²" not in recipe.draw(shapes=False).svg()
    for planted in (svg.replace(said[0], said[1]), svg.replace(said[0], said[0].replace("16²", "32²"))):
        assert len([*missized(planted, read(planted), recipe.program)]) == 1


@pytest.mark.parametrize(
    ("paper", "there", "planted"),
    [
        ("stylegan", "512 → 256 → 128 → 64", "512 → 128 → 256 → 64"),
        ("stylegan", "512 → 512 → 256", "512 → 256 → 256"),
        ("stylegan", "in and out 512, 512, 512, 256", "in and out 512, 512, 256, 256"),
        ("tensor_fusion", "35 → 32 → 32 → 32", "32 → 35 → 32 → 32"),
        ("hed", "128 → 256 → 256 → 256", "128 → 128 → 256 → 256"),
        ("tacotron2", "80 → 512 → 512", "512 → 80 → 512"),
    ],
)
def test_widths_of_all_passes_are_told_in_their_order(paper: str, there: str, planted: str) -> None:
    """As a chain, as those that a map keeps or as a list; another order is found."""
    recipe = composer.load(next(path for path in PAPERS if path.stem == paper))
    svg, model = recipe.draw().svg(), Model(recipe.program)
    assert there in svg and not [*lies(read(svg), model)]
    assert [*lies(read(svg.replace(there, planted)), model)]
