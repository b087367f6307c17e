"""Values as messages describe them."""

from __future__ import annotations

from fractions import Fraction

from composer.language.expressions.ast import Expression, RefPath

CHOICE_OF_BLOCKS = "a choice between blocks is written {if: CONDITION, then: {type: …}, else: {type: …}}"
"""What is said wherever `A if C else B` is tried with a block in braces."""
BLOCK_IN_EXPRESSION = "a block in braces cannot be part of an expression"
BOOLEANS = {"true": True, "false": False}
"""What a recipe writes for them."""


def is_choice_of_blocks(text: str) -> bool:
    """Return whether a text is `A if C else B` with a block in braces, which YAML does not read as one value."""
    return "{" in text and " if " in text and " else " in text


def boolean(value: bool) -> str:
    """Return a boolean as a recipe writes it."""
    return next(word for word, meant in BOOLEANS.items() if meant == value)


def with_article(noun: str) -> str:
    """Return a noun behind its article: `a linear`, `an attention`."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def describe_operand(expression: Expression, value: object) -> str:
    """Describe a value, by the name that stands in the recipe where there is one."""
    if isinstance(expression, RefPath) and not (isinstance(value, str) or expression.text in BOOLEANS):
        return f"`{expression.text}` is {_class(value)}"
    return describe_value(value)


def describe_value(value: object) -> str:
    """Describe a value, beginning with the value itself."""
    return f"{format_value(value)} is {_class(value)}"


def _class(value: object) -> str:
    match value:
        case bool():
            return "a boolean"
        case str():
            return "a string"
        case int() | float() | Fraction():
            return "a number"
        case tuple():
            return "a list"
    return "a block"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 tensor`, `2 tensors`."""
    return f"{number} {noun}{'s' * (number != 1)}"


def format_value(value: object) -> str:
    """Return a value as a recipe would write it."""
    match value:
        case bool():
            return f"`{boolean(value)}`"
        case str():
            return f"`{value}`"
        case Fraction():
            return f"{value.numerator} / {value.denominator}"
        case int() | float():
            return repr(value)
        case tuple():
            return f"[{', '.join(format_value(item).strip('`') for item in value)}]"
    return "this"
