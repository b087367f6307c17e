"""A pointwise formula."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from blocks.core import UNIT_BUFFER, Block, BlockView, Cost, Formula, InputAxes, Look, Sizes, Tensor, grouped
from blocks.formulas.dtypes import TypedFormula, typed_formula
from blocks.formulas.expressions import expression, reads_model_dtype
from blocks.primitives.axes import changed
from blocks.primitives.stack_split import of_port

WIDEST = 40
"""Signs of the longest formula that is drawn as it is written."""


class Compute(Block, kind="compute"):
    """A pointwise formula over the values that it names: `{compute: exp(-softplus(dt) * a)}` is short for
    `{type: compute, formula: exp(-softplus(dt) * a)}`.

    The language page lists the functions. The result is a float, an int or a boolean, as the formula says. A formula of which no
    value is a float in the dtype of the model keeps a buffer that is.
    """

    formula: Formula
    """The formula; each name in it is an edge, or a number in scope."""
    axes: InputAxes = ()
    """The names of the axes of each value, where these do not match in order: `{dt: rows inner, a: inner state}`."""

    is_primitive = True
    example = """
inputs: {x: "float[batch, time, 8]", gate: "float[batch, time, 8]"}
graph: {y: {compute: x * sigmoid(gate)}}
"""
    inputs = {"xs*": "any[...]"}
    outputs = {"y": "any[...]"}
    broadcasts = True

    def constants(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        typed = typed_formula(self.formula, [one.dtype for one in of_port(inputs["xs"])])
        numbers = {f"number_{index}": value for index, value in enumerate(self.formula.numbers)}
        return {"typed": typed, **numbers}

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        typed: TypedFormula = sizes["typed"]
        return {"y": replace(changed(of_port(inputs["xs"])[0]), dtype=typed.dtype, axes=sizes["..."])}

    def buffers(self, sizes: Sizes) -> Mapping[str, Tensor]:
        """Return a number in the dtype of the model, for a formula of which no value has it."""
        typed: TypedFormula | None = sizes.get("typed")  # none where no model is described
        return UNIT_BUFFER if typed is not None and reads_model_dtype(self.formula, typed) else {}

    def cost(self, sizes: Sizes, wired: frozenset[str]) -> Cost:
        return Cost("0")  # only products of matrices count

    def inline(self, sizes: Sizes) -> str:
        return expression(self.formula, sizes["typed"])

    def look(self, view: BlockView) -> Look:
        written = as_printed(self.formula.text)
        if len(written) > WIDEST:
            return Look(view.name, hue="merge")
        return Look(written, tuple(f"{name} = {_number(number)}" for name, number in self.formula.named_numbers), "merge")


PRINTED = (
    (r"\b(?:float32|float|int)\((\w+(?:\.\w+)*)\)", r"\1"),  # which dtype a number has is no part of the mathematics
    (r"\babs\(([^()]*)\)", r"|\1|"),
    (r"\bsqrt\((\w+)\)", r"√\1"),
    (r"\bsqrt\(", "√("),
    (r"\bsigmoid\(", "σ("),
    (r" ?\*\* ?2\b", "²"),
    (r" ?\*\* ?3\b", "³"),
    (r" \* ", " · "),
    (r" - ", " − "),
    (r"(?<![\w)\]²³ ])-|(?<=[-+*/(,·−] )-|^-", "−"),
    (r">=", "≥"),
    (r"<=", "≤"),
)
"""What a paper writes in place of what a recipe does."""


def as_printed(formula: str) -> str:
    """Return a formula as a paper writes it: signs for functions and operators, and of an output of a node its own name, where no
    other value has that.

    >>> as_printed("ssm * halves.gate * sigmoid(halves.gate)"), as_printed("-exp(float32(a)) / sqrt(dim)")
    ('ssm · gate · σ(gate)', '−exp(a) / √dim')
    """
    for pattern, sign in PRINTED:
        formula = re.sub(pattern, sign, formula)
    values = {*re.findall(r"\b[a-zA-Z_]\w*(?:\.\w+)*", formula)}
    for value in sorted(values, key=len, reverse=True):
        own = value.rpartition(".")[2]
        if own != value and sum(other.rpartition(".")[2] == own for other in values) == 1:
            formula = re.sub(rf"\b{re.escape(value)}\b", own, formula)
    return formula


def _number(number: bool | int | float) -> str:
    """Return a number for a drawing, a whole one with all of its digits."""
    if isinstance(number, bool):
        return str(number).lower()
    return grouped(number) if float(number).is_integer() else f"{number:.6g}"
