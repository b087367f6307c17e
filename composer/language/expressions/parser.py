"""The parser of expressions: one grammar of numbers, conditions, edges and masks."""

from __future__ import annotations

from collections.abc import Container, Iterable
from functools import lru_cache
from typing import Literal, NoReturn, cast

from composer.diagnostics import Span
from composer.language.expressions.ast import Binary, Expression, If, Number, PathStep, RefPath, Slice, Unary
from composer.language.expressions.errors import ExpressionError, refuse
from composer.language.expressions.lexer import LISTED, Token, number, tokenize
from composer.language.wording import BOOLEANS
from composer.language.yaml.nodes import YamlScalar

__all__ = ["ExpressionError", "names", "parse_expression", "paths"]

MAX_DEPTH = 80
"""Nested operators and brackets, so that no recursion over the tree overflows the stack."""

IN, NOT_IN = "in", "not in"
"""Whether a list has an item."""
COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">=", IN, NOT_IN})
NOT, COMPARE, POWER = 3, 4, 8
BINDING = {"or": 1, "and": 2, **dict.fromkeys(COMPARISONS, COMPARE), "+": 5, "-": 5, "*": 6, "/": 6, "//": 6, "%": 6, "**": POWER}
"""The binding power of an operator; unary minus stands between `*` and `**`."""
NO_NAMES = frozenset[str]()
RANGE = "`:` makes a range, which is only allowed in the parentheses of a path"


@lru_cache(maxsize=1024)  # a recipe is compiled with several values of its params, which are read again
def parse_expression(scalar: YamlScalar) -> Expression:
    """Return the tree of the expression in a scalar.

    Raises:
        ExpressionError: with the place inside the scalar.
    """
    tokens = tokenize(scalar)
    if not tokens:
        refuse("expression-syntax", "a value is missing", scalar.span)
    return _Parser(scalar, tokens).whole()


def names(expression: Expression | Slice | None) -> frozenset[str]:
    """Return the first name of every path in an expression, those in brackets included."""
    match expression:
        case RefPath(steps=steps):
            first = frozenset((steps[0].name,))
            if len(steps) == 1 and not steps[0].arguments:  # as most are
                return first
            return first.union(*[names(argument) for step in steps for argument in step.arguments or ()])
        case Number():
            return NO_NAMES
        case Slice(start=start, stop=stop):
            return names(start) | names(stop)
        case Unary(operand=operand):
            return names(operand)
        case Binary(left=left, right=right):
            return names(left) | names(right)
        case If(condition=condition, then=then, otherwise=otherwise):
            return names(condition) | names(then) | names(otherwise)
    return NO_NAMES


def paths(expression: Expression | Slice) -> Iterable[RefPath]:
    """Yield every path in an expression, those in brackets included."""
    match expression:
        case RefPath():
            yield expression
            for step in expression.steps:
                for argument in step.arguments or ():
                    yield from paths(argument)
        case Slice(start=start, stop=stop):
            for end in (start, stop):
                if end is not None:
                    yield from paths(end)
        case Unary(operand=operand):
            yield from paths(operand)
        case Binary(left=left, right=right):
            yield from paths(left)
            yield from paths(right)
        case If(condition=condition, then=then, otherwise=otherwise):
            for part in (condition, then, otherwise):
                yield from paths(part)


