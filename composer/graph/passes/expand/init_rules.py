"""How parameters start: the patterns of a recipe, and of the blocks in it that bring their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from composer.graph.anatomy import IR
from composer.graph.ir import Graph, GroupNode, InitPattern, Node
from composer.graph.passes.expand.builders import Scope
from composer.graph.passes.expand.evaluation import Evaluator
from composer.graph.visit import Fold, Inside
from composer.language.expressions.evaluator import as_float
from composer.language.patterns import below
from composer.language.recipe.ast import ExpressionValue, InitRule

NONNEGATIVE = {"normal": "a standard deviation", "uniform": "the bound of a uniform distribution"}


def evaluated_rules(rules: Iterable[InitRule], scope: Scope, values: Evaluator) -> Iterator[InitPattern]:
    """Yield the rules of a recipe, or of a block in one, their numbers computed."""
    for rule in rules:
        number = values.report.attempt(scope.graph, partial(_number, rule.value, scope, values))
        if number is None:
            continue
        if number < 0 and rule.how in NONNEGATIVE:
            message = f"{NONNEGATIVE[rule.how]} must be at least 0, not {number:g}"
            set_here = values.set_here(rule.value.expression, scope)
            values.report.error("out-of-range", scope.graph, rule.value.span, message, labels=set_here)
        yield InitPattern(rule.pattern, rule.how, number, rule.span, rule.pattern)


def _number(written: ExpressionValue, scope: Scope, values: Evaluator) -> float:
    return values.evaluate_as(as_float, written.expression, scope, written.span)


def block_rules(graph: Graph) -> list[InitPattern]:
    """Return the patterns of every block below, with the names that they have in the model; the innermost first, so that those of
    what stands around it win.
    """
    return Fold(IR, _below_node, _below_graph, lambda graph: graph.nodes).graph(graph)


def _below_node(node: Node, inside: Inside[Graph, list[InitPattern], list[InitPattern]]) -> list[InitPattern]:
    """Return those of a node and of what is in it, by the names below the node; what fills a slot may have any name there."""
    found = [start for passes, inner in inside.regions for one in passes if one.owner for start in _under(one.name, inner)]
    found += _under("*", (start for _, slot in inside.slots for start in slot))
    return [*found, *(node.init if isinstance(node, GroupNode) else ())]


def _below_graph(graph: Graph, found: list[list[InitPattern]]) -> list[InitPattern]:
    return [start for node, inner in zip(graph.nodes, found, strict=True) for start in _under(f"{node.name}.", inner)]


def _under(prefix: str, found: Iterable[InitPattern]) -> list[InitPattern]:
    return [rule._replace(pattern=below(prefix, rule.pattern), inside=prefix + rule.inside) for rule in found]
