"""Values that cross borders: each graph on the way gets an input for them, and its holder a wire."""

from __future__ import annotations

from composer.diagnostics import Span
from composer.graph.ir import GraphInput, Ref, Wire
from composer.graph.passes.error_report import ErrorReport, StopExpansion
from composer.graph.passes.expand.builders import GraphBuilder


def fetch(
    home: GraphBuilder, owner: GraphBuilder, refs: tuple[Ref, ...], many: bool, label: str, span: Span, report: ErrorReport
) -> tuple[Ref, ...]:
    """Return the values of the graph `owner` as references in the graph `home` inside it; `many` make a list,
    whose input `label` names.

    Raises:
        StopExpansion: where a graph on the way is sealed, which is reported.
    """
    if home is owner:
        return refs
    assert home.holder is not None, "a reference leads to a graph that is not around it"
    if home.sealed:
        hint = "move it to a node of its own to wire it freely"
        report.error(
            "slot-edge", home, span, "a block in this slot sees only the input that the block around it passes", hint=hint
        )
        raise StopExpansion
    outer = fetch(home.holder.home, owner, refs, many, label, span, report)
    key = (outer, many)
    if key not in home.captures:
        name = home.fresh(label)
        home.captures[key] = name
        home.inputs[name] = GraphInput(name, many=many, captured=True)
        home.capture_wires[name] = Wire(name, outer, span)
    return (Ref(home.captures[key]),)


def is_list(ref: Ref, home: GraphBuilder) -> bool:
    """Return whether a reference in a graph is a range of passes that it reads from outside, however many these are."""
    return ref.node in home.inputs and ref.node not in home.nodes and home.inputs[ref.node].many
