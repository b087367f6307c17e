"""Axes in front of a value, folded into one and taken apart again."""

from __future__ import annotations

from typing import Any

from blocks.core.fields import NonNegativeInt, PositiveInt
from blocks.core.lazy import torch
from blocks.core.part import Part


class Folded(Part):
    """A value whose axes in front are those of another one, or a part of them: expanded to all, then folded into one."""

    count: PositiveInt
    """Number of axes in front."""
    lacks: NonNegativeInt
    """How many of them the value lacks."""
    last: bool
    """Whether it has the last of them; otherwise, the first."""

    def prepare(self, value: torch.Tensor | None, x: Any = None) -> torch.Tensor | None:
        """Return the value, [first axes, …] or [last axes, …], as [product of all axes, …]; x has all axes in front."""
        if value is None:
            return None
        if self.lacks:
            has = self.count - self.lacks
            place = 0 if self.last else has
            value = value[(slice(None),) * place + (None,) * self.lacks]
            value = value.expand(*x.shape[: self.count], *value.shape[self.count :])
        return value.flatten(0, self.count - 1)


def unfolded(values: tuple[torch.Tensor, ...], shape: tuple[int, ...]) -> tuple[torch.Tensor, ...]:
    """Return values with several axes in place of their first one."""
    return tuple(torch.unflatten(value, 0, shape) for value in values)
