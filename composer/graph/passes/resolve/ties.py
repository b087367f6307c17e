"""Ties: which node or parameter another one is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from composer.diagnostics import Diagnostic
from composer.graph.ir import Tie
from composer.graph.passes.error_report import StopExpansion
from composer.graph.passes.expand.builders import NodeBuilder, PendingTie, Scope
from composer.graph.passes.expand.evaluation import Evaluator
from composer.graph.passes.expand.name_lookup import has_node
from composer.graph.passes.resolve.pass_references import enclosing_pass, is_range, refuse_inside_itself, selected_passes
from composer.language.expressions.ast import Expression, If, PathStep, RefPath
from composer.language.unknown_names import unknown


def tie(pending: PendingTie, node: NodeBuilder, values: Evaluator) -> Tie | None:
    """Return what a tie of `node` names; None for `none`.

    Raises:
        StopExpansion: where there is no such node, which is reported.
    """
    expression = values.branch(pending.reference, pending.scope, partial(_look_up, node=node, values=values))
    if not isinstance(expression, RefPath) or expression.text == "none":
        return None
    place = _place(expression.steps[0], node, pending.scope, values)
    up, graph = 0, node.home
    holders: list[NodeBuilder] = []
    while graph is not place.graph:
        assert graph.holder is not None
        holders.append(graph.holder)
        up, graph = up + 1, graph.holder.home
    _refuse_repeats_around(expression, holders, node, values)
    path = tuple(_path(expression, place.graph.nodes[expression.steps[0].name], node, pending.scope, values))
    return Tie(pending.parameter, up, path, expression.span, pending.span)


def _look_up(expression: Expression, scope: Scope, node: NodeBuilder, values: Evaluator) -> None:
    """Report a name that no node has, in the branch of a conditional that is not taken."""
    match expression:
        case If(condition=condition, then=then, otherwise=otherwise):
            values.lookup.values(condition, scope)
            _look_up(then, scope, node, values)
            _look_up(otherwise, scope, node, values)
        case RefPath(text=text, steps=(first, *_)) if text != "none" and not has_node(first.name, scope):
            values.report.once(_unknown_node(first, node, scope))


def _place(first: PathStep, node: NodeBuilder, scope: Scope, values: Evaluator) -> Scope:
    """Return the nearest place around the tie with a node of the name that is not the tied one itself."""
    for place in scope.around():
        itself = first.name == node.name and place.graph is node.home
        if first.name in place.graph.nodes and not itself:
            return place
    graphs = [place.graph for place in scope.around()]
    if not any(first.name in graph.failed for graph in graphs):
        values.report.add(_unknown_node(first, node, scope))
    raise StopExpansion


def _unknown_node(first: PathStep, node: NodeBuilder, scope: Scope) -> Diagnostic:
    graphs = [place.graph for place in scope.around()]
    known = [name for graph in graphs for name in graph.nodes if "." not in name and graph.nodes[name] is not node]
    return unknown("unknown-node", first.name_span, "node", first.name, known)


def _refuse_repeats_around(expression: RefPath, holders: Sequence[NodeBuilder], node: NodeBuilder, values: Evaluator) -> None:
    """Report a path through a repeat that contains the tied node and says no pass of it; `holders` are the nodes around the tied
    one, the innermost first.

    Raises:
        StopExpansion: where it goes through one.
    """
    for step, holder in zip(expression.steps, reversed(holders), strict=False):
        if step.name != holder.name or step.arguments is not None:
            return
        if holder.passes is not None:
            refuse_inside_itself(holder, step, node.home, values)


def _path(expression: RefPath, target: NodeBuilder, node: NodeBuilder, scope: Scope, values: Evaluator) -> Iterator[str | int]:
    """Yield the names on the way down, each repeat's with the pass that is meant."""
    first = expression.steps[0]
    for step in expression.steps:
        yield step.name
        if step.arguments is not None:
            if step is not first or target.passes is None:
                values.report.error("not-a-repeat", node.home, step.span, f"`{step.name}` has no passes")
                raise StopExpansion
            passes = selected_passes(target, step, scope, enclosing_pass(node.home, target), values)
            if is_range(step):
                message = "a tie must name one node or one parameter, not a range of passes"
                values.report.error("one-value", node.home, step.span, message)
                raise StopExpansion
            yield from passes
        elif step is first and target.passes is not None and len(expression.steps) > 1:
            yield len(target.passes) - 1
