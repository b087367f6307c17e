"""What is no stream: values of which only the sizes count, losses, and layers that have something else."""

from __future__ import annotations

from collections import Counter

import pytest

import composer
from composer.draw.build.levels import Level
from composer.draw.geometry import PlacedIcon, Point, Swatch, Text
from composer.draw.scene import Box, Scene
from tests.draw.cases import PAPERS, scenes
from tests.draw.checks import pieces
from tests.draw.test_drawings import assert_every_edge


def scene(recipe: str, level: str = "block") -> Scene:
    """Return a drawing of a recipe of the zoo."""
    return composer.load(recipe).draw(level).scene  # type: ignore[arg-type]  # a level


def box(page: Scene, path: str) -> Box:
    """Return the box of a block."""
    (found,) = (one for one in page.boxes if one.about.path == path)
    return found


@pytest.mark.parametrize(("bias", "before", "stack"), [("bias", "embed", "encoder"), ("target_bias", "target_embed", "decoder")])
def test_stream_goes_past_a_bias_that_only_measures_it(bias: str, before: str, stack: str) -> None:
    """Straight up from the embedding into the layers; the box stands beside it, and says of what it reads the sizes."""
    page = scene("t5")
    (way,) = (wire.points for wire in page.wires if (wire.source, wire.target) == (before, stack))
    assert len({x for x, _ in way}) == 1
    assert not box(page, bias).x <= way[0][0] <= box(page, bias).x + box(page, bias).width
    assert [wire.style for wire in page.wires if wire.target == bias] == []
    assert f"sizes of {before.replace('embed', 'drop')}" in box(page, bias).about.description  # which passes on what it is given
    assert [wire.target for wire in page.wires if wire.source == bias] == [f"{stack}.attn.body"]


@pytest.mark.parametrize("case", ["zoo t5", "find bias_beside_a_lane", "find bias_below_a_turn"])
def test_what_is_measured_is_read_where_it_is(case: str) -> None:
    """The dotted wire begins at the block that gives the value, or on another wire from there; only full detail has it."""
    ((_, _, usual),) = scenes(case, "block")
    assert not [wire for wire in usual.wires if wire.style == "measured"]
    ((_, _, page),) = scenes(case, "full")
    measured = [wire for wire in page.wires if wire.style == "measured"]
    assert measured
    for wire in measured:
        start = wire.points[0]
        others = [other for other in page.wires if other.source == wire.source and other is not wire]
        givers = [thing for thing in (*page.boxes, *page.frames) if thing.about.path == wire.source]
        at_giver = any(start == pytest.approx((one.x + one.width / 2, one.y)) for one in givers)
        on_wire = any(on(start, a, b) for other in others for a, b in pieces(other))
        assert at_giver or on_wire, wire


def on(point: Point, a: Point, b: Point) -> bool:
    """Return whether a point lies on an upright or level line."""
    return all(min(a[axis], b[axis]) - 0.5 <= point[axis] <= max(a[axis], b[axis]) + 0.5 for axis in (0, 1))


def test_loss_of_two_stacks_stands_between_them() -> None:
    """One wire from the routers of either, none of them by its name, although the recipe names a dozen layers."""
    page = scene("switch")
    losses = [wire for wire in page.wires if wire.target == "losses.balance"]
    assert {wire.source for wire in losses} == {"encoder.ffn.body", "decoder.ffn.body"}
    assert len(losses) == 2
    assert all(wire.style == "loss" for wire in losses)
    at = box(page, "losses.balance").area
    routers = [box(page, f"{stack}.ffn.body.router").area for stack in ("encoder", "decoder")]
    assert routers[0].right < at.left < at.right < routers[1].left
    for wire, router in zip(sorted(losses, key=lambda wire: wire.source, reverse=True), routers, strict=True):
        assert router.top < wire.points[0][1] < router.bottom  # it starts at the router, not at the frame


def test_mixture_of_some_layers_opens() -> None:
    """With its experts, and a row for what the other layers have in its place."""
    page = scene("switch")
    for stack in ("encoder", "decoder"):
        assert sum(one.about.path.startswith(f"{stack}.ffn.body.expert.") for one in page.boxes) == 3
        (frame,) = (one for one in page.frames if one.about.path == f"{stack}.ffn.body")
        rows = [text.text for text in frame.texts if text.role == "row"]
        assert rows == ["6 of 12: Feed-forward", "6 of 12: Sparse MoE"]


@pytest.mark.parametrize("recipe", ["gemma3", "switch"])
def test_squares_of_rows_are_those_of_the_map(recipe: str) -> None:
    """As many layers of the map have a square's color as its row says."""
    page = scene(recipe)
    seen = 0
    for frame in (frame for frame in page.frames if frame.strip):
        cells = Counter(frame.kinds)
        for thing in (*page.boxes, *page.frames):
            for icon in thing.icons if thing.about.path.startswith(f"{frame.about.path}.") else ():
                if isinstance(icon.icon, Swatch):
                    row = nearest(icon, [text for text in thing.texts if text.role == "row"])
                    assert row.text.split(":")[0] == f"{sum(cells[kind] for kind in icon.icon.kinds)} of {len(frame.kinds)}"
                    seen += 1
    assert seen == {"gemma3": 2, "switch": 4}[recipe]


