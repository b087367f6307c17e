"""Types as blocks declare them: matched with the types of inputs, and filled with known sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, TypeGuard

from blocks.core import Part
from blocks.core.per_class import per_class
from composer.diagnostics import Declaration, Span
from composer.graph.dims import Dim, Symbolic
from composer.graph.types import Axis, DType, TensorType
from composer.language.expressions.arithmetic import SIZE_BITS
from composer.language.expressions.ast import Binary, Expression, Number, RefPath, Unary
from composer.language.expressions.errors import ExpressionError
from composer.language.expressions.evaluator import evaluate
from composer.language.expressions.parser import names, parse_expression
from composer.language.recipe.free_names import IDENTIFIER
from composer.language.recipe.type_syntax import axes_of
from composer.language.yaml.nodes import YamlScalar

OTHER_DTYPE: Mapping[tuple[str, DType], str] = {
    ("float", "bool"): "`{compute: float(x)}` turns booleans into 0 and 1; masks and ports `valid` read them as they are",
    ("float", "int"): "`embedding` or `one_hot` turns integers into vectors, `{compute: float(x)}` into floats",
    ("int", "float"): (
        "in a formula, `//` divides integers to integers, and `int(…)` drops the fraction of a float; in a `constant`, "
        "`floor(…)` does"
    ),
}
"""What to do where one dtype is wanted and another is given."""


@dataclass(frozen=True, slots=True)
class TypePattern:
    """A declared type: `float[..., dim]`."""

    dtype: DType | Literal["number", "any"]
    """`number` is int or float, `any` is every dtype."""
    leading: bool
    """Whether it starts with `...`, which stands for the same axes at all ports, or with `*`, which stands for any."""
    axes: tuple[Expression, ...]
    text: str
    is_shared: bool = True
    """Whether the leading axes are those of the other ports."""
    within: tuple[int, int] | None = None
    """For an output, the least and the greatest value: `int[i, j] within 0..8`."""

    @property
    def dtypes(self) -> tuple[DType, ...]:
        """The dtypes that it stands for."""
        match self.dtype:
            case "number":
                return ("int", "float")
            case "any":
                return ("int", "float", "bool")
            case dtype:
                return (dtype,)


class Mismatch(Exception):
    """The type of an input does not match that of a port."""

    def __init__(self, message: str, index: int | None = None, hint: str = "", axis: str = "", count: int = 0) -> None:
        super().__init__(message)
        self.message, self.index, self.hint = message, index, hint
        """Which of several inputs does not fit, where there are several; and what to do."""
        self.axis = axis
        """The name of the axis whose number is another one, where it is declared by a name."""
        self.count = count
        """The number of axes that are given, where it is another one than is declared."""


class UnknownSize(KeyError):
    """A declared size names what has none, such as an axis of a port to which nothing is wired."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


@lru_cache(maxsize=512)
def pattern(text: str) -> TypePattern:
    """Return a declared type from its text; a mistake in it is one of a block's author, and raises a ValueError."""
    written, _, limits = text.partition(" within ")
    least, _, most = limits.partition("..")
    dtype, _, rest = written.strip().rstrip("?").rstrip().partition("[")
    pieces = [piece.strip() for piece in axes_of(rest.rstrip("]"))]
    leading = bool(pieces) and pieces[0] in ("...", "*")
    if dtype not in ("int", "float", "bool", "number", "any"):
        raise ValueError(f"{text!r} is not a type: it begins with int, float, bool, number or any")
    kind: Any = dtype
    within = (int(least), int(most)) if limits else None
    return TypePattern(kind, leading, tuple(declared(piece) for piece in pieces[leading:]), text, pieces[:1] != ["*"], within)


@lru_cache(maxsize=512)
def declared(text: str) -> Expression:
    """Parse an expression from a block's declaration."""
    source = Declaration("<declaration>", text)
    return parse_expression(YamlScalar(text, Span(source, 1, 1, 1, len(text) + 1)))


def axis_names(text: str) -> frozenset[str]:
    """Return the names in the axes of a declared type."""
    return frozenset(IDENTIFIER.findall(text.partition("[")[2]))


@per_class
def axis_symbols(part: type[Part]) -> frozenset[str]:
    """Return the axes of a part's inputs, by which a number may be computed."""
    return frozenset[str]().union(*map(axis_names, part.inputs.values()))


