"""The value of an expression, given those of its names."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import NoReturn, TypeGuard

from composer.diagnostics import Span
from composer.language.expressions.arithmetic import SIZE_BITS, bounded, compute, refuse_large
from composer.language.expressions.ast import (
    Binary,
    ChoiceWord,
    Expression,
    If,
    NoValue,
    Number,
    PathStep,
    PlainValue,
    RefPath,
    Slice,
    Unary,
    Value,
)
from composer.language.expressions.errors import ExpressionError, refuse
from composer.language.expressions.functions import ARGUMENTS, CONSTANTS, DOMAINS, FUNCTIONS, OF_LISTS, USAGE, RealNumber
from composer.language.suggestions import suggest
from composer.language.unknown_names import unknown
from composer.language.wording import BOOLEANS, counted, describe_operand, describe_value, format_value

NONE = "none"
QUOTES = "\"'"
BOOLEAN_HINT = "booleans are `true`, `false` and comparisons"

ORDER: dict[str, Callable[[RealNumber, RealNumber], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

NUMBER_TYPES = ("int", "float", "bool")
"""What a param holds that has a number, or true or false."""


def evaluate(expression: Expression, scope: Mapping[str, Value]) -> Value:
    """Return the value of an expression: integers and fractions are exact, and only the branch that is taken is evaluated.

    Raises:
        ExpressionError: with the operand or the name at fault.
    """
    match expression:
        case Number(value=value):
            return value
        case RefPath():
            return _path(expression, scope)
        case If():
            return evaluate(_taken(expression, scope), scope)
        case Unary(operator="not"):
            return not _boolean(expression.operand, scope)
        case Unary():
            return bounded(-_real(expression.operand, scope), expression.span)
        case Binary(operator="and"):
            return _boolean(expression.left, scope) and _boolean(expression.right, scope)
        case Binary(operator="or"):
            return _boolean(expression.left, scope) or _boolean(expression.right, scope)
        case Binary(operator="==" | "!="):
            return _same(expression, scope) == (expression.operator == "==")
        case Binary(operator="in" | "not in"):
            return _held(expression, scope) == (expression.operator == "in")
        case Binary(operator="<" | "<=" | ">" | ">="):
            left, right = _real(expression.left, scope), _real(expression.right, scope)
            return ORDER[expression.operator](left, right)
    return compute(expression, _real(expression.left, scope), _real(expression.right, scope))


def evaluate_word(expression: Expression, scope: Mapping[str, Value], words: Sequence[str]) -> str:
    """Return the word that a field with a choice of words is given; a name in scope wins over a word of the same spelling."""
    match expression:
        case If():
            return evaluate_word(_taken(expression, scope), scope, words)
        case RefPath(steps=[PathStep(name=name, arguments=arguments)]) if arguments is None or _is_list(scope.get(name)):
            value = scope.get(name, name) if arguments is None else evaluate(expression, scope)
            if isinstance(value, str) and value in words:
                return str(value)  # whoever asked has a choice of their own
            called = f"`{_written(expression)}` is {format_value(value)}, which" if name in scope else f"`{name}`"
            _refuse_word(called, value, words, expression.span)
    refuse("unknown-choice", f"one of {_listed(words)} is expected here", expression.span)


def as_int(value: Value, span: Span) -> int:
    """Return a whole number, however it was written: 1e4 is 10000."""
    number = as_real(value, span)
    if type(number) is Fraction and number.denominator != 1:
        line = span.source.lines[span.line - 1]
        written = line[span.column - 1 : span.end_column - 1] if span.line == span.end_line else "this"
        message = f"`/` must give an integer here: {written.strip(QUOTES)} is {float(number):.6g}"
        refuse("not-whole", message, span, hint="`//` divides and rounds down")
    if isinstance(number, float) and not number.is_integer():
        refuse("not-whole", f"{number!r} is not an integer", span)
    whole = int(bounded(int(number), span))
    if whole.bit_length() > SIZE_BITS:
        refuse("number-too-large", f"integers are below 2 ** {SIZE_BITS}, not {whole}", span)
    return whole


def as_float(value: Value, span: Span) -> float:
    """Return a number as a float."""
    return float(as_real(value, span))


def as_real(value: Value, span: Span) -> RealNumber:
    """Return a number, exact where it is."""
    if _is_real(value):
        return value
    hint = "one item of it is `name(0)`, counted from 0" if _is_list(value) else _long_form(value)
    refuse("not-a-number", f"{describe_value(value)}, not a number", span, hint=hint)


def as_bool(value: Value, span: Span) -> bool:
    """Return the value as `true` or `false`."""
    if isinstance(value, bool):
        return value
    refuse("not-a-boolean", f"{describe_value(value)}, not a boolean", span, hint=BOOLEAN_HINT)


def _path(path: RefPath, scope: Mapping[str, Value]) -> Value:
    """Return a name's value, or a function of its arguments."""
    if len(path.steps) > 1:
        refuse("not-a-value", f"`{path.text}` refers to a node, whose value is known only when the model runs", path.span)
    step = path.steps[0]
    if step.arguments is not None:
        held = scope.get(step.name)
        return _item(step, held, path.span, scope) if isinstance(held, tuple) else _call(step, path.span, scope)
    if step.name in BOOLEANS:
        return BOOLEANS[step.name]
    if step.name in scope:
        return scope[step.name]
    if step.name in CONSTANTS:
        return CONSTANTS[step.name]
    if step.name in FUNCTIONS:
        refuse("not-a-value", f"`{step.name}` is a function", path.span, hint=f"call it: `{USAGE[step.name]}`")
    if step.name == NONE:
        refuse("not-a-value", "`none` leaves a port, a slot or a tie empty; it is not a number", path.span)
    raise ExpressionError(
        unknown("unknown-name", path.span, "name", step.name, scope, meant=suggest(step.name, [*scope, *BOOLEANS]))
    )


