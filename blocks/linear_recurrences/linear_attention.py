"""Attention without a softmax, as a recurrence over a matrix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from blocks.core import BlockError, Cost, Paper, PositiveInt, Sizes, torch
from blocks.linear_recurrences.recurrence import LinearRecurrence, check_decay, sums_between, wide


class MatrixRecurrence(LinearRecurrence):
    """The base of recurrences whose state is a matrix for each head: of keys, with which it is written, and of values, which are
    read with the queries.
    """

    chunk_size: PositiveInt = 32
    """Number of positions that are computed as one product; the result does not depend on it."""

    carry = {"h": "float[batch, heads, key, value]"}

    def constants(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        """Return of how many heads there are scores: where all channels of a key decay alike, heads with one key share them."""
        decay, heads = inputs.get("log_decay"), sizes["heads"]
        every = (("heads",), ("batch", "time", "heads"), ("batch", "time", "heads", "key"))
        check_decay(decay, [[sizes[name] for name in axes] for axes in every])
        return {"scored": heads if decay is not None and len(decay.axes) == 4 else sizes["groups"]}

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        heads, groups = sizes["heads"], sizes["groups"]
        if isinstance(heads, int) and isinstance(groups, int) and heads % groups:
            raise BlockError(f"cannot share {groups} heads of keys among {heads} heads of values", port="k", code="indivisible")


class LinearAttention(MatrixRecurrence, kind="linear_attention"):
    """Linear attention with a decay: `h = exp(log_decay) · h' + k vᵀ` with h' the previous state, a matrix for each head, and
    `y = hᵀ q`.

    It is the recurrence of many models: without `log_decay` linear attention itself, with one number for each head retention,
    with one for each position and head state space duality (Mamba-2: q is its C, k its B, v is dt · x, log_decay is dt · A) and
    gated retention, with one for each position and channel of a key gated linear attention (GLA). Heads of values may share heads
    of keys and queries, as many in turn as `heads / groups`. Nothing is scaled or normalized. `log_decay` is not positive.

    Up to `chunk_size` positions are computed as one product of matrices, in float32 also in a model in bfloat16. Sums of
    `log_decay` are taken between positions, so that no exponent is positive. Without `h` the first state is zero.

    At padding, where `valid` is false, the state stays and y is zero, wherever in a row it is.
    """

    title = "Linear attention"
    paper = Paper(
        "Transformers are RNNs: Fast Autoregressive Transformers with Linear Attention; "
        "Transformers are SSMs: Generalized Models and Efficient Algorithms Through Structured State Space Duality",
        "arXiv:2006.16236; arXiv:2405.21060",
    )
    example = """
inputs:
  q: float[batch, time, 2, 8]
  k: float[batch, time, 2, 8]
  v: float[batch, time, 4, 16]
  log_decay: float[batch, time, 4]
