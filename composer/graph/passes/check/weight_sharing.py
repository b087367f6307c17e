"""One set of weights for all passes of a repeat: what that asks of them."""

from __future__ import annotations

from collections.abc import Iterator

from composer.diagnostics import Diagnostic
from composer.graph.parameters import buffers_of, parameters_of
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedProgram, TypedRepeat, TypedScan
from composer.graph.types import TensorType


def share_mistakes(typed: TypedProgram) -> tuple[Diagnostic, ...]:
    """Repeats of one set of weights whose passes are given other types, or would need other weights, than the first; and those,
    and scans, that hold a state, which has one value in a call.
    """
    found = (diagnostic for repeat in _repeats(typed.root, set()) for diagnostic in (*_states(repeat), *_differences(repeat)))
    return tuple({diagnostic.span: diagnostic for diagnostic in found}.values())


def _repeats(graph: TypedGraph, seen: set[TypedGraph]) -> Iterator[TypedRepeat | TypedScan]:
    """Every repeat of one set of weights and every scan, once for all passes that are the same."""
    if graph not in seen:
        seen.add(graph)
        for node in graph.nodes:
            yield from _below(node, seen)


def _below(node: TypedNode, seen: set[TypedGraph]) -> Iterator[TypedRepeat | TypedScan]:
    match node:
        case TypedBlock(slots=slots):
            for slot in slots.values():
                yield from () if slot is None else _below(slot, seen)
        case TypedGroup(graph=graph) | TypedScan(graph=graph):
            yield from [node] if isinstance(node, TypedScan) else []
            yield from _repeats(graph, seen)
        case TypedRepeat(passes=passes):
            yield from [] if node.node.share is None else [node]
            for one in passes:
                yield from _repeats(one, seen)


def _states(repeat: TypedRepeat | TypedScan) -> Iterator[Diagnostic]:
    """What outlives a call has one value there, and passes of one set of weights would each write their own."""
    buffers = buffers_of(repeat.graph if isinstance(repeat, TypedScan) else repeat.passes[0])
    kept = [name for name, buffer in buffers.items() if buffer.role == "state"]  # what stays as it is can be shared
    span = repeat.node.axis_span if isinstance(repeat, TypedScan) else repeat.node.share
    if kept and span is not None:
        turn, name = "step" if isinstance(repeat, TypedScan) else "pass", kept[0]
        message = f"`{repeat.name}` has one set of weights, and in it `{name}` would change with every {turn}"
        yield Diagnostic("share", message, span, hint="move the state out of the repeat")


def _differences(repeat: TypedRepeat | TypedScan) -> Iterator[Diagnostic]:
    if isinstance(repeat, TypedScan):
        return
    assert repeat.node.share is not None
    first, weights = repeat.passes[0], parameters_of(repeat.passes[0])
    handed = [item.name for item in first.graph.inputs if not item.captured]
    for index, graph in enumerate(repeat.passes):
        if graph is first:
            continue
        for name in handed:
            ours, theirs = first.inputs[name], graph.inputs.get(name)
            if isinstance(ours, TensorType) and isinstance(theirs, TensorType) and not ours.agrees(theirs):
                message = (
                    f"`{repeat.name}` has one set of weights, and pass {index} is given {theirs} where pass 0 is given {ours}"
                )
                hint = "return the type of the input, or remove `share`"
                yield Diagnostic("share", message, repeat.node.share, hint=hint)
                return
        others = parameters_of(graph)
        differing = [name for name in {**weights, **others} if weights.get(name) != others.get(name)]
        if differing:
            name = differing[0]
            kinds = [table[name].shape if name in table else None for table in (weights, others)]
            if kinds[0] == kinds[1]:
                detail = f"`{name}` is initialized differently in pass {index} than in pass 0"
            else:
                shown = ["nothing" if kind is None else f"[{', '.join(map(str, kind))}]" for kind in kinds]
                detail = f"`{name}` is {shown[0]} in pass 0 and {shown[1]} in pass {index}"
            yield Diagnostic("share", f"`{repeat.name}` has one set of weights, and {detail}", repeat.node.share)
            return
