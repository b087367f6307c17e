"""How parameters start: the patterns of a recipe, and of the blocks in it that bring their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from composer.diagnostics import Span
from composer.graph.ir import BlockNode, Graph, GroupNode, Node, RepeatNode, ScanNode, SlotNode
from composer.graph.passes.expand.evaluation import Evaluator
from composer.graph.passes.expand.scope import Scope
from composer.language.expressions.evaluator import as_float
from composer.language.patterns import below
from composer.language.recipe.ast import ExpressionValue, InitRule

Start = tuple[str, str, float, Span]
"""A pattern over names of parameters, the initializer and its number, and where that is written."""
WANTED = {"normal": "a standard deviation", "uniform": "the bound of a uniform distribution"}


def written_starts(rules: Iterable[InitRule], scope: Scope, values: Evaluator) -> Iterator[Start]:
    """The rules of a recipe, or of a block in one, their numbers computed."""
    for rule in rules:
        number = values.report.attempt(partial(_number, rule.value, scope, values))
        if number is None:
            continue
        if number < 0 and rule.how in WANTED:
            values.report.error("out-of-range", rule.value.span, f"{WANTED[rule.how]} must be at least 0, not {number:g}")
        yield rule.pattern, rule.how, number, rule.span


def _number(written: ExpressionValue, scope: Scope, values: Evaluator) -> float:
    return as_float(values.evaluate(written.expression, scope), written.span)


def starts(graph: Graph, prefix: str = "") -> Iterator[Start]:
    """The patterns of every block below, with the names that they have in the model; the innermost first, so that those of what
    stands around it win."""
    for node in graph.nodes:
        yield from _of_node(node, f"{prefix}{node.name}.")


def _of_node(node: Node, prefix: str) -> Iterator[Start]:
    match node:
        case GroupNode(graph=graph, init=init):
            yield from starts(graph, prefix)
            for pattern, how, value, span in init:
                yield below(prefix, pattern), how, value, span
        case ScanNode(graph=graph):
            yield from starts(graph, prefix)
        case RepeatNode(passes=passes, share=share):
            for index, one in enumerate(passes if share is None else passes[:1]):
                yield from starts(one.graph, f"{prefix}{index}." if share is None else prefix)
        case BlockNode(fields=fields):
            for _, filled in fields:
                if isinstance(filled, SlotNode):
                    yield from _of_node(filled.node, f"{prefix}*")
