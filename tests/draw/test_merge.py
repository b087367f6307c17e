"""Passes of a repeat that differ, as one flow."""

from __future__ import annotations

from dataclasses import replace

import pytest

from blocks.core import SideLook
from composer.draw.diagram import Flow, Leaf
from composer.draw.passes.merge_kinds import MAX_ROWS, greatest, listed, merge_passes
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
    found = only(merge_passes([of("heads 4", "window 3", parameters=10), of("heads 4", "window 7", parameters=20)], [5, 2]))
    assert [row.share for row in found.rows] == ["5 of 7: window 3", "2 of 7: window 7"]
    assert found.look.facts == ("heads 4",)
    assert found.about.parameters == 30


def test_passes_without_positions_say_so_beside_those_that_have_some() -> None:
    """A row that said nothing would look like one that was forgotten."""
    plain = of("heads 4")
    placed = plain.with_items([replace(item, look=replace(item.look, sides=(SideLook("rope", "RoPE"),))) for item in plain.items])
    found = only(merge_passes([placed, plain], [3, 1]))
    assert [row.share for row in found.rows] == ["3 of 4: RoPE", "1 of 4: no positions"]
    assert only(merge_passes([placed, placed], [3, 1])).rows == ()


def test_passes_that_say_the_same_have_no_rows() -> None:
    """Their parameters are added up."""
    found = only(merge_passes([of("heads 4", parameters=3), of("heads 4", parameters=4)], [1, 1]))
    assert found.rows == ()
    assert found.about.parameters == 7


def test_more_kinds_than_there_are_rows_for_are_told_by_their_numbers() -> None:
    """All values of the number that differs."""
    found = only(merge_passes([of(f"dilation {2**n}") for n in range(MAX_ROWS + 1)], [1] * (MAX_ROWS + 1)))
    assert found.rows == ()
    assert found.look.facts == ("dilation 1, 2, 4, 8",)


def test_passes_of_other_nodes_are_not_merged() -> None:
    """Neither where a block is called differently, nor where there are more."""
    assert merge_passes([flow("a: x"), flow("b: x")], [1, 1]) is None
    assert merge_passes([flow("a: x"), flow("a: x", "b: a")], [1, 1]) is None


def test_edge_of_some_passes_is_partial() -> None:
    """Of those that all have, none is."""
    found = merge_passes([flow("a: x", "b: a"), flow("a: x", "b: a, x")], [1, 1])
    assert found is not None
    assert {(edge.source.path, edge.target): edge.partial for edge in found.edges} == {
        ("x", "a"): False,
        ("a", "b"): False,
        ("x", "b"): True,
    }


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        (["dilation 1", "dilation 2"], "dilation 1, 2"),
        (["window 4 of 8", "window 6 of 8"], "window 4, 6 of 8"),
        ([f"dilation {n}" for n in range(9)], "dilation 0 … dilation 8"),
        (["a 1 2", "a 3 4"], "a 1 2 … a 3 4"),
    ],
)
def test_facts_that_differ_in_one_number_are_told_with_all_its_values(facts: list[str], said: str) -> None:
    """Others from the first to the last."""
    assert listed(facts) == said


def test_greatest_of_facts_that_differ_in_their_number() -> None:
    """By value and not by spelling; nothing where the words differ."""
    assert greatest(["dilation 8", "dilation 16", "dilation 2"]) == "dilation up to 16"
    assert greatest(["dilation 8", "stride 2"]) == ""
