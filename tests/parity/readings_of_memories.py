"""Models whose attention is not to each token of a text alone, as their papers say them, one position at a time."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.parity.readings import Weights, add_norm, affine, attention, feed_forward, layer_norm


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


def linformer(w: Weights, tokens: Tensor, valid: Tensor, *, shared: bool) -> Tensor:
    """Compute Linformer of Wang et al. 2020, https://arxiv.org/abs/2006.04768, one text at a time.

    Equation 7: head_i = softmax(Q (E K)ᵀ / sqrt(d)) (E V), of keys and values with one E, [n, k], in a layer or in all. Two
    layers, three heads, and 1 as the id of padding; the rest is RoBERTa, whose positions count what is no padding.
    """
    heads, rows = 3, []
    for text, real in zip(tokens, valid, strict=True):
        places = [0 if token == 1 else int((text[: i + 1] != 1).sum()) for i, token in enumerate(text)]
        table = w["positions.table.weight"]
        h = w["embed.weight"][text] + w["kind.weight"][0] + table[[place + 1 for place in places]]
        h = layer_norm(w, "embed_norm", h)
        for layer in range(2):
            name = f"layers.{layer}"
            projection = w["layers.0.projection.weight" if shared else f"{name}.projection.weight"]
            fewer = sum(torch.outer(e, x) for e, x, there in zip(projection, h, real, strict=False) if there)  # E h, [k, D]
            inner = f"{name}.attn.body.attn"
            q, k, v = (affine(w, f"{inner}.{one}", x) for one, x in (("q", h), ("k", fewer), ("v", fewer)))
            every = torch.ones(len(text), len(fewer), dtype=torch.bool)
            looked = [attention(*parts, every) for parts in zip(*(x.chunk(heads, -1) for x in (q, k, v)), strict=True)]
            h = add_norm(w, f"{name}.attn.post_norm", h, affine(w, f"{inner}.out", torch.cat(looked, -1)))
            hidden = affine(w, f"{name}.ffn.body.up", h)
            hidden = hidden * (1 + torch.erf(hidden / 2**0.5)) / 2
            h = add_norm(w, f"{name}.ffn.post_norm", h, affine(w, f"{name}.ffn.body.down", hidden))
        h = affine(w, "transform.dense", h)
        h = layer_norm(w, "transform.norm", h * (1 + torch.erf(h / 2**0.5)) / 2)
        rows.append(h @ w["embed.weight"].T + w["head.bias"])
    return torch.stack(rows)


def show_attend_tell(w: Weights, image: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
    """Compute soft attention of Xu et al. 2015, https://arxiv.org/abs/1502.03044: logits [T, V] and weights [T, L] of one image,
    of two stages of one and two convolutions.
    """
    a = image[None]
    for stage, depth in enumerate((1, 2)):
        for number in range(depth):
            conv = f"encoder.stages.{stage}.convs.{number}.conv.conv"
            a = F.conv2d(a, w[f"{conv}.weight"], w[f"{conv}.bias"], padding=1).clamp(min=0)
        a = F.max_pool2d(a, 2) if stage == 0 else a
    a = a[0].flatten(1).T  # annotation vectors a_i, [L, D]
    h, c = (torch.tanh(affine(w, f"start_{one}", a.mean(0))) for one in "hc")  # f_init, section 3.1.2
    logits, weights = [], []
    for word in words:
        y = w["embed.weight"][word]  # E y_{t-1}
        scores = torch.stack(
            [
                w["decoder.look.v.weight"][0] @ torch.tanh(w["decoder.look.q.weight"] @ h + w["decoder.look.k.weight"] @ each)
                for each in a
            ]
        )
        alpha = scores.exp() / scores.exp().sum()  # equation 5
        beta = torch.sigmoid(affine(w, "decoder.gate", h))  # section 4.2.1
        z = beta * sum(share * each for share, each in zip(alpha, a, strict=True))  # equation 13
        read = torch.cat([y, z])
        gates = (
            w["decoder.cell.weight_ih"] @ read
            + w["decoder.cell.weight_hh"] @ h
            + w["decoder.cell.bias_ih"]
            + w["decoder.cell.bias_hh"]
        )
        i, f, g, o = gates.chunk(4)  # equations 1 to 3
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        logits.append(affine(w, "head", y + affine(w, "deep", torch.cat([h, z]))))  # equation 7
        weights.append(alpha)
    return torch.stack(logits), torch.stack(weights)
