"""The small pictures in blocks cannot lie."""

from __future__ import annotations

import pytest
import torch

import composer
from blocks.core import Activation, Edge, standard
from blocks.masks.by_data import Documents, Valid
from blocks.masks.by_position import Causal, Full, Near, Window
from blocks.masks.operators import And, Or
from composer.draw.icons import CELLS, CURVES, REACH, STEPS, curve_icon, mask_icon
from tests.draw.cases import scenes

CURVED = sorted(kind for kind, part in standard()._parts.items() if issubclass(part, Activation))


@pytest.mark.parametrize("kind", CURVED)
def test_curves_are_those_of_the_activations(kind: str) -> None:
    """Each formula gives what the compiled activation gives."""
    recipe = composer.load(f"recipe: a\ninputs: {{x: 'float[batch, n]'}}\ngraph:\n  y: {kind}\n")
    model = recipe.compile()
    part = recipe.typed.root["y"].part  # type: ignore[union-attr]  # a block
    places = torch.linspace(-REACH, REACH, STEPS + 1)
    wanted = model(places[None]).y[0]
    found = torch.tensor([CURVES[type(part)](part, x) for x in places.tolist()])
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-4)


def test_curve_spans_the_square() -> None:
    """From its lowest to its highest number."""
    curve = curve_icon(standard()["relu"]())
    assert curve is not None
    assert curve.points[0] == (0, 0)
    assert curve.points[-1] == (1, 1)
    assert len(curve.points) == STEPS + 1


@pytest.mark.parametrize(
    ("mask", "rule"),
    [
        (Full(), lambda q, k: True),
        (Causal(), lambda q, k: k <= q),
        (And(left=Causal(), right=Window(width=4096)), lambda q, k: q - 3 < k <= q),
        (And(left=Causal(), right=Window(width=2)), lambda q, k: q - 2 < k <= q),
        (Or(left=Near(radius=256), right=Valid(flags=Edge("v"))), lambda q, k: abs(q - k) <= 2 or k < CELLS - 2),
        (And(left=Causal(), right=Documents(ids=Edge("d"))), lambda q, k: k <= q and q // 3 == k // 3),
    ],
)
def test_mask_icons_show_who_sees_whom(mask: object, rule: object) -> None:
    """Row by row, against a loop; large windows are drawn small."""
    seen = mask_icon(mask).seen  # type: ignore[arg-type]  # a mask
    assert seen == tuple(tuple(rule(q, k) for k in range(CELLS)) for q in range(CELLS))  # type: ignore[operator]  # a function


def test_inputs_that_may_be_left_out_are() -> None:
    """A predicate over them is true in the picture, as it is in the model."""
    assert mask_icon(And(left=Causal(), right=Valid(flags=Edge("v"))), frozenset(["v"])) == mask_icon(Causal())


def test_every_mask_of_the_zoo_and_of_generated_recipes_has_an_icon() -> None:
    """Some cell of every icon is filled: a mask that hides all shows nothing."""
    for _, _, scene in scenes("chunk 0", "block"):
        for box in scene.boxes:
            for placed in box.icons:
                seen = getattr(placed.icon, "seen", ((True,),))
                assert any(any(row) for row in seen)