def compared_words(expression: Expression | Slice, known: Container[str]) -> Iterable[tuple[RefPath, Expression]]:
    """Yield the words that something is compared with, each with that: names alone that are not `known`."""
    match expression:
        case RefPath(steps=steps):
            for argument in (argument for step in steps for argument in step.arguments or ()):
                yield from compared_words(argument, known)
        case Slice(start=start, stop=stop):
            for end in (start, stop):
                if end is not None:
                    yield from compared_words(end, known)
        case Unary(operand=operand):
            yield from compared_words(operand, known)
        case Binary(operator="in" | "not in", left=left, right=right) if is_word(left, known):
            assert isinstance(left, RefPath)
            yield left, right
            yield from compared_words(right, known)
        case Binary(operator="==" | "!=", left=left, right=right) if is_word(left, known) != is_word(right, known):
            word, beside = (left, right) if is_word(left, known) else (right, left)
            assert isinstance(word, RefPath)
            yield word, beside
            yield from compared_words(beside, known)
        case Binary(left=left, right=right):
            yield from compared_words(left, known)
            yield from compared_words(right, known)
        case If(condition=condition, then=then, otherwise=otherwise):
            for part in (condition, then, otherwise):
                yield from compared_words(part, known)


def is_word(expression: Expression, known: Container[str]) -> bool:
    """Return whether an expression is a name alone that is not `known`."""
    match expression:
        case RefPath(steps=(PathStep(name=name, arguments=None),)):
            return name not in known and name not in BOOLEANS
    return False


