"""Cache layout: which modules cache which values while a text is generated, found in the typed graph and not in the modules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, assert_never

from blocks.core import Part, is_node
from blocks.masks.plans import Plan, kept
from composer.graph.dims import Dim
from composer.graph.task_signature import growing
from composer.graph.type_patterns import pattern
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedProgram, TypedRepeat, TypedScan, has_axis
from composer.language.expressions.ast import RefPath
from composer.lower.passes.fixed_nodes import FixedNode, Reach, reach
from composer.lower.passes.flatten import flatten
from composer.lower.passes.hoist import Hoisted, Hoisting, pass_names
from composer.lower.passes.shared_weights import modules_of


@dataclass(frozen=True, slots=True)
class CacheSlot:
    """One value that is cached."""

    axis: int | None
    """The axis that grows, counted from the last, such as -2; None where none does."""
    batch: bool
    """Whether its first axis is the batch."""
    whole: bool = False
    """Whether it is computed in the first call, from what does not depend on the text, and stays as it is."""


@dataclass(frozen=True, slots=True)
class CachedNode:
    """What has a cache: a module, or a part among its attributes."""

    module: str
    attribute: tuple[str, ...]
    slots: Mapping[str, CacheSlot]


@dataclass(frozen=True, slots=True)
class CacheLayout:
    """What a model caches while it generates a text."""

    nodes: tuple[CachedNode, ...]
    """Everything that a session gives a cache."""
    fixed: tuple[FixedNode, ...]
    """What it computes once per session."""


def growing_axis(typed: TypedProgram) -> Dim | None:
    """Return the axis along which a model generates; None for one that generates no text."""
    return growing(typed.untyped.recipe.task, typed.inputs)


def cache_layout(typed: TypedProgram) -> CacheLayout | None:
    """Return what a model caches; None for one that generates no text."""
    axis = growing_axis(typed)
    if axis is None:
        return None
    reached = reach(typed, axis)
    typed = flatten(typed)
    hoisting = Hoisting(typed)
    nodes = [*_CachedNodes(hoisting, axis, reached).graph(typed.root, hoisting.root(), "")]
    if typed.untyped.losses:
        nodes.insert(0, CachedNode("", (), {}))  # by its cache a model knows that a session is open, and computes no losses
    return CacheLayout(tuple(nodes), reached.fixed)


class _CachedNodes:
    def __init__(self, hoisting: Hoisting, axis: Dim, reached: Reach) -> None:
        self.hoisting, self.axis, self.reached = hoisting, axis, reached

    def graph(self, graph: TypedGraph, hoisted: Hoisted, path: str) -> Iterator[CachedNode]:
        for name, preparation in hoisted.local.items():
            if preparation.axis == self.axis:
                yield from _cached_part(preparation.part, path, (name,), dict(preparation.attributes))
        for node in graph.nodes:
            below = f"{path}.{node.name}" if path else node.name
            match node:
                case TypedGroup():
                    yield from self.graph(node.graph, hoisted.inner[node.name], below)
                case TypedScan():
                    if carry_is_cached(node, self.axis):
                        yield CachedNode(below, (), {name: CacheSlot(None, True) for name in node.carried})
                    yield from self.graph(node.graph, hoisted.inner[node.name], below)
                case TypedRepeat():
                    modules = modules_of(node)
                    for index, (name, inner) in enumerate(zip(pass_names(node), node.passes, strict=True)):
                        if modules.index(modules[index]) == index:
                            place = below.removesuffix(node.name) + modules[index]
                            yield from self.graph(inner, hoisted.inner[name], place)
                case TypedBlock():
                    yield from self.block(node, below)
                case _:
                    assert_never(node)

    def block(self, block: TypedBlock, path: str) -> Iterator[CachedNode]:
        names = {name: _slot(text, block, self.axis) for name, text in type(block.part).cache_slots.items()}
        held = {name: slot for name, slot in names.items() if slot.axis is not None}
        whole = [name for name in names if name not in held and self._is_fixed(block, name, path)]
        held |= {name: replace(names[name], whole=True) for name in whole}
        if has_axis(block, self.axis) and self.axis not in block.part.mixed_axes(block.sizes):
            held |= {name: CacheSlot(None, True) for name in type(block.part).carry}
        if held or block.part.renewed_by:
            yield CachedNode(path, (), held)
        for name in type(block.part).model_fields:
            part = getattr(block.part, name)
            if isinstance(part, Part) and not is_node(type(part)) and type(part).carry and has_axis(block, self.axis):
                yield CachedNode(path, (name,), {state: CacheSlot(None, True) for state in type(part).carry})
        for name, slot in block.slots.items():
            match slot:
                case TypedBlock():
                    yield from self.block(slot, f"{path}.{name}")
                case TypedGroup():
                    yield from self.graph(slot.graph, self.hoisting.graph(slot.graph, frozenset()), f"{path}.{name}")
                case TypedScan() | TypedRepeat() | None:  # in a slot, the first two stand in a group of their own
                    pass
                case _:
                    assert_never(slot)

    def _is_fixed(self, block: TypedBlock, name: str, path: str) -> bool:
        """Return whether what a block caches comes from a port that does not depend on the text, though other ports do."""
        if path not in self.reached.ports:
            return False
        part = type(block.part)
        axes = set(_axes(part.cache_slots[name])) - {"batch", ""}
        fixed = block.inputs.keys() - self.reached.ports[path]
        return any(axes & set(_axes(text)) for port, text in part.inputs.items() if port.rstrip("?*") in fixed)


def carry_is_cached(scan: TypedScan, axis: Dim | None) -> bool:
    """Return whether what a scan carries is cached from call to call: where its steps are along the axis that grows."""
    return bool(scan.carried) and scan.axis.size == axis


def _slot(text: str, block: TypedBlock, axis: Dim) -> CacheSlot:
    names = _axes(text)
    grows = [index - len(names) for index, name in enumerate(names) if name and block.sizes.get(name) == axis]
    return CacheSlot(grows[-1] if grows else None, names[:1] == ["batch"])


def _axes(text: str) -> list[str]:
    """Return the names of the axes of a declared type; an empty one for an expression."""
    return [expression.text if isinstance(expression, RefPath) else "" for expression in pattern(text).axes]


def _cached_part(part: Part, path: str, attribute: tuple[str, ...], attributes: Mapping[str, Any]) -> Iterator[CachedNode]:
    if isinstance(part, Plan) and attributes.get("grows"):
        names = {
            name: CacheSlot(-1, text.startswith(("int[batch", "bool[batch", "int[..."))) for name, text in kept(part).items()
        }
        if names:
            yield CachedNode(path, attribute, names)
    elif type(part).cache_slots and not isinstance(part, Plan):
        yield CachedNode(path, attribute, {"length": CacheSlot(None, False)})
    for name in type(part).model_fields:
        inner = getattr(part, name)
        if isinstance(inner, Plan):
            yield from _cached_part(inner, path, (*attribute, name), attributes)
