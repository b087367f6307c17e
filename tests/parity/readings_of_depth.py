"""Models whose tokens take other ways through the layers than one after another, as their papers say them, a text at a time."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from tests.parity.readings import Weights, attention


def hyper_connections(w: Weights, tokens: Tensor, valid: Tensor) -> Tensor:
    """Compute hyper-connections of Zhu et al. 2024, https://arxiv.org/abs/2409.19606, with two layers and three streams.

    Equations 1 to 5, and 10 to 14 for what depends on the token, one token at a time: h_0 = A_mᵀ H, then
    Ĥ = Bᵀ T(h_0)ᵀ + A_rᵀ H for each of attention and feed-forward. The rest is OLMo 1B: norms without parameters, RoPE, SwiGLU.
    """
    rows = []
    for row, real in zip(tokens, valid, strict=True):
        streams = torch.stack([w["embed.weight"][row]] * 3, 1)  # H^0, [T, n, D]: the embedding, n times
        for layer in range(2):
            for index, kind in ((2 * layer, "attn"), (2 * layer + 1, "ffn")):
                name = f"layers.{layer}.{kind}"
                alphas, betas = connections(w, name, streams, index)
                read = torch.stack([a[:, 0] @ h for a, h in zip(alphas, streams, strict=True)])
                body = look_back if kind == "attn" else swiglu
                written = body(w, f"{name}.written", normalized(read), real, heads=2)
                streams = torch.stack(
                    [b[:, None] * y + a[:, 1:].T @ h for a, b, y, h in zip(alphas, betas, written, streams, strict=True)]
                )
        rows.append(normalized(streams.sum(1)) @ w["embed.weight"].T)
    return torch.stack(rows)


def connections(w: Weights, name: str, streams: Tensor, index: int) -> tuple[list[Tensor], list[Tensor]]:
    """Compute (A_m | A_r) [n, n + 1] and B [n] of each token; the static ones start at (e_{k mod n} | I), and at ones."""
    n = streams.shape[1]
    start = torch.cat([torch.eye(n)[:, index % n, None], torch.eye(n)], 1).to(streams.dtype)
    alphas, betas = [], []
    for h in streams:
        alpha, beta = start + w[f"{name}.change.weight"], w[f"{name}.beta.weight"]
        if f"{name}.mixing.weight" in w:
            h = normalized(h)
            alpha = w[f"{name}.mixing_scale.weight"] * torch.tanh(h @ w[f"{name}.mixing.weight"].T) + alpha
            beta = w[f"{name}.writing_scale.weight"] * torch.tanh(h @ w[f"{name}.writing.weight"][0]) + beta
        alphas.append(alpha)
        betas.append(beta)
    return alphas, betas


def normalized(x: Tensor) -> Tensor:
    """Normalize without gain and bias."""
    return (x - x.mean(-1, keepdim=True)) / (x.var(-1, unbiased=False, keepdim=True) + 1e-5).sqrt()


def look_back(w: Weights, name: str, x: Tensor, real: Tensor, *, heads: int, places: Tensor | None = None) -> Tensor:
    """Compute causal attention among tokens at some places of a text, with rotated queries and keys."""
    places = torch.arange(len(x)) if places is None else places
    mask = (places[None] <= places[:, None]) & real
    q, k, v = (x @ w[f"{name}.{part}.weight"].T for part in "qkv")
    width = q.shape[1] // heads
    looked = []
    for head in range(heads):
        own = slice(head * width, head * width + width)
        shared = head * k.shape[1] // width // heads  # the key and the value that several heads have in common
        of = slice(shared * width, shared * width + width)
        looked.append(attention(turned(q[:, own], places), turned(k[:, of], places), v[:, of], mask))
    return torch.cat(looked, -1) @ w[f"{name}.out.weight"].T


def turned(x: Tensor, places: Tensor) -> Tensor:
    """Rotate channel i and channel i + D / 2 by place · 10000^(-2i / D)."""
    half = x.shape[1] // 2
    angles = places[:, None] * 10000 ** (-torch.arange(half, dtype=x.dtype) / half)
    a, b = x[:, :half], x[:, half:]
    return torch.cat([a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()], -1)


def swiglu(w: Weights, name: str, x: Tensor, real: Tensor | None = None, *, heads: int = 1) -> Tensor:
    """Compute the feed-forward layer of Shazeer 2020, which reads no other token."""
    gate = x @ w[f"{name}.gate.weight"].T
    return (gate * torch.sigmoid(gate) * (x @ w[f"{name}.up.weight"].T)) @ w[f"{name}.down.weight"].T


def early_exit(w: Weights, tokens: Tensor, valid: Tensor) -> Tensor:
    """Compute LayerSkip of Elhoushi et al. 2024, https://arxiv.org/abs/2404.16710, with three layers."""
    return exits(w, tokens, valid)[-1]


