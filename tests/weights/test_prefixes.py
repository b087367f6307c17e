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


def test_a_body_without_its_prefix_is_matched() -> None:
    """What is missing besides is listed by itself; what is passed over with the prefix is no mistake."""
    names = ("emb.w", "h.0.w", "h.1.w", "pooler.w")
    found = made().check(dict.fromkeys(names, (2,)))
    assert [(each.code, each.message) for each in found] == [("checkpoints-missing", "the checkpoint lacks 1 tensor: head.w")]
    match = made().match(names)
    assert match.difference is not None
    assert match.difference.message == "the names of 4 published tensors lack the prefix `base.`"
    assert match.found == {"base.emb.w": "emb.w", "base.h.0.w": "h.0.w", "base.h.1.w": "h.1.w", "base.pooler.w": "pooler.w"}
    assert (match.missing, match.strange, match.passed_over) == (("head.w",), (), ("base.pooler.w",))


@pytest.mark.parametrize("prefix", ["", "base.", "module.base.", "_orig_mod.base."])
def test_a_prefix_of_any_kind_leads_to_the_same_tensors(prefix: str) -> None:
    """None, that of the rules, and those of parallel and compiled modules of torch."""
    theirs = {f"{prefix}{name}": torch.full((2,), float(place)) for place, name in enumerate(("emb.w", "h.0.w", "h.1.w"))}
    loaded = made().load({**theirs, "head.w": torch.ones(2)})
    assert {name: float(tensor[0]) for name, tensor in loaded.items()} == {"e.w": 0, "l.0.w": 1, "l.1.w": 2, "head.w": 1}


def test_a_prefix_in_addition_is_removed_and_what_is_beside_it_refused() -> None:
    """By its own name; a tensor of another shape is refused as ever."""
    names = ("base.emb.w", "base.h.0.w", "base.h.1.w", "head.w", "other.w")
    shapes = {f"_orig_mod.{name}": (2,) for name in names}
    found = made().check(shapes)
    assert [(each.code, each.message) for each in found] == [
        ("checkpoints-unexpected", "no rule covers 1 published tensor: _orig_mod.other.w")
    ]
    wrong = made().check({**shapes, "_orig_mod.base.h.1.w": (3,)})
    assert wrong[-1].message == "base.h.1.w is 3 in the checkpoint, but 2 for this recipe"


def test_two_tensors_are_never_taken_for_one() -> None:
    """One with the prefix and one without it: the second is refused by its name."""
    names = ("base.emb.w", "emb.w", "base.h.0.w", "base.h.1.w", "head.w")
    (wrong,) = made().check(dict.fromkeys(names, (2,)))
    assert (wrong.code, wrong.message) == ("checkpoints-unexpected", "no rule covers 1 published tensor: emb.w")


@pytest.mark.parametrize("names", [("x.w", "y.w"), ("base.emb.w", "h.w", "w"), ("emb.q", "h.0.q", "h.1.q"), ()])
def test_names_that_differ_in_more_are_listed(names: tuple[str, ...]) -> None:
    """A prefix is taken for one only if most names differ in nothing else."""
    assert made().match(names).difference is None
    assert next(each.code for each in made().check(dict.fromkeys(names, (2,)))) == "checkpoints-missing"


def test_albert_without_its_head_lacks_the_head_alone() -> None:
    """As `AlbertModel` is saved: no name has `albert.`."""
    tiny = {"vocab": 11, "context": 4, "d_embed": 2, "d_model": 4, "n_layers": 2, "n_heads": 2, "hidden": 6}
    model = composer.load("albert", tiny).compile(seed=0)
    recipe = model.program.untyped.recipe
    assert recipe.checkpoints is not None
    shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    published = mapping(recipe.checkpoints, "albert", shapes).published
    body = {name.removeprefix("albert."): torch.zeros(shape) for name, shape in published.items() if name.startswith("albert.")}
    with pytest.raises(RecipeError) as error:
        load_published(model, body)
    (wrong,) = error.value.diagnostics
    assert wrong.code == "checkpoints-missing" and "predictions" in wrong.message and "albert" not in wrong.message