def _taken(choice: If, scope: Mapping[str, Value]) -> Expression:
    return choice.then if _boolean(choice.condition, scope) else choice.otherwise


def _boolean(expression: Expression, scope: Mapping[str, Value]) -> bool:
    value = evaluate(expression, scope)
    if isinstance(value, bool):
        return value
    refuse("not-a-boolean", f"{describe_operand(expression, value)}, not a boolean", expression.span, hint=BOOLEAN_HINT)


def _real(expression: Expression, scope: Mapping[str, Value]) -> RealNumber:
    value = evaluate(expression, scope)
    if _is_real(value):
        return value
    refuse("not-a-number", f"{describe_operand(expression, value)}, not a number", expression.span,
           hint=one_item(expression, value))  # fmt: skip


def item_index(step: PathStep, count: int, span: Span, scope: Mapping[str, Value]) -> int:
    """Return which of the `count` items of a list `name(index)` names, counted from 0; -1 is the last.

    Raises:
        ExpressionError: where there is no such item.
    """
    arguments = step.arguments or ()
    if len(arguments) != 1 or isinstance(arguments[0], Slice):
        refuse("argument-count", f"`{step.name}` is a list, of which one item is read at a time", span,
               hint=f"write `{step.name}(0)`")  # fmt: skip
    index = as_int(_real(arguments[0], scope), arguments[0].span)
    if not -count <= index < count:
        hint = f"indices go from 0 to {count - 1}, or from -1 back to {-count}" if count > 1 else f"write `{step.name}(0)`"
        message = f"`{step.name}` has {counted(count, 'item') if count else 'no items'}, and none with the index {index}"
        refuse("no-such-item", message, span, hint=hint if count else "")
    return index % count


def _item(step: PathStep, items: tuple[PlainValue | NoValue, ...], span: Span, scope: Mapping[str, Value]) -> Value:
    item = items[item_index(step, len(items), span, scope)]
    if isinstance(item, NoValue):
        refuse("not-a-value", f"`{_written(RefPath((step,), span))}` is a block or a mask, not a number or a string", span)
    return item


def one_item(expression: Expression, value: object) -> str:
    """Return what to write where a list stands in place of one of its items, or the name of a type in place of a number."""
    if value in NUMBER_TYPES:
        return _long_form(value)
    return f"write `{expression.text}(0)` for its first item" if isinstance(expression, RefPath) and _is_list(value) else ""


def _long_form(value: object) -> str:
    """Return how a param is written that has the name of a type in place of a value; empty for any other value."""
    return f"a param without a default is long: `{{type: {value}, required: true}}`" if value in NUMBER_TYPES else ""


def _is_list(value: object) -> bool:
    return isinstance(value, tuple)


def _written(path: RefPath) -> str:
    """Return a path as it is written, in one line."""
    span = path.span
    return span.source.lines[span.line - 1][span.column - 1 : span.end_column - 1]


def _same(comparison: Binary, scope: Mapping[str, Value]) -> bool:
    """Return whether both sides are equal; beside a word, a name that is not in scope is a word too."""
    left, right = comparison.left, comparison.right
    left_word, right_word = _bare(left, scope), _bare(right, scope)
    if NONE in (left_word, right_word):  # whether an optional setting is empty
        beside = right if left_word == NONE else left
        value = NONE if left_word == right_word else evaluate(beside, scope)
        if not isinstance(value, bool | int | float | Fraction | str | tuple):
            named = describe_operand(beside, value)
            hint = "let a boolean param decide both: `BLOCK if PARAM else none`, and this"
            refuse("not-a-value", f"{named}, and is not compared", comparison.span, hint=hint)
        if isinstance(value, ChoiceWord):
            check_word(NONE, value.of, (left if left_word == NONE else right).span)
        return value == NONE
    if left_word and not right_word:
        other = evaluate(right, scope)
        if isinstance(other, ChoiceWord):
            check_word(left_word, other.of, left.span)
        return left_word == other if isinstance(other, str) else evaluate(left, scope) == other
    a = evaluate(left, scope)
    if right_word and isinstance(a, ChoiceWord):
        check_word(right_word, a.of, right.span)
    b = right_word if right_word and isinstance(a, str) else evaluate(right, scope)
    for expression, value in ((left, a), (right, b)):
        if not (_is_real(value) or isinstance(value, bool | str)):
            refuse("not-a-number", f"{describe_operand(expression, value)}, not a number or a string", expression.span,
                   hint=one_item(expression, value))  # fmt: skip
    if _is_real(a) and _is_real(b):
        return a == b
    if isinstance(a, str) != isinstance(b, str) or isinstance(a, bool) != isinstance(b, bool):
        refuse("unlike-values", f"{describe_value(a)} and {describe_value(b)}: they are never equal", comparison.span)
    return a == b


