"""Many feed-forward layers at once, each on the rows that are its own; what a mixture of experts computes with."""

from __future__ import annotations

from typing import Any

from blocks.core import F, Part, torch
from blocks.experts.linear_each import linear_each, register_linear_each


class FeedForwards(Part):
    """As many feed-forward layers as experts, each on its own rows; every map of all of them is one tensor."""

    outputs = {"y": "float[rows, dim]"}

    def setup(self) -> None:
        register_linear_each()

    def forward(self: Any, x: torch.Tensor, counts: torch.Tensor) -> Any:
        h = self.activation(linear_each(x, self.up.weight, self.up.bias, counts))  # [rows, hidden]
        if self.dropout:
            h = F.dropout(h, self.dropout, self.training)
        return linear_each(h, self.down.weight, self.down.bias, counts)


class GatedFeedForwards(Part):
    """As many gated feed-forward layers as experts, each on its own rows; every map of all of them is one tensor."""

    outputs = {"y": "float[rows, dim]"}

    def setup(self) -> None:
        register_linear_each()

    def forward(self: Any, x: torch.Tensor, counts: torch.Tensor) -> Any:
        gate = self.activation(linear_each(x, self.gate.weight, self.gate.bias, counts))  # [rows, hidden]
        h = gate * linear_each(x, self.up.weight, self.up.bias, counts)
        return linear_each(h, self.down.weight, self.down.bias, counts)
