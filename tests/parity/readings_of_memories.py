"""Models whose attention is not to each token of a text alone, as their papers say them, one position at a time."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.parity.readings import Weights, add_norm, feed_forward


def transformer_xl(w: Weights, tokens: Tensor, valid: Tensor, lengths: list[int], *, kept: int) -> tuple[Tensor, list[Tensor]]:
    """Compute Transformer-XL of Dai et al. 2019, https://arxiv.org/abs/1901.02860, on one text, segment after segment: the
    logits, and what is remembered at its end of the last `kept` positions.

    Two layers and three heads; distances from 4 on are one.
    """
    memory, past, logits = [w["embed.weight"][:0]] * 2, valid[:0], []
    for some, real in zip(tokens.split(lengths), valid.split(lengths), strict=True):
        both = torch.cat([past, real])
        found, memory = segment(w, some, memory, both, kept=kept)
        past = both[-kept:]
        logits.append(found)
    return torch.cat(logits), memory


def segment(w: Weights, tokens: Tensor, memory: list[Tensor], real: Tensor, *, kept: int) -> tuple[Tensor, list[Tensor]]:
    """Compute the logits of a segment, [T] to [T, V], and what each layer remembers of it and of what it remembered before.

    Section 3.3, "the computational procedure for a N-layer Transformer-XL": h̃ = [SG(m), h], then queries of h and keys and values
    of h̃. What is padding in memory and segment is not among `real`.
    """
    heads, reach, width = 3, 4, w["embed.weight"].shape[1]
    h, remembered = w["embed.weight"][tokens] * width**0.5, []
    u, v = w["layers.0.attn.body.here.q.bias"], w["layers.0.attn.body.q.bias"]
    for layer, m in enumerate(memory):
        name = f"layers.{layer}"
        longer = torch.cat([m.detach(), h])  # h̃
        remembered.append(longer[-kept:].detach())
        q, k, values = (
            h @ w[f"{name}.attn.body.q.weight"].T,
            *(longer @ w[f"{name}.attn.body.here.{one}.weight"].T for one in "kv"),
        )
        rows = []
        for i in range(len(tokens)):
            seen = [j for j in range(len(m) + i + 1) if real[j]]
            looked = []
            for head in range(heads):
                part = slice(head * width // heads, (head + 1) * width // heads)
                scores = []
                for j in seen:
                    r = w[f"{name}.attn.body.r.weight"] @ wave(min(len(m) + i - j, reach), width)  # W_kR R_ij
                    words, distances = (q[i] + u)[part] @ k[j][part], (q[i] + v)[part] @ r[part]  # a and c, b and d
                    scores.append((words + distances) / (width / heads) ** 0.5)
                weights = torch.stack(scores).softmax(0) if scores else h.new_zeros(0)
                looked.append(weights @ values[seen][:, part])
            rows.append(torch.cat(looked))
        h = add_norm(w, f"{name}.attn.post_norm", h, torch.stack(rows) @ w[f"{name}.attn.body.out.weight"].T)
        h = add_norm(w, f"{name}.ffn.post_norm", h, feed_forward(w, f"{name}.ffn.body", h))
    return h @ w["embed.weight"].T + w["head.bias"], remembered


def wave(distance: int, width: int) -> Tensor:
    """Return R of a distance: sines, then cosines."""
    angles = distance / 10000 ** (torch.arange(0, width, 2, dtype=torch.float64) / width)
    return torch.cat([angles.sin(), angles.cos()])
