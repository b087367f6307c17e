"""The steps of a comparison, each against something simpler."""

from __future__ import annotations

from itertools import combinations, pairwise
from random import Random

import numpy as np

from blocks.masks.mask import Mask
from blocks.masks.operators import And, Not, Or
from blocks.masks.position_masks import Causal, Full, GlobalFirst, Local, Lookahead, Window
from composer.diff.align import _best_path
from composer.diff.mask_normal_forms import MaskForm

PREDICATES = [
    Full(),
    Causal(),
    Window(width=3),
    Local(radius=2),
    Local(radius=1),
    GlobalFirst(count=2),
    Lookahead(count=0),
    Lookahead(count=2),
]


def drawn(random: Random, depth: int) -> Mask:
    """Return a mask of a few predicates."""
    if not depth or random.random() < 0.2:
        return random.choice(PREDICATES)
    if random.random() < 0.2:
        return Not(mask=drawn(random, depth - 1))
    operator = random.choice([And, Or])
    return operator(left=drawn(random, depth - 1), right=drawn(random, depth - 1))


def seen(mask: Mask) -> tuple[bool, ...]:
    """Return who sees whom among eight positions."""
    return tuple(bool(mask.allows(q, k)) for q in range(8) for k in range(8))


def test_masks_of_one_normal_form_let_the_same_be_seen() -> None:
    """Thousands of pairs of expressions: equal forms mean equal matrices, and forms are equal where only the writing differs."""
    random = Random(7)
    masks = [drawn(random, 3) for _ in range(300)]
    keys = [MaskForm(mask).key(str) for mask in masks]
    equal = [(one, other) for one, other in combinations(range(len(masks)), 2) if keys[one] == keys[other]]
    assert len(equal) > 300
    assert all(seen(masks[one]) == seen(masks[other]) for one, other in equal)


def test_the_laws_of_logic_are_no_change() -> None:
    """De Morgan, distribution, absorption, and two names for one predicate."""
    a, b, c = Causal(), Window(width=3), GlobalFirst(count=2)
    for one, other in (
        (Not(mask=And(left=a, right=b)), Or(left=Not(mask=a), right=Not(mask=b))),
        (And(left=a, right=Or(left=b, right=c)), Or(left=And(left=c, right=a), right=And(left=b, right=a))),
        (Or(left=a, right=And(left=a, right=b)), a),
        (And(left=Full(), right=b), Local(radius=2)),
        (Lookahead(count=0), a),
    ):
        assert MaskForm(one).key(str) == MaskForm(other).key(str)
    assert MaskForm(a).key(str) != MaskForm(b).key(str)


def test_masks_of_very_many_predicates_are_compared_too() -> None:
    """In another order they are the same; with another number they are not."""
    windows: list[Mask] = [Window(width=width) for width in range(2, 16)]

    def joined(masks: list[Mask]) -> Mask:
        mask = masks[0]
        for other in masks[1:]:
            mask = And(left=mask, right=other)
        return mask

    assert MaskForm(joined(windows)).key(str) == MaskForm(joined(windows[::-1])).key(str)
    assert MaskForm(joined(windows)).key(str) != MaskForm(joined([*windows[:-1], Window(width=99)])).key(str)


def test_the_best_alignment_is_found() -> None:
    """Against all alignments of small tables."""
    random = np.random.default_rng(3)
    for _ in range(60):
        rows, columns = random.integers(1, 5, 2)
        gains = random.integers(0, 9, (rows, columns)).astype(float)
        best = max(
            sum(gains[r, c] for r, c in zip(left, right, strict=True))
            for count in range(min(rows, columns) + 1)
            for left in combinations(range(rows), count)
            for right in combinations(range(columns), count)
        )
        path = _best_path(gains)
        assert sum(gains[row, column] for row, column in path) == best
        assert all(one[0] < other[0] and one[1] < other[1] for one, other in pairwise(path))