def exits(w: Weights, tokens: Tensor, valid: Tensor) -> list[Tensor]:
    """Compute what the one head gives after each of three layers: g(x_1), g(x_2), g(x_3), in the paper's words."""
    after: list[list[Tensor]] = [[], [], []]
    for row, real in zip(tokens, valid, strict=True):
        x = w["embed.weight"][row]
        for layer in range(3):
            name = f"layers.{layer}"
            x = x + look_back(w, f"{name}.attn.body", root_mean_square(w, f"{name}.attn.norm", x), real, heads=2)
            x = x + swiglu(w, f"{name}.ffn.body", root_mean_square(w, f"{name}.ffn.norm", x))
            after[layer].append(root_mean_square(w, "norm", x) @ w["head.weight"].T)
    return [torch.stack(each) for each in after]


def early_exit_loss(w: Weights, tokens: Tensor, valid: Tensor, scale: float) -> Tensor:
    """Compute the loss of section 4.1.2, J = Σ_l ẽ(l) J_BCE(g(x_l), Y), over ẽ(L - 1), with
    e(l) = scale · Σ_{i ≤ l} i below the last layer, and e(L - 1) = L - 1 + scale · Σ_{i ≤ L - 2} i.
    """
    last = 2 + scale * (0 + 1)
    weights = [scale * 0 / last, scale * (0 + 1) / last, 1.0]
    total = torch.zeros((), dtype=torch.float64)
    for weight, logits in zip(weights, exits(w, tokens, valid), strict=True):
        nats = [
            logits[b, t].logsumexp(-1) - logits[b, t, tokens[b, t + 1]]
            for b in range(tokens.shape[0])
            for t in range(tokens.shape[1] - 1)
            if valid[b, t] and valid[b, t + 1]
        ]
        total = total + weight * torch.stack(nats).mean()
    return total


def root_mean_square(w: Weights, name: str, x: Tensor) -> Tensor:
    """Divide by the root of the mean square, and multiply by the gain."""
    return w[f"{name}.weight"] * x / ((x**2).mean(-1, keepdim=True) + 1e-5).sqrt()


def mixture_of_depths(w: Weights, tokens: Tensor, valid: Tensor, *, training: bool = False, capacity: float = 0.4) -> Tensor:
    """Compute Mixture-of-Depths of Raposo et al. 2024, https://arxiv.org/abs/2404.02258, with two pairs of blocks and two heads.

    Equation 1: x_i^{l+1} = r_i f_i(X̃) + x_i for the tokens X̃ with the largest r, and x_i for the others; f is attention and what
    follows it, computed for the tokens of X̃ alone. In training these are `capacity` of the text's tokens; otherwise those that
    the second predictor of section 3.5 takes, which reads what the router reads, without a gradient.
    """
    rows = []
    for row, real in zip(tokens, valid, strict=True):
        x = w["embed.weight"][row]
        for pair in range(2):
            name = f"layers.{pair}"
            x = x + attend(w, f"{name}.attn.body", x, real, torch.arange(len(x)))
            x = x + transform(w, f"{name}.ffn.body", x)
            x = route(w, f"{name}.routed", x, real, capacity if training else None)
        rows.append(gained(w, "norm", x) @ w["embed.weight"].T)
    return torch.stack(rows)


def route(w: Weights, name: str, x: Tensor, real: Tensor, capacity: float | None) -> Tensor:
    """Compute a routed block, of the tokens with the largest weights or, without a capacity, of those that are guessed."""
    r = x @ w[f"{name}.router.weight"][0]
    if capacity is not None:
        best = sorted((t for t in range(len(x)) if real[t]), key=lambda t: -r[t].item())
        taken = sorted(best[: math.ceil(capacity * len(best))])
    else:
        hidden = (x.detach() @ w[f"{name}.guess_up.weight"].T + w[f"{name}.guess_up.bias"]).clamp(min=0)
        guess = hidden @ w[f"{name}.guess_down.weight"][0] + w[f"{name}.guess_down.bias"]
        taken = [t for t in range(len(x)) if guess[t] > 0 and real[t]]
    if not taken:
        return x
    places = torch.tensor(taken)
    few = x[places]
    looked = attend(w, f"{name}.attn", few, real[places], places)
    f = looked + transform(w, f"{name}.ffn", few + looked)
    return x.index_add(0, places, r[places, None] * f)


def attend(w: Weights, name: str, x: Tensor, real: Tensor, places: Tensor) -> Tensor:
    """Compute attention of normalized tokens."""
    return look_back(w, f"{name}.attn", gained(w, f"{name}.norm", x), real, heads=2, places=places)


def transform(w: Weights, name: str, x: Tensor) -> Tensor:
    """Compute a feed-forward network of normalized tokens."""
    hidden = gained(w, f"{name}.norm", x) @ w[f"{name}.ffn.up.weight"].T
    return hidden * (1 + torch.erf(hidden / 2**0.5)) / 2 @ w[f"{name}.ffn.down.weight"].T


def gained(w: Weights, name: str, x: Tensor) -> Tensor:
    """Normalize with a gain and without a bias."""
    return w[f"{name}.weight"] * normalized(x)
