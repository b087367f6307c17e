"""Attention by its formula, for features that fused kernels lack: softcap, sinks, and weights as an output."""

from __future__ import annotations

from blocks.core import torch


def attention_scores(
    q: torch.Tensor, k: torch.Tensor, *, scale: float, softcap: float | None, bias: torch.Tensor | None
) -> torch.Tensor:
    """Return the scores of q [B, H, T, D] for k [B, K, S, D], before the mask: [B, H, T, S]."""
    scores = q @ per_query_head(k, q.shape[1]).mT * scale
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)  # within ± softcap
    return scores if bias is None else scores + bias


def attention_weights(scores: torch.Tensor, allowed: torch.Tensor | None, sinks: torch.Tensor | None) -> torch.Tensor:
    """Return the softmax over the keys that a query sees, in float32 at least; zeros if it sees none. With `sinks` [H], one more
    score per head takes part, whose weight is dropped.
    """
    weights = _competing(scores, allowed, sinks).softmax(dim=-1)[..., : scores.shape[-1]]
    return weights if allowed is None else weights.masked_fill(~allowed, 0)


def attention_logsumexp(scores: torch.Tensor, allowed: torch.Tensor | None, sinks: torch.Tensor | None) -> torch.Tensor:
    """Return the logarithm of what the softmax divides by, [B, H, T], in the dtype of the scores; about its lowest number if a
    query sees no key.
    """
    return _competing(scores, allowed, sinks).logsumexp(dim=-1).to(scores.dtype)


def _competing(scores: torch.Tensor, allowed: torch.Tensor | None, sinks: torch.Tensor | None) -> torch.Tensor:
    """Return the scores in float32 at least, those of keys that a query does not see as low as can be, with those of sinks."""
    lowest = torch.finfo(scores.dtype).min  # a row of -inf alone gives NaN
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
    if allowed is not None:
        scores = scores.masked_fill(~allowed, lowest)
    if sinks is None:
        return scores
    sink = sinks.to(scores.dtype)[:, None, None].expand(*scores.shape[:-1], 1)  # [B, H, T, 1]
    return torch.cat([scores, sink], dim=-1)


def per_query_head(x: torch.Tensor, heads: int) -> torch.Tensor:
    """Return keys or values [B, K, S, D], repeated for the query heads that share them: [B, H, S, D]."""
    return x if x.shape[1] == heads else x.repeat_interleave(heads // x.shape[1], dim=1)