class _Parser:
    """Operator precedence by recursive descent (Pratt 1973) over the tokens of one scalar."""

    def __init__(self, scalar: YamlScalar, tokens: list[Token]) -> None:
        self.scalar = scalar
        self.tokens = tokens
        self.place = 0

    def whole(self) -> Expression:
        expression = self.expression(0)
        if self.place < len(self.tokens):
            self.refuse_rest()
        return expression

    def expression(self, depth: int) -> Expression:
        """Parse `A if C else B`, or what binds tighter."""
        start = self.place
        then = self.binary(1, depth)
        if not self.at("if"):
            return then
        word = self.take()
        condition = self.binary(1, depth)
        if not self.at("else"):
            refuse("expression-syntax", "this `if` has no `else`", word.span, hint="write `A if CONDITION else B`")
        self.take()
        otherwise = self.expression(depth)
        return If(condition, then, otherwise, self.span(start))

    def binary(self, tightest: int, depth: int) -> Expression:
        """Parse an operand and the operators after it that bind at least as tightly; `depth` others enclose it."""
        start = self.place
        if depth == MAX_DEPTH:
            refuse("expression-too-deep", f"more than {MAX_DEPTH} operators are nested", self.tokens[start - 1].span)
        left = self.operand(tightest, depth + 1)
        while (binding := BINDING.get(self.infix, 0)) >= tightest:
            operator = self.infix
            self.place += len(operator.split())
            # A power takes its right side first, 2 ** 3 ** 2 = 2 ** 9; everything else its left.
            right = self.binary(binding if operator == "**" else binding + 1, depth + 1)
            if operator in COMPARISONS and self.infix in COMPARISONS:
                self.refuse_chain(start)
            left = Binary(cast("Literal['+']", operator), left, right, self.span(start))
        return left

    def operand(self, tightest: int, depth: int) -> Expression:
        """Parse a number, a path, brackets, or a sign before one of them."""
        start = self.place
        if self.place == len(self.tokens):
            refuse("expression-syntax", f"a value is missing after `{self.tokens[-1].text}`", self.tokens[-1].span)
        token = self.take()
        match token:
            case Token(kind="number"):
                return Number(number(token), token.span)
            case Token(kind="name"):
                return self.path(start, depth)
            case Token(text="("):
                inner = self.expression(depth)
                self.close()
                return inner
            case Token(text="-"):
                return Unary("-", self.binary(POWER, depth), self.span(start))
            case Token(text="not"):
                if tightest > NOT:
                    refuse("expression-syntax", "`not` binds less tightly than the operator before it", token.span,
                           hint="put it in parentheses: `(not …)`")  # fmt: skip
                return Unary("not", self.binary(NOT, depth), self.span(start))
        self.refuse_missing(token)

    def path(self, start: int, depth: int) -> RefPath:
        """Parse names with dots between them, each perhaps with brackets; the first name has been taken."""
        steps = [self.step(start, depth)]
        while self.at("."):
            dot = self.take()
            if self.place == len(self.tokens) or self.tokens[self.place].kind != "name":
                refuse("expression-syntax", "a name is missing after the dot", dot.span)
            self.take()
            steps.append(self.step(self.place - 1, depth))
        return RefPath(tuple(steps), self.span(start))

    def step(self, start: int, depth: int) -> PathStep:
        name = self.tokens[start]
        arguments = None
        if self.at("("):
            self.take()
            arguments = self.arguments(depth)
        return PathStep(name.text, arguments, self.span(start), name.span)

    def arguments(self, depth: int) -> tuple[Expression | Slice, ...]:
        """Parse what stands between the brackets; the opening one has been taken."""
        if self.at(")"):
            self.take()
            return ()
        arguments = [self.argument(depth)]
        while self.at(","):
            comma = self.take()
            if self.at(")"):
                refuse("expression-syntax", "an argument is missing after the comma", comma.span)
            arguments.append(self.argument(depth))
        self.close()
        return tuple(arguments)

    def argument(self, depth: int) -> Expression | Slice:
        start = self.place
        lower = None if self.at(":") else self.expression(depth)
        if not self.at(":"):
            return cast("Expression", lower)
        self.take()
        upper = None if self.peek in {")", ","} else self.expression(depth)
        return Slice(lower, upper, self.span(start))

    @property
    def peek(self) -> str:
        """The next token where it is a sign or a keyword."""
        token = self.tokens[self.place] if self.place < len(self.tokens) else None
        return token.text if token and token.kind == "sign" else ""

    @property
    def infix(self) -> str:
        """The operator that stands next, between two operands; there, `in` cannot be a name."""
        words = [token.text for token in self.tokens[self.place : self.place + 2]]
        return NOT_IN if words == NOT_IN.split() else IN if words[:1] == [IN] else self.peek

    def at(self, text: str) -> bool:
        return self.peek == text

    def take(self) -> Token:
        self.place += 1
        return self.tokens[self.place - 1]

    def close(self) -> None:
        """Take the closing bracket."""
        if not self.at(")"):
            self.refuse_rest()
        self.take()

    def span(self, start: int) -> Span:
        """Return the span from the token `start` to the last one taken."""
        return self.scalar.part(self.tokens[start].start, self.tokens[self.place - 1].end)

    def refuse_chain(self, start: int) -> NoReturn:
        end = self.tokens[self.place].end
        message = "comparisons cannot be chained"
        refuse("comparison-chain", message, self.scalar.part(self.tokens[start].start, end), hint="write `a < b and b < c`")

    def refuse_missing(self, token: Token) -> NoReturn:
        """Raise for a sign that stands where a value should."""
        before = self.tokens[self.place - 2].text if self.place > 1 else ""
        if token.text == ":":
            refuse("expression-syntax", RANGE, token.span, hint="as in `layers(2:5)`")
        if before in {"", "("}:
            refuse("expression-syntax", f"a value is missing before `{token.text}`", token.span)
        refuse("expression-syntax", f"a value is missing between `{before}` and `{token.text}`", token.span)

    def refuse_rest(self) -> NoReturn:
        """Raise for what follows a complete expression."""
        token = self.tokens[self.place]
        last = self.tokens[self.place - 1]
        match token.text:
            case ",":
                message, hint = "a comma is only allowed between the arguments of a path", "as in `window(2, 3)`"
                hint = LISTED if any(before.text == IN for before in self.tokens[: self.place]) else hint
            case ":":
                message, hint = RANGE, "as in `layers(2:5)`"
            case "else":
                message, hint = "this `else` has no `if`", "write `A if CONDITION else B`"
            case ".":
                message, hint = "a dot is only allowed between names", ""
            case _:
                message = f"an operator is missing between `{last.text}` and `{token.text}`"
                hint = "masks are joined by `and` or `or`, numbers by `*`" if token.kind == "name" else ""
        refuse("expression-syntax", message, token.span, hint=hint)
