"""Token-choice routing: each position selects its experts."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from blocks.attention.heads import nearest_divisors
from blocks.core import BlockError, F, Paper, PositiveFloat, PositiveInt, Sizes, torch
from blocks.experts.router import Router, token_choice

ALWAYS_ONE = "the normalized weight of a single expert is always 1, so the router receives no gradient"


class TopK(Router, kind="top_k_router"):
    """Top-k routing, in which each position selects the `top_k` experts with the highest scores: `w = scaling · s / Σ s`, with
    scores s the softmax or sigmoid of `gate(x)` and the sum over the selected experts, to which `eps` is added.

    This is Mixtral's router; `normalize: false` makes it that of Switch and DeepSeek-MoE. With `groups`, experts are selected in
    the `top_groups` groups with the highest scores only (group-limited routing), of which each may be on a device of its own:
    by the best expert of a group in DeepSeek-V2, and with `scoring: sigmoid` and `group_score: top_two` in DeepSeek-V3. Scores
    are computed in float32, also under bfloat16.
    """

    top_k: PositiveInt
    """Number of experts per position; `num_experts_per_tok` in transformers."""
    scoring: Literal["softmax", "sigmoid"] = "softmax"
    """How the router's logits become scores: by a `softmax` over the experts, or by a `sigmoid` of each logit."""
    normalize: bool = True
    """Whether the weights of a position are divided by their sum; `norm_topk_prob` in transformers."""
    eps: PositiveFloat | None = None
    """Added to the sum by which the weights are divided: 1e-6 in LFM2, 1e-20 in DeepSeek-V3."""
    scaling: PositiveFloat = 1.0
    """Constant factor of the weights; `routed_scaling_factor` in transformers."""
    groups: PositiveInt = 1
    """Number of groups of equally many consecutive experts; `n_group` in transformers."""
    top_groups: PositiveInt = 1
    """Number of groups in which a position may select experts; `topk_group` in transformers."""
    group_score: Literal["best", "top_two"] = "best"
    """The score of a group: that of its `best` expert, or the sum of its `top_two`."""

    corrected: ClassVar[bool] = True
    takes_logits: ClassVar[bool] = True
    paper = Paper("Mixtral of Experts", "arXiv:2401.04088")
    example = """
inputs: {x: "float[batch, time, 16]"}
graph:
  y: {type: moe, experts: 8, expert: {type: gated_ffn, hidden: 24}, router: {type: top_k_router, top_k: 2}, in: x}
"""

    def visits(self) -> str:
        return f"time * {self.top_k}"

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        check_top_k(self.top_k, sizes)
        if self.top_k == 1 and self.normalize:
            raise BlockError(
                ALWAYS_ONE, field="top_k", hint="`normalize: false` weights the expert by its score, as switch_router does"
            )
        if self.eps is not None and not self.normalize:
            raise BlockError("is added to the sum that normalizes the weights", field="eps", hint="normalize: true")
        check_groups(self, sizes)

    def facts(self) -> tuple[str, ...]:
        of = (f"{self.top_groups} of {self.groups} groups",) if self.groups > 1 else ()
        scaled = () if self.scaling == 1 else (f"weights × {self.scaling:g}",)
        return (f"top-{self.top_k}", *of, self.scoring, *scaled)

    def route(self: Any, moe: Any, x: torch.Tensor, correction: torch.Tensor | None, given: torch.Tensor | None = None) -> Any:
        logits = moe.gate(x) if given is None else given  # [B, T, E]
        wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
        scores = wide.softmax(-1) if self.scoring == "softmax" else wide.sigmoid()
        ranked = scores if correction is None else scores + correction  # [B, T, E]
        if self.top_groups < self.groups:
            grouped = torch.unflatten(ranked, -1, (self.groups, -1))  # [B, T, G, E / G]
            group_scores = grouped.topk(2 if self.group_score == "top_two" else 1, dim=-1).values.sum(-1)  # [B, T, G]
            best = group_scores.topk(self.top_groups, dim=-1).indices
            left_out = torch.ones_like(group_scores, dtype=torch.bool).scatter(-1, best, False)
            ranked = grouped.masked_fill(left_out[..., None], -torch.inf).flatten(-2)
        chosen = ranked.topk(self.top_k, dim=-1).indices  # [B, T, k]
        weights = scores.gather(-1, chosen)
        if self.normalize:
            total = weights.sum(-1, keepdim=True)
            weights = weights / (total if self.eps is None else total + self.eps)
        shares = scores if self.scoring == "softmax" else scores / scores.sum(-1, keepdim=True)
        return token_choice(chosen, weights * self.scaling, wide, shares)