graph: {y: {type: linear_attention, in: {q: q, k: k, v: v, log_decay: log_decay}}}
"""
    inputs = {
        "q": "float[batch, time, groups, key]",
        "k": "float[batch, time, groups, key]",
        "v": "float[batch, time, heads, value]",
        "log_decay?": "float[*]",
        "h?": "float[batch, heads, key, value]",
        "valid?": "bool[batch, time]",
    }
    outputs = {"y": "float[batch, time, heads, value]", "h?": "float[batch, heads, key, value]"}

    def cost(self, sizes: Sizes, wired: frozenset[str]) -> Cost:
        pairs = "(time // chunk_size * chunk_size ** 2 + (time % chunk_size) ** 2)"
        within = f"2 * batch * (scored * key + heads * value) * {pairs}"
        return Cost(f"{within} + 4 * batch * time * heads * key * value")

    def forward(
        self: Any,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        log_decay: torch.Tensor | None = None,
        h: torch.Tensor | None = None,
        valid: torch.Tensor | None = None,
    ) -> Any:
        queries, keys, values = (wide(each, valid).transpose(1, 2) for each in (q, k, v))  # [B, G, T, K], [B, H, T, V]
        decays = decays_of_heads(log_decay, values, valid)  # [B, H, T, 1 or K]
        h = self.before(h, v.shape[0], v.shape[2], k.shape[3], v.shape[3], like=values)
        if v.shape[1] == 1:
            y, h = linear_attention_step(h, queries, keys, values, decays)
            return self.after(y.transpose(1, 2), h, v)
        outputs = []
        for part in in_chunks(self.chunk_size, queries, keys, values, decays):
            y, h = linear_attention(h, *part)
            outputs.append(y)
        return self.after(torch.cat(outputs, 2).transpose(1, 2), h, v)


def decays_of_heads(log_decay: torch.Tensor | None, v: torch.Tensor, valid: torch.Tensor | None) -> torch.Tensor:
    """Return the logarithms of the decays of each head and position, [B or 1, H, T, 1 or K], 0 where nothing decays; v is
    [B, H, T, V].
    """
    batch, heads, time, _ = v.shape
    if log_decay is None:
        return v.new_zeros(()).expand(1, heads, time, 1)
    if log_decay.dim() == 1:
        log_decay = log_decay.expand(1 if valid is None else batch, time, heads)
    decays = wide(log_decay, valid).transpose(1, 2)
    return decays[..., None] if decays.dim() == 3 else decays


def in_chunks(size: int, *values: torch.Tensor) -> list[tuple[torch.Tensor, ...]]:
    """Return values of positions along their third axis as chunks, [B, H, chunks, positions, …], and the rest as one more.

    Each is copied once here, or else by every product that reads it.
    """
    whole = values[0].shape[2] // size * size
    parts = []
    if whole:
        parts.append(tuple(torch.unflatten(each[:, :, :whole], 2, (-1, size)).contiguous() for each in values))
    if whole < values[0].shape[2]:
        parts.append(tuple(each[:, :, None, whole:].contiguous() for each in values))
    return parts


def per_value_head(x: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Return x with a copy of its head for each head of values that shares it."""
    shared = v.shape[1] // x.shape[1]
    return x if shared == 1 else x.repeat_interleave(shared, 1)


def linear_attention_step(
    h: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, decays: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the output of one position, [B, H, 1, V], and the state after it, [B, H, K, V]: the recurrence as it is written."""
    h = torch.exp(decays).mT * h + per_value_head(k, v).mT * v
    return per_value_head(q, v) @ h, h


def linear_attention(
    h: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, decays: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the outputs of chunks of C positions, [B, H, n · C, V], and the last state, [B, H, K, V]."""
    so_far = decays.cumsum(-2)  # [B, H, n, C, 1 or K], from the state before the chunk
    between = sums_between(decays.mT)  # [B, H, n, 1 or K, C, C]
    since = between[..., -1, :].mT  # [B, H, n, C, 1 or K], up to the last position
    queries, keys = per_value_head(q, v), per_value_head(k, v)  # [B, H, n, C, K]
    if decays.shape[-1] == 1:
        scores = per_value_head(q @ k.mT, v) * torch.exp(between.squeeze(-3))  # [B, H, n, C, C]
    else:
        scores = scores_of_channels(queries, keys, torch.exp(between))
    written = (keys * torch.exp(since)).mT @ v  # [B, H, n, K, V], what a chunk adds
    states = []
    for keep, add in zip(torch.exp(so_far[..., -1, :, None]).unbind(2), written.unbind(2), strict=True):
        states.append(h)
        h = torch.addcmul(add, keep.expand_as(h), h)
    y = scores @ v + (queries * torch.exp(so_far)) @ torch.stack(states, 2)
    return y.flatten(2, 3), h


def scores_of_channels(q: torch.Tensor, k: torch.Tensor, decayed: torch.Tensor) -> torch.Tensor:
    """Return products of q and k, [B, H, n, C, K], whose channels are `decayed` one by one from position to position,
    [B, H, n, K, C, C].
    """
    weighed = decayed * k.mT[..., None, :]  # [B, H, n, K, C, C]
    return (q[..., None, :] @ weighed.transpose(-3, -2)).squeeze(-2)  # [B, H, n, C, C]
