"""What a graph has, and what `when` leaves out of it: what takes the place of an absent node, or why nothing can."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn

from blocks.core import Part, ports
from composer.diagnostics import Span
from composer.graph.ir import Items, Known
from composer.graph.passes.error_report import ErrorReport, StopExpansion
from composer.graph.passes.expand.builders import GraphBuilder, NodeBuilder, PendingEdge, Scope
from composer.language.expressions.ast import PathStep
from composer.language.recipe.defined_block import is_defined


def passed_on(node: NodeBuilder, scope: Scope, span: Span, report: ErrorReport) -> PendingEdge:
    """Return the one edge of a node that came to nothing; what a mask names, or what is read for its shape or as another dtype,
    is no input that could take its place.

    Raises:
        StopExpansion: where there is no such edge, or there are several, which is reported.
    """
    part = node.part
    edges = [edge for port, edge in node.edges.items() if part is None or _is_like_output(part, port)]
    if any(edge.failed for edge in edges):
        raise StopExpansion
    count = sum(1 if edge.source else len(edge.references) for edge in edges)
    if count != 1:
        has_inputs = f"{count} inputs" if count else "no input"
        message = f"`{node.name}` is left out here and has {has_inputs}, so none can take its place"
        report.error("dropped-node", scope.graph, span, message, hint=_as_output(node, span) or where_present(node, ()))
        raise StopExpansion
    return next(edge for edge in edges if edge.source or edge.references)


def _as_output(node: NodeBuilder, span: Span) -> str:
    """Return what the graph returns in place of its last node, where nothing says so yet; empty for what is read elsewhere."""
    unsaid = node.dropped and span == node.name_span
    return f"say what the graph returns instead: `outputs: {{y: {node.name} if {node.when} else …}}`" if unsaid else ""


def where_present(node: NodeBuilder, steps: Sequence[PathStep]) -> str:
    """Return how what may be left out is read: by the condition that it has itself."""
    path = ".".join([node.name, *(step.name for step in steps)])
    return f"say what is read instead: `{path} if {node.when} else …`" if node.dropped else ""


def _is_like_output(part: type[Part], port: str) -> bool:
    """Return whether a block's port takes what can stand for its output, as far as its class tells."""
    marks = ports(part)
    if port not in marks or port in part.shape_only_inputs:
        return False
    given, returned = part.inputs[port + marks[port]], next(iter(part.outputs.values()), "")
    return is_defined(part) or given.partition("[")[0] == returned.partition("[")[0]


def leaves_out(graph: GraphBuilder, steps: Sequence[PathStep]) -> bool:
    """Return whether `when` leaves out a node of a graph in which the steps name something."""
    inner = graph.nodes.get(steps[0].name) if len(steps) > 1 else None
    return inner is not None and (inner.dropped or (inner.graph is not None and leaves_out(inner.graph, steps[1:])))


def refuse_range(
    node: NodeBuilder, passes: Sequence[int], lacking: Sequence[int], steps: Sequence[PathStep], scope: Scope, report: ErrorReport
) -> NoReturn:
    """Report a range with passes, those that are `lacking`, which leave out what it reads in them.

    Raises:
        StopExpansion: always.
    """
    assert node.passes is not None
    path = ".".join(step.name for step in steps)
    message = f"pass {lacking[0]} of `{node.name}` leaves out `{steps[0].name}`, so it has no `{path}`"
    kept = [index for index in passes if index not in lacking and has(node.passes[index].graph, steps)]
    hint = ""
    if kept and kept == list(range(kept[0], kept[-1] + 1)):
        end = "" if kept[-1] == len(node.passes) - 1 else str(kept[-1] + 1)
        hint = f"read the passes that have it: {node.name}({kept[0]}:{end}).{path}"
    elif kept:
        hint = f"list the passes that have it: [{node.name}({kept[0]}).{path}, {node.name}({kept[1]}).{path}, …]"
    report.error("dropped-node", scope.graph, steps[0].span, message, hint=hint)
    raise StopExpansion


def outputs_of(node: NodeBuilder) -> Mapping[str, str]:
    """Return a block's outputs by name, as they are declared."""
    assert node.part is not None
    match node.fields.get(node.part.named_by):
        case Items(items=items):
            return {item.value: item.value for item in items if isinstance(item, Known)}
    return {name.rstrip("?"): name for name in node.part.outputs}


def has(graph: GraphBuilder, steps: Sequence[PathStep]) -> bool:
    """Return whether a graph has what the steps name, as far as that differs from pass to pass."""
    name, rest = steps[0].name, steps[1:]
    inner = graph.nodes.get(name)
    if inner is None or inner.elided:
        return any(name == key for key, *_ in graph.outputs_pending)
    if inner.graph is not None and rest:
        return has(inner.graph, rest)
    return inner.part is None or not rest or rest[0].name in outputs_of(inner)