def match(declared_type: TypePattern, given: TensorType, sizes: dict[str, Any], fixed: Mapping[str, Any]) -> None:
    """Bind the pattern's symbols to the sizes of what is given; `fixed` are the block's own fields, which are no symbols.

    Raises:
        Mismatch: where they do not match.
    """
    if given.dtype not in declared_type.dtypes:
        raise Mismatch(f"takes {declared_type.text}, not {given}", hint=dtype_hint(declared_type, given))
    count = len(declared_type.axes)
    if len(given.axes) < count or (len(given.axes) > count and not declared_type.leading):
        raise Mismatch(f"takes {declared_type.text}, not {given}: {_axes(len(given.axes))}", count=len(given.axes))
    split = len(given.axes) - count
    if declared_type.leading and declared_type.is_shared:
        before = sizes.get("...")
        if before is not None and tuple(a.size for a in before) != given.sizes[:split]:
            raise Mismatch(f"takes {declared_type.text} with the same leading axes everywhere, not {given}")
        sizes.setdefault("...", given.axes[:split])
    for expression, axis in zip(declared_type.axes, given.axes[split:], strict=True):
        if is_name(expression) and expression.text not in fixed:
            name = expression.text
            if name in sizes and sizes[name] != axis.size:
                raise Mismatch(f"takes {declared_type.text} with {name} = {sizes[name]}, not {given}")
            sizes[name] = axis.size


def dtype_hint(declared_type: TypePattern, given: TensorType) -> str:
    """Return what to do where a type has another dtype than is declared; empty where nothing helps."""
    return next((hint for one in declared_type.dtypes if (hint := OTHER_DTYPE.get((one, given.dtype)))), "")


def agree(declared_type: TypePattern, given: TensorType, known: Mapping[str, Any]) -> None:
    """Check the axes that are numbers, fields or expressions against what is given, once all fields have values.

    Raises:
        Mismatch: where they differ.
    """
    for expression, axis in zip(declared_type.axes, given.axes[len(given.axes) - len(declared_type.axes) :], strict=True):
        try:
            wanted = size(expression, known)
        except ExpressionError as error:  # of a list of the recipe
            raise Mismatch(f"takes {declared_type.text}, but {error.diagnostic.message}") from None
        if wanted != axis.size:
            where = "" if isinstance(expression, Number) else f", where {text_of_size(expression)} = {wanted}"
            axis_name = expression.text if is_name(expression) else ""
            raise Mismatch(f"takes {declared_type.text}{where}, not {given}", axis=axis_name)


def fill(declared_type: TypePattern, known: Mapping[str, Any]) -> TensorType:
    """Return the type that a pattern stands for once its symbols have sizes. A pattern of several dtypes stands for none, which
    is a mistake of a block's author, and raises a ValueError.
    """
    dtype, *others = declared_type.dtypes
    if others:
        raise ValueError(f"{declared_type.text!r} is not the type of an output: `output_types` returns it")
    leading: tuple[Axis, ...] = known.get("...", ()) if declared_type.leading else ()
    axes = [Axis(text_of_size(expression), size(expression, known)) for expression in declared_type.axes]
    return TensorType(dtype, (*leading, *axes), within=declared_type.within)


def size(expression: Expression, known: Mapping[str, Any]) -> Dim:
    """Return a declared size.

    Raises:
        UnknownSize: for a name without a size.
        ExpressionError: for an item that a list does not have.
    """
    value = _value(expression, known)
    if type(value) is Fraction and value.denominator == 1:
        value = value.numerator
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and value.bit_length() > SIZE_BITS:
        raise Mismatch(f"{text_of_size(expression)} = {value} is not below 2 ** {SIZE_BITS}")
    if isinstance(value, int | Symbolic):
        return value
    raise Mismatch(f"{text_of_size(expression)} = {value} is not an integer")


def _value(expression: Expression, known: Mapping[str, Any]) -> Any:
    match expression:
        case Number(value=value):
            return value
        case RefPath(steps=(step,)) if step.arguments is None:
            given: Any = known.get(step.name)
            if given is None:
                raise UnknownSize(step.name)
            return given
        case Unary(operator="-", operand=operand):
            return -_value(operand, known)
        case Binary(operator=operator, left=left, right=right) if any(
            isinstance(known.get(n), Symbolic) for n in names(expression)
        ):
            a, b = _value(left, known), _value(right, known)
            match operator:
                case "+":
                    return a + b
                case "-":
                    return a - b
                case "*":
                    return a * b
                case "//" | "/":
                    return a // b
                case "%":
                    return a % b
    read = names(expression)
    if missing := [name for name in read if known.get(name) is None and name not in ("min", "max", "ceil_to", "sqrt")]:
        raise UnknownSize(missing[0])
    values = {name: known[name] for name in read if isinstance(known.get(name), int | float | str | Fraction | tuple)}
    return evaluate(expression, values)


def is_name(expression: Expression) -> TypeGuard[RefPath]:
    """Return whether a size is a name alone: that of a param, or of an axis; `widths(0)` is an item of a list."""
    return isinstance(expression, RefPath) and expression.steps[0].arguments is None


def text_of_size(expression: Expression) -> str:
    """Return a declared size as it is written."""
    match expression:
        case Number(value=value):
            return str(value)
        case RefPath(steps=steps) if steps[0].arguments is None:
            return steps[0].name if len(steps) == 1 else expression.text
        case _:
            span = expression.span
            return span.source.lines[span.line - 1][span.column - 1 : span.end_column - 1]


def _axes(count: int) -> str:
    return f"it has {count} {'axis' if count == 1 else 'axes'}"
