"""What alone is trained where a recipe has adapters: its patterns, with their numbers computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TypeVar

from composer.diagnostics import Span
from composer.graph.ir import Adapter, AdapterPattern
from composer.graph.passes.expand.builders import Scope
from composer.graph.passes.expand.evaluation import Evaluator
from composer.language.expressions.ast import Value
from composer.language.expressions.evaluator import as_float, as_int
from composer.language.recipe.ast import AdapterRule, ExpressionValue

T = TypeVar("T", int, float)


def evaluated_adapters(rules: Iterable[AdapterRule], scope: Scope, values: Evaluator) -> Iterator[AdapterPattern]:
    """Yield the adapters of a recipe, their numbers computed."""
    numbers = _Numbers(scope, values)
    for rule in rules:
        if rule.rank is None:
            yield AdapterPattern(rule.pattern, None, rule.span)
            continue
        rank = numbers.of(rule.rank, as_int, lambda rank: rank >= 1, "the rank of an adapter must be at least 1")
        alpha, dropout = float(rank or 1), 0.0
        if rule.alpha is not None:
            alpha = numbers.of(rule.alpha, as_float, lambda alpha: alpha > 0, "alpha must be above 0") or alpha
        if rule.dropout is not None:
            dropout = numbers.of(rule.dropout, as_float, lambda share: 0 <= share < 1, "dropout must be from 0 to below 1") or 0.0
        if rank is not None:
            yield AdapterPattern(rule.pattern, Adapter(rank, alpha, dropout), rule.span)


class _Numbers:
    """Computes numbers; one that is out of range is reported."""

    def __init__(self, scope: Scope, values: Evaluator) -> None:
        self.scope, self.values = scope, values

    def of(self, written: ExpressionValue, form: Callable[[Value, Span], T], fits: Callable[[T], bool], message: str) -> T | None:
        """Return a number; None if it cannot be computed or does not fit, which is reported."""
        scope, values = self.scope, self.values
        work = partial(values.evaluate_as, form, written.expression, scope, written.span)
        found = values.report.attempt(scope.graph, work)
        if found is None or fits(found):
            return found
        labels = values.set_here(written.expression, scope)
        values.report.error("out-of-range", scope.graph, written.span, f"{message}, not {found:g}", labels=labels)
        return None
