"""The table of the functions and operators of formulas: what each takes, what it gives, and its expression in torch."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

ArgumentKind: TypeAlias = Literal["number", "float", "bool", "any", "condition"]
"""What an argument may be: an int or a float, a float, a boolean, any of them; `condition` is the boolean of `where`."""
ResultKind: TypeAlias = Literal["same", "float", "int", "bool", "quotient", "float32"]
"""The dtype of a result: that of the arguments, or one of its own; a `quotient` of two ints is a float."""

# The binding power of operators of Python, from the loosest to the tightest.
COMPARED, JOINED, INTERSECTED, SUMMED, MULTIPLIED, SIGNED, RAISED, ATOM = range(1, 9)


@dataclass(frozen=True, slots=True)
class FormulaFunction:
    """One row of the table."""

    name: str
    usage: str
    """The call as it is written: `clamp(x, low, high)`."""
    doc: str
    """What it computes."""
    takes: tuple[ArgumentKind, ...]
    gives: ResultKind
    torch: str
    """The expression in torch, `{0}` for the first argument."""
    number: Callable[..., Any] | None = None
    """The same for plain numbers; None where arithmetic at loading has the function, or where a number has no use of it."""
    binding: int = ATOM
    """How tightly the expression binds."""
    around: tuple[int, ...] = ()
    """How tightly each argument must bind to stand there without parentheses; 0 within the parentheses of a call."""
    safe: float | None = None
    """A value of one argument at which result and derivative are finite, where they are not everywhere."""
    guarded: int = 0
    """The index of that argument."""
    ends_gradient: bool = False
    """Whether no gradient goes through it."""

    @property
    def is_operator(self) -> bool:
        """Whether it is written between or before its arguments."""
        return not self.usage.startswith(f"{self.name}(")


def _operator(name: str, usage: str, doc: str, torch: str, binding: int, *, right: bool = False, **more: Any) -> FormulaFunction:
    sides = (binding + 1, binding) if right else (binding, binding + 1)
    settings: dict[str, Any] = {"takes": ("number", "number"), "gives": "same", **more}
    return FormulaFunction(name, usage, doc, torch=torch, binding=binding, around=sides, **settings)


def _comparison(name: str, doc: str, takes: ArgumentKind = "number") -> FormulaFunction:
    return FormulaFunction(
        name, f"a {name} b", doc, (takes, takes), "bool", f"{{0}} {name} {{1}}", None, COMPARED, (JOINED, JOINED),
        ends_gradient=True,
    )  # fmt: skip


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def _softplus(x: float) -> float:
    return max(x, 0) + math.log1p(math.exp(-abs(x)))


# fmt: off
TABLE: tuple[FormulaFunction, ...] = (
    _operator("+", "a + b", "sum", "{0} + {1}", SUMMED),
    _operator("-", "a - b", "difference", "{0} - {1}", SUMMED),
    _operator("*", "a * b", "product", "{0} * {1}", MULTIPLIED),
    _operator("/", "a / b", "quotient, always a float", "{0} / {1}", MULTIPLIED, gives="quotient",
        safe=1.0, guarded=1),
    _operator("//", "a // b", "quotient, rounded down", "{0} // {1}", MULTIPLIED, safe=1.0, guarded=1,
        ends_gradient=True),
    _operator("%", "a % b", "remainder of `//`, with the sign of `b`", "{0} % {1}", MULTIPLIED, safe=1.0,
        guarded=1),
    _operator("**", "a ** b", "power", "{0} ** {1}", RAISED, right=True, safe=1.0),
    FormulaFunction("negative", "-a", "negative", ("number",), "same", "-{0}", None, SIGNED, (SIGNED,)),
    _comparison("==", "whether equal", "any"),
    _comparison("!=", "whether unequal", "any"),
    _comparison("<", "whether less"),
    _comparison("<=", "whether less or equal"),
    _comparison(">", "whether greater"),
    _comparison(">=", "whether greater or equal"),
    _operator("and", "a and b", "whether both", "{0} & {1}", INTERSECTED, takes=("bool", "bool"), gives="bool"),
    _operator("or", "a or b", "whether one at least", "{0} | {1}", JOINED, takes=("bool", "bool"), gives="bool"),
    FormulaFunction("not", "not a", "whether not", ("bool",), "bool", "~{0}", None, SIGNED, (SIGNED,)),
    FormulaFunction("where", "where(c, a, b)", "`a` where `c`, else `b`", ("condition", "any", "any"), "same",
        "torch.where({0}, {1}, {2})"),
    FormulaFunction("min", "min(a, b)", "the smaller", ("number", "number"), "same", "torch.minimum({0}, {1})"),
    FormulaFunction("max", "max(a, b)", "the larger", ("number", "number"), "same", "torch.maximum({0}, {1})"),
    FormulaFunction("clamp", "clamp(x, low, high)", "`min(max(x, low), high)`", ("number", "number", "number"), "same",
        "torch.clamp({0}, {1}, {2})", lambda x, low, high: min(max(x, low), high)),
    FormulaFunction("exp", "exp(x)", "exponential", ("float",), "float", "torch.exp({0})", safe=0.0),
    FormulaFunction("expm1", "expm1(x)", "`exp(x) - 1`, exact near 0", ("float",), "float", "torch.expm1({0})", math.expm1,
        safe=0.0),
    FormulaFunction("log", "log(x)", "natural logarithm", ("float",), "float", "torch.log({0})", safe=1.0),
    FormulaFunction("log1p", "log1p(x)", "`log(1 + x)`, exact near 0", ("float",), "float", "torch.log1p({0})", math.log1p,
        safe=0.0),
    FormulaFunction("sqrt", "sqrt(x)", "square root", ("float",), "float", "torch.sqrt({0})", safe=1.0),
    FormulaFunction("rsqrt", "rsqrt(x)", "`1 / sqrt(x)`", ("float",), "float", "torch.rsqrt({0})",
        lambda x: 1 / math.sqrt(x), safe=1.0),
    FormulaFunction("abs", "abs(x)", "absolute value", ("number",), "same", "torch.abs({0})"),
    FormulaFunction("sign", "sign(x)", "−1, 0 or 1", ("number",), "same", "torch.sign({0})", lambda x: (x > 0) - (x < 0),
        ends_gradient=True),
    FormulaFunction("floor", "floor(x)", "rounded down", ("number",), "same", "torch.floor({0})", ends_gradient=True),
    FormulaFunction("ceil", "ceil(x)", "rounded up", ("number",), "same", "torch.ceil({0})", ends_gradient=True),
    FormulaFunction("round", "round(x)", "rounded to the nearest, halves to the even one", ("number",), "same",
        "torch.round({0})", ends_gradient=True),
    FormulaFunction("sin", "sin(x)", "sine", ("float",), "float", "torch.sin({0})", math.sin),
    FormulaFunction("cos", "cos(x)", "cosine", ("float",), "float", "torch.cos({0})", math.cos),
    FormulaFunction("asinh", "asinh(x)", "inverse hyperbolic sine", ("float",), "float", "torch.asinh({0})", math.asinh),
    FormulaFunction("erf", "erf(x)", "error function", ("float",), "float", "torch.erf({0})", math.erf),
    FormulaFunction("tanh", "tanh(x)", "hyperbolic tangent", ("float",), "float", "torch.tanh({0})", math.tanh),
    FormulaFunction("sigmoid", "sigmoid(x)", "`1 / (1 + exp(-x))`", ("float",), "float", "torch.sigmoid({0})", _sigmoid),
    FormulaFunction("logsigmoid", "logsigmoid(x)", "`log(sigmoid(x))`", ("float",), "float", "F.logsigmoid({0})",
        lambda x: -_softplus(-x)),
    FormulaFunction("softplus", "softplus(x)", "`log(1 + exp(x))`", ("float",), "float", "F.softplus({0})", _softplus),
    FormulaFunction("stop_gradient", "stop_gradient(x)", "`x`, through which no gradient goes", ("any",), "same",
        "{0}.detach()", lambda x: x, around=(ATOM,), ends_gradient=True),
    FormulaFunction("float32", "float32(x)", "`x` in float32 at least, whatever the dtype of the model", ("any",), "float32",
        "{0}.to(torch.promote_types({0}.dtype, torch.float32))", float, around=(ATOM,)),
    FormulaFunction("float", "float(x)", "`x` in the dtype of the model; of a boolean, 0 or 1", ("any",), "float",
        "{0}.to({dtype})", float, around=(ATOM,)),
    FormulaFunction("int", "int(x)", "`x` without its fraction; of a boolean, 0 or 1", ("any",), "int", "{0}.long()", int,
        around=(ATOM,), ends_gradient=True),
    FormulaFunction("bool", "bool(x)", "whether `x` is not 0", ("any",), "bool", "{0}.bool()", bool, around=(ATOM,),
        ends_gradient=True),
)
# fmt: on
FUNCTIONS: Mapping[str, FormulaFunction] = {row.name: row for row in TABLE}
"""The table by name."""
CALLABLE: Mapping[str, FormulaFunction] = {row.name: row for row in TABLE if not row.is_operator}
"""The functions that are called by name."""
