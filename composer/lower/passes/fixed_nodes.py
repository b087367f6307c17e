"""Fixed nodes: while a text is generated, no token of it reaches them, as with an encoder, so a session computes them once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import assert_never

from composer.graph.anatomy import optional_output
from composer.graph.dims import Dim
from composer.graph.flatten import flatten
from composer.graph.scans.hoist_steps import hoist_steps
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedProgram, TypedRepeat, TypedScan, is_renewal
from composer.graph.types import Axis, Depends, TensorType, Type
from composer.lower.passes.batch_axis import BatchAxis, batch_axis, each_size
from composer.lower.passes.shared_weights import passes_of


@dataclass(frozen=True, slots=True)
class FixedNode:
    """A module whose outputs are the same in every call of a session."""

    module: str
    batch: tuple[BatchAxis | None, ...]
    """For each output, where the rows of the batch stand in it; None where it has none."""


def fixed_nodes(typed: TypedProgram, text: str) -> tuple[FixedNode, ...]:
    """Return the outermost modules whose outputs do not depend on the text, which the input `text` gives."""
    return tuple(_in_graph(hoist_steps(flatten(typed)).root, typed.inputs[text].sizes[0], ""))


def _in_graph(graph: TypedGraph, batch: Dim, path: str) -> Iterator[FixedNode]:
    for node in graph.nodes:
        if is_renewal(node):
            continue
        place = f"{path}{node.name}"
        match node:
            case TypedBlock(outputs=outputs):
                if is_fixed(outputs):
                    yield FixedNode(place, tuple(_batch(type_, batch, node.leading) for type_ in returned(node)))
            case TypedGroup(graph=inner) | TypedScan(graph=inner):
                yield from _inner(inner, batch, place)
            case TypedRepeat(passes=passes):
                named = {f"{node.name}.{number}": inner for number, inner in enumerate(passes)}
                for module, inner in (named if node.node.share is None else passes_of(node)).items():
                    yield from _inner(inner, batch, path + module)
            case _:
                assert_never(node)


def _inner(inner: TypedGraph, batch: Dim, place: str) -> Iterator[FixedNode]:
    if is_fixed(inner.outputs):
        yield FixedNode(place, tuple(_batch(type_, batch) for type_ in inner.outputs.values()))
    else:
        yield from _in_graph(inner, batch, f"{place}.")


def is_fixed(outputs: Mapping[str, Type]) -> bool:
    """Return whether values do not depend on the text."""
    return all(isinstance(type_, TensorType) and type_.depends is Depends.NONE for type_ in outputs.values())


def outputs_left_out(root: TypedGraph) -> frozenset[str]:
    """Return the outputs of a model that depend on the whole text, which a session leaves out, as it has only a part of it."""
    ahead = (name for name, type_ in root.outputs.items() if isinstance(type_, TensorType) and type_.depends is Depends.ALL)
    return frozenset(ahead)


def _batch(type_: Type, batch: Dim, leading: tuple[Axis, ...] = ()) -> BatchAxis | None:
    """Return where the rows stand in what a module returns, which folds its axes in front."""
    if not isinstance(type_, TensorType):
        return None
    folded = len(leading) if type_.axes[: len(leading)] == leading else 0
    return batch_axis(each_size(type_.axes, folded), batch)


def returned(block: TypedBlock) -> Iterator[Type]:
    """Yield the types of what a block's forward returns, in order."""
    for position, (name, type_) in enumerate(block.outputs.items()):
        if position == 0 or name in block.node.requested_outputs or not optional_output(block, name):
            yield type_
