"""Values that a formula gives at each place of some axes."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any

from blocks.along_axes.axis_formulas import FUNCTIONS, constants_in, evaluated, has_floats, is_whole, names_in, parsed
from blocks.core import UNIT_BUFFER, AxisFormulaText, AxisSize, Block, BlockError, BlockView, Look, Sizes, size, torch
from blocks.core.formula import without_ones
from blocks.primitives.axes import axis_index
from blocks.primitives.compute import as_printed

MOST_CHECKED = 65_536
"""Places up to which the values of a formula are computed when a recipe is checked."""
LARGEST_INT = 2**63 - 1
LARGEST_FLOAT = 3.4028234663852886e38
"""The largest number in float32, which a model computes in unless another dtype is chosen."""
LONG_FRACTION = re.compile(r"\d+\.\d{7,}(?![\d.e])")
"""A number with more digits than a drawing tells."""
SHOWN = 140
"""Characters of a formula that a drawing shows, in up to three lines."""


class AxisConstant(Block, kind="constant"):
    """Values that a formula gives at each place of some axes, such as distances, regions or indices of a table: `y[i, j] = value`
    for `over: {i: 4, j: 4}`.

    The formula reads the axes, each counted from 0, and numbers in scope; a comparison is 0 or 1. The result is of ints where
    all that it is computed from is and nothing makes floats, as `/` and `2 ** i` do; `floor`, `ceil` and `round` make ints of
    these. With `like`, a length that is the name of an axis is that of this axis of `like`, which may be known only when the
    model runs. The values are computed when the model runs, and not saved.
    """

    over: dict[str, AxisSize]
    """The axes in order, each with its length."""
    value: AxisFormulaText
    """The formula."""

    is_primitive = True
    example = """
inputs: {x: "float[batch, time, 9]"}
graph:
  distance: {type: constant, over: {i: 3, j: 3}, value: abs(i - j)}
  y: {type: gather, axis: last, in: {x: x, index: distance}}
"""
    inputs = {"like?": "any[*]"}
    outputs = {"y": "number[*]"}
    shape_only_inputs = ("like",)
    buffers = UNIT_BUFFER
    causal_forms = ("`arange`, which counts on from call to call",)

    def constants(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        axes = inputs["like"].axes if "like" in inputs else None
        places: dict[str, int] = {}
        for name, length in self.over.items():
            if not name.isidentifier() or name in FUNCTIONS:
                raise BlockError(f"`{name}` cannot be the name of an axis", field="over")
            if isinstance(length, str) and axes is None:
                hint = "wire a tensor with this axis to `like`"
                raise BlockError(f"the length of `{length}` is known only when the model runs", field="over", hint=hint)
            if isinstance(length, str):
                places[length] = axis_index(axes or (), length, "over")
        if not self.over:
            raise BlockError("takes at least one axis", field="over", hint="over: {i: 4}")
        tree = parsed(self.value)
        known = {size: axes[place].size for size, place in places.items()} if axes else {}
        if strange := sorted(names_in(tree) - self.over.keys() - known.keys()):
            hint = f"the axes are {', '.join([*self.over, *known])}"
            raise BlockError(f"there is no axis and no number `{strange[0]}`", field="value", hint=hint)
        lengths = {name: known[size] if isinstance(size, str) else size for name, size in self.over.items()}
        for part in constants_in(tree):
            number(part, tree, {})
        within = known_range(self.value, tuple(lengths.items())) if not places else None
        own = {
            "formula_tree": tree,
            "formula_places": places,
            "formula_range": within,
            "formula_lengths": tuple(lengths.values()),
        }
        return {**lengths, **own}

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        axes, found = ", ".join(self.over), sizes["formula_range"]
        dtype = "int" if is_whole(sizes["formula_tree"]) else "float"
        return {"y": f"{dtype}[{axes}]" + (f" within {found[0]}..{found[1]}" if found else "")}

    def mixed_axes(self, sizes: Sizes) -> Sequence[Any]:
        return list(sizes["formula_lengths"])

    def look(self, view: BlockView) -> Look:
        over = ", ".join(f"{name} < {size(view.sizes[name])}" for name in self.over)
        told = LONG_FRACTION.sub(lambda found: f"{float(found[0]):.6g}", without_ones(self.value))
        value = (as_printed(told),) if len(told) <= SHOWN else ()
        return Look(self.called(), (*value, f"for {over}"), "pos")

    def forward(self: Any, like: Any = None) -> Any:
        dtype = torch.float64 if has_floats(self.formula_tree) else torch.int64
        values: dict[str, Any] = {name: like.shape[place] for name, place in self.formula_places.items()}
        lengths = [values[size] if isinstance(size, str) else size for size in self.over.values()]
        for index, (name, length) in enumerate(zip(self.over, lengths, strict=True)):
            behind = (1,) * (len(lengths) - 1 - index)
            values[name] = torch.arange(length, dtype=dtype, device=self.one.device).reshape(-1, *behind)
        y = torch.zeros(lengths, dtype=dtype, device=self.one.device) + evaluated(self.formula_tree, values)
        return y.to(torch.int64 if is_whole(self.formula_tree) else self.one.dtype)


@lru_cache(maxsize=512)
def known_range(formula: str, axes: tuple[tuple[str, int], ...]) -> tuple[int, int] | None:
    """Return the least and the greatest value of a formula of ints; None for floats, and for too many places.

    Args:
        formula: The formula.
        axes: The axes that it reads, with their lengths.

    Raises:
        BlockError: It has no value somewhere.
    """
    names, lengths = [name for name, _ in axes], [length for _, length in axes]
    if prod(lengths) > MOST_CHECKED:
        return None
    tree = parsed(formula)
    found = [number(tree, tree, dict(zip(names, at, strict=True))) for at in product(*map(range, lengths))]
    return (min(found), max(found)) if is_whole(tree) else None


def number(part: Any, tree: Any, values: Mapping[str, int]) -> Any:
    """Return what a part of a formula comes to, if tensors can hold that and what it is made of.

    Args:
        part: The part.
        tree: The formula, of which it depends whether ints are computed as such.
        values: The place on each axis that the part reads.

    Raises:
        BlockError: It has no value, or a larger one.
    """
    exact = not has_floats(tree)

    def bounded(value: Any) -> Any:
        if exact and not -LARGEST_INT <= value <= LARGEST_INT:
            raise OverflowError
        return value

    whole = is_whole(tree)
    most = math.inf if part is not tree else LARGEST_INT if whole else LARGEST_FLOAT
    try:
        value = evaluated(part, values, bounded)
        if not abs(value) <= most:
            raise OverflowError
    except OverflowError:
        at = f" at {', '.join(f'{name} = {place}' for name, place in values.items())}" if values else ""
        limit = "ints reach to 2 ** 63 - 1" if whole else "floats reach to 3.4e38"
        raise BlockError(f"the formula has too large a number{at}: {limit}", field="value") from None
    except (ArithmeticError, ValueError) as error:
        raise BlockError(f"the formula has no value somewhere: {error}", field="value") from None
    return value
