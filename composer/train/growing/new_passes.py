"""A new pass of a repeat that returns what it is given: the weights with which its residual branches give zero."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from blocks.core import LinearWeights, Norm, Slot, Tensor
from composer.graph.anatomy import regions
from composer.graph.ir import Ref
from composer.graph.type_patterns import pattern, text_of_size
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode
from composer.train.errors import TrainingError
from composer.train.growing.axes import NotEqual, declared_weights, output_width
from composer.train.growing.pairs import NewPass, refused

SUM = "{xs: + }"
"""The code of a block that adds up what it reads."""


Silent: TypeAlias = Iterator[tuple[str, float]]
"""Parameters by name, each with the value with which a branch gives zero."""


def silent(new: NewPass) -> dict[str, float]:
    """Return the parameters of a pass with values with which it returns what the one before it does: those of the last maps of
    its residual branches, or of the norms behind these.

    Raises:
        TrainingError: Something in it is no residual branch.
    """
    return dict(_staying(new.graph, new.graph.graph.outputs[0][1], {*new.stream}, f"{new.path}."))


def _staying(graph: TypedGraph, ref: Ref, stream: set[str], prefix: str) -> Silent:
    """Yield what makes a value that of the stream, which some of the inputs of the graph are."""
    if ref.node not in graph.by_name:
        if ref.node not in stream:
            raise TrainingError(f"`{prefix}{ref.node}` is not the stream, so that no further pass leaves the outputs equal")
        return
    node = graph.by_name[ref.node]
    match node:
        case TypedGroup():
            through = {wire.port: wire.refs[0] for wire in node.node.wires if len(wire.refs) == 1}
            through = {port: read for port, read in through.items() if _is_stream(graph, read, stream)}
            for read in through.values():
                yield from _staying(graph, read, stream, prefix)
            yield from _staying(node.graph, _output(node, ref), {*through}, f"{prefix}{node.name}.")
        case TypedBlock() if node.part.inline(node.sizes) == SUM:
            refs = [each for wire in node.node.wires for each in wire.refs]
            kept = [each for each in refs if _is_stream(graph, each, stream)]
            if len(kept) != 1:
                raise _not_residual(node, prefix)
            for each in refs:
                yield from _staying(graph, each, stream, prefix) if each is kept[0] else _zero(graph, each, prefix, node)
        case _:
            raise _not_residual(node, prefix)


def _is_stream(graph: TypedGraph, ref: Ref, stream: set[str]) -> bool:
    """Return whether a value can be the stream, without naming weights."""
    try:
        return all(True for _ in _staying(graph, ref, stream, ""))
    except TrainingError:
        return False


def _zero(graph: TypedGraph, ref: Ref, prefix: str, reader: TypedNode) -> Silent:
    """Yield what makes a value zero."""
    if ref.node not in graph.by_name:
        raise _not_residual(reader, prefix)
    yield from _silenced(graph, graph.by_name[ref.node], ref, prefix)


def _silenced(graph: TypedGraph, node: TypedNode, ref: Ref, prefix: str) -> Silent:
    path = f"{prefix}{node.name}"
    if isinstance(node, TypedGroup):
        inner = _output(node, ref)
        yield from _zero(node.graph, inner, f"{path}.", node)
        return
    if not isinstance(node, TypedBlock):
        raise _not_residual(node, prefix)
    last = list(_gains(node, path) if isinstance(node.part, Norm) else _last_maps(node, path))
    if last:
        yield from last
        return
    refs = [each for wire in node.node.wires for each in wire.refs]
    if node.part.inline(node.sizes) != SUM:
        refs = refs[:1]
    if not refs:
        raise _not_residual(node, prefix)
    for each in refs:
        yield from _zero(graph, each, prefix, node)


def _gains(node: TypedBlock, path: str) -> Silent:
    """Yield the gain and the bias of a norm, which gives zero with them; a gain starts as 1, also if 1 is added to it."""
    if any(each.role == "gain" for each in node.parameters):
        for each in node.parameters:
            yield f"{path}.{each.name}", float(each.init.value) - 1 if each.role == "gain" else 0.0


def _last_maps(node: TypedBlock, path: str) -> Silent:
    """Yield the parameters of the linear maps that give the output of a block, or of what fills its slots."""
    width, present = output_width(node), {each.name for each in node.parameters}
    for name, weight in declared_weights(node).items():
        match weight:
            case LinearWeights(outputs=outputs) if outputs == width:
                yield from ((f"{path}.{name}.{each}", 0.0) for each in ("weight", "bias") if f"{name}.{each}" in present)
            case Tensor(shape=(axis, _), role="matrix") if axis == width:
                yield f"{path}.{name}", 0.0
                yield from ((f"{path}.{each.name}", 0.0) for each in node.parameters if each.role == "bias")
            case Slot() if (slot := node.slots.get(name)) is not None:
                axes = pattern(weight.outputs or weight.given).axes
                if axes and text_of_size(axes[-1]) == width:
                    yield from _slot(slot, f"{path}.{name}")


def _slot(slot: TypedNode, path: str) -> Silent:
    if isinstance(slot, TypedBlock):
        yield from _last_maps(slot, path)
    else:
        (region,) = regions(slot)
        yield from _zero(region.graph, region.graph.graph.outputs[0][1], f"{path}.", slot)


def _output(node: TypedGroup, ref: Ref) -> Ref:
    outputs = node.graph.graph.outputs
    return dict(outputs)[ref.port] if ref.port else outputs[0][1]


def _not_residual(node: TypedNode, prefix: str) -> TrainingError:
    message = f"`{prefix}{node.name}` stands on the stream, so that a new pass cannot return what it is given"
    return refused(
        NotEqual(message, "only passes of residual branches, with norms inside of them, can be added"), node.node.name_span
    )
