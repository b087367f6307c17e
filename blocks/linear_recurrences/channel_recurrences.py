"""Recurrences of channels that do not see each other: a decaying sum, and a decaying average."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from blocks.core import Paper, Sizes, cached, store_carry, torch
from blocks.linear_recurrences.elementwise import one_after_another
from blocks.linear_recurrences.recurrence import LinearRecurrence, check_decay, wide


class ChannelRecurrence(LinearRecurrence):
    """The base of recurrences in which each channel has a state of its own, one number, and a decay of its own."""

    def constants(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        channels = sizes["channels"]
        check_decay(inputs.get("log_decay"), [[channels], [sizes["batch"], sizes["time"], channels]])
        return {}


class DiagonalRecurrence(ChannelRecurrence, kind="diagonal_recurrence"):
    """Diagonal linear recurrence: `h = exp(log_decay) · h' + x` with h' the previous state, a number for each channel, and
    `y = h`.

    It is what gated recurrent units of one multiplication and one sum have in common: the RG-LRU of Griffin and
    RecurrentGemma, the units of SRU, QRNN, HGRN and minGRU, where x is `(1 - gate) · value` and `log_decay` the logarithm of the
    gate, and, with a number for each channel, exponential moving averages. `log_decay` is not positive. Nothing is scaled.

    States are computed in float32, also in a model in bfloat16, each from the one before. Without `h` the first is zero.

    At padding, where `valid` is false, the state stays and y is zero, wherever in a row it is.
    """

    title = "Diagonal linear recurrence"
    paper = Paper(
        "Griffin: Mixing Gated Linear Recurrences with Local Attention for Efficient Language Models; "
        "Simple Recurrent Units for Highly Parallelizable Recurrence",
        "arXiv:2402.19427; arXiv:1709.02755",
    )
    example = """
inputs:
  x: float[batch, time, 6]
  log_decay: float[batch, time, 6]
graph: {y: {type: diagonal_recurrence, in: {x: x, log_decay: log_decay}}}
"""
    inputs = {
        "x": "float[batch, time, channels]",
        "log_decay": "float[*]",
        "h?": "float[batch, channels]",
        "valid?": "bool[batch, time]",
    }
    outputs = {"y": "float[batch, time, channels]", "h?": "float[batch, channels]"}
    carry = {"h": "float[batch, channels]"}

    def forward(
        self: Any,
        x: torch.Tensor,
        log_decay: torch.Tensor,
        h: torch.Tensor | None = None,
        valid: torch.Tensor | None = None,
    ) -> Any:
        added, decays = wide(x, valid), decays_of_channels(log_decay, x, valid)
        h = self.before(h, x.shape[0], x.shape[2], like=added)
        y, h = decaying_sum(h, torch.exp(decays), added)
        return self.after(y if valid is None else y.masked_fill(~valid[..., None], 0), h, x)


class DecayingAverage(ChannelRecurrence, kind="decaying_average"):
    """Decaying average: `y = Σₛ w[s] v[s] / Σₛ w[s]` over all s ≤ t, for each channel, where `w[s]` is `exp(k[s])` times
    `exp(log_decay)` for each step since s: a softmax over the past whose older scores sink, as a recurrence.

    With `bonus`, the latest position has the weight `exp(k + bonus)`, and what is before it has not decayed by its step yet: the
    WKV of RWKV-4. Without `bonus` and `log_decay` it is what the gates of the attention-free transformer (AFT-simple) are
    multiplied with. `log_decay` is not positive.

    A state is the average `h` and the logarithm of the sum of its weights, `log_weight`. Weights are computed relative to the
    largest one so far, so that none overflows. States are computed in float32, also in a model in bfloat16, each from the one
    before. Without `h` and `log_weight` nothing is there at first; an `h` by itself has the weight 1, and a `log_weight` by
    itself is that of zeros.

    At padding, where `valid` is false, the state stays and y is zero, wherever in a row it is.
    """

    title = "Decaying average"
    paper = Paper(
        "RWKV: Reinventing RNNs for the Transformer Era; An Attention Free Transformer", "arXiv:2305.13048; arXiv:2105.14103"
    )
    example = """
inputs:
  k: float[batch, time, 6]
  v: float[batch, time, 6]
  log_decay: float[6]
  bonus: float[6]
