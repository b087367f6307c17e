"""Positions counted from 0."""

from __future__ import annotations

from typing import Any

from blocks.core import NonNegativeInt, Part, next_positions, torch


class Counted(Part):
    """Positions 0, 1, 2 … along an axis of an input; while decoding, continued from the previous call."""

    axis: NonNegativeInt
    """Index of the axis of the input."""

    cache_slots = {"length": "int[]"}

    def prepare(self: Any, x: torch.Tensor) -> torch.Tensor:
        positions: torch.Tensor = next_positions(self, x.shape[self.axis], x.device)  # [T]
        return positions


class OptionalPositions(Part):
    """Positions that an optional input gives; where it is absent, those that are counted."""

    def prepare(self: Any, given: torch.Tensor | None, counted: torch.Tensor) -> torch.Tensor:
        return counted if given is None else given
