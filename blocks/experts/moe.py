"""The mixture-of-experts layer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal

from blocks.core import (
    Block,
    BlockError,
    BlockView,
    Expert,
    LinearWeights,
    Look,
    Mixture,
    Paper,
    PositiveInt,
    Sizes,
    Slot,
    Units,
    Weights,
    torch,
)
from blocks.experts.router import Router, tally
from blocks.experts.top_k import TopK


class MixtureOfExperts(Block, kind="moe"):
    """Mixture of experts (MoE), where each position is processed by a few of many experts: `y = Σ w · expert(x) + shared(x)`
    over the experts that the router selects, with its weights w; with `weighed: inputs`, `y = Σ expert(w · x) + shared(x)`.

    Only the selected experts are computed for a position. Expert parameters are stacked: `expert.up.weight` is `[experts,
    hidden, dim]`; a learned activation is shared by all experts. Of the optional outputs, `load_balancing` is the auxiliary
    loss `experts · Σ f p` with f the fraction of positions that select an expert and p its mean probability, smallest where
    both are uniform, of this layer alone and over all positions, or those that are `valid` where that is wired; `load` is f;
    `router_z` is the router z-loss, the mean square of the logsumexp of the router's logits at all positions; `routing` has the
    weight of each expert at each position, 0 where it is not selected. A `correction` is added to the scores that select
    experts, not to the weights (*Auxiliary-Loss-Free Load Balancing*, arXiv:2408.15664). With `logits`, the router takes what
    other nodes compute in place of its own `gate(x)`, such as `gate(x)` and a vector for the task of each row.
    """

    experts: PositiveInt
    """Number of experts; `num_experts` or `num_local_experts` in transformers."""
    expert: Expert
    """The block that is replicated for each expert, with separate parameters."""
    router: Router = TopK(top_k=2)
    """Assigns positions to experts and weights their outputs."""
    shared: Block | None = None
    """Shared expert, which processes every position."""
    weighed: Literal["outputs", "inputs"] = "outputs"
    """What is multiplied by the router's weights: the `outputs` of the selected experts, or their `inputs`, as in Llama 4."""

    paper = Paper(
        "Switch Transformers: Scaling to Trillion Parameter Models with Simple and Efficient Sparsity", "arXiv:2101.03961"
    )
    example = """
inputs: {x: "float[batch, time, 16]"}
graph:
  y: {type: moe, experts: 8, expert: {type: gated_ffn, hidden: 24}, router: {type: top_k_router, top_k: 2}, in: x}
"""
    inputs = {
        "x": "float[batch, time, dim]",
        "correction?": "float[experts]",
        "logits?": "float[batch, time, experts]",
        "valid?": "bool[batch, time]",
    }
    outputs = {
        "y": "float[batch, time, dim]",
        "load_balancing?": "float[]",
        "router_z?": "float[]",
        "load?": "float[experts]",
        "routing?": "float[batch, time, experts]",
    }
    mean_outputs = {"router_z": "batch * time"}
    units = {"experts": Units(chosen_by="gate")}
    causal_forms = ("a router that routes each position by itself, such as `top_k_router`",)

    def weights(self, sizes: Sizes, wired: frozenset[str]) -> Weights:
        rows = f"float[batch, {self.router.visits()}, dim]"
        maps = {
            name: LinearWeights("dim", out, bias=self.router.bias)
            for name, out in self.router.map_sizes().items()
            if name != "gate" or "logits" not in wired
        }
        return {**maps, "expert": Slot("expert", rows, count="experts"), "shared": Slot("shared", "float[batch, time, dim]")}

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        if not isinstance(self.expert, Expert):
            raise BlockError(
                "a graph cannot be an expert", field="expert", hint="write one block, such as gated_ffn", code="slot-family"
            )
        if "correction" in wired and not self.router.corrected:
            raise BlockError("needs a router whose scores can be corrected", port="correction", hint="router: top_k_router")
        if "logits" in wired and not self.router.takes_logits:
            raise BlockError("needs a router that takes logits", port="logits", hint="router: top_k_router")
        if "logits" in wired and self.router.bias and self.router.maps == ("gate",):
            raise BlockError("is a bias of `gate`, and `logits` stands in its place", field="router.bias", hint="bias: false")
        try:
            self.router.check({**sizes, "experts": self.experts}, wired)
        except BlockError as error:
            raise BlockError(error.message, field=f"router.{error.field}", hint=error.hint, code=error.code) from None

    def mixed_axes(self, sizes: Sizes) -> Sequence[Any]:
        return self.router.mixed_axes(sizes)

    def look(self, view: BlockView) -> Look:
        shared = [f"shared expert{_hidden(view.slots['shared'])}"] if "shared" in view.slots else []
        chosen, *others = self.router.facts()
        facts = (f"{self.experts} experts{_hidden(view.slots.get('expert'))}", chosen, *shared, *others)
        short = f"MoE {self.experts}"
        name = f"MoE {chosen} of {self.experts}" if re.fullmatch(r"top-\d+", chosen) else f"{short}, {chosen}"
        whole = name + " + shared" * bool(shared)
        brief = tuple(dict.fromkeys((f"{whole}{_hidden(view.slots.get('expert'))}", whole, name, short)))
        return Look("Mixture of experts", facts, "moe", short=short, brief=brief)

    def mixture(self) -> Mixture:
        return Mixture(self.experts, self.router.visits(), self.router.facts(), tuple(self.router.map_sizes()))

    def forward(
        self: Any,
        x: torch.Tensor,
        correction: torch.Tensor | None = None,
        logits: torch.Tensor | None = None,
        valid: torch.Tensor | None = None,
    ) -> Any:
        own = logits is None
        routes = self.router.route(self, x, correction) if own else self.router.route(self, x, correction, logits)
        order = routes.experts.argsort(stable=True)  # [visits]; sorted by expert, those without one last
        rows = routes.rows[order]
        counts = tally(routes.experts, self.experts + routes.drops)  # [E], or [E + 1] with those of no expert
        given, weights = x.flatten(0, 1).index_select(0, rows), routes.weights[order, None]
        if self.weighed == "inputs":
            visited = self.expert(given * weights.to(given.dtype), counts)  # [visits, D]
            weights = routes.experts[order, None] < self.experts  # nothing of those without an expert
        else:
            visited = self.expert(given, counts)
        weighed = visited * weights.to(visited.dtype)
        if routes.per_position and x.device.type == "cuda":
            y = by_position(weighed, order, routes.per_position).view(x.shape)
        else:
            y = torch.zeros_like(x.flatten(0, 1), dtype=weighed.dtype).index_add(0, rows, weighed).view(x.shape)
        if self.shared is not None:
            y = y + self.shared(x)
        if not self.requested_outputs:
            return y
        load, share = loads(routes, valid)
        read: dict[str, Any] = {
            "load_balancing": self.experts * (load * share).sum(),
            "router_z": routes.logits.logsumexp(-1).square().mean(),
            "load": load,
            "routing": routing(routes, self.experts, x),
        }
        return (y, *(value for name, value in read.items() if name in self.requested_outputs))


