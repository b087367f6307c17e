"""The parameters that a token meets: a part of the experts, and all of what is no expert."""

from __future__ import annotations

import pytest
from transformers import MixtralConfig

import composer

PUBLISHED = {"mixtral": 12_879_925_248, "qwen3_moe": 3_353_032_704, "gpt2": 124_439_808}
"""Mixtral of Experts, arXiv:2401.04088, says 13B; Qwen3 30B-A3B has 3.3B in its model card; all of GPT-2 is active."""


@pytest.mark.parametrize("name", PUBLISHED)
def test_active_parameters_are_those_of_the_experts_that_a_token_visits(name: str) -> None:
    """And are told where they are not all."""
    summary = composer.load(name).summary()
    assert summary.costs.active == summary.to_json()["active"] == PUBLISHED[name]
    assert (f"{PUBLISHED[name]:,}" in str(summary)) and ("active per token" in str(summary)) == (name != "gpt2")


def test_a_token_of_mixtral_meets_two_of_eight_experts() -> None:
    """Counted from its configuration."""
    sizes = MixtralConfig()
    idle = sizes.num_hidden_layers * 6 * 3 * sizes.hidden_size * sizes.intermediate_size
    costs = composer.load("mixtral").summary().costs
    assert costs.parameters - costs.active == idle


def test_experts_of_a_shared_layer_count_once() -> None:
    """One of four is visited, in a layer that is used twice."""
    inner = "{type: moe, experts: 4, expert: {type: ffn, hidden: 8, bias: false}, router: {type: switch_router, capacity: 2}}"
    recipe = composer.load(f"""
recipe: small
inputs: {{x: "float[batch, time, 8]"}}
graph:
  twice: {{repeat: 2, share: true, graph: {{mixed: {inner}}}}}
""")
    costs = recipe.summary().costs
    assert (costs.parameters, costs.active) == (4 * 8 + 4 * 128, 4 * 8 + 128)
