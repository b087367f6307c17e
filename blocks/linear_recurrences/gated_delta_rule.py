"""The delta rule: a state that corrects what it holds for a key."""

from __future__ import annotations

from typing import Any

from blocks.core import Cost, Paper, Sizes, torch
from blocks.linear_recurrences.linear_attention import (
    MatrixRecurrence,
    decays_of_heads,
    in_chunks,
    per_value_head,
    scores_of_channels,
)
from blocks.linear_recurrences.recurrence import sums_between, wide


class GatedDeltaRule(MatrixRecurrence, kind="gated_delta_rule"):
    """Gated delta rule: `h = g · h' + β · k (v - g · h'ᵀ k)ᵀ` with h' the previous state, a matrix for each head,
    `g = exp(log_decay)`, and `y = hᵀ q`. What the state holds for a key is replaced by the value, to the part β.

    Without `log_decay` it is the delta rule itself (DeltaNet), with one number for each position and head that of Gated
    DeltaNet and Qwen3-Next, with one for each position and channel of a key Kimi Delta Attention (KDA), where g is a diagonal
    matrix. Heads of values may share heads of keys and queries, as for `linear_attention`. Keys should be of
    length 1, as `l2norm` makes them, β from 0 to 1 and `log_decay` not positive; nothing is scaled or normalized here.

    Up to `chunk_size` positions are computed as a few products of matrices (the WY form), in float32 also in a model in
    bfloat16: what each of them corrects of those before it is the solution of a triangular system. Without `h` the first state
    is zero.

    At padding, where `valid` is false, the state stays and y is zero, wherever in a row it is.
    """

    title = "Gated delta rule"
    paper = Paper(
        "Gated Delta Networks: Improving Mamba2 with Delta Rule; Kimi Linear: An Expressive, Efficient Attention Architecture",
        "arXiv:2412.06464; arXiv:2510.26692",
    )
    example = """
inputs:
  q: float[batch, time, 2, 8]
  k: float[batch, time, 2, 8]
  v: float[batch, time, 4, 16]
  beta: float[batch, time, 4]
  log_decay: float[batch, time, 4]
graph:
  unit: {type: l2norm, in: k}
  y: {type: gated_delta_rule, in: {q: q, k: unit, v: v, beta: beta, log_decay: log_decay}}
"""
    inputs = {
        "q": "float[batch, time, groups, key]",
        "k": "float[batch, time, groups, key]",
        "v": "float[batch, time, heads, value]",
        "beta": "float[batch, time, heads]",
        "log_decay?": "float[*]",
        "h?": "float[batch, heads, key, value]",
        "valid?": "bool[batch, time]",
    }
    outputs = {"y": "float[batch, time, heads, value]", "h?": "float[batch, heads, key, value]"}

    def cost(self, sizes: Sizes, wired: frozenset[str]) -> Cost:
        """Return the cost of the products; the triangular systems are not products."""
        pairs = "(time // chunk_size * chunk_size ** 2 + (time % chunk_size) ** 2)"
        within = f"2 * batch * (2 * scored * key + heads * value) * {pairs}"
        return Cost(f"{within} + 6 * batch * time * heads * key * value")

    def forward(
        self: Any,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        beta: torch.Tensor,
        log_decay: torch.Tensor | None = None,
        h: torch.Tensor | None = None,
        valid: torch.Tensor | None = None,
    ) -> Any:
        queries, keys, values = (wide(each, valid).transpose(1, 2) for each in (q, k, v))  # [B, G, T, K], [B, H, T, V]
        parts = wide(beta, valid).transpose(1, 2)[..., None]  # [B, H, T, 1]
        decays = decays_of_heads(log_decay, values, valid)  # [B, H, T, 1 or K]
        h = self.before(h, v.shape[0], v.shape[2], k.shape[3], v.shape[3], like=values)
        if v.shape[1] == 1:
            y, h = delta_rule_step(h, queries, keys, values, parts, decays)
            return self.after(y.transpose(1, 2), h, v)
        outputs = []
        for chunks in in_chunks(self.chunk_size, queries, keys, values, parts, decays):
            y, h = delta_rule(h, *chunks)
            outputs.append(y)
        return self.after(torch.cat(outputs, 2).transpose(1, 2), h, v)


def delta_rule_step(
    h: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, beta: torch.Tensor, decays: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the output of one position, [B, H, 1, V], and the state after it, [B, H, K, V]: the recurrence as it is written."""
    key, h = per_value_head(k, v), torch.exp(decays).mT * h
    h = h + key.mT * (beta * (v - key @ h))
    return per_value_head(q, v) @ h, h


def delta_rule(
    h: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, beta: torch.Tensor, decays: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the outputs of chunks of C positions, [B, H, n · C, V], and the last state, [B, H, K, V].

    A position writes β (v - g h'ᵀ k). Of h', it sees what the chunk began with, and what the positions before it wrote; so what
    all of them write solves a triangular system, one part of it for v and one for the first state.
    """
    decayed = torch.exp(sums_between(decays.mT))  # [B, H, n, 1 or K, C, C]
    so_far = torch.exp(decays.cumsum(-2))  # [B, H, n, C, 1 or K], from the state before the chunk
    since = decayed[..., -1, :].mT  # [B, H, n, C, 1 or K], up to the last position
    queries, keys = per_value_head(q, v), per_value_head(k, v)  # [B, H, n, C, K]
    if decays.shape[-1] == 1:
        of_keys, scores = (per_value_head(each @ k.mT, v) * decayed.squeeze(-3) for each in (k, q))  # [B, H, n, C, C]
    else:
        of_keys, scores = (scores_of_channels(each, keys, decayed) for each in (keys, queries))
    # Of what each position wrote, [B, H, n, C, C]; the solver reads nothing but what is below the diagonal.
    seen = of_keys * beta
    rows = (beta * v, beta * so_far * keys)
    values, first = (torch.linalg.solve_triangular(seen, each, upper=False, unitriangular=True) for each in rows)
    outputs = []
    chunks = (queries * so_far, (keys * since).mT, values, first, scores, so_far[..., -1, :, None])
    for query, key, value, of_first, score, keep in zip(*(each.unbind(2) for each in chunks), strict=True):
        written = value - of_first @ h
        outputs.append(query @ h + score @ written)
        h = keep * h + key @ written
    return torch.cat(outputs, 2), h
