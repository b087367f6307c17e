"""Attention of which another package has split the maps, as tensor parallelism does, without the module's knowledge."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import composer
from composer.lower import Model

SIZES = {"n_layers": 1, "d_model": 24, "n_heads": 4, "n_kv_heads": 2, "vocab": 13, "hidden": 10}
TOKENS = torch.tensor([[3, 1, 4, 1, 5]])


@pytest.fixture
def model() -> Model:
    """One layer with four heads of six channels, of which two share a key."""
    return composer.load("llama3", SIZES).compile(seed=1)


def share(linear: nn.Linear, part: int, parts: int, *, of_input: bool = False) -> nn.Linear:
    """Return a linear map with some rows or columns of another's matrix."""
    weight = linear.weight.chunk(parts, dim=int(of_input))[part]
    found = nn.Linear(weight.shape[1], weight.shape[0], bias=False)
    found.weight = nn.Parameter(weight.detach().clone())
    return found


def test_equal_shares_of_the_heads_sum_to_the_whole(model):
    """Each half has its own heads, as wide as before; the sum of what both put out is what the whole puts out."""
    whole: list[torch.Tensor] = []
    parts: list[torch.Tensor] = []
    model.layers[0].attn.body.register_forward_hook(lambda module, given, found: whole.append(found))
    model(TOKENS)
    for part in range(2):
        half = copy.deepcopy(model)
        attention = half.layers[0].attn.body
        attention._forward_hooks.clear()
        for name in ("q", "k", "v"):
            setattr(attention, name, share(getattr(attention, name), part, 2))
        attention.out = share(attention.out, part, 2, of_input=True)
        attention.register_forward_hook(lambda module, given, found: parts.append(found))
        half(TOKENS)
    torch.testing.assert_close(sum(parts), whole[0])


def test_a_split_that_the_keys_do_not_share_is_refused(model):
    """Queries would meet the keys of other heads."""
    attention = model.layers[0].attn.body
    attention.q, attention.out = share(attention.q, 0, 2), share(attention.out, 0, 2, of_input=True)
    with pytest.raises(ValueError, match="unequal shares of their heads"):
        model(TOKENS)


def test_a_split_inside_of_a_head_is_refused(model):
    """Heads would be narrower than they are."""
    attention = model.layers[0].attn.body
    for name in ("q", "k", "v"):
        setattr(attention, name, share(getattr(attention, name), 0, 3))
    with pytest.raises(RuntimeError, match="unflatten"):
        model(TOKENS)
