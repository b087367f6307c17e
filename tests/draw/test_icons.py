"""The small pictures in blocks cannot lie."""

from __future__ import annotations

import re

import pytest
import torch

import composer
from blocks.core import Activation, NodeRef, standard
from blocks.core.look import CURVE_PIECES, CURVE_REACH, Cells, Curve
from blocks.masks.data_masks import Documents, Valid
from blocks.masks.mask import CELLS, Mask
from blocks.masks.operators import And, Or
from blocks.masks.position_masks import Causal, Full, Local, Window
from tests.draw.cases import scenes

CURVED = sorted(kind for kind, part in standard()._parts.items() if issubclass(part, Activation))


@pytest.mark.parametrize("kind", CURVED)
def test_curves_are_those_of_the_activations(kind: str) -> None:
    """Each formula gives what the compiled activation gives."""
    recipe = composer.load(f"recipe: a\ninputs: {{x: 'float[batch, n]'}}\ngraph:\n  y: {kind}\n")
    model = recipe.compile()
    part = recipe.program.root["y"].part  # type: ignore[union-attr]  # a block
    places = torch.linspace(-CURVE_REACH, CURVE_REACH, CURVE_PIECES + 1)
    wanted = model(places[None]).y[0]
    found = torch.tensor([part.curve(x) for x in places.tolist()])
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-4)


def test_curve_spans_the_square() -> None:
    """From its lowest to its highest number."""
    curve = standard()["relu"]().icon()
    assert isinstance(curve, Curve)
    assert curve.points[0] == (0, 0)
    assert curve.points[-1] == (1, 1)
    assert len(curve.points) == CURVE_PIECES + 1


@pytest.mark.parametrize(
    ("mask", "rule"),
    [
        (Full(), lambda q, k: True),
        (Causal(), lambda q, k: k <= q),
        (And(left=Causal(), right=Window(width=4096)), lambda q, k: q - 3 < k <= q),
        (And(left=Causal(), right=Window(width=2)), lambda q, k: q - 2 < k <= q),
        (Or(left=Local(radius=256), right=Valid(flags=NodeRef("v"))), lambda q, k: abs(q - k) <= 2 or k < CELLS - 2),
        (And(left=Causal(), right=Documents(ids=NodeRef("d"))), lambda q, k: k <= q and q // 3 == k // 3),
    ],
)
def test_mask_icons_show_who_sees_whom(mask: Mask, rule: object) -> None:
    """Row by row, against a loop; large windows are drawn small."""
    seen = mask.cells().seen
    assert seen == tuple(tuple(rule(q, k) for k in range(CELLS)) for q in range(CELLS))  # type: ignore[operator]  # a function


EVERY = {
    "full": lambda q, k: True,
    "causal": lambda q, k: k <= q,
    "window(1000)": lambda q, k: abs(q - k) <= 2,
    "local(1000)": lambda q, k: abs(q - k) <= 2,
    "lookahead(1)": lambda q, k: k - q <= 1,
    "global_first(9)": lambda q, k: min(q, k) == 0,
    "global_last(9)": lambda q, k: max(q, k) == 7,
    "prefix(100)": lambda q, k: k in (0, 1, 2),
    "prefix(n)": lambda q, k: k in (0, 1, 2),
    "chunk(512)": lambda q, k: (q < 4) == (k < 4),
    "strided(64)": lambda q, k: q % 3 == k % 3,
    "dilated(5, 8)": lambda q, k: abs(q - k) in (0, 2),
    "block_window(64, 3)": lambda q, k: q // 2 - k // 2 in (-1, 0, 1),
    "random(1, 64, 0)": None,  # drawn by a hash
    "valid(v)": lambda q, k: k not in (6, 7),
    "documents(d)": lambda q, k: {0: 0, 1: 0, 2: 0, 3: 1, 4: 1, 5: 1}.get(q, 2) == {0: 0, 1: 0, 2: 0, 3: 1, 4: 1, 5: 1}.get(k, 2),
    "global_tokens(v)": lambda q, k: bool({q, k} & {1, 5}),
    "pairs(g)": lambda q, k: (3 * q + 5 * k) % 7 < 4,
    "not causal": lambda q, k: k > q,
    "causal and (local(2) or global_first(1)) and not strided(2)": lambda q, k: (
        (q >= k > q - 3 or q >= k == 0) and (q - k) % 2 == 1
    ),
}
"""Every mask by an expression, its numbers large where they are drawn small, and what its picture shows."""


@pytest.mark.parametrize("expression", EVERY)
def test_every_mask_is_drawn_by_its_predicate(expression: str) -> None:
    """As it comes out of a recipe, against a loop."""
    recipe = composer.load(
        "recipe: masks\nlanguage: 1\n"
        "inputs: {x: 'float[batch, time, 8]', v: 'bool[batch, time]', d: 'int[batch, time]', n: 'int[batch]', "
        "g: 'bool[batch, time, time]'}\n"
        f"graph:\n  y: {{type: attention, heads: 2, mask: '{expression}'}}\n"
    )
    (box,) = (box for box in recipe.draw().scene.boxes if box.about.path == "y")
    (placed,) = box.icons
    assert isinstance(placed.icon, Cells)
    rule = EVERY[expression]
    for q in range(CELLS):
        if rule is None:
            assert placed.icon.seen[q][: q // 2 * 2 + 2].count(True) == 2  # one block of two keys, not a later one
            assert True not in placed.icon.seen[q][q // 2 * 2 + 2 :]
        else:
            assert placed.icon.seen[q] == tuple(rule(q, k) for k in range(CELLS))


def test_every_kind_of_mask_is_among_them() -> None:
    """A new one wants a line above."""
    kinds = {kind for kind, part in standard()._parts.items() if issubclass(part, Mask)}
    assert kinds == {word for expression in EVERY for word in re.findall(r"[a-z_]{2,}", expression)} - {"and", "or", "not"}


def test_inputs_that_may_be_left_out_are() -> None:
    """A predicate over them is true in the picture, as it is in the model."""
    assert And(left=Causal(), right=Valid(flags=NodeRef("v"))).cells(frozenset(["v"])) == Causal().cells()


@pytest.mark.slow
def test_every_mask_of_the_zoo_and_of_generated_recipes_has_an_icon() -> None:
    """Some cell of every icon is filled: a mask that hides all shows nothing."""
    for _, _, scene in scenes("chunk 0", "block"):
        for box in scene.boxes:
            for placed in box.icons:
                seen = getattr(placed.icon, "seen", ((True,),))
                assert any(any(row) for row in seen)
