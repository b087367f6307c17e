"""At their default sizes the zoo's recipes have the parameters of the published models, by count, name and shape."""

from __future__ import annotations

import math

import pytest
import torch
from transformers import PreTrainedModel

import composer
from composer.graph.parameters import buffers, parameters
from composer.weights import mapping
from tests.parity.decoders import FAMILIES
from tests.parity.reference import REFERENCE, published
from tests.parity.tiers import recipe_of
from tests.zoo import PARAMETERS


@pytest.mark.parametrize("name", REFERENCE)
def test_default_sizes_are_the_published_ones(name: str) -> None:
    """Counted in the typed graph, in transformers' model on the meta device, and as published."""
    with torch.device("meta"):
        theirs = REFERENCE[name]({})
    assert_same_parameters(composer.load(name), theirs, PARAMETERS[name])


@pytest.mark.parametrize("name", FAMILIES)
def test_default_sizes_of_decoders_are_the_published_ones(name: str) -> None:
    """Counted as above; the published `config.json` has every value of the recipe, or is that of another of its kinds."""
    with torch.device("meta"):
        theirs = FAMILIES[name].whole()
    recipe = composer.load(recipe_of(name))
    configured = recipe.with_config(theirs.config.to_dict())
    assert (configured.program.untyped.params == recipe.program.untyped.params) == (name == recipe.name)
    assert_same_parameters(configured, theirs, FAMILIES[name].parameters or PARAMETERS[name])


LARGER = {
    "gpt_oss": ({"num_hidden_layers": 36, "num_local_experts": 128}, 116_829_156_672),
}
"""Of published models, those of another size than the recipe has, with what differs in their configurations."""


@pytest.mark.parametrize("name", LARGER)
def test_larger_models_have_the_published_parameters(name: str) -> None:
    """By the values of their `config.json` alone."""
    (changes, count), family = LARGER[name], FAMILIES[name]
    with torch.device("meta"):
        theirs = family.model(family.config(**{**family.published, **changes}))
    assert_same_parameters(composer.load(name).with_config(theirs.config.to_dict()), theirs, count)


def assert_same_parameters(recipe: composer.Recipe, theirs: PreTrainedModel, count: int) -> None:
    """Assert that both have so many numbers, in tensors of the same names and shapes."""
    typed = recipe.program
    ours = {entry.name: entry.parameter.shape for entry in parameters(typed) if not entry.tied_to}
    assert sum(math.prod(shape) for shape in ours.values()) == count
    kept = {name: buffer.shape for name, buffer in buffers(typed).items()}
    assert sum(parameter.numel() for parameter in theirs.parameters()) == count
    rules = typed.untyped.recipe.checkpoints
    assert rules is not None
    shapes = {key: tuple(tensor.shape) for key, tensor in published(theirs).items()}
    assert mapping(rules, theirs.config.model_type, ours | kept, typed.untyped.params).check(shapes) == []