def loads(routes: Any, valid: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the fraction of positions that select each expert and its mean probability, both [E], over all positions or those
    that are `valid` [B, T].
    """
    if valid is None:
        return routes.load, routes.shares.mean((0, 1))
    real = valid.to(routes.shares.dtype)
    count = real.sum().clamp(min=1)  # 1 where none is
    selected = torch.zeros_like(routes.shares[0, 0]).index_add(0, routes.selected, real.flatten()[routes.rows])
    return selected / count, (routes.shares * real[..., None]).sum((0, 1)) / count


def by_position(weighed: torch.Tensor, order: torch.Tensor, visits: int) -> torch.Tensor:
    """Return the sum of the visits of each position [B · T, D]. Visit `order[i]` is row i of `weighed` [B · T · visits, D].

    On a GPU, adding rows to a result has an order of its own in each call, and rounds after each addition; this does neither.
    """
    return weighed.new_empty(weighed.shape).index_copy(0, order, weighed).view(-1, visits, weighed.shape[1]).sum(1)


def routing(routes: Any, experts: int, x: torch.Tensor) -> torch.Tensor:
    """Return the weight of each expert at each position [B, T, E], with those of visits without an expert left out."""
    weights = x.new_zeros(x.shape[0] * x.shape[1], experts + 1)
    weights = weights.index_put((routes.rows, routes.experts), routes.weights.to(x.dtype), accumulate=True)
    return weights[:, :experts].reshape(x.shape[0], x.shape[1], experts)


def _hidden(expert: Look | None) -> str:
    """Return what stands behind the name of an expert for its hidden width, where it has one: `, hidden 168`."""
    widths = expert.facts[0].split(" → ") if expert and expert.facts else ()
    return f", hidden {widths[1]}" if len(widths) == 3 else ""
