"""Which passes of a repeat a reference means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from composer.diagnostics import Label, Span
from composer.graph.passes.error_report import StopExpansion
from composer.graph.passes.expand.builders import GraphBuilder, NodeBuilder, Scope
from composer.graph.passes.expand.evaluation import Evaluator
from composer.language.expressions.ast import Expression, PathStep, Slice
from composer.language.expressions.evaluator import as_int
from composer.language.expressions.parser import names


def enclosing_pass(home: GraphBuilder, node: NodeBuilder) -> int | None:
    """Return the pass of `node` in which a graph lies, -1 in a node without passes; None where it lies in none."""
    graph: GraphBuilder | None = home
    while graph is not None and graph.holder is not None:
        if graph.holder is node:
            return graph.pass_index if node.passes is not None else -1
        graph = graph.parent
    return None


def is_range(step: PathStep | None) -> bool:
    """Return whether a step names several passes."""
    return step is not None and bool(step.arguments) and isinstance(step.arguments[0], Slice)  # type: ignore[index]  # there is one


def selected_passes(
    node: NodeBuilder, step: PathStep | None, scope: Scope, before: int | None, values: Evaluator
) -> Sequence[int]:
    """Return the passes of a repeat that a step names, the last where it names none; only those `before` the pass around it.

    Raises:
        StopExpansion: where there is none, which is reported.
    """
    assert node.passes is not None
    count = len(node.passes)
    if step is None or step.arguments is None:
        return [count - 1]
    if len(step.arguments) != 1:
        hint = f"{node.name}(0), {node.name}(2:5) or {node.name}(:)"
        _refuse(values, scope, step.span, "write one pass or one range in the parentheses", hint)
    argument = step.arguments[0]
    if isinstance(argument, Slice):
        bounds = [None if bound is None else _index(bound, scope, values) for bound in (argument.start, argument.stop)]
        return range(*slice(*bounds).indices(count if before is None else before))
    index = _index(argument, scope, values)
    if before is not None and not 0 <= index < before:
        there = f"pass {before} can read passes 0 to {before - 1}" if before else "nothing comes before the first pass"
        counted = sorted(names(argument) & scope.values.keys())
        hint = f"read it where it exists: … if {counted[0]} > 0 else none" if index < 0 and counted else ""
        _refuse(values, scope, argument.span, f"there is no earlier pass {index} of `{node.name}`: {there}", hint)
    if not -count <= index < count:
        message = f"`{node.name}` has {count} passes, so there is no pass {index}"
        set_here = values.set_here(argument, scope)
        _refuse(values, scope, argument.span, message, f"0 to {count - 1}, or -1 for the last", labels=set_here)
    return [index % count]


def refuse_inside_itself(node: NodeBuilder, step: PathStep, graph: GraphBuilder, values: Evaluator) -> NoReturn:
    """Report a step that names what contains the reader, but no earlier pass of it.

    Raises:
        StopExpansion: always.
    """
    hint = f"the input of `{node.name}` is called `input`"
    if node.passes is not None:
        hint = f"an earlier pass is {node.name}(index), with an index below this one"
    values.report.error("inside-itself", graph, step.span, f"`{node.name}` contains this node", hint=hint)
    raise StopExpansion


def _index(expression: Expression, scope: Scope, values: Evaluator) -> int:
    return values.evaluate_as(as_int, expression, scope, expression.span)


def _refuse(values: Evaluator, scope: Scope, span: Span, message: str, hint: str, *, labels: tuple[Label, ...] = ()) -> None:
    values.report.error("pass-index", scope.graph, span, message, hint=hint, labels=labels)
    raise StopExpansion
