"""Who remembers what while a text is being written: found in the typed graph, not in the modules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from blocks.core import Part
from blocks.masks.plans import Plan, kept
from blocks.primitives.state import State
from composer.graph.dims import Dim
from composer.graph.patterns import pattern
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedProgram, TypedRepeat, TypedScan, along
from composer.language.expression import Path
from composer.language.parse import is_node
from composer.lower.flatten import flatten
from composer.lower.hoist import Hoisted, Hoisting
from composer.lower.shared import modules_of


@dataclass(frozen=True, slots=True)
class Kept:
    """One value that is kept."""

    axis: int | None
    """The axis that grows, counted from the last; None where it is kept whole."""
    batch: bool
    """Whether its first axis is the batch."""


@dataclass(frozen=True, slots=True)
class Keeper:
    """Who keeps: a module, or a part among its attributes."""

    module: str
    attribute: tuple[str, ...]
    names: Mapping[str, Kept]


def keepers(typed: TypedProgram) -> tuple[Keeper, ...]:
    """All that a session must give a cache to."""
    typed = flatten(typed)
    hoisting = Hoisting(typed)
    whole = [Keeper("", (), {})] if typed.program.losses else []  # a model that knows that a session is open computes no losses
    return (*whole, *_graph(typed.root, hoisting.root(), "", hoisting, growing(typed)))


def growing(typed: TypedProgram) -> Dim | None:
    """The axis that grows in decoding: the last of `tokens`."""
    tokens = typed.inputs.get("tokens")
    return tokens.axes[-1].size if tokens is not None and tokens.axes else None


def goes_on(scan: TypedScan, axis: Dim | None) -> bool:
    """Whether what a scan carries is kept from call to call, along the axis that grows."""
    return bool(scan.carried) and scan.axis.size == axis


def _graph(graph: TypedGraph, hoisted: Hoisted, path: str, hoisting: Hoisting, axis: Dim | None) -> Iterator[Keeper]:
    for name, need in hoisted.local.items():
        if axis is not None and need.axis == axis:
            yield from _part(need.part, path, (name,), dict(need.attributes))
    for node in graph.nodes:
        if node.node.dropped:
            continue
        below = f"{path}.{node.name}" if path else node.name
        match node:
            case TypedGroup():
                yield from _graph(node.graph, hoisted.inner[node.name], below, hoisting, axis)
            case TypedScan():
                if goes_on(node, axis):
                    yield Keeper(below, (), {name: Kept(None, True) for name in node.carried})
                yield from _graph(node.graph, hoisted.inner[node.name], below, hoisting, axis)
            case TypedRepeat():
                modules = modules_of(node)
                for index, inner in enumerate(node.passes):
                    if modules.index(modules[index]) == index:
                        place = below.removesuffix(node.name) + modules[index]
                        yield from _graph(inner, hoisted.inner[f"{node.name}[{index}]"], place, hoisting, axis)
            case TypedBlock():
                yield from _block(node, below, hoisting, axis)


def _block(block: TypedBlock, path: str, hoisting: Hoisting, axis: Dim | None) -> Iterator[Keeper]:
    names = {name: _kept(text, block, axis) for name, text in type(block.part).keeps.items()}
    held = {name: kept for name, kept in names.items() if kept.axis is not None}
    if along(block, axis) and axis not in block.part.mixes(block.sizes):
        held |= {name: Kept(None, True) for name in type(block.part).carries}
    if held or isinstance(block.part, State):
        yield Keeper(path, (), held)
    for name in type(block.part).model_fields:
        part = getattr(block.part, name)
        if isinstance(part, Part) and not is_node(type(part)) and type(part).carries and along(block, axis):
            yield Keeper(path, (name,), {state: Kept(None, True) for state in type(part).carries})
    for name, slot in block.slots.items():
        match slot:
            case TypedBlock():
                yield from _block(slot, f"{path}.{name}", hoisting, axis)
            case TypedGroup():
                yield from _graph(slot.graph, hoisting.graph(slot.graph, frozenset()), f"{path}.{name}", hoisting, axis)


def _kept(text: str, block: TypedBlock, axis: Dim | None) -> Kept:
    axes = pattern(text).axes
    names = [expression.text if isinstance(expression, Path) else "" for expression in axes]
    grows = [index - len(axes) for index, name in enumerate(names) if name and block.sizes.get(name) == axis and axis is not None]
    return Kept(grows[-1] if grows else None, names[:1] == ["batch"])


def _part(part: Part, path: str, attribute: tuple[str, ...], attributes: Mapping[str, Any]) -> Iterator[Keeper]:
    if isinstance(part, Plan) and attributes.get("grows"):
        names = {name: Kept(-1, text.startswith(("int[batch", "bool[batch", "int[..."))) for name, text in kept(part).items()}
        if names:
            yield Keeper(path, attribute, names)
    elif type(part).keeps and not isinstance(part, Plan):
        yield Keeper(path, attribute, {"length": Kept(None, False)})
    for name in type(part).model_fields:
        inner = getattr(part, name)
        if isinstance(inner, Plan):
            yield from _part(inner, path, (*attribute, name), attributes)