def nearest(icon: PlacedIcon, rows: list[Text]) -> Text:
    """Return the row that an icon stands in."""
    return min(rows, key=lambda row: abs(row.y - icon.area.bottom))


@pytest.mark.parametrize(
    ("recipe", "path", "word"), [("llama3", "layers.attn.body", "causal"), ("vit", "layers.attn.body", "bidirectional")]
)
def test_mask_is_also_said(recipe: str, path: str, word: str) -> None:
    """In a word, where the line has room for it."""
    assert any(text.text.endswith(f" · {word}") for text in box(scene(recipe), path).texts)


@pytest.mark.parametrize("recipe", ["transformer", "t5", "captioner"])
def test_keys_of_a_memory_stand_beside_the_query(recipe: str) -> None:
    """In full detail; what they are made of comes in from below, on the left."""
    page = scene(recipe, "full")
    ends = {
        one.about.path: one for one in page.boxes if one.about.path.endswith(("cross.body.q", "cross.body.k", "cross.body.v"))
    }
    assert len(ends) == 3
    assert len({one.y + one.height for one in ends.values()}) == 1
    for path, one in ends.items():
        (wire,) = (wire for wire in page.wires if wire.target == path)
        assert wire.points[-1] == pytest.approx((one.x + one.width / 2, one.y + one.height))


@pytest.mark.parametrize("level", ["overview", "block", "full"])
def test_second_outputs_that_only_nodes_inside_of_a_repeat_read_are_drawn(level: Level) -> None:
    """Nothing else reads the keys and values of the first block. Their lanes still cross that block at its back."""
    text = """
recipe: shared_keys
inputs: {x: "float[batch, time, 8]"}
graph:
  first: {type: attention, heads: 2}
  layers: {repeat: 2, graph: {attn: {type: attention, heads: 2, in: {k: first.k, v: first.v}}}}
"""
    assert "<svg" in composer.load(text).draw(level).svg()


def test_what_joins_the_stream_of_a_scan_stands_beside_its_way() -> None:
    """Below the scan, so that the stream goes straight up into it; a wire leads from the box to what reads it inside."""
    ((_, _, page),) = scenes("form selective_scan", "block")
    (frame,) = (one for one in page.frames if one.about.path == "ssm")
    (way,) = (wire.points for wire in page.wires if (wire.source, wire.target) == ("delta", "ssm"))
    assert len({x for x, _ in way}) == 1
    at = box(page, "a_log").area
    (way,) = (wire.points for wire in page.wires if (wire.source, wire.target) == ("a_log", "ssm.decay"))
    assert at.right < frame.area.right
    assert frame.area.bottom < at.top
    assert at.left <= way[0][0] <= at.right
    assert at.top <= way[0][1] <= at.bottom


def test_wires_into_a_box_keep_the_order_of_what_stands_beside_it() -> None:
    """So that none crosses another: boxes go straight in, and names below them."""
    ((_, _, page),) = scenes("form selective_scan", "overview")
    left = box(page, "ssm").area.left
    ways = [wire.points for wire in page.wires if wire.target == "ssm" and wire.points[-1][0] == left]
    heights = sorted((way[0][1], way[-1][1]) for way in ways)
    assert len(heights) == 5
    assert heights == sorted(heights, key=lambda pair: pair[1])
    assert [start == end for start, end in heights] == [True, True, False, False, False]


def test_noise_that_a_closed_block_draws_comes_in_by_its_name() -> None:
    """As in papers, where it has an arrow into each layer; what it is, the detail of the block tells."""
    recipe = composer.load(next(path for path in PAPERS if path.stem == "stylegan"))
    scene = recipe.draw().scene
    boxes = {one.about.path for one in scene.boxes if one.texts and "Style layer" in {text.text for text in one.texts}}
    assert {one.target for one in scene.references if one.text.text == "noise"} == boxes
    assert_every_edge("stylegan", recipe.program, scene)


HALVES = """recipe: halves
inputs: {x: "float[batch, 8, 4, 4]"}
graph:
  parts: {type: split, axis: -3, into: [left, right], in: x}
  conv: {type: conv2d, out: 4, kernel_size: 3, padding: 1, in: parts.right}
  joined: {type: concat, axis: -3, in: [parts.left, conv]}
outputs: {y: joined}
"""


def test_a_first_output_goes_off_at_the_side_where_the_second_one_is_not() -> None:
    """The second part of a split comes around to the block above, and the first one goes past that at its other side."""
    wires = {wire.target: wire for wire in composer.load(HALVES).draw().scene.wires if wire.source == "parts"}
    first, second = (wires[target].points for target in ("joined", "conv"))
    middle = second[-1][0]
    assert all(x <= middle for x, _ in first)
    assert all(x >= middle for x, _ in second)