class NoisyTopK(Router, kind="noisy_top_k_router"):
    """Noisy top-k gating, in which training adds learned noise to the logits: `gate(x) + ε · softplus(noise(x))`, with ε
    standard normal in training and 0 otherwise.

    Each position selects the `top_k` experts with the highest logits, weighted by the softmax over these. The noise spreads the
    load, since experts that narrowly miss are selected at times. The paper initializes both maps with zeros and adds losses of
    its own.
    """

    top_k: PositiveInt
    """Number of experts per position."""

    maps: ClassVar[tuple[str, ...]] = ("gate", "noise")
    takes_logits: ClassVar[bool] = True
    paper = Paper("Outrageously Large Neural Networks: The Sparsely-Gated Mixture-of-Experts Layer", "arXiv:1701.06538")
    example = """
inputs: {x: "float[batch, time, 16]"}
graph:
  y: {type: moe, experts: 8, expert: {type: gated_ffn, hidden: 24}, router: {type: noisy_top_k_router, top_k: 2}, in: x}
"""

    def visits(self) -> str:
        return f"time * {self.top_k}"

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        check_top_k(self.top_k, sizes)
        if self.top_k == 1:
            raise BlockError(ALWAYS_ONE, field="top_k", hint="use `top_k: 2` or more, or switch_router")

    def facts(self) -> tuple[str, ...]:
        return (f"top-{self.top_k}", "noisy")

    def route(self: Any, moe: Any, x: torch.Tensor, correction: torch.Tensor | None, given: torch.Tensor | None = None) -> Any:
        logits = moe.gate(x) if given is None else given  # [B, T, E]
        noise = F.softplus(moe.noise(x))
        if moe.training:
            logits = logits + torch.randn_like(logits) * noise
        wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
        scores, chosen = wide.topk(self.top_k, dim=-1)  # [B, T, k]
        return token_choice(chosen, scores.softmax(-1), wide, wide.softmax(-1))


def check_top_k(visited: int, sizes: Sizes) -> None:
    """Raise `BlockError` if a position would visit more experts than there are."""
    experts = sizes.get("experts")  # the moe block calls again, with its number of experts
    if isinstance(experts, int) and visited > experts:
        raise BlockError(f"a position cannot be assigned to {visited} of {experts} experts", field="top_k")


def check_groups(router: TopK, sizes: Sizes) -> None:
    """Raise `BlockError` if the groups of experts cannot be made, or have too few experts to select from."""
    groups, selected = router.groups, router.top_groups
    if selected > groups:
        raise BlockError(f"{selected} of {groups} groups cannot be selected", field="top_groups")
    experts = sizes.get("experts")  # the moe block calls again, with its number of experts
    if not isinstance(experts, int):
        return
    if experts % groups:
        raise BlockError(
            f"{experts} experts cannot be split into {groups} groups",
            field="groups",
            hint=nearest_divisors(experts, groups),
            code="indivisible",
        )
    each = experts // groups
    if router.top_k > selected * each:
        raise BlockError(
            f"a position cannot be assigned to {router.top_k} of the {selected * each} experts in its groups", field="top_k"
        )
    if router.group_score == "top_two" and each < 2:
        raise BlockError("a group of 1 expert has no top two", field="group_score", hint="use `group_score: best`")
