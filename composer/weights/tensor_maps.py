"""Conversion between groups of parameters and published tensors with the same contents."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from composer.weights.rules import Permutation, Rule

if TYPE_CHECKING:
    from torch import Tensor

TensorShape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class TensorMap:
    """A rule applied at one place of the model: the names on both sides, and the conversion."""

    ours: tuple[str, ...]
    theirs: tuple[str, ...]
    permuted: tuple[bool, ...]
    """For each of our parameters, whether its rows are in the other rotary layout."""
    rule: Rule
    spellings: tuple[tuple[str, ...], ...] = ()
    """What other files call the published tensors, each as many names as `theirs`."""

    def load(self, published: Sequence[Tensor], shapes: Sequence[TensorShape]) -> tuple[Tensor, ...]:
        """Return our tensors, with these shapes, from the published ones."""
        import torch

        rule = self.rule
        flat = self._flat(shapes)
        each = [self._turned(tensor.reshape(flat) if rule.reshape is not None else tensor) for tensor in published]
        if rule.stack:
            ours: Sequence[Tensor] = [torch.stack(each)]
        else:
            ours = self._cut(self._joined(each), [shape[rule.axis] for shape in shapes if len(shapes) > 1])
        return tuple(
            raised(rearranged(tensor, rule.permute, rule.permute.ours) if permuted and rule.permute else tensor, rule.offset)
            for tensor, permuted in zip(ours, self.permuted, strict=True)
        )

    def save(self, ours: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Return the published tensors from ours."""
        rule = self.rule
        rows = self.turned_rows([raised(tensor, -rule.offset) for tensor in ours])
        if rule.stack:
            pieces: Sequence[Tensor] = rows[0].unbind()
        else:
            whole, count = self._joined(rows), len(self.theirs)
            pieces = self._cut(whole, [whole.shape[rule.axis] // count] * count if count > 1 else [])
        turned = [self._turned(piece) for piece in pieces]
        return tuple(tensor if rule.reshape is None else tensor.reshape(rule.reshape) for tensor in turned)

    def turned_rows(self, ours: Sequence[Tensor]) -> Sequence[Tensor]:
        """Return our tensors with their rows in the published rotary layout."""
        rule = self.rule
        other = {"halves": "interleaved", "interleaved": "halves"}
        return [
            rearranged(tensor, rule.permute, other[rule.permute.ours]) if permuted and rule.permute else tensor
            for tensor, permuted in zip(ours, self.permuted, strict=True)
        ]

    def published(self, shapes: Sequence[TensorShape]) -> tuple[TensorShape, ...]:
        """Return the shapes of the published tensors.

        Raises:
            ValueError: Our tensors cannot be concatenated, split or reshaped as the rule requires.
        """
        rule, flat = self.rule, self._flat(shapes)
        if rule.permute and any(
            permuted and (not shape or shape[0] % rule.permute.head_dim)
            for shape, permuted in zip(shapes, self.permuted, strict=True)
        ):
            raise ValueError(f"{listed(self.ours, shapes)} does not consist of heads of {rule.permute.head_dim} rows")
        if rule.reshape is not None and math.prod(rule.reshape) != math.prod(flat):
            raise ValueError(f"{listed(self.ours, shapes)} cannot be reshaped to {shown(rule.reshape)}")
        return (flat if rule.reshape is None else rule.reshape,) * len(self.theirs)

    def _flat(self, shapes: Sequence[TensorShape]) -> TensorShape:
        """Return the shape of each published tensor before `reshape`."""
        axis, first, groups = self.rule.axis, shapes[0], self.rule.interleave
        if self.rule.stack:
            if not first:
                raise ValueError(f"{listed(self.ours, shapes)}: there is no axis 0")
            return self._turned_shape(first[1:])
        if len(self.ours) == len(self.theirs) == 1:
            return self._turned_shape(first)
        if any(len(shape) <= axis for shape in shapes):
            raise ValueError(f"{listed(self.ours, shapes)}: there is no axis {axis}")
        if len({(*shape[:axis], *shape[axis + 1 :]) for shape in shapes}) > 1:
            raise ValueError(f"{listed(self.ours, shapes)} cannot be concatenated along axis {axis}")
        length, pieces = sum(shape[axis] for shape in shapes), len(self.theirs)
        if length % pieces:
            raise ValueError(f"{listed(self.ours, shapes)} cannot be split into {pieces} equal pieces along axis {axis}")
        if any(size % groups for size in (*(shape[axis] for shape in shapes), length // pieces)):
            raise ValueError(f"{listed(self.ours, shapes)} cannot be split into {groups} groups along axis {axis}")
        return self._turned_shape((*first[:axis], length // pieces, *first[axis + 1 :]))

    def _joined(self, tensors: Sequence[Tensor]) -> Tensor:
        """Join all pieces into one tensor, concatenated within each of the groups."""
        import torch

        axis, groups = self.rule.axis, self.rule.interleave
        if len(tensors) == 1:
            return tensors[0]
        return torch.cat([torch.unflatten(tensor, axis, (groups, -1)) for tensor in tensors], axis + 1).flatten(axis, axis + 1)

    def _cut(self, whole: Tensor, sizes: Sequence[int]) -> Sequence[Tensor]:
        """Return the pieces of a tensor, the inverse of `_joined`; without sizes there is one."""
        import torch

        axis, groups = self.rule.axis, self.rule.interleave
        if not sizes:
            return (whole,)
        grouped = torch.unflatten(whole, axis, (groups, -1))
        pieces = torch.split(grouped, [size // groups for size in sizes], axis + 1)
        return tuple(piece.flatten(axis, axis + 1) for piece in pieces)

    def _turned(self, tensor: Tensor) -> Tensor:
        return tensor.mT if self.rule.transpose and tensor.ndim > 1 else tensor

    def _turned_shape(self, shape: TensorShape) -> TensorShape:
        return (*shape[:-2], shape[-1], shape[-2]) if self.rule.transpose and len(shape) > 1 else shape


def rearranged(tensor: Tensor, permute: Permutation, to: str) -> Tensor:
    """Return the rows of each head converted to the layout `to` from the other one: pair i is rows 2i and 2i + 1 in
    `interleaved`, rows i and i + n/2 in `halves`.
    """
    import torch

    heads = torch.unflatten(tensor, 0, (-1, permute.head_dim))  # [H, head_dim, …]
    turned, still = heads[:, : permute.rotary_dim], heads[:, permute.rotary_dim :]
    pairs = torch.unflatten(turned, 1, (-1, 2) if to == "halves" else (2, -1)).transpose(1, 2).flatten(1, 2)
    return torch.cat([pairs, still], 1).flatten(0, 1)


def raised(tensor: Tensor, offset: float) -> Tensor:
    """Return the tensor plus a number, rounded once."""
    return (tensor.double() + offset).to(tensor.dtype) if offset else tensor


def shown(shape: TensorShape) -> str:
    """Return a shape for messages: `768 × 2304`."""
    return " × ".join(map(str, shape)) or "one number"


def listed(names: Sequence[str], shapes: Sequence[TensorShape]) -> str:
    """Return the names with their shapes."""
    return ", ".join(f"{name} [{shown(shape)}]" for name, shape in zip(names, shapes, strict=True))
