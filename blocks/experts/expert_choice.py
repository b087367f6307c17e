"""Expert-choice routing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from blocks.core import BlockError, Paper, PositiveInt, Sizes, grouped, torch
from blocks.experts.router import Router, Routes


class ExpertChoice(Router, kind="expert_choice_router"):
    """Expert-choice routing, in which each expert selects the positions with the highest `softmax(gate(x))` for it.

    An expert takes as many positions of a sequence as give each position `capacity_factor` experts on average, and its outputs
    are weighted by these probabilities, so that the load is perfectly balanced. The choice depends on the whole sequence, later
    positions included, which rules it out for autoregressive models. The paper selects among the positions of a whole batch.
    """

    capacity_factor: PositiveInt = 2
    """Average number of experts per position, the paper's c."""

    takes_logits: ClassVar[bool] = True
    paper = Paper("Mixture-of-Experts with Expert Choice Routing", "arXiv:2202.09368")
    example = """
inputs: {x: "float[batch, time, 16]"}
graph:
  y:
    type: moe
    experts: 8
    expert: {type: gated_ffn, hidden: 24}
    router: {type: expert_choice_router, capacity_factor: 2}
    in: x
"""

    def visits(self) -> str:
        return f"experts * ((time * {self.capacity_factor} + experts - 1) // experts)"

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        experts = sizes.get("experts")  # the moe block calls again, with its number of experts
        if isinstance(experts, int) and self.capacity_factor > experts:
            raise BlockError(
                f"a position cannot be assigned to {self.capacity_factor} of {experts} experts", field="capacity_factor"
            )

    def mixed_axes(self, sizes: Sizes) -> Sequence[Any]:
        return [sizes["time"]]  # an expert selects among all positions of a sequence, including later ones

    def facts(self) -> tuple[str, ...]:
        return ("experts choose", f"capacity {grouped(self.capacity_factor)}")

    def route(self: Any, moe: Any, x: torch.Tensor, correction: torch.Tensor | None, given: torch.Tensor | None = None) -> Any:
        logits = moe.gate(x) if given is None else given  # [B, T, E]
        wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
        shares = wide.softmax(-1)
        batch, time = x.shape[:2]
        each = (time * self.capacity_factor + moe.experts - 1) // moe.experts  # positions that an expert takes
        weights, chosen = shares.topk(each, dim=1)  # [B, each, E]
        rows = chosen + time * torch.arange(batch, device=x.device)[:, None, None]
        experts = torch.arange(moe.experts, device=x.device).expand(chosen.shape).flatten()
        return Routes(rows.flatten(), experts, weights.flatten(), wide, shares, experts, drops=False)
