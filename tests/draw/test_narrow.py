"""A flow for the column of a paper."""

from __future__ import annotations

from dataclasses import replace

from blocks.core import SideLook
from composer.draw.diagram import Leaf
from composer.draw.layout.boxes import PAD
from composer.draw.layout.narrow import fit_to_width, lines, small
from composer.draw.style.text_metrics import text_width
from composer.draw.style.typography import FONTS, Typography
from tests.draw.flows import flow, leaf


def test_lines_hold_all_words_in_their_order_and_fit() -> None:
    """Broken between facts where that can be, else between words."""
    said = "heads 12 · key-value heads 4 · a very long fact that has no room in a line"
    room = text_width("key-value heads 4 · a", FONTS["detail"].size)
    found = [line for _, line in lines("detail", said, room, Typography())]
    assert " ".join(found).replace("· ", "").split() == said.replace("· ", "").split()
    assert all(text_width(line, FONTS["detail"].size) <= room for line in found)
    assert found[:2] == ["heads 12", "key-value heads 4"]


def test_what_stood_beside_a_block_is_said_in_it() -> None:
    """So that nothing is left at its sides."""
    block = leaf("attn", "heads 4", title="Attention")
    block = replace(block, look=replace(block.look, sides=(SideLook("rope", "RoPE", ("θ = 500",)),)))
    (found,) = fit_to_width(replace(flow("attn: x"), items=(block,)), 240, Typography()).items
    assert isinstance(found, Leaf)
    assert found.look.sides == ()
    assert [line for _, line in found.lines] == ["Attention", "heads 4 · RoPE θ 500"]


def test_narrow_box_breaks_its_title() -> None:
    """Each line has room between the borders."""
    (found,) = fit_to_width(replace(flow("a: x"), items=(leaf("a", title="Multi-head self attention"),)), 90, Typography()).items
    assert isinstance(found, Leaf)
    assert len(found.lines) > 1
    assert all(text_width(line, 13, bold=True) <= 90 - 2 * PAD for _, line in found.lines)


def test_small_boxes_with_one_title_tell_the_same_facts() -> None:
    """Where one has no room for its last fact, the others do not tell that either, but what is left out in no other box."""
    first = ("conv 3 × 3 (8 → 16), stride 2", "BN")
    found = small(
        {
            "down": leaf("down", *first, title="Down"),
            "long": leaf("long", "conv 3 × 3 (8 → 8 → 8 → 16), stride 2", "norm " * 12, "BN", title="Down"),
            "up": leaf("up", *first, title="Up"),
        },
        132.0,
        Typography(),
    )
    said = {name: [line for _, line in one.lines] for name, one in found.items()}
    assert said["up"] == ["Up", "conv 3 × 3 (8 → 16),", "stride 2 · BN"]
    assert said["down"] == ["Down", "conv 3 × 3 (8 → 16),", "stride 2"]
    assert "BN" not in " ".join(said["long"])
