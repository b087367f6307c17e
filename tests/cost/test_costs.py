"""Parameters and memory in closed form, against published counts, torch's optimizer and figures worked out by hand."""

from __future__ import annotations

import pytest
import torch

import composer
from composer.cost.costs import Costs, costs
from composer.cost.lengths import axes, lengths_of
from composer.graph.task_signature import growing

PUBLISHED = {"gpt2": 124_439_808, "llama3": 8_030_261_248, "gemma3": 999_885_952}
NUMBERS_PER_TOKEN = {"gpt2": 12 * 2 * 768, "llama3": 32 * 2 * 8 * 128, "gemma3": 4 * 2 * 1 * 256, "mistral": 0}
"""Layers without a window times keys and values times heads of either times their width."""
NUMBERS_IN_WINDOWS = {"gpt2": 0, "llama3": 0, "gemma3": 22 * 2 * 1 * 256 * 512, "mistral": 32 * 2 * 8 * 128 * 4096}
"""The same for layers with a window, times its width."""


def costs_of(graph: str, *, inputs: str = "", outputs: str = "{logits: head}") -> Costs:
    """Return a language model of a width of 24 around some nodes, which read `embed`."""
    return costs(
        composer.load(
            f"recipe: counted\ntask: causal_lm\ninputs:\n  tokens: int[batch, time]\n{inputs}"
            f"graph:\n  embed: {{type: embedding, vocab: 61, dim: 24}}\n{graph}"
            f"  head: {{type: linear, out: 61, bias: false}}\noutputs: {outputs}\n"
        ).program
    )


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_of_the_zoo_are_the_published_ones(name: str) -> None:
    """Tied ones once, in whole numbers of bytes."""
    found = costs(composer.load(name).program)
    assert found.parameters == found.trainable == PUBLISHED[name]
    assert (found.weights("fp32"), found.weights("bf16")) == (4 * PUBLISHED[name], 2 * PUBLISHED[name])


@pytest.mark.parametrize("name", NUMBERS_PER_TOKEN)
def test_cache_of_the_zoo_is_keys_and_values_of_every_layer(name: str) -> None:
    """Shared heads are kept once; neither batch nor length of the text matters."""
    typed = composer.load(name).program
    for given in ({}, {"batch": 3}, {"time": 50}):
        found = costs(typed, given)
        assert found.cached_per_token == NUMBERS_PER_TOKEN[name]
        assert found.cache_per_token("fp32") == 2 * found.cache_per_token("bf16") == 4 * NUMBERS_PER_TOKEN[name]
        assert found.cache_in_windows("fp32") == 2 * found.cache_in_windows("bf16") == 4 * NUMBERS_IN_WINDOWS[name]


def test_adamw_keeps_two_numbers_for_each_trained_one() -> None:
    """Measured in torch's own optimizer after a step; its counters of steps are no state of a size."""
    tiny = {"n_layers": 2, "d_model": 16, "n_heads": 2, "vocab": 31, "context": 8, "graph.positions.trainable": False}
    recipe = composer.load("gpt2", overrides=tiny)
    found, model = costs(recipe.program), recipe.compile(seed=0)
    optimizer = torch.optim.AdamW(composer.param_groups(model, weight_decay=0.1))
    composer.loss(model, {"tokens": torch.arange(8).view(1, 8)}).total.backward()  # type: ignore[no-untyped-call]  # in torch
    optimizer.step()
    state = [tensor for each in optimizer.state.values() for tensor in each.values() if tensor.dim() > 0]
    assert sum(tensor.nbytes for tensor in state) == found.optimizer
    assert found.parameters - found.trainable == 8 * 16


def test_keys_and_values_from_required_ports_are_kept() -> None:
    """A block that is given them anew in each call has nobody else to keep them: 3 heads of 8 and of 2 channels."""
    primitives = """
  q: {type: linear, out: 48, in: embed}
  k: {type: linear, out: 24, in: embed}
  v: {type: linear, out: 6, in: embed}
  mixed: {type: scaled_dot_product, heads: 6, kv_heads: 3, mask: causal, in: {q: q, k: k, v: v}}
"""
    assert costs_of(primitives).cached_per_token == 24 + 6


def test_keys_and_values_of_another_attention_are_kept_there() -> None:
    """All of them, or the values alone."""
    one = "  one: {type: attention, heads: 4, kv_heads: 2, mask: causal}\n"
    both = one + "  two: {type: attention, heads: 4, kv_heads: 2, mask: causal, in: {x: one, k: one.k, v: one.v}}\n"
    values = one + "  two: {type: attention, heads: 4, kv_heads: 2, mask: causal, in: {x: one, v: one.v}}\n"
    assert costs_of(one).cached_per_token == costs_of(both).cached_per_token == 2 * 12
    assert costs_of(values).cached_per_token == 3 * 12


def test_what_does_not_grow_with_the_text_is_not_counted() -> None:
    """Keys of a memory of a length of its own, and what is dropped."""
    seen = "  seen: {type: cross_attention, heads: 4, mask: full, in: {x: embed, memory: memory}}\n"
    assert costs_of(seen, inputs="  memory: float[batch, source, 24]\n").cached_per_token == 0
    dropped = "  one: {type: attention, heads: 4, mask: causal, when: false}\n"
    assert costs_of(dropped).cached_per_token == 0


def test_only_language_models_have_a_cache_and_a_price_per_token() -> None:
    """A graph on features writes no text."""
    recipe = 'recipe: features\ninputs: {x: "float[batch, time, 24]"}\ngraph: {a: {type: attention, heads: 3, mask: causal}}\n'
    typed = composer.load(recipe).program
    found = costs(typed)
    assert growing(typed.untyped.recipe.task, typed.inputs) is None
    assert (found.cached_per_token, found.flops_per_token) == (0, None)
    assert found.flops.dense > 0


def test_lengths_that_are_not_given_are_the_usual_ones() -> None:
    """One sequence, as long as the context; where the recipe has none, 1024."""
    gpt2, llama = composer.load("gpt2").program, composer.load("llama3", overrides={"params.context": 77}).program
    assert axes(gpt2) == ("batch", "time")
    assert lengths_of(gpt2, {}) == {"batch": 1, "time": 1024}
    assert lengths_of(llama, {"batch": 5})["batch"] == 5
    memory = 'recipe: a\ninputs: {x: "float[batch, 2 * n, 6]"}\ngraph: {a: silu}\n'
    assert lengths_of(composer.load(memory).program, {}) == {"batch": 1, "n": 1024}
