"""Numbers that are written for fields."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from blocks.core import Part, fields
from blocks.core.fields import EachAxis, Integer
from blocks.core.fields import Field as FieldSpec
from composer.diagnostics import Label, Span
from composer.graph.ir import FieldValue, Known, Pending
from composer.graph.passes.error_report import StopExpansion, labeled
from composer.graph.passes.expand.builders import Deferred, Scope
from composer.graph.passes.expand.evaluation import Evaluator, convert
from composer.graph.passes.expand.name_lookup import is_constant
from composer.graph.type_patterns import axis_symbols
from composer.language.expressions.ast import Expression, Number, PathStep, RefPath
from composer.language.expressions.evaluator import evaluate
from composer.language.expressions.functions import FUNCTIONS
from composer.language.expressions.parser import compared_words, paths
from composer.language.recipe.keys import VALUE_WORDS
from composer.language.unknown_names import unknown


def field_number(
    values: Evaluator, expression: Expression, scope: Scope, form: Any, part: type[Part], field: FieldSpec, span: Span
) -> FieldValue:
    """Return the number that is written for a field of a part, still to be computed where it reads the length of an axis.

    Raises:
        ExpressionError, StopExpansion: where it is none.
    """
    if isinstance(expression, Number):
        return Known(convert(expression.value, form, field.name, span, expression), span, ())
    known, origins = values.plain(expression, scope)
    sizes = values.sizes(expression, scope)
    symbols = axis_symbols(part)
    compared = {id(word) for word, _ in compared_words(expression, scope.values.keys() | symbols)}
    read = {path.steps[0].name for path in paths(expression) if id(path) not in compared}
    missing = read - known.keys() - VALUE_WORDS
    missing -= {name for name in missing - symbols if is_constant(name, scope)}
    if not missing:
        with labeled(origins):
            return Known(convert(evaluate(expression, known), form, field.name, span, expression), span, origins)
    strange = sorted(missing - symbols - sizes.keys())
    if strange:
        path = next(step for step in paths(expression) if step.steps[0].name == strange[0])
        held = scope.values.get(strange[0])
        if isinstance(held, Deferred):
            values.report.error(
                "not-a-number",
                scope.graph,
                path.span,
                f"`{strange[0]}` is a block, not a number",
                labels=(Label(held.span, "set here"),),
            )
        elif path.steps[0].arguments is not None:
            values.report.add(unknown("unknown-name", path.steps[0].name_span, "function", strange[0], sorted(FUNCTIONS)))
        else:
            words = field.form.words if isinstance(field.form, EachAxis) else ()
            offered = [*words, *scope.values, *sorted(symbols - fields(part).keys())]
            found = unknown("unknown-name", path.steps[0].name_span, "name", strange[0], offered)
            other = part.other_choices.get(field.name, "") if words else ""
            values.report.add(replace(found, hint="; ".join(filter(None, (found.hint, other)))))
        raise StopExpansion
    return Pending(expression, tuple(sorted({**known, **sizes}.items())), span, origins)


def axis_length(
    values: Evaluator, expression: Expression, scope: Scope, part: type[Part], field: FieldSpec, span: Span
) -> FieldValue:
    """Return the length of an axis: a number, or the name of an axis whose length is known only when the model runs.

    Raises:
        ExpressionError, StopExpansion: where it is neither.
    """
    match expression:
        case RefPath(steps=(PathStep(name=name, arguments=None),)) if name not in scope.values and name not in VALUE_WORDS:
            return Known(name, span)
    return field_number(values, expression, scope, Integer(1), part, field, span)


def axis_formula(values: Evaluator, expression: Expression, scope: Scope, span: Span) -> Pending:
    """Return a formula with what its names come to; those that have no value are axes.

    Raises:
        StopExpansion: where a name has a mistake.
    """
    known, origins = values.plain(expression, scope)
    bindings = {**known, **values.sizes(expression, scope)}
    return Pending(expression, tuple(sorted(bindings.items())), span, origins)
