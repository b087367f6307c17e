"""The zoo's recipes start as transformers' implementations do."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import PreTrainedModel

import composer
from composer.weights import mapping
from composer.weights.mapping import shapes_of
from tests.parity.reference import REFERENCE, published

WIDE = {"vocab": 128, "d_model": 96, "n_layers": 2, "n_heads": 4}
SIZES: dict[str, dict[str, Any]] = {
    "albert": {**WIDE, "d_embed": 40, "hidden": 160, "context": 64},
    "gpt2": {**WIDE, "context": 64},
    "llama3": {**WIDE, "n_kv_heads": 2, "hidden": 160},
    "mixtral": {**WIDE, "n_kv_heads": 2, "hidden": 32, "n_experts": 16},
    "t5": {**WIDE, "head_dim": 32, "hidden": 160, "buckets": 1024, "max_distance": 4096},
    "switch": {**WIDE, "head_dim": 32, "hidden": 160, "n_experts": 16, "buckets": 1024, "max_distance": 4096},
    "gemma3": {**WIDE, "n_kv_heads": 2, "head_dim": 32, "hidden": 160},
    "bert": {**WIDE, "context": 64, "hidden": 160, "n_token_types": 32},
    "vit": {"size": 64, "patch": 8, "d_model": 512, "n_layers": 1, "n_heads": 4, "hidden": 160, "n_classes": 32},
}


@pytest.mark.parametrize("name", SIZES)
def test_initial_weights_spread_as_in_transformers(name: str) -> None:
    """At sizes that tell the weights of one kind from those of another."""
    model = composer.load(name, overrides=SIZES[name]).compile(seed=0)
    torch.manual_seed(0)
    assert_same_spread(model, REFERENCE[name](SIZES[name]))


LONG_TAILED = ".recurrent_param"
"""Numbers whose sampled standard deviation says little, as the largest of them decide it."""


def assert_same_spread(model: composer.Model, reference: PreTrainedModel) -> None:
    """Assert that constants, tables and curves are equal, and means and standard deviations to their sampling errors."""
    rules = model.program.untyped.recipe.checkpoints
    assert rules is not None
    ours = model.state_dict()
    made = mapping(rules, reference.config.model_type, shapes_of(ours), model.program.untyped.params)
    theirs = published(reference)
    found = made.found(theirs)
    for key, mine in made.save(ours).items():
        other = theirs[found[key]]
        if other.std() == 0:
            assert torch.equal(mine, other), key
        elif not torch.allclose(mine, other, atol=1e-5):
            assert abs(mine.mean() - other.mean()) < 5 * (2 / mine.numel()) ** 0.5 * other.std(), key
            if key.endswith(LONG_TAILED):
                assert distance(mine, other) < 2 * (2 / mine.numel()) ** 0.5, key
                continue
            assert mine.std().item() == pytest.approx(other.std().item(), rel=max(0.05, 3 * mine.numel() ** -0.5)), key


def distance(one: torch.Tensor, other: torch.Tensor) -> float:
    """Return the greatest difference between the cumulative distributions of two samples (Kolmogorov and Smirnov)."""
    places = torch.cat([one.flatten(), other.flatten()])
    shares = [torch.searchsorted(sample.flatten().sort().values, places, right=True) / sample.numel() for sample in (one, other)]
    return (shares[0] - shares[1]).abs().max().item()
