"""Whether a mask looks ahead: against its predicate, for every kind of mask and their combinations."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from blocks.core import NodeRef
from blocks.masks.block_masks import BlockWindow, Chunk, Dilated, Strided
from blocks.masks.data_masks import Documents, GlobalTokens, Pairs, Prefix, Valid
from blocks.masks.mask import Mask
from blocks.masks.operators import And, Not, Or
from blocks.masks.order import FAR, first_ahead, needs_end
from blocks.masks.position_masks import Causal, Full, GlobalFirst, GlobalLast, Local, Lookahead, Window
from blocks.masks.random_mask import Random

MASKS = [
    *(
        Full(),
        Causal(),
        Lookahead(count=0),
        Lookahead(count=2),
        Window(width=1),
        Window(width=4),
        Local(radius=0),
        Local(radius=3),
    ),
    *(
        GlobalFirst(count=1),
        GlobalFirst(count=5),
        Chunk(length=1),
        Chunk(length=3),
        Strided(step=4),
        BlockWindow(block=1, radius=0),
    ),
    *(BlockWindow(block=3, radius=1), Dilated(width=1, step=3), Dilated(width=2, step=3), Random(count=2, block=1, seed=3)),
    *(Random(count=2, block=3, seed=3), Valid(flags=NodeRef("v")), Documents(ids=NodeRef("d")), Pairs(pairs=NodeRef("p"))),
    *(GlobalTokens(flags=NodeRef("v")), Prefix(length=4), Prefix(length=NodeRef("n"))),
]
PAIRS = [(q, k) for q in range(40) for k in range(q + 1, 41)]


class Widening(Mask, kind="widening"):
    """A predicate and nothing else: a query sees the key after it from position 200 on."""

    def allows(self, q: Any, k: Any, **edges: Any) -> Any:
        return (k <= q) | ((k == q + 1) & (q >= 200))


def may_see(mask: Mask, q: int, k: int, unknown: bool = True) -> bool:
    """Return whether a query may see a key after the first call, which holds the prefix, whatever the data are."""
    match mask:
        case And(left=left, right=right):
            return may_see(left, q, k, unknown) and may_see(right, q, k, unknown)
        case Or(left=left, right=right):
            return may_see(left, q, k, unknown) or may_see(right, q, k, unknown)
        case Not(mask=inner):
            return not may_see(inner, q, k, not unknown)
        case Prefix():
            return False
    return unknown if mask.edge_types() else bool(mask.allows(q, k))


def combined() -> list[Mask]:
    """Return the masks, what is not they, and each two joined."""
    joined = [join(left=one, right=other) for join in (And, Or) for one, other in product(MASKS, MASKS)]
    return [*MASKS, *(Not(mask=mask) for mask in MASKS), *joined]


def test_a_mask_looks_ahead_where_its_predicate_does() -> None:
    """The pair that is told is such a pair, and the first; where none is told, no pair is."""
    for mask in combined():
        found = first_ahead(mask)
        right = next((pair for pair in PAIRS if may_see(mask, *pair)), None)
        if right is not None:
            assert found == right, mask.expression()
        else:
            assert found is None or may_see(mask, *found), mask.expression()


@pytest.mark.parametrize("far", [1_000, 70_000, 200_000])
def test_what_looks_ahead_only_far_away_is_found(far: int) -> None:
    """Of which the first positions tell nothing; the larger its numbers, the farther it is looked at."""
    mask = Or(left=Causal(), right=Not(mask=Chunk(length=far)))
    q, k = first_ahead(mask) or (0, 0)
    assert k > q and q // far != k // far
    assert first_ahead(And(left=mask, right=Chunk(length=far))) is None
    assert far < FAR or first_ahead(Or(left=Causal(), right=Not(mask=Window(width=far)))) is not None


def test_a_predicate_alone_is_searched_near_and_sampled_beyond() -> None:
    """And under `causal and` nothing has to be known of it."""
    q, k = first_ahead(Widening()) or (0, 0)
    assert k == q + 1 >= 201
    assert first_ahead(And(left=Widening(), right=Causal())) is None


def test_a_prefix_counts_as_empty_unless_it_is_asked_for_or_may_be_absent() -> None:
    """All of it is there in the first call; where it is absent, every key is seen."""
    fixed, given = Prefix(length=4), Prefix(length=NodeRef("n"))
    for prefix in (fixed, given):
        mask = Or(left=Causal(), right=prefix)
        assert first_ahead(mask) is None
        assert first_ahead(mask, prefixes=True) == (0, 1)
        assert mask.prefixes() == (prefix.length,)
    assert first_ahead(Or(left=Causal(), right=given), frozenset({"n"})) == (0, 1)
    assert first_ahead(And(left=Causal(), right=given), frozenset({"n"})) is None


def test_the_end_is_needed_by_a_part_of_a_mask() -> None:
    """Also where it hides later keys."""
    assert needs_end(And(left=Causal(), right=Not(mask=GlobalLast(count=2))))
    assert not needs_end(And(left=Causal(), right=GlobalFirst(count=2)))
