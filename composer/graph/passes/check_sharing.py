"""One set of weights for all passes of a repeat: what that asks of them."""

from __future__ import annotations

from collections.abc import Iterator

from composer.diagnostics import Diagnostic
from composer.graph.parameters import buffers_of, parameters_of
from composer.graph.passes.compilation import Compilation
from composer.graph.typed import TypedRepeat, TypedScan
from composer.graph.types import TensorType
from composer.graph.visit import every_node, every_pass, walk


def check_sharing(state: Compilation) -> Compilation:
    """Refuse repeats of one set of weights whose passes are given other types, or would need other weights, than the first; and
    those, and scans, that hold a state, which has one value in a call.

    Before:
        graph:
          layers: {repeat: 2, share: true, each: {n: [16, 24]}, graph: {mlp: {type: ffn, hidden: n}}}
    After:
        error[share]: `layers` has one set of weights, and `mlp.up.weight` is [16, 8] in pass 0 and [24, 8] in pass 1
    """
    assert state.typed is not None
    inner = (visit.node for visit in walk(state.typed.root, every_pass, every_node, once=True))
    repeats = [node for node in inner if isinstance(node, TypedScan) or (isinstance(node, TypedRepeat) and node.node.share)]
    found = (diagnostic for repeat in repeats for diagnostic in (*_states(repeat), *_differences(repeat)))
    mistakes = {diagnostic.span: diagnostic for diagnostic in found}.values()
    return state.stop(mistakes) if mistakes else state


def _states(repeat: TypedRepeat | TypedScan) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each state in passes of one set of weights: it has one value, and each pass would write its own."""
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
