"""How parameters start: the patterns of a recipe, and of the blocks in it that bring their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import NoReturn

from blocks.along_axes.axis_formulas import names_in, parsed
from blocks.core import BlockError, Init
from composer.diagnostics import Diagnostic, Span
from composer.graph.anatomy import IR
from composer.graph.initial_values import DRAWN, LAYER, MEANINGS, PLACES
from composer.graph.ir import Graph, GroupNode, InitPattern, Node
from composer.graph.passes.expand.builders import Scope
from composer.graph.passes.expand.evaluation import Evaluator
from composer.graph.passes.infer.formula_text import formula_text
from composer.graph.visit import Fold, Inside
from composer.language.expressions.evaluator import as_float
from composer.language.expressions.parser import ExpressionError
from composer.language.patterns import below
from composer.language.recipe.ast import ExpressionValue, InitRule

NONNEGATIVE = {"normal": "a standard deviation", "uniform": "the bound of a uniform distribution"}


def evaluated_rules(rules: Iterable[InitRule], scope: Scope, values: Evaluator) -> Iterator[InitPattern]:
    """Yield the rules of a recipe, or of a block in one, their numbers computed, without those whose `when` is false."""
    for rule in rules:
        init = values.report.attempt(scope.graph, partial(_initializer, rule, scope, values))
        if init is not None:
            yield InitPattern(rule.pattern, init, rule.span, rule.pattern)


def _initializer(rule: InitRule, scope: Scope, values: Evaluator) -> Init | None:
    """Return how the parameters of a rule start; None where it is left out, of which only the names are looked up.

    Raises:
        ExpressionError, StopExpansion: A number or the formula has a mistake.
    """
    if rule.when is not None and not values.boolean(rule.when.expression, scope, rule.when.span):
        for written in (rule.value, rule.low):
            if written is not None:
                values.lookup.values(written.expression, scope)
        if rule.formula is not None:
            values.lookup.values(rule.formula.expression, scope, (*PLACES, LAYER, DRAWN))
        return None
    low = None if rule.low is None else _number(rule.low, scope, values)
    number = 0.0 if rule.value is None else _number(rule.value, scope, values)
    formula = "" if rule.formula is None else _formula(rule.formula, rule.how != "constant", scope, values)
    if rule.value is not None and low is None and number < 0 and rule.how in NONNEGATIVE:
        message = f"{NONNEGATIVE[rule.how]} must be at least 0, not {number:g}"
        set_here = values.set_here(rule.value.expression, scope)
        values.report.error("out-of-range", scope.graph, rule.value.span, message, labels=set_here)
    if rule.low is not None and low is not None and low > number:
        message = f"the range of a uniform distribution is empty: {low:g} is above {number:g}"
        values.report.error("out-of-range", scope.graph, rule.low.span, message)
    return Init(rule.how, number, low, formula)


def _number(written: ExpressionValue, scope: Scope, values: Evaluator) -> float:
    return values.evaluate_as(as_float, written.expression, scope, written.span)


def _formula(written: ExpressionValue, drawn: bool, scope: Scope, values: Evaluator) -> str:
    """Return a formula with its numbers computed.

    Raises:
        ExpressionError, StopExpansion: It has a mistake.
    """
    known, _ = values.plain(written.expression, scope)
    meant = [*PLACES, LAYER, *[DRAWN] * drawn]
    if both := sorted(known.keys() & {*meant}):
        message = f"`{both[0]}` has a value here, and a meaning of its own in formulas of `init`"
        _refuse(message, written.span, "give that another name")
    text = formula_text(written.expression, known, meant)
    try:
        read = names_in(parsed(text))
    except BlockError as error:
        _refuse(error.message, written.span, error.hint)
    if DRAWN in read and not drawn:
        _refuse(f"`{DRAWN}` is what is drawn, and nothing is", written.span, "{uniform: [0.9, 0.999], formula: log(x)}")
    if strange := sorted(read - {*meant}):
        _refuse(f"there is no name called `{strange[0]}`", written.span, "; ".join(MEANINGS.values()))
    if drawn and DRAWN not in read:
        _refuse(
            "this formula does not read what is drawn",
            written.span,
            f"`{DRAWN}` is what is drawn; a formula of places stands alone",
        )
    return text


def _refuse(message: str, span: Span, hint: str) -> NoReturn:
    raise ExpressionError(Diagnostic("init-formula", message, span, hint=hint))


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
