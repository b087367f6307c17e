"""The base of losses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

from blocks.along_axes.axis_formulas import evaluated, names_in, parsed
from blocks.core import AxisFormulaText, Block, BlockError, BlockView, Look, Sizes, declaration, spoken, torch
from blocks.primitives.compute import as_printed


class Loss(Block):
    """A scalar to minimize; several inputs have a loss each."""

    weight: float = 1.0
    """Constant factor of the loss."""
    reduction: Literal["mean", "sum"] = "mean"
    """How the losses of several inputs are combined."""
    factors: AxisFormulaText = "1"
    """Factor of the loss of each of several inputs, as a formula over its place `i`, counted from 0: `(i + 1) / 12`."""

    of_means: ClassVar[bool] = False
    """Whether its inputs are means already, so that the loss averages as many terms as they do."""
    outputs = {"y": "float[]"}

    @declaration
    def counted(self, numbers: int | None, given: Mapping[str, Any]) -> int | None:
        """Return the number of terms that the loss averages, for gradient accumulation, from the number of elements of its
        target, and the values at the ports that read inputs of the model. None if they do not determine it.
        """
        return None

    @declaration
    def tells_classes(self) -> bool:
        """Return whether the largest score of its input tells the class that is its target, at the same place."""
        return False

    @declaration
    def facts(self) -> Sequence[str]:
        """Return short facts for drawings about its own fields."""
        return ()

    def constants(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        try:
            tree = parsed(self.factors)
        except BlockError as error:
            raise BlockError(error.message, field="factors", hint=error.hint) from None
        if strange := sorted(names_in(tree) - {"i"}):
            hint = "`i` is the place of an input, counted from 0"
            raise BlockError(f"there is no number `{strange[0]}`", field="factors", hint=hint)
        many = len(inputs["input"]) if "input" in inputs else 1
        try:
            return {"factor_of_each": [float(evaluated(tree, {"i": i})) for i in range(many)]}
        except (ArithmeticError, ValueError) as error:
            raise BlockError(f"the formula has no value somewhere: {error}", field="factors") from None

    def look(self, view: BlockView) -> Look:
        each = [] if self.factors == "1" else [f"each × {as_printed(self.factors)}"]
        factor = [*each, *([] if self.weight == 1 else [f"× {self.weight:g}"])]
        summed = ["summed"] if self.reduction == "sum" else []
        name = spoken(view.name.removeprefix("losses."))
        title = name if "loss" in name.lower() else f"{name} loss"
        return Look(title, (self.called(), *factor, *self.facts(), *summed), "loss")

    def together(self: Any, losses: list[torch.Tensor]) -> Any:
        """Return the losses of several inputs as one."""
        total = torch.stack([factor * loss for factor, loss in zip(self.factor_of_each, losses, strict=True)]).sum()
        return self.weight * (total / len(losses) if self.reduction == "mean" else total)


class ScalarLoss(Loss, kind="scalar"):
    """A loss that another node already computes, such as `load_balancing` of a mixture of experts: `y = weight · mean(input)`."""

    of_means = True
    example = """
inputs: {x: "float[batch, 8]"}
graph:
  code: {type: linear, out: 3, in: x}
  size: {compute: abs(code)}
  mean: {type: mean, axis: last, in: size}
  total: {type: mean, axis: batch, in: mean}
outputs: {code: code}
losses: {sparsity: {type: scalar, in: total}}
"""
    inputs = {"input*": "float[]"}

    def constants(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        for index, one in enumerate(inputs["input"]):
            if one.axes:
                hint = "a loss is one number: take the `mean` or `sum` along each axis, or compare with a target by `type: mse`"
                raise BlockError(f"takes a scalar, not {one}", port="input", index=index, code="type-mismatch", hint=hint)
        return super().constants(inputs, sizes)

    def look(self, view: BlockView) -> Look:
        found = super().look(view)
        return replace(found, facts=found.facts[1:])  # its kind says nothing in a drawing: its input is a scalar already

    def forward(self: Any, *input: torch.Tensor) -> Any:
        return self.together(list(input))
