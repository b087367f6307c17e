"""The base of routers, and the routes that they return."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from blocks.core import Part, declaration, fields, torch

if TYPE_CHECKING:
    Tensor = torch.Tensor


class Routes(NamedTuple):
    """The assignments of rows to experts ("visits"), in any order, and the inputs of the load-balancing losses."""

    rows: Tensor
    """The row of each visit, [visits]: an index of a position among [B · T]."""
    experts: Tensor
    """The expert of each visit, [visits]; E for none."""
    weights: Tensor
    """The weight of the expert's output, [visits]."""
    logits: Tensor
    """The logits of the router, [B, T, E]."""
    shares: Tensor
    """The probabilities of the experts at each position, [B, T, E]."""
    selected: Tensor
    """The expert that each visit was for before any capacity, [visits]."""
    drops: bool = True
    """Whether visits may have no expert; where none has, no row needs to be set to zero."""
    per_position: int = 0
    """The visits of each position, if all have as many and stand in the order of positions; 0 otherwise."""

    @property
    def load(self) -> Tensor:
        """The share of rows that select each expert, before any capacity, [E]."""
        *positions, experts = self.shares.shape
        return tally(self.selected, experts).to(self.shares.dtype) / prod(positions)


class Router(Part):
    """Assigns positions to experts, with weights. Its parameters belong to the `moe` block: a linear map `gate` from the width to
    the number of experts, and others by name.
    """

    maps: ClassVar[tuple[str, ...]] = ("gate",)
    corrected: ClassVar[bool] = False
    """Whether a correction can be added to the scores that select experts."""
    takes_logits: ClassVar[bool] = False
    """Whether `route` takes logits that other nodes compute, in place of those of its map `gate`."""

    bias: bool = False
    """Whether its maps have a bias."""

    @declaration
    def visits(self) -> str:
        """Return the number of visits in a sequence, as an expression of `time` and `experts`."""
        raise NotImplementedError

    @declaration
    def map_sizes(self) -> Mapping[str, str]:
        """Return the number of outputs of each map by its name, as an expression of sizes."""
        return dict.fromkeys(self.maps, "experts")

    @declaration
    def facts(self) -> tuple[str, ...]:
        """Return short facts for drawings about how experts are selected, the most important first."""
        own = ((name, getattr(self, name), field.default) for name, field in fields(type(self)).items())
        settings = ", ".join(f"{name} {value}" for name, value, default in own if value != default)
        return (f"router {self.kind} ({settings})" if settings else f"router {self.kind}",)

    def route(self, moe: Any, x: Any, correction: Any) -> Any:
        """Return the `Routes` of positions x [B, T, D], with an optional correction [E] of the scores; `moe` has the maps. One
        that `takes_logits` has a last argument `given`: logits [B, T, E], or None.
        """
        raise NotImplementedError


def token_choice(chosen: Tensor, weights: Tensor, logits: Tensor, shares: Tensor) -> Routes:
    """Return the routes in which every position selects its experts: `chosen` [B, T, k] and weights of the same shape."""
    rows = torch.arange(chosen.shape[0] * chosen.shape[1], device=chosen.device).repeat_interleave(chosen.shape[2])
    experts = chosen.flatten()
    return Routes(rows, experts, weights.flatten(), logits, shares, experts, drops=False, per_position=chosen.shape[2])


def tally(experts: Tensor, number: int) -> Tensor:
    """Return how many visits have each of a number of experts [E]. The host does not wait for it, as `bincount` would let it."""
    return torch.zeros(number, dtype=torch.long, device=experts.device).scatter_add(0, experts, torch.ones_like(experts))
