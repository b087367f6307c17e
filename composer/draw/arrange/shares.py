"""How much of a model's parameters, FLOPs and cache each node has, and what of it is trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal, TypeAlias, get_args

from composer.cost.cached import CacheCounter
from composer.cost.flops import FlopCounter
from composer.cost.lengths import lengths_of
from composer.cost.units import in_bytes, in_flops
from composer.draw.about import About
from composer.draw.paths import above, lies_in, plain
from composer.graph.dims import substitute
from composer.graph.passes.roll_layers.roll_layers import RolledProgram
from composer.graph.task_signature import growing
from composer.graph.typed import TypedGraph
from composer.graph.visit import every_node, every_pass, walk
from composer.memo import lazy

Coloring: TypeAlias = Literal["kind", "params", "flops", "cache", "trainable"]
COLORINGS: tuple[Coloring, ...] = get_args(Coloring)
BF16_BYTES = 2
STEPS = ((0.0, "none"), (0.01, "under 1 %"), (0.05, "1–5 %"), (0.2, "5–20 %"), (1.0, "over 20 %"))
"""Shares of a whole, up to which a color goes, and what a legend calls each: a layer of dozens has a few percent."""
TRAINED = {0: "no parameters", 1: "frozen", 3: "partly trained", 4: "trained"}
WHOLE_BLOCKS: frozenset[Coloring] = frozenset({"flops", "cache"})
"""What is counted for a block, not for what it consists of."""
COUNTED: Mapping[Coloring, str] = {"params": "parameters", "flops": "FLOPs", "cache": "KV cache"}


@dataclass(frozen=True)
class NodeShares:
    """Sizes of the nodes of a model, by their paths with passes and without."""

    model: RolledProgram

    # -- what boxes say

    def facts(self, about: About, *, flops: bool, cache: bool) -> tuple[str, ...]:
        """Return the FLOPs of a node in one pass for a token, or for a whole input, and what it caches for each token."""
        said = []
        if flops and (count := self.sum_of(about, self.flops_of_first)):
            said.append(in_flops(count) if self.positions is None else f"{in_flops(count // self.positions)}/token")
        if cache and (numbers := self.sum_of(about, self.cached_of_first)):
            said.append(f"KV cache {in_bytes(BF16_BYTES * numbers)}/token")
        return tuple(said)

    @lazy
    def lengths(self) -> Mapping[str, int]:
        """The sizes of axes for which costs are told."""
        return lengths_of(self.model.program, {})

    @lazy
    def positions(self) -> int | None:
        """The tokens of one pass; None where a model reads no text."""
        typed = self.model.program
        axis = growing(typed.untyped.recipe.task, typed.inputs)
        return None if axis is None else substitute(axis, self.lengths) * self.lengths.get("batch", 1)

    @lazy
    def counted(self) -> tuple[Mapping[str, int], Mapping[str, int], Mapping[str, int], Mapping[str, int]]:
        """FLOPs and cached numbers per token of every node: of its first pass, and of all passes together."""
        flops, typed = FlopCounter(self.lengths), self.model.program
        axis = growing(typed.untyped.recipe.task, typed.inputs)
        cache = None if axis is None else CacheCounter(axis, self.lengths)
        firsts: tuple[dict[str, int], dict[str, int]] = {}, {}
        totals: tuple[dict[str, int], dict[str, int]] = {}, {}
        for visit in walk(typed.root, every_pass, every_node):
            kept = 0 if cache is None or visit.in_slot else cache.node(visit.node).per_token
            for which, number in enumerate((flops.node(visit.node).masked, kept)):
                for path in {visit.path, plain(visit.path)}:
                    firsts[which].setdefault(path, number)
                    totals[which][path] = totals[which].get(path, 0) + number
        return (*firsts, *totals)

    @property
    def flops_of_first(self) -> Mapping[str, int]:
        """Those of a node's first pass."""
        found: Mapping[str, int] = self.counted[0]
        return found

    @property
    def cached_of_first(self) -> Mapping[str, int]:
        """Those of a node's first pass."""
        found: Mapping[str, int] = self.counted[1]
        return found

    def is_node(self, about: About) -> bool:
        """Return whether a box stands for a node, rather than for a piece of one."""
        return bool(self.places(About(about.path), self.flops_of_first))

    # -- colors

    @lazy
    def owned(self) -> Mapping[str, tuple[int, int]]:
        """Parameters at each path and below, and how many of them are trained; those that are another's not counted."""
        found: dict[str, tuple[int, int]] = {}
        for entry in self.model.parameters:
            count = 0 if entry.tied_to else prod(entry.parameter.shape)
            for path in {*above(entry.name), *above(plain(entry.name)), ""}:
                every, trained = found.get(path, (0, 0))
                found[path] = every + count, trained + count * entry.trainable
        return found

    def step(self, about: About, coloring: Coloring) -> int:
        """Return how dark the box of a node is: 0 for nothing, then by its share of the whole, or by what of it is trained."""
        if coloring == "trainable":
            parts = [self.owned.get(path, (0, 0)) for path in self.places(about, self.owned)]
            every, trained = (sum(part[which] for part in parts) for which in (0, 1))
            return 0 if not every else 1 if not trained else 4 if trained == every else 3
        share = self.share(about, coloring)
        return next(number for number, (most, _) in enumerate(STEPS) if share <= most)

    def share(self, about: About, coloring: Coloring) -> float:
        """Return which share of the whole a node has in all passes that its box stands for; an expert, what all of them have."""
        if coloring == "params":
            counts: Mapping[str, int] = {path: every for path, (every, _) in self.owned.items()}
            whole, own = counts.get("", 0), about.parameters
        else:
            counts, own = self.counted[2 if coloring == "flops" else 3], 0
            whole = self.whole(self.model.program.root, 0 if coloring == "flops" else 1)
        return min(1.0, (own or self.sum_of(about, counts)) / whole) if whole else 0.0

    def whole(self, root: TypedGraph, which: int) -> int:
        """Return the FLOPs or the cached numbers of the whole model."""
        return sum(self.counted[2 + which].get(node.name, 0) for node in root.nodes)

    def sum_of(self, about: About, counts: Mapping[str, int]) -> int:
        """Return the sum over all nodes that a box stands for."""
        return sum(counts.get(path, 0) for path in self.places(about, counts))

    def places(self, about: About, counts: Mapping[str, object]) -> Sequence[str]:
        """Return the paths of the nodes that a box stands for, none in another one; of an expert, of all experts."""
        tried = ((path, plain(path)) for path in (about.path, *about.covers))
        every = dict.fromkeys(next((one for one in forms if one in counts), "") for forms in tried)
        return [path for path in every if path and not any(other and other != path and lies_in(path, other) for other in every)]
