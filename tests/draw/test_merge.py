"""Passes of a repeat that differ, as one flow."""

from __future__ import annotations

from dataclasses import replace

import pytest

import composer
from blocks.core import Look, LoopIcon, SideLook
from composer.draw.build.levels import LEVELS, Level
from composer.draw.diagram import Flow, Leaf
from composer.draw.figure import draw
from composer.draw.layout.ends.shapes import shape_in
from composer.draw.passes.alike_kinds import merge_alike
from composer.draw.passes.merge_kinds import merge_passes
from composer.draw.passes.values import MAX_ROWS, all_values, completed, greatest, in_patterns, seen_in_all
from composer.draw.series import listed, one_each, shapes_in_order
from composer.draw.style.typography import Typography
from tests.draw.flows import flow, leaf


def of(*facts: str, parameters: int = 0, title: str = "Attention") -> Flow:
    """Return a pass of one block."""
    return replace(flow("attn: layer|"), items=(leaf("attn", *facts, title=title, parameters=parameters),))


def only(found: Flow | None) -> Leaf:
    """Return its block."""
    assert found is not None
    (item,) = found.items
    assert isinstance(item, Leaf)
    return item


def test_kinds_of_a_block_are_rows_with_their_shares() -> None:
    """The most facts in common are told once, what differs in the row."""
    found = only(
        merge_passes(
            [of("heads 4", "window 3", parameters=10), of("heads 4", "window 7", parameters=20)], [[0, 1, 2, 3, 5], [4, 6]]
        )
    )
    assert [row.share for row in found.rows] == ["5 of 7: window 3", "2 of 7: window 7"]
    assert found.look.facts == ("heads 4",)
    assert found.about.parameters == 30


def test_kinds_that_follow_one_another_tell_their_numbers_in_order() -> None:
    """In one line, where no other repeat is around that of the passes; else in rows."""
    looks = [of("32 → 32 + bias", "32 groups"), of("32 → 64 + bias", "64 groups")]
    found = only(merge_passes(looks, [[0, 1], [2]]))
    assert found.look.facts == ("32 → 32 → 32 → 64 + bias", "32, 32, 64 groups") and found.rows == ()
    assert len(only(merge_passes(looks, [[0, 1], [2]], inner=True)).rows) == 2
    found = only(merge_passes([of("32 → 32"), of("64 → 64")], [[0, 1], [2]]))
    assert found.look.facts == ("in and out 32, 32, 64",)
    assert len(only(merge_passes([of("32 → 32"), of("64 → 16")], [[0, 1], [2]])).rows) == 2


def test_passes_without_positions_say_so_beside_those_that_have_some() -> None:
    """A row that said nothing would look like one that was forgotten."""
    plain = of("heads 4")
    placed = plain.with_items([replace(item, look=replace(item.look, sides=(SideLook("rope", "RoPE"),))) for item in plain.items])
    found = only(merge_passes([placed, plain], [range(3), [3]]))
    assert [row.share for row in found.rows] == ["3 of 4: RoPE", "1 of 4: no positions"]
    assert only(merge_passes([placed, placed], [range(3), [3]])).rows == ()


def test_passes_that_say_the_same_have_no_rows() -> None:
    """Their parameters are added up."""
    found = only(merge_passes([of("heads 4", parameters=3), of("heads 4", parameters=4)], one_each(2)))
    assert found.rows == ()
    assert found.about.parameters == 7


def test_more_kinds_than_there_are_rows_for_are_told_by_their_numbers() -> None:
    """All values of the number that differs."""
    found = only(merge_passes([of(f"dilation {2**n}") for n in range(MAX_ROWS + 1)], one_each(MAX_ROWS + 1)))
    assert found.rows == ()
    assert found.look.facts == ("dilation 1, 2, 4, 8",)


def test_passes_of_other_nodes_are_not_merged() -> None:
    """Neither where a block is called differently, nor where there are more."""
    assert merge_passes([flow("a: x"), flow("b: x")], one_each(2)) is None
    assert merge_passes([flow("a: x"), flow("a: x", "b: a")], one_each(2)) is None


def test_edge_of_some_passes_is_partial() -> None:
    """Of those that all have, none is."""
    found = merge_passes([flow("a: x", "b: a"), flow("a: x", "b: a, x")], one_each(2))
    assert found is not None
    assert {(edge.source.path, edge.target): edge.partial for edge in found.edges} == {
        ("x", "a"): False,
        ("a", "b"): False,
        ("x", "b"): True,
    }


