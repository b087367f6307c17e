"""Formulas drawn at random, and their values: number by number in plain Python, and of tensors by walking the tree."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

import torch

from blocks.core import Formula
from blocks.core.formula import AppliedFunction, FormulaTree, KnownNumber, ReadValue, subtrees

Number = Any
"""A boolean, an int or a float."""


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def _softplus(x: float) -> float:
    return x if x > 20 else math.log1p(math.exp(x))  # as torch, whose threshold is 20


def _divided(a: float, b: float) -> float:
    if b:
        return a / b
    return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1, b)


def _power(a: Number, b: Number) -> Number:
    try:
        value = a**b
    except OverflowError:
        return math.inf
    except ZeroDivisionError:
        return math.inf
    return math.nan if isinstance(value, complex) else value


def _guarded(function: Callable[[float], float], above: float = math.inf) -> Callable[[float], float]:
    def value(x: float) -> float:
        try:
            return function(x)
        except ValueError:
            return math.nan
        except OverflowError:
            return above

    return value


def _log(x: float) -> float:
    return -math.inf if x == 0 else _guarded(math.log)(x)


def _same_kind(like: Number, value: Number) -> Number:
    return int(value) if isinstance(like, int) else float(value)


PLAIN: Mapping[str, Callable[..., Number]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _divided,
    "//": lambda a, b: a // b if b else math.nan,
    "%": lambda a, b: a % b if b else math.nan,
    "**": _power,
    "negative": lambda a: -a,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "not": lambda a: not a,
    "where": lambda c, a, b: a if c else b,
    "min": lambda a, b: math.nan if math.isnan(a) or math.isnan(b) else min(a, b),
    "max": lambda a, b: math.nan if math.isnan(a) or math.isnan(b) else max(a, b),
    "clamp": lambda x, low, high: x if math.isnan(x) else min(max(x, low), high),
    "exp": _guarded(math.exp),
    "expm1": _guarded(math.expm1),
    "log": _log,
    "log1p": lambda x: -math.inf if x == -1 else _guarded(math.log1p)(x),
    "sqrt": _guarded(math.sqrt),
    "rsqrt": lambda x: math.inf if x == 0 else _divided(1, _guarded(math.sqrt)(x)),
    "abs": abs,
    "sign": lambda x: _same_kind(x, (x > 0) - (x < 0)),
    "floor": lambda x: _same_kind(x, math.floor(x)) if math.isfinite(x) else x,
    "ceil": lambda x: _same_kind(x, math.ceil(x)) if math.isfinite(x) else x,
    "round": lambda x: _same_kind(x, round(x)) if math.isfinite(x) else x,
    "sin": _guarded(math.sin),
    "cos": _guarded(math.cos),
    "asinh": math.asinh,
    "erf": math.erf,
    "tanh": math.tanh,
    "sigmoid": _sigmoid,
    "logsigmoid": lambda x: min(x, 0.0) - math.log1p(math.exp(-abs(x))),
    "softplus": _softplus,
    "stop_gradient": lambda x: x,
    "float32": float,
    "float": float,
    "int": lambda x: int(x) if math.isfinite(x) else 0,
    "bool": bool,
}
"""Every function of the table, for one number."""


def plain_value(formula: Formula, values: Sequence[Number]) -> Number:
    """Return the value of a formula for one number of each of the values that it reads."""
    return _value(formula.tree, formula, values)


def _value(tree: FormulaTree, formula: Formula, values: Sequence[Number]) -> Number:
    match tree:
        case ReadValue(index=index):
            return values[index]
        case KnownNumber(index=index):
            return formula.numbers[index]
        case AppliedFunction(function="where", arguments=(condition, first, second)):
            return _value(first if _value(condition, formula, values) else second, formula, values)
        case AppliedFunction(function=function, arguments=arguments):
            return PLAIN[function](*(_value(one, formula, values) for one in arguments))


# -- of tensors


TENSORS: Mapping[str, Callable[..., Any]] = {
    **{sign: PLAIN[sign] for sign in ("+", "-", "*", "%", "**", "negative", "==", "!=", "<", "<=", ">", ">=")},
    "//": lambda a, b: a // b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "not": lambda a: ~a,
    "where": torch.where,
    "min": lambda a, b: torch.minimum(*_tensors(a, b)),
    "max": lambda a, b: torch.maximum(*_tensors(a, b)),
    "clamp": torch.clamp,
    "rsqrt": torch.rsqrt,
    "logsigmoid": torch.nn.functional.logsigmoid,
    "softplus": torch.nn.functional.softplus,
    "stop_gradient": lambda x: x.detach(),
    "float32": lambda x: x.to(torch.promote_types(x.dtype, torch.float32)),
    "int": lambda x: x.long(),
    "bool": lambda x: x.bool(),
    **{name: getattr(torch, name) for name in (
        "exp", "expm1", "log", "log1p", "sqrt", "abs", "sign", "floor", "ceil", "round", "sin", "cos", "asinh", "erf", "tanh",
        "sigmoid",
    )},
}  # fmt: skip
"""Every function, for tensors and numbers, but for those that need the dtype of the model."""


def _tensors(a: Any, b: Any) -> tuple[torch.Tensor, torch.Tensor]:
    like = a if isinstance(a, torch.Tensor) else b
    return tuple(one if isinstance(one, torch.Tensor) else torch.full_like(like, one) for one in (a, b))  # type: ignore[return-value]  # two


def tensor_value(formula: Formula, values: Sequence[torch.Tensor], dtype: torch.dtype) -> torch.Tensor:
    """Return the value of a formula of tensors whose axes match, in a model of a dtype."""
    result = _tensor(formula.tree, formula, values, dtype)
    whole = isinstance(formula.tree, AppliedFunction) and formula.tree.function == "float32"
    converted = any(isinstance(one, AppliedFunction) and one.function == "float32" for one in subtrees(formula.tree))
    return result.to(dtype) if converted and result.is_floating_point() and not whole else result


def _tensor(tree: FormulaTree, formula: Formula, values: Sequence[torch.Tensor], dtype: torch.dtype) -> Any:
    match tree:
        case ReadValue(index=index):
            return values[index]
        case KnownNumber(index=index):
            return formula.numbers[index]
        case AppliedFunction(function=function, arguments=arguments):
            given = [_tensor(one, formula, values, dtype) for one in arguments]
            if function == "float":
                return given[0].to(dtype)
            if function == "/" and not any(isinstance(one, float) or getattr(one, "is_floating_point", bool)() for one in given):
                given = [one.to(dtype) if isinstance(one, torch.Tensor) else one for one in given]
            result = given[0] / given[1] if function == "/" else TENSORS[function](*given)
            literal = function == "where" and not any(isinstance(one, torch.Tensor) for one in given[1:])
            return result.to(dtype) if literal and result.is_floating_point() else result
    raise AssertionError(tree)


# -- drawn

FLOATS = ("exp(-abs({}))", "expm1(-abs({}))", "log(abs({}) + 0.5)", "log1p(abs({}))", "sqrt(abs({}))", "rsqrt(abs({}) + 1)",
          "sin({})", "cos({})", "erf({})", "tanh({})", "sigmoid({})", "logsigmoid({})", "softplus({})", "abs({})", "sign({})",
          "-{}", "stop_gradient({})", "float32({})", "float({})", "clamp({}, -2, 1.5)", "{} / 3", "({}) ** 2", "floor({})",
          "ceil({})", "round({})", "2 ** clamp({}, -3, 3)", "asinh({})")  # fmt: skip
PAIRS = ("{} + {}", "{} - {}", "({}) * ({})", "min({}, {})", "max({}, {})", "({}) / (abs({}) + 1)", "({}) % (abs({}) + 1)",
         "({}) // (abs({}) + 1)")  # fmt: skip


def drawn(random: Random, names: Mapping[str, str], dtype: str, depth: int) -> str:
    """Return a formula of a dtype; `names` are those of values, each with its dtype."""
    own = [name for name, kind in names.items() if kind == dtype]
    if depth == 0 or random.random() < 0.15:
        if own and random.random() < 0.8:
            return random.choice(own)
        return {"float": random.choice(["0.5", "2", "1 / 3", "1.25"]), "int": random.choice(["2", "3", "7 // 2"]),
                "bool": random.choice(["true", "false"])}[dtype]  # fmt: skip

    def inner(kind: str = dtype) -> str:
        return drawn(random, names, kind, depth - 1)

    choice = f"where({inner('bool')}, {inner()}, {inner()})"
    match dtype:
        case "bool":
            kind = random.choice(["float", "int"])
            return random.choice([
                f"({inner(kind)}) {random.choice(['<', '<=', '>', '>='])} ({inner(kind)})",
                f"({inner('int')}) {random.choice(['==', '!='])} ({inner('int')})",
                f"({inner()}) {random.choice(['and', 'or'])} ({inner()})", f"not ({inner()})", f"bool({inner('int')})", choice,
            ])  # fmt: skip
        case "int":
            pair = random.choice(["{} + {}", "{} - {}", "({}) * ({})", "min({}, {})", "max({}, {})",
                                  "({}) // (abs({}) + 1)", "({}) % (abs({}) + 1)"])  # fmt: skip
            return random.choice([pair.format(inner(), inner()), f"int({inner('bool')})", f"int({inner('float')})",
                                  f"-({inner()})", f"abs({inner()})", f"sign({inner()})", choice])  # fmt: skip
    one = random.choice(FLOATS).format(f"({inner()})")
    two = random.choice(PAIRS).format(inner(), inner())
    return random.choice([one, two, two, f"float({inner('int')})", f"float({inner('bool')})", choice])
