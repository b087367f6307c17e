"""Ids as vectors."""

from __future__ import annotations

from typing import Any

from blocks.core import ONES, Block, PositiveInt, Tensor, torch


class OneHot(Block, kind="one_hot"):
    """Each id as a vector with a one at its place and zeros elsewhere: `yᵢ = [i = id]`; zeros alone where the id is no class."""

    classes: PositiveInt
    """How many classes there are: the length of the vectors."""

    inputs = {"ids": "int[...]"}
    outputs = {"y": "float[..., classes]"}
    buffers = {"one": Tensor((), "table", ONES)}  # ids have no precision to take; this is of the model's own

    def forward(self: Any, ids: torch.Tensor) -> Any:
        return (ids[..., None] == torch.arange(self.classes, device=ids.device)) * self.one
