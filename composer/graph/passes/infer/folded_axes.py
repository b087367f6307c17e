"""Axes in front of a block as it sees them: folded into one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from blocks.core import Part
from composer.graph.dims import Dim, Symbolic, routed
from composer.graph.leading_axes import leading_part
from composer.graph.passes.infer.text_dependence import GeneratedText
from composer.graph.type_patterns import pattern
from composer.graph.types import Axis, InputTypes, TensorType


def leading_axes(part: type[Part], given: InputTypes) -> tuple[Axis, ...]:
    """Return the axes of a block's first input that are folded into its batch; nothing where it has no more than it declares.

    Args:
        part: The class of the block.
        given: The types of its inputs.
    """
    if not part.folds_leading:
        return ()
    port, declared = next(iter(part.inputs.items()))
    first = given.get(port)
    more = len(first.axes) - len(pattern(declared).axes) if isinstance(first, TensorType) else 0
    return first.axes[: more + 1] if isinstance(first, TensorType) and more > 0 else ()


@dataclass(frozen=True, slots=True)
class Folding:
    """The axes in front of a block, and the one axis that takes their place."""

    axes: tuple[Axis, ...]
    """Nothing for a block that is given one batch axis."""
    batch: Dim
    """The size of the one axis."""

    def type(self, declared: str, given: TensorType, *, partly: bool = True) -> TensorType:
        """Return the type of a value as the block sees it.

        Args:
            declared: The type that the block declares.
            given: The type of the value.
            partly: Whether the value may have a part of the axes.

        Raises:
            Mismatch: where it has other axes in front.
        """
        if not self.axes or leading_part(declared, given, self.axes, partly=partly) == "none":
            return given
        wanted = pattern(declared)
        rest = len(wanted.axes) - (not wanted.leading)
        return replace(given, axes=(Axis("batch", self.batch), *given.axes[len(given.axes) - rest :]))

    def unfolded(self, given: TensorType) -> TensorType:
        """Return the type of what the block returns, with all axes in place of the one.

        Args:
            given: The type that the block returns.
        """
        if not self.axes or not given.axes or given.axes[0].size != self.batch:
            return given
        return replace(given, axes=(*self.axes, *given.axes[1:]))


def folding(part: type[Part], given: InputTypes, text: GeneratedText | None) -> Folding:
    """Return how the axes in front of a block are folded. Where tokens of a generated text are among them, the rows of the one
    axis are no longer those of the text in its order.

    Args:
        part: The class of the block.
        given: The types of its inputs.
        text: The text that the model generates.
    """
    axes = leading_axes(part, given)
    if not axes:
        return Folding((), 1)
    first, *others = (axis.size for axis in axes)
    size = prod(others, start=first)
    return Folding(axes, routed(size) if isinstance(size, Symbolic) and text is not None and text.touches(size) else size)