def test_other_blocks_in_one_place_read_the_stream_once() -> None:
    """Though their ports have other names: of a mixture in some passes and a dense block in the others, one wire leads there."""
    plain, named = flow("a: x", "b: a"), flow("a: x", "b: a")
    named = named.map_edges(lambda edge: replace(edge, port="x" if edge.target == "b" else edge.port))
    found = merge_passes([plain, named], one_each(2))
    assert found is not None and [(e.source.path, e.target, e.partial) for e in found.edges if e.target == "b"] == [
        ("a", "b", False)
    ]
    wires = draw(composer.load("jamba").program, "block").scene.wires
    assert [(wire.partial, wire.port) for wire in wires if wire.target == "layers.ffn.body.router"] == [(False, "")]


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        (["dilation 1", "dilation 2"], "dilation 1, 2"),
        (["window 4 of 8", "window 6 of 8"], "window 4, 6 of 8"),
        ([f"dilation {2**n}" for n in range(9)], "dilation 1, 2, 4, … 256"),
        (["a 1 2", "a 3 4"], "a 1 2 … a 3 4"),
    ],
)
def test_facts_that_differ_in_one_number_are_told_with_all_its_values(facts: list[str], said: str) -> None:
    """Of many the first ones and the last; others from the first to the last."""
    assert listed(facts) == said


def test_greatest_of_facts_that_differ_in_their_number() -> None:
    """By value and not by spelling; nothing where the words differ."""
    assert greatest(["dilation 8", "dilation 16", "dilation 2"]) == "dilation up to 16"
    assert greatest(["dilation 8", "stride 2"]) == ""


@pytest.mark.parametrize(
    ("masks", "said"),
    [
        (["causal", "causal"], "causal"),
        (["causal, window 8", "causal, window 16"], "causal, window 8, 16"),
        (["causal, window 8", "causal"], "causal, window 8 or causal"),
        (["causal", ""], "causal or no mask"),
        ([f"{word} 1" for word in "abcd"], "4 masks"),
    ],
)
def test_one_mask_is_shown_where_all_have_it(masks: list[str], said: str) -> None:
    """And one icon; else all masks that there are, or how many."""
    looks = [Look("Attention", icon=LoopIcon(), mask=mask, known_mask="seen") for mask in masks]
    icon, mask, known, _ = seen_in_all(looks)
    assert mask == said
    assert (icon, known) == ((LoopIcon(), "seen") if len({*masks}) == 1 else (None, ""))


def test_positions_that_some_passes_have_are_told() -> None:
    """Where there are more kinds than rows."""
    looks = [Look("Attention", (f"heads {n}",), sides=(SideLook("positions", "RoPE"),) * (n != 3)) for n in range(MAX_ROWS + 1)]
    flows = [replace(of(), items=(replace(leaf("attn"), look=look),)) for look in looks]
    found = only(merge_passes(flows, one_each(len(looks))))
    assert found.look.facts == ("heads 0, 1, 2, 3", "RoPE or no positions") and found.look.sides == ()


GROWING = """
recipe: growing
task: causal_lm
inputs: {tokens: "int[batch, time]"}
graph:
  embed: {type: embedding, vocab: 100, dim: 64}
  layers:
    repeat: 12
    each: {w: [8, 16, 32, 48, 8, 16, 32, 48, 8, 16, 32, 48]}
    graph:
      attn: {type: residual, norm: rmsnorm, body: {type: attention, heads: 4, mask: causal and window(w), positions: rotary}}
      ffn: {type: residual, norm: rmsnorm, body: {type: gated_ffn, hidden: 128}}
  head: {type: linear, out: 100}
outputs: {logits: head}
"""


@pytest.mark.parametrize("level", LEVELS)
def test_windows_of_more_kinds_than_rows_are_all_told(level: Level) -> None:
    """In the overview too, which had that of the first layer."""
    assert "causal, window 8, 16, 32, 48" in composer.load(GROWING).draw(level).svg()


def test_the_overview_tells_every_mask() -> None:
    """Of Gemma 3, whose layers have windows but for every sixth; with no picture of one of them."""
    scene = draw(composer.load("gemma3").program, "overview").scene
    (layers,) = [box for box in scene.boxes if any("causal, window 512 or causal" in text.text for text in box.texts)]
    assert layers.icons == ()


def test_what_is_usual_is_told_beside_what_is_not() -> None:
    """A dilation of 1 among those of 2 and 4."""
    looks = [Look("Convolution", ("8 → 8", *said), unsaid=("dilation 1",)) for said in ((), ("dilation 2",), ("dilation 4",))]
    assert [look.facts for look in completed(looks)] == [("8 → 8", f"dilation {n}") for n in (1, 2, 4)]
    assert all_values(looks[1:], one_each(2)) == ("8 → 8", "dilation 2, 4")
    assert completed(looks[:1]) == looks[:1]
    assert listed(["θ = 10\u00a0000", "θ = 160\u00a0000"]) == "θ = 10\u00a0000, 160\u00a0000"


