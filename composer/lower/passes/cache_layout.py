"""Who remembers what while a text is being written: found in the typed graph, not in the modules."""

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
from composer.lower.passes.fixed_nodes import Fixed, Reach, reach
from composer.lower.passes.flatten import flatten
from composer.lower.passes.hoist import Hoisted, Hoisting
from composer.lower.passes.shared_weights import modules_of


@dataclass(frozen=True, slots=True)
class CacheSlot:
    """One value that is kept."""

    axis: int | None
    """The axis that grows, counted from the last; None where nothing grows."""
    batch: bool
    """Whether its first axis is the batch."""
    whole: bool = False
    """Whether it is made in the first call, of what the text does not reach, and stays."""


@dataclass(frozen=True, slots=True)
class CachedNode:
    """Who keeps: a module, or a part among its attributes."""

    module: str
    attribute: tuple[str, ...]
    names: Mapping[str, CacheSlot]


@dataclass(frozen=True, slots=True)
class CacheLayout:
    """What a model remembers while it writes a text."""

    keepers: tuple[CachedNode, ...]
    """All that a session must give a cache to."""
    fixed: tuple[Fixed, ...]
    """What it computes once."""


def writes_along(typed: TypedProgram) -> Dim | None:
    """Return the axis along which a model writes; None for one that writes nothing."""
    return growing(typed.program.recipe.task, typed.inputs)


def memory(typed: TypedProgram) -> CacheLayout | None:
    """Return what there is to remember; None for a model that writes nothing."""
    axis = writes_along(typed)
    if axis is None:
        return None
    far = reach(typed, axis)
    typed = flatten(typed)
    hoisting = Hoisting(typed)
    whole = (
        [CachedNode("", (), {})] if typed.program.losses else []
    )  # a model that knows that a session is open computes no losses
    return CacheLayout((*whole, *_Keepers(hoisting, axis, far).graph(typed.root, hoisting.root(), "")), far.fixed)


class _Keepers:
    def __init__(self, hoisting: Hoisting, axis: Dim, far: Reach) -> None:
        self.hoisting, self.axis, self.far = hoisting, axis, far

    def graph(self, graph: TypedGraph, hoisted: Hoisted, path: str) -> Iterator[CachedNode]:
        for name, need in hoisted.local.items():
            if need.axis == self.axis:
                yield from _part(need.part, path, (name,), dict(need.attributes))
        for node in graph.nodes:
            if node.node.dropped:
                continue
            below = f"{path}.{node.name}" if path else node.name
            match node:
                case TypedGroup():
                    yield from self.graph(node.graph, hoisted.inner[node.name], below)
                case TypedScan():
                    if goes_on(node, self.axis):
                        yield CachedNode(below, (), {name: CacheSlot(None, True) for name in node.carried})
                    yield from self.graph(node.graph, hoisted.inner[node.name], below)
                case TypedRepeat():
                    modules = modules_of(node)
                    for index, inner in enumerate(node.passes):
                        if modules.index(modules[index]) == index:
                            place = below.removesuffix(node.name) + modules[index]
                            yield from self.graph(inner, hoisted.inner[f"{node.name}[{index}]"], place)
                case TypedBlock():
                    yield from self.block(node, below)
                case _:
                    assert_never(node)

    def block(self, block: TypedBlock, path: str) -> Iterator[CachedNode]:
        names = {name: _kept(text, block, self.axis) for name, text in type(block.part).cache_slots.items()}
        held = {name: kept for name, kept in names.items() if kept.axis is not None}
        whole = [name for name in names if name not in held and self._stays(block, name, path)]
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

    def _stays(self, block: TypedBlock, name: str, path: str) -> bool:
        """Return whether what a block keeps is made from a port that the text does not reach, though it reaches others."""
        if path not in self.far.ports:
            return False
        part = type(block.part)
        own = set(_names(part.cache_slots[name])) - {"batch", ""}
        still = block.inputs.keys() - self.far.ports[path]
        return any(own & set(_names(text)) for port, text in part.inputs.items() if port.rstrip("?*") in still)


def goes_on(scan: TypedScan, axis: Dim | None) -> bool:
    """Return whether what a scan carries is kept from call to call, along the axis that grows."""
    return bool(scan.carried) and scan.axis.size == axis


def _kept(text: str, block: TypedBlock, axis: Dim) -> CacheSlot:
    names = _names(text)
    grows = [index - len(names) for index, name in enumerate(names) if name and block.sizes.get(name) == axis]
    return CacheSlot(grows[-1] if grows else None, names[:1] == ["batch"])


def _names(text: str) -> list[str]:
    """Return the axes of a declared type; nothing for one that is an expression."""
    return [expression.text if isinstance(expression, RefPath) else "" for expression in pattern(text).axes]


def _part(part: Part, path: str, attribute: tuple[str, ...], attributes: Mapping[str, Any]) -> Iterator[CachedNode]:
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
            yield from _part(inner, path, (*attribute, name), attributes)
