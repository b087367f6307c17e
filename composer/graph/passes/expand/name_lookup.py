"""The names in what is not evaluated: the branch of a conditional that is not taken, what `and` and `or` need not ask.

Only that there are such names is looked up. What they come to may well be wrong, which is perhaps why they are not read.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from blocks.core import Library, Part, fields
from blocks.core.fields import Boolean, BooleanMap, EachAxis, FieldForm, Integer, ListOf, NodeName, NumberOrNodeRef, OneOf, Real
from blocks.masks.mask import Mask
from composer.diagnostics import Span
from composer.graph.passes.error_report import ErrorReport
from composer.graph.passes.expand.builders import Binding, Bound, Listed, Scope
from composer.graph.type_patterns import axis_symbols
from composer.language.expressions.ast import Binary, ChoiceWord, Expression, If, PathStep, RefPath, Slice, Unary
from composer.language.expressions.errors import ExpressionError
from composer.language.expressions.evaluator import NONE, check_word
from composer.language.expressions.functions import CONSTANTS, FUNCTIONS
from composer.language.expressions.parser import compared_words, paths
from composer.language.recipe.keys import VALUE_WORDS
from composer.language.suggestions import suggest
from composer.language.unknown_names import unknown
from composer.language.wording import BOOLEANS


class NameLookup:
    """Looks up names without computing anything; each mistake is reported once, however often its place is read."""

    def __init__(self, report: ErrorReport) -> None:
        self.report = report

    def values(self, expression: Expression | Slice, scope: Scope, words: Iterable[str] = ()) -> None:
        """Report the names in an expression of numbers that nothing has, beside some `words` that may stand there."""
        allowed = dict.fromkeys(words)
        known: Container[str] = {*allowed, *scope.values} if allowed else scope.values
        compared = list(compared_words(expression, known))
        for word, beside in compared:
            self._word(word, beside, scope)
        skipped = {id(word) for word, _ in compared}
        for path in paths(expression):
            step = path.steps[0]
            if id(path) in skipped or len(path.steps) > 1 or step.name in scope.values or step.name in allowed:
                continue
            if step.arguments is not None and step.name not in FUNCTIONS:
                self.report.once(unknown("unknown-name", step.name_span, "function", step.name, FUNCTIONS))
            elif step.name not in VALUE_WORDS and not is_constant(step.name, scope):
                offered = [*allowed, *scope.values]
                meant = suggest(step.name, [*offered, *BOOLEANS])
                self.report.once(unknown("unknown-name", path.span, "name", step.name, offered, meant=meant))

    def skipped(self, expression: Expression, scope: Scope) -> None:
        """Report those names in an expression that has a value, of which a part may not have been asked for."""
        if _skips(expression):
            self.values(expression, scope)

    def word(self, expression: Expression, scope: Scope, words: Sequence[str]) -> None:
        """Report what is none of the words of a choice."""
        match expression:
            case If(condition=condition, then=then, otherwise=otherwise):
                self.values(condition, scope)
                self.word(then, scope, words)
                self.word(otherwise, scope, words)
            case RefPath(steps=(PathStep(name=name, arguments=None),), span=span) if name not in scope.values and name != NONE:
                self._choice(name, words, span)

    def field(self, expression: Expression, scope: Scope, form: FieldForm, part: type[Part]) -> None:
        """Report the names in what a field of a part may be given that nothing has."""
        match form:
            case OneOf(of=words):
                self.word(expression, scope, words)
            case ListOf(item=item):
                self.field(expression, scope, item, part)
            case EachAxis(words=words):
                self.values(expression, scope, axis_symbols(part).union(words))
            case Integer() | Real() | Boolean() | BooleanMap() | NumberOrNodeRef():
                self.values(expression, scope, axis_symbols(part))

    def mask(self, expression: Expression | Slice, scope: Scope, library: Library) -> None:
        """Report the names in a mask that no predicate, no value and no node has."""
        match expression:
            case If(condition=condition, then=then, otherwise=otherwise):
                self.values(condition, scope)
                self.mask(then, scope, library)
                self.mask(otherwise, scope, library)
            case Binary(left=left, right=right):
                self.mask(left, scope, library)
                self.mask(right, scope, library)
            case Unary(operand=operand):
                self.mask(operand, scope, library)
            case RefPath(steps=(step,)) if step.name in scope.values:
                for argument in step.arguments or ():
                    self.values(argument, scope)
            case RefPath(steps=(step,)) if step.name != NONE:
                known = library.of(Mask)
                if step.name not in known:
                    self.report.once(unknown("unknown-mask", step.name_span, "mask", step.name, known))
                    return
                for field, argument in zip(fields(known[step.name]).values(), step.arguments or (), strict=False):
                    self._argument(field.form, argument, scope)

    def _argument(self, form: object, argument: Expression | Slice, scope: Scope) -> None:
        if isinstance(form, NodeName | NumberOrNodeRef) and isinstance(argument, RefPath):
            first = argument.steps[0]
            if first.name not in scope.values and first.name not in VALUE_WORDS and not has_node(first.name, scope):
                known = [name for place in scope.around() for name in [*place.graph.declared, *place.graph.inputs]]
                self.report.once(unknown("unknown-node", first.name_span, "node", first.name, known))
        elif not isinstance(form, NodeName):
            self.values(argument, scope)

    def _word(self, word: RefPath, beside: Expression, scope: Scope) -> None:
        """Report a word that is compared with a choice which has no such word."""
        choice = _first_value(scope.values.get(beside.steps[0].name)) if isinstance(beside, RefPath) else None
        if isinstance(choice, ChoiceWord):
            self._choice(word.text, choice.of, word.span)

    def _choice(self, word: str, words: Sequence[str], span: Span) -> None:
        try:
            check_word(word, words, span)
        except ExpressionError as error:
            self.report.once(error.diagnostic)


def is_constant(name: str, scope: Scope) -> bool:
    """Return whether a name is that of a number, such as `pi`, which neither a value nor a node or an input has at a place."""
    return name in CONSTANTS and name not in scope.values and not has_node(name, scope)


def has_node(name: str, scope: Scope) -> bool:
    """Return whether a node or an input of a graph around a place has a name, whether or not it is there yet."""
    graphs = [place.graph for place in scope.around()]
    return name == "input" or any(
        graph.names(name) or name in graph.declared or name in graph.failed or name in graph.absent for graph in graphs
    )


def _skips(expression: Expression | Slice | None) -> bool:
    """Return whether an expression has parts whose value is not always needed."""
    match expression:
        case If() | Binary(operator="and" | "or"):
            return True
        case Binary(left=left, right=right):
            return _skips(left) or _skips(right)
        case Unary(operand=operand):
            return _skips(operand)
        case RefPath(steps=steps):
            return any(_skips(argument) for step in steps for argument in step.arguments or ())
    return False


def _first_value(binding: Binding | None) -> object:
    if isinstance(binding, Listed):
        return _first_value(binding.items[0]) if binding.items else None
    return binding.value if isinstance(binding, Bound) else None
