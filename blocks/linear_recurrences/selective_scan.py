"""The selective scan of Mamba."""

from __future__ import annotations

from typing import Any

from blocks.core import Cost, Paper, Sizes, torch
from blocks.linear_recurrences.recurrence import LinearRecurrence, wide


class SelectiveScan(LinearRecurrence, kind="selective_scan"):
    """Selective scan (S6), the recurrence of Mamba: `h = exp(dt · a) · h' + dt · x · b` with h' the previous state, a number for
    each channel and each place of the state, and `y = Σ h · c + d · x`, summed over the state.

    It has no parameters: `a` is negative, in Mamba `-exp(a_log)` of a learned table, `dt` is positive, and `b` and `c` are
    shared by all channels. States are computed in float32, also in a model in bfloat16, each from the one before. Without `h`
    the first is zero.

    At padding, where `valid` is false, the state stays and y is zero, wherever in a row it is.
    """

    title = "Selective scan"
    paper = Paper("Mamba: Linear-Time Sequence Modeling with Selective State Spaces", "arXiv:2312.00752")
    example = """
inputs:
  x: float[batch, time, 6]
  dt: float[batch, time, 6]
  a: float[6, 4]
  b: float[batch, time, 4]
  c: float[batch, time, 4]
graph: {y: {type: selective_scan, in: {x: x, dt: dt, a: a, b: b, c: c}}}
"""
    inputs = {
        "x": "float[batch, time, channels]",
        "dt": "float[batch, time, channels]",
        "a": "float[channels, state]",
        "b": "float[batch, time, state]",
        "c": "float[batch, time, state]",
        "d?": "float[channels]",
        "h?": "float[batch, channels, state]",
        "valid?": "bool[batch, time]",
    }
    outputs = {"y": "float[batch, time, channels]", "h?": "float[batch, channels, state]"}
    carry = {"h": "float[batch, channels, state]"}

    def cost(self, sizes: Sizes, wired: frozenset[str]) -> Cost:
        return Cost("2 * batch * time * channels * state")

    def forward(
        self: Any,
        x: torch.Tensor,
        dt: torch.Tensor,
        a: torch.Tensor,
        b: torch.Tensor,
        c: torch.Tensor,
        d: torch.Tensor | None = None,
        h: torch.Tensor | None = None,
        valid: torch.Tensor | None = None,
    ) -> Any:
        u, steps, b, c = (wide(each, valid) for each in (x, dt, b, c))
        h = self.before(h, x.shape[0], *a.shape, like=u)
        y, h = selective_scan(u, steps, a.to(u.dtype), b, c, h)
        return self.after(y if d is None else y + d.to(u.dtype) * u, h, x)


def selective_scan(
    x: torch.Tensor, dt: torch.Tensor, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, h: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the outputs, [B, T, D], and the last state, [B, D, N].

    What does not depend on the state is computed for several steps at once, and a step is one operation; as many steps as a
    processor's cache may hold, since the states of a whole text are many times as large as the text.
    """
    outputs = []
    for x_n, dt_n, b_n, c_n in zip(*(torch.split(each, STEPS, dim=1) for each in (x, dt, b, c)), strict=True):
        kept = torch.exp(dt_n[..., None] * a).unbind(1)  # of each step, [B, D, N]
        added = ((dt_n * x_n)[..., None] * b_n[:, :, None]).unbind(1)
        states = []
        for keep, add in zip(kept, added, strict=True):
            h = torch.addcmul(add, keep, h)
            states.append(h)
        outputs.append((torch.stack(states, 1) @ c_n[..., None]).squeeze(-1))
    return torch.cat(outputs, 1), h


STEPS = 64
"""How many steps are prepared at once."""
