"""Hierarchical routing: a router of groups, and routers of experts inside of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from blocks.attention.heads import nearest_divisors
from blocks.core import BlockError, F, Paper, PositiveInt, Sizes, torch
from blocks.experts.router import Router, token_choice


class Hierarchical(Router, kind="hierarchical_router"):
    """Hierarchical mixture of experts, in which each position selects the `top_groups` groups with the highest logits of
    `group_gate(x)`, and in each of them the `top_k` experts with the highest logits of `gate(x)`: `w = softmax(g) · softmax(e)`,
    the first over the selected groups and the second over the selected experts of a group.

    So y is a mixture whose experts are mixtures. With `noisy`, training adds learned noise to both, as `noisy_top_k_router` does.
    The router z-loss is that of the groups.
    """

    groups: PositiveInt
    """Number of groups of equally many consecutive experts, the branching factor of the first level."""
    top_groups: PositiveInt = 2
    """Number of groups per position."""
    top_k: PositiveInt = 2
    """Number of experts per position in each of these groups."""
    noisy: bool = True
    """Whether training adds noise to the logits."""

    maps: ClassVar[tuple[str, ...]] = ("group_gate", "gate", "group_noise", "noise")
    paper = Paper("Outrageously Large Neural Networks: The Sparsely-Gated Mixture-of-Experts Layer", "arXiv:1701.06538")
    example = """
inputs: {x: "float[batch, time, 16]"}
graph:
  y: {type: moe, experts: 8, expert: {type: ffn, hidden: 24}, router: {type: hierarchical_router, groups: 4}, in: x}
"""

    def map_sizes(self) -> Mapping[str, str]:
        sizes = {"group_gate": str(self.groups), "gate": "experts", "group_noise": str(self.groups), "noise": "experts"}
        return {name: size for name, size in sizes.items() if self.noisy or not name.endswith("noise")}

    def visits(self) -> str:
        return f"time * {self.top_groups * self.top_k}"

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        if self.top_groups > self.groups:
            raise BlockError(f"{self.top_groups} of {self.groups} groups cannot be selected", field="top_groups")
        experts = sizes.get("experts")  # the moe block calls again, with its number of experts
        if not isinstance(experts, int):
            return
        if experts % self.groups:
            message, hint = f"{experts} experts cannot be split into {self.groups} groups", nearest_divisors(experts, self.groups)
            raise BlockError(message, field="groups", hint=hint, code="indivisible")
        if self.top_k > experts // self.groups:
            message = f"a position cannot be assigned to {self.top_k} of the {experts // self.groups} experts of a group"
            raise BlockError(message, field="top_k")

    def facts(self) -> tuple[str, ...]:
        return (f"top-{self.top_groups} of {self.groups} groups", f"top-{self.top_k} in each", *["noisy"] * self.noisy)

    def route(self: Any, moe: Any, x: torch.Tensor, correction: torch.Tensor | None) -> Any:
        groups, experts = moe.group_gate(x), moe.gate(x)  # [B, T, G], [B, T, E]
        if self.noisy:
            noise_of_groups, noise = F.softplus(moe.group_noise(x)), F.softplus(moe.noise(x))
            if moe.training:
                groups = groups + torch.randn_like(groups) * noise_of_groups
                experts = experts + torch.randn_like(experts) * noise
        groups = groups.to(torch.promote_types(groups.dtype, torch.float32))
        inside = torch.unflatten(experts.to(groups.dtype), -1, (self.groups, -1))  # [B, T, G, E / G]
        of_groups, chosen_groups = groups.topk(self.top_groups, dim=-1)  # [B, T, g]
        some = inside.gather(-2, chosen_groups[..., None].expand(*chosen_groups.shape, inside.shape[-1]))  # [B, T, g, E / G]
        of_experts, chosen = some.topk(self.top_k, dim=-1)  # [B, T, g, k]
        weights = of_groups.softmax(-1)[..., None] * of_experts.softmax(-1)
        chosen = chosen + chosen_groups[..., None] * inside.shape[-1]
        logits = (groups[..., None] + inside.log_softmax(-1)).flatten(-2)  # its softmax is the product of both
        return token_choice(chosen.flatten(-2), weights.flatten(-2), logits, logits.softmax(-1))
