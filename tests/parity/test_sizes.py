"""At their default sizes the zoo's recipes have the parameters of the published models, by count, name and shape."""

from __future__ import annotations

import math

import pytest
import torch

import composer
from composer.graph.parameters import parameters
from composer.weights import mapping
from tests.parity.reference import REFERENCE, published


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("gpt2", 124_439_808),
        ("llama3", 8_030_261_248),
        ("gemma3", 999_885_952),
        ("mixtral", 46_702_792_704),
        ("albert", 11_221_680),
        ("bert", 109_514_298),
        ("vit", 86_567_656),
        ("t5", 222_903_552),
        ("switch", 619_339_008),
    ],
)
def test_default_sizes_are_the_published_ones(name: str, count: int) -> None:
    """Counted in the typed graph, in transformers' model on the meta device, and as published."""
    typed = composer.load(name).program
    ours = {entry.name: entry.parameter.shape for entry in parameters(typed) if not entry.tied_to}
    with torch.device("meta"):
        theirs = REFERENCE[name]({})
    assert sum(math.prod(shape) for shape in ours.values()) == count
    assert sum(parameter.numel() for parameter in theirs.parameters()) == count
    rules = typed.untyped.recipe.checkpoints
    assert rules is not None
    shapes = {key: tuple(tensor.shape) for key, tensor in published(theirs).items()}
    assert mapping(rules, theirs.config.model_type, ours, typed.untyped.params).check(shapes) == []
