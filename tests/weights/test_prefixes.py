"""Checkpoints whose names differ from the rules in a prefix."""

from __future__ import annotations

import pytest
import torch

import composer
from composer.diagnostics import RecipeError
from composer.weights import WeightMap, load_published, mapping
from tests.weights.written import written

RULES = "model: {rules: {e.w: base.emb.w, l.<i>.w: base.h.<i>.w, head.w: head.w}, ignore: [base.pooler.*]}"
OURS = {"e.w": (2,), "l.0.w": (2,), "l.1.w": (2,), "head.w": (2,)}


def made(text: str = RULES) -> WeightMap:
    """Return the map of some rules."""
    return mapping(written(text), None, OURS)


def test_a_body_without_its_prefix_is_told_by_the_prefix() -> None:
    """What is missing besides is listed by itself; what is passed over with the prefix is no mistake."""
    names = ("emb.w", "h.0.w", "h.1.w", "pooler.w")
    found = made().check(dict.fromkeys(names, (2,)))
    assert [(each.code, each.message, each.hint) for each in found] == [
        (
            "checkpoints-prefix",
            "the names of 4 published tensors lack the prefix `base.`, which is all that is different",
            "rules without `base.`, and `strip_prefix: base.`, fit files with and without it",
        ),
        ("checkpoints-missing", "the checkpoint lacks 1 tensor: head.w", ""),
    ]


def test_the_cure_cures() -> None:
    """The rules as the hint wants them fit files with the prefix and without it."""
    cured = made("model: {strip_prefix: base., rules: {e.w: emb.w, l.<i>.w: h.<i>.w, head.w: head.w}, ignore: [pooler.*]}")
    for prefix in ("", "base."):
        assert not cured.check({f"{prefix}{name}": (2,) for name in ("emb.w", "h.0.w", "h.1.w", "pooler.w", "head.w")})


def test_a_prefix_in_addition_is_told_too() -> None:
    """As compiled and parallel modules of torch have one."""
    names = ("base.emb.w", "base.h.0.w", "base.h.1.w", "head.w", "other.w")
    found = made().check({f"_orig_mod.{name}": (2,) for name in names})
    assert [(each.code, each.hint) for each in found] == [
        ("checkpoints-prefix", "`strip_prefix: _orig_mod.` removes it"),
        ("checkpoints-unexpected", "write a rule for it, or list it under `ignore`"),
    ]
    assert "4 published tensors have the additional prefix `_orig_mod.`" in found[0].message


@pytest.mark.parametrize("names", [("x.w", "y.w"), ("base.emb.w", "h.w", "w"), ("emb.q", "h.0.q", "h.1.q"), ()])
def test_names_that_differ_in_more_are_listed(names: tuple[str, ...]) -> None:
    """A prefix is named only if most names differ in nothing else."""
    assert "checkpoints-prefix" not in [each.code for each in made().check(dict.fromkeys(names, (2,)))]


def test_albert_without_its_head_is_told_from_another_model() -> None:
    """As `AlbertModel` is saved: all names lack `albert.`, and the head is missing."""
    tiny = {"vocab": 11, "context": 4, "d_embed": 2, "d_model": 4, "n_layers": 2, "n_heads": 2, "hidden": 6}
    model = composer.load("albert", tiny).compile(seed=0)
    recipe = model.program.untyped.recipe
    assert recipe.checkpoints is not None
    shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    published = mapping(recipe.checkpoints, "albert", shapes).published
    body = {name.removeprefix("albert."): torch.zeros(shape) for name, shape in published.items() if name.startswith("albert.")}
    with pytest.raises(RecipeError) as error:
        load_published(model, body)
    first, second = error.value.diagnostics
    assert first.code == "checkpoints-prefix" and "`albert.`" in first.message and "strip_prefix: albert." in first.hint
    assert second.code == "checkpoints-missing" and "predictions" in second.message and "albert" not in second.message
