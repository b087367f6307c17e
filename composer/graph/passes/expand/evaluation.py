"""What expressions come to, name by name and place by place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias, TypeVar

from blocks.core.fields import Boolean, Integer, Real
from composer.diagnostics import Diagnostic, Label, Span
from composer.graph.ir import AxisOf, Computations, Computed, Origins, Pending
from composer.graph.passes.error_report import ErrorReport, StopExpansion, labeled, labels
from composer.graph.passes.expand.builders import (
    Binding,
    Bound,
    Broken,
    Deferred,
    Extent,
    Listed,
    Scope,
    plain_value,
    plain_values,
)
from composer.graph.passes.expand.name_lookup import NameLookup, is_constant
from composer.language.expressions.ast import Expression, If, NoValue, Number, PathStep, RefPath, Slice, Value
from composer.language.expressions.evaluator import (
    BOOLEAN_HINT,
    NONE,
    as_bool,
    as_float,
    as_int,
    evaluate,
    evaluate_word,
    item_index,
)
from composer.language.expressions.functions import OF_LISTS
from composer.language.expressions.parser import ExpressionError, names, parse_expression, paths
from composer.language.recipe.ast import (
    ExpressionValue,
)
from composer.language.recipe.keys import VALUE_WORDS
from composer.language.suggestions import suggest
from composer.language.wording import BOOLEANS
from composer.language.yaml.nodes import YamlScalar
from composer.memo import Memo

T = TypeVar("T")
LookUp: TypeAlias = Callable[[Expression, Scope], None]
MAX_DEPTH = 60
"""Blocks, and names, that lead from one to the next."""
MAX_SIZES = 1_000
"""Sizes and numbers that one number is computed from."""


class Evaluator:
    """Evaluates expressions in their scope."""

    def __init__(self, report: ErrorReport) -> None:
        self.report, self.lookup = report, NameLookup(report)
        self.parsed: Memo[YamlScalar, Expression | Diagnostic] = Memo()
        # Names may be computed from names in ways without number, `c: a + b`, `d: b + c`, so each is computed once.
        self.numbers: Memo[Deferred, Value | None] = Memo()
        self.steps: Memo[Deferred, int] = Memo()
        self.pending: Memo[Deferred, tuple[Pending, int]] = Memo()
        """What is computed from sizes, with how many numbers and sizes that reads, each as often as it does."""

    def parsed_scalar(self, scalar: YamlScalar) -> Expression | None:
        """Return the tree of what a scalar says; None where it cannot be read, which is reported once."""
        found = self.parsed.get(scalar, partial(_parsed, scalar))
        if isinstance(found, Diagnostic):
            self.report.once(found)
            return None
        return found

    def branch(self, expression: Expression, scope: Scope, other: LookUp | None = None) -> Expression:
        """Return the expression with its outer conditionals decided; `other` looks up the names in the branches not taken."""
        while isinstance(expression, If):
            taken = self.boolean(expression.condition, scope, expression.condition.span)
            if other is not None:
                other(expression.otherwise if taken else expression.then, scope)
            expression = expression.then if taken else expression.otherwise
        return expression

    def follow(self, expression: Expression, scope: Scope, other: LookUp | None = None) -> tuple[Expression, Scope]:
        """Return the expression that a conditional or a name comes to, and the place where that is written; `other` looks up the
        names in the branches not taken.
        """
        for _ in range(MAX_DEPTH):
            expression = self.branch(expression, scope, other)
            binding = self.held(expression, scope)
            if not isinstance(binding, Deferred):
                return expression, scope
            if isinstance(binding.holds, ExpressionValue):
                expression, scope = binding.holds.expression, binding.scope
            elif isinstance(binding.holds, YamlScalar) and (parsed := self.parsed_scalar(binding.holds)) is not None:
                expression, scope = parsed, binding.scope
            elif binding.holds is None:
                return RefPath((PathStep("none", None, expression.span, expression.span),), expression.span), scope
            else:
                return expression, scope
        self.report.error("too-deep", scope.graph, expression.span, "the value of this name depends on itself")
        raise StopExpansion

    def held(self, expression: Expression, scope: Scope) -> Binding | None:
        """Return what a name, or an item of a list, stands for; None for any other expression, and for what has no value.

        Raises:
            ExpressionError: for an item that the list does not have.
        """
        if not isinstance(expression, RefPath) or len(expression.steps) != 1:
            return None
        step = expression.steps[0]
        binding = scope.values.get(step.name)
        if step.arguments is None or isinstance(binding, Broken):
            return binding
        if not isinstance(binding, Listed):
            return None
        values, origins = self.plain(expression, scope)
        with labeled(origins):
            return binding.items[item_index(step, len(binding.items), expression.span, values)]

    def plain(self, expression: Expression, scope: Scope, steps: int = 0) -> tuple[dict[str, Value], Origins]:
        """Return the plain values that an expression reads, and where each was set; `steps` names lead to the expression.

        Raises:
            ExpressionError: where too many names lead from one to the next.
        """
        if steps > MAX_DEPTH:
            message = f"more than {MAX_DEPTH} params refer to one another here"
            raise ExpressionError(Diagnostic("too-deep", message, expression.span))
        values: dict[str, Value] = {}
        origins: list[tuple[str, Span]] = []
        for name in sorted(names(expression)):
            binding = scope.values.get(name)
            if isinstance(binding, Broken) or (isinstance(binding, Listed) and _has_mistake(binding)):
                raise StopExpansion
            if isinstance(binding, Bound | Listed):
                if not self._steps_of(binding) and (value := plain_value(binding)) is not None:
                    values[name] = value
                    origins.append((name, binding.span))
            elif isinstance(binding, Deferred):
                value = self.numbers.get(binding, partial(self._number, binding, steps + 1))
                if value is not None:
                    values[name] = value
                    origins.append((name, binding.span))
        return values, tuple(origins)

    def _number(self, binding: Deferred, steps: int) -> Value | None:
        """Return what a name comes to; None where that is no plain value, or is known only once sizes are."""
        found, place = self._deferred_expression(binding)
        if found is None or self._steps_of(binding):
            return None
        inner = self.plain(found, place, steps)[0]
        missing = names(found) - inner.keys() - VALUE_WORDS
        return evaluate(found, inner) if all(is_constant(name, place) for name in missing) else None

    def is_sized(self, expression: Expression | Slice | None, scope: Scope) -> bool:
        """Return whether an expression reads an axis of the block around it, whose length is known once types are."""
        return self._steps(expression, scope) > 0

    def _steps(self, expression: Expression | Slice | None, scope: Scope) -> int:
        """Return how many names lead from an expression to an axis, at most; 0 where none does."""
        return max((self._steps_of(scope.values.get(name)) for name in names(expression)), default=0)

    def _steps_of(self, binding: object) -> int:
        if isinstance(binding, Deferred) and isinstance(binding.holds, ExpressionValue):
            held, place = binding.holds.expression, binding.scope
            steps = self.steps.get(binding, lambda: self._steps(self.branch(held, place), place))
            return steps + (steps > 0)
        if isinstance(binding, Listed):
            return max(map(self._steps_of, binding.items), default=0)
        return int(isinstance(binding, Extent))

    def sizes(self, expression: Expression, scope: Scope) -> dict[str, Computed]:
        """Return the names in an expression that are sizes, or computed from sizes where they are written.

        Raises:
            ExpressionError: where one is computed from too many.
        """
        return {name: size for name, (size, _) in self._sizes(expression, scope).items()}

    def _sizes(self, expression: Expression, scope: Scope) -> dict[str, tuple[Computed, int]]:
        """Return the names in an expression that need sizes, each with how many sizes and numbers it is computed from."""
        bindings = ((name, scope.values.get(name)) for name in sorted(names(expression)))
        return {name: self._computed(name, held) for name, held in bindings if held is not None and self._steps_of(held)}

    def _computed(self, name: str, binding: Binding) -> tuple[Computed, int]:
        """Return what a name, or an item of its list, is computed from, and how many sizes and numbers that are."""
        found: Computed
        match binding:
            case Extent(name=axis, part=part):
                return AxisOf(part, axis), 0
            case Deferred(holds=ExpressionValue(span=span)):
                if self._steps_of(binding) > MAX_DEPTH:
                    message = f"`{name}` is computed from sizes in more than {MAX_DEPTH} steps"
                    raise ExpressionError(Diagnostic("expression-too-deep", message, span, hint="compute it in fewer steps"))
                found, read = self.pending.get(binding, partial(self._pending, binding))
            case Listed(items=items, span=span):
                each = [self._computed(name, item) for item in items]
                found, read = Computations(tuple(one for one, _ in each)), len(each) + sum(count for _, count in each)
            case _:
                value = plain_value(binding)
                return NoValue() if value is None or isinstance(value, tuple) else value, 0
        if read > MAX_SIZES:
            message = f"`{name}` is computed from more than {MAX_SIZES:,} sizes and numbers"
            raise ExpressionError(Diagnostic("expression-too-long", message, span, hint="compute it in fewer steps"))
        return found, read

    def _pending(self, binding: Deferred) -> tuple[Pending, int]:
        """Return a number that needs sizes, and how many names it is computed from."""
        assert isinstance(binding.holds, ExpressionValue)
        held, place = self.branch(binding.holds.expression, binding.scope), binding.scope
        values, origins = self.plain(held, place)
        sizes = self._sizes(held, place)
        bound = {**values, **{name: size for name, (size, _) in sizes.items()}}
        read = sum(count for _, count in sizes.values())
        return Pending(held, tuple(sorted(bound.items())), binding.holds.span, origins), read + len(bound)

    def _deferred_expression(self, binding: Deferred) -> tuple[Expression | None, Scope]:
        if isinstance(binding.holds, ExpressionValue):
            return self.branch(binding.holds.expression, binding.scope), binding.scope
        if isinstance(binding.holds, YamlScalar):
            expression = self.parsed_scalar(binding.holds)
            if expression is not None and not isinstance(expression, RefPath):
                return self.branch(expression, binding.scope), binding.scope
        return None, binding.scope

    def evaluate(self, expression: Expression, scope: Scope) -> Value:
        """Return the value of an expression in one place.

        Raises:
            ExpressionError: where it has none.
        """
        return self._evaluated(expression, scope)[0]

    def _evaluated(self, expression: Expression, scope: Scope) -> tuple[Value, Origins]:
        """Return the value of an expression, and where the values that it reads were set; look up the names that it skips."""
        if isinstance(expression, Number):
            return expression.value, ()
        values, origins = self.plain(expression, scope)
        for name in names(expression):
            binding = scope.values.get(name)
            if isinstance(binding, Listed) and _only_counted(expression, name):
                values[name] = plain_value(binding) or ()
            elif self._steps_of(binding):
                message = f"`{name}` is known only after tensor sizes are, which is too late here"
                hint = "only fields of blocks can be computed from it; elsewhere, use a param"
                raise ExpressionError(Diagnostic("not-a-value", message, expression.span, hint=hint))
            if isinstance(binding, Deferred) and name in values:
                self._look_up_skipped(binding)
            elif name not in values and isinstance(binding, Deferred):
                values[name] = "none" if binding.holds is None else binding  # type: ignore[assignment]  # reported by evaluate: it is no number
        try:
            value = evaluate(expression, values)
        except ExpressionError:  # once more with all names in scope, for what the message offers
            offered = plain_values(scope.values)
            with labeled(origins):
                value = evaluate(expression, {**offered, **values})
        self.lookup.skipped(expression, scope)
        return value, origins

    def _look_up_skipped(self, binding: Deferred) -> None:
        """Look up the names in what a name that is a number holds and does not need."""
        held = binding.holds
        if isinstance(held, ExpressionValue):
            self.lookup.skipped(held.expression, binding.scope)
        elif isinstance(held, YamlScalar) and (expression := self.parsed_scalar(held)) is not None:
            self.lookup.skipped(expression, binding.scope)

    def evaluate_as(self, form: Callable[[Value, Span], T], expression: Expression, scope: Scope, span: Span) -> T:
        """Return the value of an expression in one form, such as `as_int`; `span` is where it is written.

        Raises:
            ExpressionError: where it has none.
        """
        value, origins = self._evaluated(expression, scope)
        with labeled(origins):
            return form(value, span)

    def word(self, expression: Expression, scope: Scope, words: Sequence[str]) -> str:
        """Return the one of the words that an expression names.

        Raises:
            ExpressionError: where it names none.
        """
        values, origins = self.plain(expression, scope)
        with labeled(origins):
            found = evaluate_word(expression, values, words)
        self.lookup.word(expression, scope, words)
        return found

    def boolean(self, expression: Expression, scope: Scope, span: Span) -> bool:
        """Return a boolean; of a word like `yes` it is said what is meant.

        Raises:
            ExpressionError: where it is none.
        """
        match expression:
            case RefPath(steps=(PathStep(name=name, arguments=None),)) if name not in scope.values and name not in (
                *BOOLEANS,
                NONE,
            ):
                meant = {"yes": "true", "on": "true", "no": "false", "off": "false"}.get(name.lower()) or next(
                    iter(suggest(name, [*scope.values, *BOOLEANS])), ""
                )
                hint = f"did you mean {meant}?" if meant else BOOLEAN_HINT
                raise ExpressionError(Diagnostic("not-a-boolean", f"`{name}` is a string, not a boolean", span, hint=hint))
        return self.evaluate_as(as_bool, expression, scope, span)

    def set_here(self, expression: Expression, scope: Scope) -> tuple[Label, ...]:
        """Return the labels at the params that an expression reads."""
        return labels(self.plain(expression, scope)[1], expression.span)


def _parsed(scalar: YamlScalar) -> Expression | Diagnostic:
    """Return the tree of what a scalar says, or the mistake in it."""
    try:
        return parse_expression(scalar)
    except ExpressionError as error:
        return error.diagnostic


def _only_counted(expression: Expression, name: str) -> bool:
    """Return whether an expression reads of a list only how many items it has."""
    every = list(paths(expression))
    called = (argument for path in every if path.text in OF_LISTS for argument in path.steps[0].arguments or ())
    counted = [path for path in called if isinstance(path, RefPath) and path.text == name and path.steps[0].arguments is None]
    return len(counted) == sum(path.steps[0].name == name for path in every)


def _has_mistake(binding: Listed) -> bool:
    """Return whether an item of a list has a mistake, which has been reported."""
    return any(isinstance(item, Broken) for item in binding.items)


def convert(value: Value, form: Any, name: str, span: Span, expression: Expression | None = None) -> Any:
    """Return a computed value as a field's form wants it.

    Raises:
        ExpressionError: where it does not fit.
    """
    match form:
        case Integer():
            number: Any = as_int(value, span)
        case Real():
            number = as_float(value, span)
        case Boolean():
            return as_bool(value, span)
        case _:
            return value
    for limit, wrong, words in _bounds(form, number):
        if wrong:
            shown = float(value) if isinstance(value, Fraction) else value
            note = f"{shown}" if expression is not None and names(expression) else ""
            raise ExpressionError(Diagnostic("out-of-range", f"`{name}` must be {words} {limit}, not {shown}", span, note=note))
    return number


def _bounds(form: Any, number: Any) -> Iterable[tuple[Any, bool, str]]:
    if form.minimum is not None:
        yield form.minimum, number < form.minimum, "at least"
    if form.maximum is not None:
        yield form.maximum, number > form.maximum, "at most"
    if isinstance(form, Real):
        if form.above is not None:
            yield form.above, number <= form.above, "above"
        if form.below is not None:
            yield form.below, number >= form.below, "below"
