"""Parameters and published tensors that hold the same numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from composer.weights.rules import Rule

if TYPE_CHECKING:
    from torch import Tensor

Shape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Move:
    """One rule at one place of the model: the names on both sides, and how the numbers go over."""

    ours: tuple[str, ...]
    theirs: tuple[str, ...]
    rule: Rule

    def load(self, published: Sequence[Tensor], sizes: Sequence[int]) -> tuple[Tensor, ...]:
        """Our tensors from the published ones, each with its size along the axis of the rule."""
        import torch

        if self.rule.stack:
            return (torch.stack([self._turned(tensor) for tensor in published]),)
        whole = self._joined([self._turned(tensor) for tensor in published])
        return torch.split(whole, list(sizes), self.rule.axis) if len(self.ours) > 1 else (whole,)

    def save(self, ours: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """The published tensors from ours."""
        if self.rule.stack:
            return tuple(self._turned(each) for each in ours[0].unbind())
        whole = self._joined(ours)
        pieces = whole.chunk(len(self.theirs), self.rule.axis) if len(self.theirs) > 1 else (whole,)
        return tuple(self._turned(piece) for piece in pieces)

    def published(self, shapes: Sequence[Shape]) -> tuple[Shape, ...]:
        """The shapes of the published tensors.

        Raises:
            ValueError: where ours cannot be joined, or cannot be cut into equal pieces.
        """
        axis, first = self.rule.axis, shapes[0]
        if self.rule.stack:
            return (self._turned_shape(first[1:]),) * len(self.theirs)
        if len(self.ours) == len(self.theirs) == 1:
            return (self._turned_shape(first),)
        if any(len(shape) <= axis for shape in shapes):
            raise ValueError(f"{listed(self.ours, shapes)}: there is no axis {axis}")
        if len({(*shape[:axis], *shape[axis + 1 :]) for shape in shapes}) > 1:
            raise ValueError(f"{listed(self.ours, shapes)} cannot be joined along axis {axis}")
        length, pieces = sum(shape[axis] for shape in shapes), len(self.theirs)
        if length % pieces:
            raise ValueError(f"{listed(self.ours, shapes)} cannot be cut into {pieces} equal pieces along axis {axis}")
        return (self._turned_shape((*first[:axis], length // pieces, *first[axis + 1 :])),) * pieces

    def _joined(self, tensors: Sequence[Tensor]) -> Tensor:
        import torch

        return torch.cat(list(tensors), self.rule.axis) if len(tensors) > 1 else tensors[0]

    def _turned(self, tensor: Tensor) -> Tensor:
        return tensor.mT if self.rule.transpose and tensor.ndim == 2 else tensor

    def _turned_shape(self, shape: Shape) -> Shape:
        return shape[::-1] if self.rule.transpose and len(shape) == 2 else shape


def shown(shape: Shape) -> str:
    """A shape as people write it: `768 × 2304`."""
    return " × ".join(map(str, shape)) or "one number"


def listed(names: Sequence[str], shapes: Sequence[Shape]) -> str:
    """Names with their shapes."""
    return ", ".join(f"{name} [{shown(shape)}]" for name, shape in zip(names, shapes, strict=True))
