"""Models with mixtures of experts that choose in other ways, as their papers say them, a token at a time."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.parity.readings import Weights, add_norm, feed_forward, multi_head, placed


def hierarchical_moe(w: Weights, tokens: Tensor, valid: Tensor) -> Tensor:
    """Compute MoE-256-h of Shazeer et al. 2017, https://arxiv.org/abs/1701.06538, with three groups of four experts, two of two.

    Appendix C.1: embedding, LSTM, mixture, sigmoid, LSTM, softmax, each layer added to what it reads. Padding is not there.
    """
    rows = []
    for row, real in zip(tokens, valid, strict=True):
        x = w["embed.weight"][row]
        x = x + lstm(w, "below.body", x, real)
        x = x + torch.stack([torch.sigmoid(mixture_of_mixtures(w, "experts.body.moe", token)) for token in x])
        x = x + lstm(w, "above.body", x, real)
        rows.append(x @ w["head.weight"].T)
    return torch.stack(rows)


def mixture_of_mixtures(w: Weights, name: str, x: Tensor) -> Tensor:
    """Compute equation 12: y_H = Σ_i Σ_j G_primary(x)_i · G_i(x)_j · E_ij(x)."""
    y, total = torch.zeros_like(x), 0.0
    for i, primary in enumerate(kept(w[f"{name}.group_gate.weight"] @ x)):
        for j, secondary in enumerate(kept(w[f"{name}.gate.weight"][4 * i : 4 * i + 4] @ x)):
            hidden = (w[f"{name}.expert.up.weight"][4 * i + j] @ x).clamp(min=0)
            y = y + primary * secondary * (w[f"{name}.expert.down.weight"][4 * i + j] @ hidden)
            total += (primary * secondary).item()
    assert abs(total - 1) < 1e-9
    return y


def kept(h: Tensor) -> Tensor:
    """Compute equations 3 and 5: Softmax(KeepTopK(H(x), 2)), where what is not kept is -∞."""
    least = h.sort().values[-2]
    return torch.where(h >= least, h, -torch.inf).softmax(-1)


def lstm(w: Weights, name: str, x: Tensor, real: Tensor) -> Tensor:
    """Compute an LSTM over the real tokens; elsewhere it gives zeros."""
    width = w[f"{name}.weight_hh_l0"].shape[1]
    h = c = x.new_zeros(width)
    rows = []
    for token, there in zip(x, real, strict=True):
        if there:
            sums = w[f"{name}.weight_ih_l0"] @ token + w[f"{name}.bias_ih_l0"] + w[f"{name}.weight_hh_l0"] @ h
            i, f, g, o = (sums + w[f"{name}.bias_hh_l0"]).chunk(4)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        rows.append(h if there else torch.zeros_like(h))
    return torch.stack(rows)


def task_moe(w: Weights, source: Tensor, target: Tensor, source_valid: Tensor, valid: Tensor, task: Tensor) -> Tensor:
    """Compute TaskMoE of Kudugunta et al. 2021, https://arxiv.org/abs/2110.03742, with two layers and two experts of five.

    Section 2.2: as a token's, but the gate reads the task of the sentence in place of the token, in the decoder. The rest is the
    Transformer, of which every other feed-forward layer is a mixture.
    """
    rows = []
    for read, written, may_read, may_look, kind in zip(source, target, source_valid, valid, task, strict=True):
        memory = placed(w["embed.weight"], read)
        seen = may_read.expand(len(read), -1)
        x = memory
        for layer in range(2):
            name = f"encoder.{layer}"
            x = add_norm(w, f"{name}.attn.post_norm", x, multi_head(w, f"{name}.attn.body", x, x, seen, 4))
            body = f"{name}.ffn.body"
            given = (
                torch.stack([experts(w, body, v, w[f"{body}.gate.weight"] @ v) for v in x]) if layer else feed_forward(w, body, x)
            )
            x = add_norm(w, f"{name}.ffn.post_norm", x, given)
        memory, x = x, placed(w["target_embed.weight"], written)
        steps = torch.arange(len(written))
        past = (steps[None] <= steps[:, None]) & may_look
        for layer in range(2):
            name = f"decoder.{layer}"
            x = add_norm(w, f"{name}.attn.post_norm", x, multi_head(w, f"{name}.attn.body", x, x, past, 4))
            looked = multi_head(w, f"{name}.cross.body", x, memory, may_read.expand(len(written), -1), 4)
            x = add_norm(w, f"{name}.cross.post_norm", x, looked)
            body = f"{name}.ffn.body"
            given = torch.stack([by_task(w, body, v, int(kind)) for v in x]) if layer else feed_forward(w, body, x)
            x = add_norm(w, f"{name}.ffn.post_norm", x, given)
        rows.append(x @ w["head.weight"].T)
    return torch.stack(rows)


def by_task(w: Weights, name: str, x: Tensor, task: int) -> Tensor:
    """Compute the experts of a task, or those of a task and a token where a gate of tokens is there too."""
    logits = w[f"{name}.preferred.weight"][task]
    if f"{name}.own.weight" in w:
        logits = logits + w[f"{name}.own.weight"] @ x
    return experts(w, f"{name}.moe", x, logits)


def experts(w: Weights, name: str, x: Tensor, logits: Tensor) -> Tensor:
    """Compute the two experts of the largest gates, whose gates are divided by their sum."""
    gates = logits.softmax(-1)
    chosen = gates.argsort(descending=True)[:2].tolist()
    y = torch.zeros_like(x)
    for e in chosen:
        hidden = w[f"{name}.expert.up.weight"][e] @ x + w[f"{name}.expert.up.bias"][e]
        given = w[f"{name}.expert.down.weight"][e] @ hidden.clamp(min=0) + w[f"{name}.expert.down.bias"][e]
        y = y + gates[e] / gates[chosen].sum() * given
    return y