graph: {y: {type: decaying_average, in: {k: k, v: v, log_decay: log_decay, bonus: bonus}}}
"""
    inputs = {
        "k": "float[batch, time, channels]",
        "v": "float[batch, time, channels]",
        "log_decay?": "float[*]",
        "bonus?": "float[channels]",
        "h?": "float[batch, channels]",
        "log_weight?": "float[batch, channels]",
        "valid?": "bool[batch, time]",
    }
    outputs = {"y": "float[batch, time, channels]", "h?": "float[batch, channels]", "log_weight?": "float[batch, channels]"}
    carry = {"h": "float[batch, channels]", "log_weight": "float[batch, channels]"}

    def forward(
        self: Any,
        k: torch.Tensor,
        v: torch.Tensor,
        log_decay: torch.Tensor | None = None,
        bonus: torch.Tensor | None = None,
        h: torch.Tensor | None = None,
        log_weight: torch.Tensor | None = None,
        valid: torch.Tensor | None = None,
    ) -> Any:
        keys, values = wide(k, valid).clamp(min=NOTHING), wide(v, valid)
        if valid is not None:
            keys = keys.masked_fill(~valid[..., None], NOTHING)
        decays = decays_of_channels(log_decay, k, valid)
        weightless = NOTHING if h is None else 0.0
        h = self.before(h, v.shape[0], v.shape[2], like=values)
        known = cached(self, "log_weight")
        total = log_weight if known is None else known
        total = torch.full_like(h, weightless) if total is None else total.to(values.dtype).clamp(min=NOTHING)
        largest = decaying_maxima(total.detach(), decays.detach(), keys.detach())  # [B, T + 1, D]
        # What is computed is relative to the largest weight, [B, T, 2, D]: the sum of weights times values, and that of weights.
        kept = torch.exp(largest[:, :-1] - largest[:, 1:] + decays)
        weights = torch.exp(keys - largest[:, 1:])
        first = torch.exp(total - largest[:, 0])
        sums, _ = decaying_sum(torch.stack([first * h, first], 1), kept[:, :, None], torch.stack([weights * values, weights], 2))
        averages = sums[:, :, 0] / sums[:, :, 1]
        totals = largest[:, 1:] + torch.log(sums[:, :, 1])
        latest, last = averages[:, -1], totals[:, -1]
        y = averages
        if bonus is not None:
            before, past = (torch.cat([a[:, None], b[:, :-1]], 1) for a, b in ((h, averages), (total, totals)))
            y = torch.lerp(values, before, torch.sigmoid(past - keys - bonus.to(keys.dtype)))
        y = (y if valid is None else y.masked_fill(~valid[..., None], 0)).to(v.dtype)
        store_carry(self, v.shape[1], h=latest, log_weight=last)
        states = {"h": latest.to(v.dtype), "log_weight": last.to(v.dtype)}
        asked = tuple(states[name] for name in ("h", "log_weight") if name in self.requested_outputs)
        return (y, *asked) if asked else y


NOTHING = -1e30
"""The logarithm of a weight that is 0 beside every other: minus infinity, of which differences can be taken."""


def decays_of_channels(log_decay: torch.Tensor | None, x: torch.Tensor, valid: torch.Tensor | None) -> torch.Tensor:
    """Return the logarithms of the decays of each position and channel, [B or 1, T, D], 0 where nothing does; x is [B, T, D]."""
    if log_decay is None:
        return x.new_zeros((), dtype=torch.promote_types(x.dtype, torch.float32)).expand(1, *x.shape[1:])
    if log_decay.dim() == 1:
        log_decay = log_decay.expand(1 if valid is None else x.shape[0], *x.shape[1:])
    return wide(log_decay, valid)


def decaying_sum(h: torch.Tensor, keep: torch.Tensor, add: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the states `keep · h' + add` after each position, [B, T, …], and the last, [B, …]; a step is one operation."""
    states = one_after_another(h, keep.unbind(1), add.unbind(1))
    return torch.stack(states, 1), states[-1]


def decaying_maxima(largest: torch.Tensor, decays: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    """Return the logarithms of the largest weight before the first and after each position, [B, T + 1, D]."""
    maxima = [largest]
    for decay, key in zip(decays.unbind(1), keys.unbind(1), strict=True):
        largest = torch.maximum(largest + decay, key)
        maxima.append(largest)
    return torch.stack(maxima, 1)
