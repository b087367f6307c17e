"""Attention by its formula, for features that fused kernels lack: softcap, sinks, and weights as an output."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from blocks.core import torch
from blocks.masks.plans import is_known
from blocks.masks.views import is_traced

AT_A_TIME = 2**20
"""Scores that are computed at a time on a CPU. Each is several numbers until the next ones are computed."""


def attention_by_formula(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    allowed: torch.Tensor | None,
    bias: torch.Tensor | None,
    *,
    scale: float,
    softcap: float | None,
    sinks: torch.Tensor | None,
    dropout: float,
) -> torch.Tensor:
    """Return the attention of q [B, H, T, D] to k [B, K, S, D] and v [B, K, S, Dv]: [B, H, T, Dv]."""
    scores = attention_scores(q, k, scale=scale, softcap=softcap, bias=bias)  # [B, H, T, S]
    weights = torch.dropout(attention_weights(scores, allowed, sinks), dropout, True).to(v.dtype)
    return weights @ per_query_head(v, q.shape[1])


def in_parts(
    attend: Callable[..., torch.Tensor],
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    allowed: torch.Tensor | None,
    bias: torch.Tensor | None,
) -> torch.Tensor:
    """Return `attend(q, k, v, allowed, bias)`, on a CPU computed for some queries after others where there are many scores, each
    part with the keys from the first to the last that any of its queries sees. In training, the backward pass computes each part
    again, so that no more than one is there at a time.
    """
    time, source = q.shape[2], k.shape[2]
    scores_of_query = q.shape[0] * q.shape[1] * source
    step = max(1, AT_A_TIME // max(1, scores_of_query))
    whole = is_traced() or q.device.type != "cpu" or step >= time
    if whole or torch._C._are_functorch_transforms_active():  # which neither read masks nor compute again
        return attend(q, k, v, allowed, bias)
    if allowed is not None:
        allowed = allowed.expand(*allowed.shape[:-2], time, source)
    parts = torch.split(q, step, dim=2)
    # split, since the gradient of each slice would be as large as the whole bias
    biases: tuple[torch.Tensor | None, ...] = (None,) * len(parts)
    if bias is not None:
        biases = torch.split(bias.expand(*bias.shape[:-2], time, source), step, dim=-2)
    found: list[torch.Tensor] = []
    for part, bias_of_part in zip(parts, biases, strict=True):
        start = sum(each.shape[2] for each in found)
        rows = slice(start, start + part.shape[2])
        seen = None if allowed is None else allowed[..., rows, :]
        keys = slice(None) if seen is None else seen_keys(seen)
        given = (
            part,
            k[:, :, keys],
            v[:, :, keys],
            None if seen is None else seen[..., keys],
            None if bias_of_part is None else bias_of_part[..., keys],
        )
        found.append(computed_again(attend, *given) if torch.is_grad_enabled() else attend(*given))
    return torch.cat(found, dim=2)


def computed_again(attend: Callable[..., torch.Tensor], *given: Any) -> torch.Tensor:
    """Return `attend(*given)`, of which only the arguments are kept for the backward pass."""
    y: torch.Tensor = torch.utils.checkpoint.checkpoint(attend, *given, use_reentrant=False)
    return y


def seen_keys(allowed: torch.Tensor) -> slice:
    """Return the keys [S] from the first to the last that any query sees, at least one; all if a mask cannot be read."""
    if not is_known(allowed):
        return slice(None)
    seen = allowed.flatten(0, -2).any(dim=0).nonzero()
    return slice(int(seen[0]), int(seen[-1]) + 1) if len(seen) else slice(0, 1)


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