def test_what_the_last_pass_says_is_that_of_its_kind() -> None:
    """Which may be one that comes before others."""
    looks = [Look("Map", said) for said in (("8 → 8", "bias"), ("8 → 8",), ("8 → 8", "tied", "scaled"), ("8 → 8", "frozen"))]
    assert all_values(looks, one_each(4)) == ("8 → 8", "bias in the first", "frozen in the last")
    third = ("8 → 8", "bias in the first", "tied in the last", "scaled in the last")
    assert all_values(looks, [(0,), (1,), (2, 4), (3,)]) == third
    assert all_values(looks, [(0, 4), (1,), (2,), (3,)]) == ("8 → 8", "bias in the first and the last")


def test_kinds_of_the_same_nodes_share_a_frame() -> None:
    """With the colors that they have in a map of all kinds."""
    wide, narrow, other = of("heads 4"), of("heads 2"), flow("attn: x", "more: attn")
    found = merge_alike([wide, other, narrow], [[0, 1, 4], [2, 5], [3]])
    assert [(one.kinds, one.passes) for one in found] == [((0, 2), 4), ((1,), 2)]
    assert [row.kinds for row in only(found[0].flow).rows] == [(0,), (2,)]


def test_stages_of_several_lengths_are_one_frame() -> None:
    """Whose layers are told apart by their place, where the numbers differ."""
    recipe = composer.load("resnet")
    frames = {frame.about.path: frame for frame in recipe.draw().scene.frames if frame.about.path}
    layers = frames["stages.layers"]
    assert layers.pill is not None and layers.pill.text == "× 3, 4, 6, 3"
    said = [frame.texts[0].text for frame in recipe.draw().scene.frames if not frame.about.path]
    assert said == ["after the first", "the first"]  # as everywhere, the most frequent kind is first


def test_passes_that_have_a_part_that_others_lack_are_told_in_rows() -> None:
    """The stride of all stages but the first: a series stands only for passes that differ in numbers."""
    scene = composer.load("resnet").draw().scene
    said = {box.about.path: [text.text for text in box.texts] for box in scene.boxes}
    assert said["stages.layers.shortcut"][1:] == [
        "conv 1 × 1 (64 → 256 … 1024 → 2048) · BN",
        "1 of 4: conv 1 × 1",
        "3 of 4: conv 1 × 1, stride 2",
    ]
    rows = [kind for frame in scene.frames for kind in frame.kinds]
    assert sorted(rows) == [0, 1, 2, 3]  # of the map, whose colors tell which


def test_what_differs_in_words_is_no_series() -> None:
    """All that there is, or how many kinds, in the place of what differs."""
    looks = [Look("Block", (f"conv {n} × {n}", said)) for n, said in ((3, "ReLU"), (5, "GELU"), (7, "GELU"), (9, "ReLU"))]
    assert all_values(looks, one_each(4)) == ("conv 3 × 3 … conv 9 × 9", "ReLU or GELU")
    assert in_patterns([Look("", look.facts[1:]) for look in looks]) == ((), {})


@pytest.mark.parametrize(
    ("shapes", "said"),
    [
        (["B × 8 × T", "B × 4 × T"], "B × 8, 4 × T"),
        (["B × 8", "B × 8", "B × 4", "B × 2"], "B × 8 … 2"),
        (["B × 8", "B × 16", "B × 4", "B × 8"], ""),  # none would expect 16 between 8 and 8
        (["B × (H / 2)", "B × (H / 4)", "B × (H / 8)", "B × (H / 16)"], "B × (H / 2) … (H / 16)"),
        (["B × 8", "B × T × 8"], ""),
        (["B × 8", ""], ""),
        (["B × 8, 4", "B × 4, 2"], ""),  # of a repeat in a repeat
    ],
)
def test_shapes_of_passes_are_one_in_their_order(shapes: list[str], said: str) -> None:
    """Of many passes the first and the last, where all others are between these."""
    assert shapes_in_order(shapes, one_each(len(shapes))) == said


def test_a_shape_of_passes_has_room_beside_the_wire_or_is_left_out() -> None:
    """As far as the box goes; a square stands for two equal axes where these have no room; other shapes stay as they are."""
    shape, text = "B × 512 … 16 × 8 … 1024 × 8 … 1024", Typography()
    wide = text.width(shape, "shape") + 8
    assert shape_in(shape, wide, text) == shape
    assert shape_in(shape, wide - 1, text) == "B × 512 … 16 × 8² … 1024²"
    assert shape_in(shape, wide / 2, text) == ""
    assert shape_in("B × 16 × 1024 × 1024", 10, text) == "B × 16 × 1024 × 1024"
