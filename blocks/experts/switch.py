"""The router of the Switch Transformer."""

from __future__ import annotations

from typing import Any, ClassVar

from blocks.core import BlockError, Paper, PositiveInt, Probability, Sizes, cached, grouped, store_carry, torch
from blocks.experts.router import Router, token_choice


class Switch(Router, kind="switch_router"):
    """Switch routing, top-1 with a capacity: `softmax(gate(x))` selects one expert for each position and weights its output.

    An expert takes the first `capacity` positions of a sequence that select it; later ones are dropped, with output zero. The
    paper's capacity is a factor of the mean load over a whole batch; here it is a number of positions of each sequence, as in
    transformers, so that no position depends on a later one or on another sequence.
    """

    capacity: PositiveInt
    """Positions of a sequence that an expert takes at most; `expert_capacity` in transformers."""
    jitter: Probability = 0.0
    """In training, the router's input is multiplied by uniform noise between 1 − jitter and 1 + jitter; 0.01 in the paper."""

    paper = Paper(
        "Switch Transformers: Scaling to Trillion Parameter Models with Simple and Efficient Sparsity", "arXiv:2101.03961"
    )
    takes_logits: ClassVar[bool] = True
    carry = {"taken": "int[batch, experts]"}
    example = """
inputs: {x: "float[batch, time, 16]"}
graph:
  y: {type: moe, experts: 8, expert: {type: ffn, hidden: 24}, router: {type: switch_router, capacity: 4}, in: x}
"""

    def visits(self) -> str:
        return "time"

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        if self.jitter and "logits" in wired:
            raise BlockError("is noise of what `gate` reads, and `logits` stands in its place", field="jitter", hint="jitter: 0")

    def facts(self) -> tuple[str, ...]:
        return ("top-1", "switch", f"capacity {grouped(self.capacity)}")

    def route(self: Any, moe: Any, x: torch.Tensor, correction: torch.Tensor | None, given: torch.Tensor | None = None) -> Any:
        seen = x
        if self.jitter and moe.training:
            seen = x * torch.empty_like(x).uniform_(1 - self.jitter, 1 + self.jitter)
        logits = moe.gate(seen) if given is None else given  # [B, T, E]
        wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
        shares = wide.softmax(-1)
        weights, chosen = shares.max(-1, keepdim=True)  # [B, T, 1]
        wants = chosen == torch.arange(moe.experts, device=x.device)  # [B, T, E]
        counted = wants.cumsum(1)  # this position included
        before = cached(self, "taken")
        if before is not None:
            counted = counted + before[:, None]
        store_carry(self, x.shape[1], taken=counted[:, -1])
        place = counted.gather(-1, chosen)  # [B, T, 1]; 1 for the first position of an expert
        routes = token_choice(chosen, weights, wide, shares)
        return routes._replace(experts=torch.where(place > self.capacity, moe.experts, chosen).flatten(), drops=True)
