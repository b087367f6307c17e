"""The lectures' own models, against their equations written out in plain torch, with the same weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import layer_norm

import composer

B, T, VOCAB = 2, 9, 13


def pair(name: str, sizes: Mapping[str, Any]) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """Return a text, the recipe's logits for it, and the recipe's weights, all moved at random, in float64."""
    model = composer.load(name, overrides={"vocab": VOCAB, **sizes}).compile(seed=0).double().eval()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64), alpha=0.3)
        tokens = torch.randint(VOCAB, (B, T), generator=generator)
        return tokens, model(tokens).logits, dict(model.state_dict())


def normed(x: Tensor, w: Mapping[str, Tensor], name: str) -> Tensor:
    """Return LayerNorm with the gain and the bias of a node."""
    return layer_norm(x, x.shape[-1:], w[f"{name}.weight"], w[f"{name}.bias"], 1e-5)


def test_mlp_lm_maps_the_last_vectors_side_by_side() -> None:
    """y = U tanh(H [x₍ₜ₋ₖ₊₁₎ … xₜ] + d) + b, one position after the other; zeros stand before the text (Bengio, eq. 1)."""
    reach, dim = 4, 6
    tokens, logits, w = pair("mlp_lm", {"d_model": dim, "reach": reach, "hidden": 7})
    h = w["window.weight"].transpose(1, 2).reshape(7, reach * dim)  # [hidden, k · D], the oldest vector first
    for row in range(B):
        for t in range(T):
            last = [
                w["embed.weight"][tokens[row, i]] if i >= 0 else torch.zeros(dim).double() for i in range(t - reach + 1, t + 1)
            ]
            y = w["head.weight"] @ torch.tanh(h @ torch.cat(last) + w["window.bias"]) + w["head.bias"]
            torch.testing.assert_close(logits[row, t], y)


def test_conv_lm_looks_twice_as_far_back_in_each_layer() -> None:
    """z = tanh(W_f * x) ⊙ σ(W_g * x), added to x through a matrix (van den Oord et al., eq. 2), here before each a norm."""
    tokens, logits, w = pair("conv_lm", {"d_model": 6, "n_layers": 3, "kernel": 2})
    x = w["embed.weight"][tokens]  # [B, T, D]
    for layer in range(3):
        name, dilation = f"layers.{layer}.conv", 2**layer
        n = normed(x, w, f"{name}.norm")
        before = torch.cat([torch.zeros(B, dilation, 6).double(), n], 1)[:, :T]  # what stood `dilation` positions earlier
        conv = {
            part: before @ w[f"{name}.body.{part}.weight"][..., 0].T
            + n @ w[f"{name}.body.{part}.weight"][..., 1].T
            + w[f"{name}.body.{part}.bias"]
            for part in ("filter", "gate")
        }
        z = torch.tanh(conv["filter"]) * torch.sigmoid(conv["gate"])
        x = x + z @ w[f"{name}.body.out.weight"].T + w[f"{name}.body.out.bias"]
    y = normed(x, w, "norm") @ w["head.weight"].T + w["head.bias"]
    torch.testing.assert_close(logits, y)


def test_the_lectures_block_is_its_six_steps() -> None:
    """Queries, keys and values of one head, the weighted sum itself added to the stream; norms after the sums."""
    tokens, logits, w = pair("lecture_block", {"d_model": 8, "hidden": 12})
    x = w["embed.weight"][tokens]
    q, k, v = (x @ w[f"attn.{name}.weight"].T for name in "qkv")  # [B, T, D]
    scores = q @ k.transpose(1, 2) / 8**0.5
    later = torch.ones(T, T, dtype=torch.bool).triu(1)
    a = scores.masked_fill(later, float("-inf")).softmax(-1) @ v
    x = normed(x + a, w, "attn_norm")
    f = torch.relu(x @ w["ffn.up.weight"].T + w["ffn.up.bias"]) @ w["ffn.down.weight"].T + w["ffn.down.bias"]
    x = normed(x + f, w, "ffn_norm")
    torch.testing.assert_close(logits, x @ w["head.weight"].T + w["head.bias"])
