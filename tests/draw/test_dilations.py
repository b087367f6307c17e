"""The fan of dilations tells what one position reads: as its recipe says, and as the compiled model does."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest
import torch

import composer
from composer.draw.details.fan import MAX_POSITIONS, MAX_ROWS
from tests.draw.read_back import SVG
from tests.draw.test_product_picture import corners

LAYERS = """recipe: layers
inputs: {{x: "float[batch, time, 3]"}}
graph:
  layers:
    repeat: {count}
    graph: {{{graph}}}
  head: {{type: linear, out: 2}}
outputs: {{y: head}}
"""
CONV = "{name}: {{type: conv1d, out: 3, kernel_size: {kernel}, dilation: {dilation}{more}}}"


def recipe(count: int, kernel: int, dilation: str, more: str = "", convolutions: int = 1, others: str = "relu: relu") -> str:
    """Return layers of convolutions."""
    convs = [CONV.format(name=f"conv{one}", kernel=kernel, dilation=dilation, more=more) for one in range(convolutions)]
    return LAYERS.format(count=count, graph=", ".join((*convs, others)))


def fan(text: str, **options: object) -> ET.Element | None:
    """Return the fan in a figure."""
    root = ET.fromstring(composer.load(text).draw(**options).svg())  # type: ignore[arg-type]
    return root.find(f"{SVG}g[@class='detail fan']")


def words(drawn: ET.Element) -> list[str]:
    """Return what is written in a fan."""
    return [(text.text or "").replace("\u00a0", " ") for text in drawn.findall(f"{SVG}text")]


def pairs(shape: ET.Element) -> set[tuple[tuple[float, float], tuple[float, float]]]:
    """Return where the lines of a path begin and end."""
    ways = re.findall("M[^M]+", shape.get("d") or "")
    found = [corners(ET.Element("path", d=way)) for way in ways]
    return {(way[0], way[-1]) for way in found}


def read_by_model(text: str, time: int) -> list[int]:
    """Return which positions of the input the middle one of a compiled model depends on, counted from itself."""
    torch.manual_seed(0)
    model = composer.load(text.replace("relu: relu", "act: tanh")).compile().double()
    x = torch.randn(1, time, 3, dtype=torch.double, requires_grad=True)
    model(x).y[0, time // 2].sum().backward()
    assert x.grad is not None
    return [place - time // 2 for place in range(time) if x.grad[0, place].abs().max() > 0]


CASES = [
    (4, 2, "2 ** layer", ", causal: true", 1),
    (3, 3, "2 ** layer", "", 1),
    (3, 3, "2 ** layer", ", causal: true", 1),
    (6, 2, "2 ** (layer % 3)", ", causal: true", 1),
    (3, 2, "2 ** layer", ", causal: true", 2),
    (3, 3, "3 ** layer", "", 1),
    (2, 3, "2 * (layer + 1)", "", 1),
    (7, 2, "2 ** layer", ", causal: true", 1),
]


@pytest.mark.parametrize(("count", "kernel", "dilation", "more", "convolutions"), CASES)
def test_lines_lead_to_what_is_read(count: int, kernel: int, dilation: str, more: str, convolutions: int) -> None:
    """From each position to those that the kernel reads; the bold ones are all that the end reads, down to the lowest row."""
    text = recipe(count, kernel, dilation, more, convolutions)
    drawn = fan(text)
    assert drawn is not None
    marks = drawn.find(f"{SVG}g[@class='k-embed']")
    assert marks is not None
    dots = {}
    for circle in marks.findall(f"{SVG}circle"):
        dots[float(circle.get("cx", "0")), float(circle.get("cy", "0"))] = circle.get("class") == "on"
    levels, across = (sorted({dot[side] for dot in dots}) for side in (1, 0))
    levels.reverse()
    assert len(dots) == len(levels) * len(across)
    assert 2 < len(levels) <= MAX_ROWS + 1
    assert len(across) <= MAX_POSITIONS
    each = [eval(dilation, {"layer": layer}) for layer in range(count) for _ in range(convolutions)]  # arithmetic
    light, bold = (pairs(one) for one in marks.findall(f"{SVG}path"))
    assert not light & bold
    expected = set()
    for row, gap in enumerate(each[: len(levels) - 1], 1):
        before = (kernel - 1) * gap // (1 if more else 2)
        for place in range(len(across)):
            for tap in range(kernel):
                below = place + tap * gap - before
                if 0 <= below < len(across):
                    expected.add(((across[place], levels[row]), (across[below], levels[row - 1])))
    assert light | bold == expected
    (end,) = (dot for dot, told in dots.items() if told and dot[1] == levels[-1])
    reached = {end}
    for _ in levels[1:]:
        reached |= {below for above, below in expected if above in reached}
    assert {dot for dot, told in dots.items() if told} == reached
    assert bold == {(above, below) for above, below in expected if above in reached}
    assert {min(across), max(across)} <= {x for x, y in reached if y == levels[0]}, "no row is wider than what is read"


@pytest.mark.parametrize(("count", "kernel", "dilation", "more", "convolutions"), CASES)
def test_words_tell_what_the_model_reads(count: int, kernel: int, dilation: str, more: str, convolutions: int) -> None:
    """How many positions, through all layers and in each stack of them."""
    drawn = fan(recipe(count, kernel, dilation, more, convolutions))
    assert drawn is not None
    said = words(drawn)
    assert said[:2] == ["Dilations", f"kernel {kernel}{', causal' * bool(more)}"]
    own = 3 if "%" in dilation else count
    read = {layers: read_by_model(recipe(layers, kernel, dilation, more, convolutions), 301) for layers in (own, count)}
    numbers = {}
    for layers, places in read.items():
        among = max(places) - min(places) + 1
        numbers[layers] = str(len(places)) if len(places) == among else f"{len(places)} of {among}"
    assert said[2] == f"what one position reads: {numbers[own]}" + (f" in each stack of {own} layers" if own < count else "")
    if own < count:
        assert said[3] == f"{numbers[count]} in all {count // own} stacks"


@pytest.mark.parametrize(
    "text",
    [
        recipe(4, 2, "2", ", causal: true"),
        recipe(4, 1, "2 ** layer"),
        recipe(4, 3, "2 ** layer", others="attn: {type: attention, heads: 1}"),
        recipe(4, 3, "2 ** layer", others="norm: {type: groupnorm, groups: 1}"),
        recipe(4, 3, "2 ** layer", others="rnn: {type: gru, hidden: 3}"),
        recipe(4, 3, "2 ** layer").replace("conv0: {", "conv0: {in: x, "),
    ],
)
def test_other_repeats_have_none(text: str) -> None:
    """One dilation in all layers, one position alone, what else mixes positions, and layers side by side."""
    assert fan(text) is None


def test_only_upright_figures_of_blocks_have_one() -> None:
    """As other details; it goes with its repeat where a figure is built up."""
    text = recipe(4, 2, "2 ** layer", ", causal: true")
    assert fan(text) is not None
    for options in (
        {"level": "overview"},
        {"direction": "right"},
        {"details": ("none",)},
        {"theme": "slide"},
        {"width": "160pt"},
    ):
        assert fan(text, **options) is None
    scene = composer.load(text).draw().scene
    assert scene.fan is not None
    assert scene.fan.area.right <= scene.width
    assert scene.fan.area.bottom <= scene.height
    taken = [*(box.area for box in scene.boxes), *(frame.area for frame in scene.frames), *(one.area for one in scene.texts)]
    assert not any(scene.fan.area.meets(area) for area in taken)
