"""Defaults of the model's inputs: of what value, and in the shape of what is always given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from composer.diagnostics import Diagnostic
from composer.graph.ir import Program
from composer.graph.passes.error_report import labeled
from composer.graph.types import TensorType, Type
from composer.language.expressions.ast import Value
from composer.language.expressions.evaluator import as_bool, as_float, as_int, evaluate
from composer.language.expressions.parser import ExpressionError
from composer.language.recipe.ast import ExpressionValue, InputDecl

AS = {"int": as_int, "float": as_float, "bool": as_bool}


def default_values(inputs: Mapping[str, InputDecl], program: Program) -> tuple[dict[str, Value], list[Diagnostic]]:
    """Return what each input is where it is not given, and what is wrong with that."""
    values: dict[str, Value] = {}
    wrong: list[Diagnostic] = []
    for name, item in inputs.items():
        if item.default is not None:
            try:
                with labeled(program.origins_of(item.default.expression)):
                    values[name] = AS[item.type.dtype](evaluate(item.default.expression, program.params), item.default.span)
            except ExpressionError as error:
                wrong.append(error.diagnostic)
    return values, wrong


def shape_mistakes(inputs: Mapping[str, InputDecl], types: Mapping[str, Type]) -> Iterator[Diagnostic]:
    """Yield the inputs with a default whose shape no input tells that is always given."""
    given = {name: types[name] for name, item in inputs.items() if item.default is None and not item.optional}
    known = {size for type_ in given.values() if isinstance(type_, TensorType) for size in type_.sizes}
    for name, item in inputs.items():
        type_ = types[name]
        if item.default is None or not isinstance(type_, TensorType):
            continue
        lacking = next((size for size in type_.sizes if not isinstance(size, int) and size not in known), None)
        if not given:
            yield _mistake(item.default, "every input has a default, so the batch size is unknown")
        elif lacking is not None:
            yield _mistake(item.default, f"the axis `{lacking}` of `{name}` is not an axis of any input without a default")


def _mistake(default: ExpressionValue, message: str) -> Diagnostic:
    return Diagnostic(
        "input-default", message, default.span, hint="the shape of a default is taken from the inputs that are passed"
    )
