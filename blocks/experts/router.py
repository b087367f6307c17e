"""Who visits which expert: what routers have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from blocks.core import Part, declaration, fields, torch

if TYPE_CHECKING:
    Tensor = torch.Tensor


class Routes(NamedTuple):
    """Visits of rows to experts, in any order, and what the losses of balance are made from."""

    rows: Tensor
    """Which row, [visits]; a row is a position of a sequence, [B · T]."""
    experts: Tensor
    """Which expert it visits, [visits]; E for none."""
    weights: Tensor
    """The factor of what the expert makes of it, [visits]."""
    logits: Tensor
    """What the choice is made from, [B, T, E]."""
    shares: Tensor
    """A positive number for each expert that sums to 1, [B, T, E]."""
    load: Tensor
    """The share of rows that want each expert, before any capacity, [E]."""


class Router(Part):
    """Chooses, for each position, which experts it visits and with which weights. What it learns stands in its holder: a map
    `gate` of the width to the number of experts, and others by name.
    """

    maps: ClassVar[tuple[str, ...]] = ("gate",)
    corrected: ClassVar[bool] = False
    """Whether a correction can be added to the scores by which it chooses."""

    @declaration
    def visits(self) -> str:
        """Return how many visits there are in a sequence, as an expression of `time` and `experts`."""
        raise NotImplementedError

    @declaration
    def facts(self) -> tuple[str, ...]:
        """Return how experts are chosen, in a few words, the most important last."""
        own = ((name, getattr(self, name), field.default) for name, field in fields(type(self)).items())
        settings = ", ".join(f"{name} {value}" for name, value, default in own if value != default)
        return (f"router {self.kind} ({settings})" if settings else f"router {self.kind}",)

    def route(self, moe: Any, x: Any, correction: Any) -> Any:
        """Return the `Routes` of positions x [B, T, D], with a correction [E] of the scores where there is one;
        `moe` holds the maps.
        """
        raise NotImplementedError


def token_choice(chosen: Tensor, weights: Tensor, experts: int, logits: Tensor, shares: Tensor) -> Routes:
    """Return the routes where every position chooses its experts: chosen [B, T, k] and the weights of the same shape."""
    rows = torch.arange(chosen.shape[0] * chosen.shape[1], device=chosen.device).repeat_interleave(chosen.shape[2])
    load = (chosen.flatten()[:, None] == torch.arange(experts, device=chosen.device)).sum(0) / (rows.shape[0] // chosen.shape[2])
    return Routes(rows, chosen.flatten(), weights.flatten(), logits, shares, load)