def _held(comparison: Binary, scope: Mapping[str, Value]) -> bool:
    """Return whether the list on the right has what is on the left; a name that is not in scope is a word, beside words."""
    left, right = comparison.left, comparison.right
    items = _list(right, scope, hint="`x in xs` says whether the list `xs` has the item `x`")
    word = _bare(left, scope)
    wanted = word if word and all(isinstance(item, str) for item in items) else evaluate(left, scope)
    for item in items:
        if isinstance(item, NoValue):
            refuse("not-a-value", "a list of blocks or masks is counted, and its items are not compared", right.span)
        if word and isinstance(item, ChoiceWord):
            check_word(word, item.of, left.span)
        if _kind(wanted) != _kind(item):
            message = f"{describe_operand(left, wanted)}, and {describe_value(item)}: they are never equal"
            refuse("unlike-values", message, comparison.span, hint=one_item(left, wanted))
    return wanted in items


def _kind(value: object) -> type:
    """Return what a value is compared as: values of different kinds are never equal."""
    return next((kind for kind in (bool, str, tuple) if isinstance(value, kind)), float)


def check_word(word: str, words: Sequence[str], span: Span) -> None:
    """Refuse a word that is none of those of a choice.

    Raises:
        ExpressionError: with those that may be meant.
    """
    if word not in words:
        _refuse_word(f"`{word}`", word, words, span)


def _refuse_word(called: str, value: Value, words: Sequence[str], span: Span) -> NoReturn:
    meant = _meant(suggest(value, words)) if isinstance(value, str) else ""
    refuse("unknown-choice", f"{called} is not one of {_listed(words)}", span, hint=meant)


def _bare(expression: Expression, scope: Mapping[str, Value]) -> str:
    """Return the name that an expression consists of, if nothing has given it a value."""
    match expression:
        case RefPath(steps=[PathStep(name=name, arguments=None)]) if name not in scope and name not in BOOLEANS:
            return name
    return ""


def check_call(step: PathStep, span: Span) -> None:
    """Check that there is a function of this name, which takes as many arguments.

    Raises:
        ExpressionError: There is none, or it takes another number.
    """
    if step.name not in FUNCTIONS:
        raise ExpressionError(unknown("unknown-name", step.name_span, "function", step.name, FUNCTIONS))
    count, (least, most) = len(step.arguments or ()), ARGUMENTS[step.name]
    if not least <= count <= most:
        refuse("argument-count", f"`{step.name}` does not take {count} argument{'s' * (count != 1)}", span,
               hint=f"write `{USAGE[step.name]}`")  # fmt: skip


def _call(step: PathStep, span: Span, scope: Mapping[str, Value]) -> RealNumber:
    if step.name not in FUNCTIONS and step.name in scope:
        refuse("not-a-value", f"`{step.name}` is a value, not a function", step.name_span)
    check_call(step, span)
    arguments = step.arguments or ()
    values: list[RealNumber] = []
    for argument in arguments:
        if isinstance(argument, Slice):
            refuse("not-a-number", "a range is not a number", argument.span)
        if step.name in OF_LISTS:
            return len(_list(argument, scope))
        values.append(_real(argument, scope))
    try:
        value = FUNCTIONS[step.name](*values)
    except OverflowError:
        refuse_large(span)
    except ValueError:
        message = f"{step.name}({', '.join(map(format_value, values))}) has no real value"
        refuse("no-real-value", message, span, hint=DOMAINS[step.name])
    return bounded(value, span)


def _list(expression: Expression, scope: Mapping[str, Value], hint: str = "") -> tuple[PlainValue | NoValue, ...]:
    value = evaluate(expression, scope)
    if isinstance(value, tuple):
        return value
    refuse("not-a-list", f"{describe_operand(expression, value)}, not a list", expression.span, hint=hint)


def _is_real(value: object) -> TypeGuard[RealNumber]:
    kind = type(value)  # of the classes alone: asking for a subclass of `Fraction` is slow
    return kind is int or kind is float or kind is Fraction


def _listed(words: Sequence[str]) -> str:
    return ", ".join(words)


def _meant(names: Sequence[str]) -> str:
    return f"did you mean {' or '.join(names)}?" if names else ""
