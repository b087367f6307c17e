"""Adapters (LoRA): what is added to the linear maps whose names match the patterns of a recipe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from blocks.core import Init
from composer.diagnostics import Diagnostic
from composer.graph.ir import Adapter, AdapterPattern
from composer.graph.parameters import covers
from composer.graph.passes.compilation import Compilation
from composer.graph.typed import LinearMap, TypedBlock, TypedNode, TypedParameter
from composer.graph.visit import PlacedMap, walk
from composer.language.name_index import NameIndex
from composer.language.patterns import matches
from composer.language.suggestions import did_you_mean, suggest
from composer.language.wording import counted
from composer.memo import Interned

LINEAR = "nn.Linear"
MATRICES = A, B = "lora_a", "lora_b"
"""The names of the two matrices beside `weight`: A [rank, in] and B [out, rank]."""
MAX_NAMED = 3
"""The names that a message lists."""


def adapt(state: Compilation) -> Compilation:
    """Add adapters to the linear maps that a recipe names; passes that get different ones are no longer equal.

    Before:
        adapters: {"layers.0.up": {rank: 2}}
        graph:
          layers: {repeat: 2, graph: {up: {type: linear, out: 8}}}
    After:
        layers.0.up has lora_a and lora_b
    """
    assert state.typed is not None
    rules = state.typed.untyped.adapters
    if not rules:
        return state
    found = _Found(rules)
    for visit in walk(state.typed.root):
        if isinstance(visit.node, TypedBlock):
            found.see(visit.path, visit.node)
    wrong = list(found.mistakes())
    if any(each.severity == "error" for each in wrong):
        return state.stop(wrong)
    change = PlacedMap(found.adapted)
    return replace(state, typed=replace(state.typed, root=change.graph(state.typed.root)), warnings=(*state.warnings, *wrong))


def linear_maps(block: TypedBlock) -> Mapping[str, LinearMap]:
    """Return the linear maps of a block by their names in it; the one that is the whole block has none. Those of experts, which
    are stacked, are none that can have an adapter.
    """
    if block.copies:
        return {name: each._replace(adaptable=False) for name, each in block.modules.items()}
    call = block.part.build(block.sizes)
    if call is None or call.function != LINEAR:
        return block.modules
    weights = {each.name: each.shape for each in block.parameters}
    outputs, inputs = weights["weight"]
    return {"": LinearMap(inputs, outputs, "bias" in weights, next(iter(block.inputs), ""))}


@dataclass(slots=True)
class _Found:
    """What the patterns of a recipe match."""

    rules: Sequence[AdapterPattern]
    used: set[int] = field(default_factory=set)
    """The patterns that match something that they can change."""
    not_adaptable: dict[int, list[str]] = field(default_factory=dict)
    """By pattern, names of linear maps that cannot have an adapter."""
    wide: dict[int, str] = field(default_factory=dict)
    """By pattern, a linear map that is narrower than the rank."""
    maps: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    made: Interned[tuple[TypedBlock, tuple[tuple[str, Adapter], ...]], TypedBlock] = field(default_factory=Interned)

    def see(self, path: str, block: TypedBlock) -> None:
        """Compare the names of a block with the patterns."""
        maps = {_joined(path, name): each for name, each in linear_maps(block).items()}
        learned = [f"{path}.{each.name}" for each in block.parameters]
        self.maps += maps
        self.names += learned
        for number, rule in enumerate(self.rules):
            if rule.adapter is None:
                if any(covers(rule.pattern, name) for name in learned):
                    self.used.add(number)
                continue
            for name in (name for name in maps if matches(rule.pattern, name)):
                if not maps[name].adaptable:
                    self.not_adaptable.setdefault(number, []).append(name)
                    continue
                self.used.add(number)
                if rule.adapter.rank >= min(maps[name].inputs, maps[name].outputs):
                    self.wide.setdefault(number, name)

    def adapted(self, path: str, block: TypedNode) -> TypedNode:
        """Return a block with what is added to its linear maps; for equal ones, one object."""
        if not isinstance(block, TypedBlock):
            return block
        chosen = tuple(
            (name, adapter)
            for name, each in linear_maps(block).items()
            if each.adaptable and (adapter := adapter_of(self.rules, _joined(path, name))) is not None
        )
        if not chosen:
            return block
        return self.made.get((block, chosen), partial(_with_adapters, block, chosen))

    def mistakes(self) -> Iterator[Diagnostic]:
        """Yield an error for each pattern that changes nothing, and warnings for what it leaves out."""
        for number, rule in enumerate(self.rules):
            left_out = self.not_adaptable.get(number, ())
            named = ", ".join(f"`{name}`" for name in left_out[:MAX_NAMED])
            more = f" and {counted(len(left_out) - MAX_NAMED, 'other')}" if len(left_out) > MAX_NAMED else ""
            if number not in self.used:
                if left_out:
                    message = f"no adapter can be added to {named}{more}"
                    hint = "the weights of experts are stacked, and some blocks read a weight without calling the map"
                    yield Diagnostic("unmatched-adapter", message, rule.span, hint=hint)
                    continue
                what = "parameter's name" if rule.adapter is None else "linear map's name"
                offered = suggest(rule.pattern, self.names if rule.adapter is None else self.maps)
                hint = did_you_mean(offered) if offered else ""
                if not hint and rule.adapter is not None and NameIndex(self.names).matches(rule.pattern):
                    hint = "name the map without `.weight`, such as *.(q|v)"
                yield Diagnostic("unmatched-adapter", f"no {what} matches this pattern", rule.span, hint=hint)
            elif left_out:
                message = f"no adapter is added to {named}{more}, which cannot have one"
                yield Diagnostic("partial-adapter", message, rule.span, "warning")
            elif number in self.wide and rule.adapter is not None:
                message = f"an adapter of rank {rule.adapter.rank} is no narrower than `{self.wide[number]}` itself"
                yield Diagnostic("wide-adapter", message, rule.span, "warning", hint="the rank is usually 4 to 64")


def adapter_of(rules: Sequence[AdapterPattern], name: str) -> Adapter | None:
    """Return the adapter of a linear map: that of the last pattern which matches its name; None if it has none."""
    for rule in reversed(rules):
        if rule.adapter is not None and matches(rule.pattern, name):
            return rule.adapter
        if rule.adapter is None and covers(rule.pattern, f"{name}.weight"):
            return None
    return None


def _with_adapters(block: TypedBlock, chosen: Sequence[tuple[str, Adapter]]) -> TypedBlock:
    maps = linear_maps(block)
    added = [each for name, adapter in chosen for each in _matrices(name, maps[name], adapter)]
    return replace(block, parameters=(*block.parameters, *added), adapters=dict(chosen))


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if name else path


def _matrices(name: str, each: LinearMap, adapter: Adapter) -> Iterator[TypedParameter]:
    """Yield A and B: A starts as the weight of an `nn.Linear`, and B with zeros, so that nothing is added at first."""
    below = f"{name}." if name else ""
    yield TypedParameter(f"{below}{A}", (adapter.rank, each.inputs), "adapter", Init("uniform", each.inputs**-0.5))
    yield TypedParameter(f"{below}{B}", (each.outputs, adapter.rank), "adapter", Init("constant", 0.0))
