"""Feed-forward layers of many experts in one module, each on its own rows."""

from __future__ import annotations

from typing import Any

from blocks.core import F, Part, torch
from blocks.experts.grouped_linear import grouped_linear, register_grouped_linear


class GroupedFeedForward(Part):
    """As many feed-forward layers as experts, each on its own rows; every map of all of them is one tensor."""

    outputs = {"y": "float[rows, dim]"}

    def setup(self) -> None:
        register_grouped_linear()

    def forward(self: Any, x: torch.Tensor, counts: torch.Tensor) -> Any:
        h = self.activation(grouped_linear(x, self.up.weight, self.up.bias, counts))  # [rows, hidden]
        if self.dropout:
            h = F.dropout(h, self.dropout, self.training)
        return grouped_linear(h, self.down.weight, self.down.bias, counts)


class GroupedGatedFeedForward(Part):
    """As many gated feed-forward layers as experts, each on its own rows; every map of all of them is one tensor."""

    outputs = {"y": "float[rows, dim]"}

    def setup(self) -> None:
        register_grouped_linear()

    def forward(self: Any, x: torch.Tensor, counts: torch.Tensor) -> Any:
        gate = self.activation(grouped_linear(x, self.gate.weight, self.gate.bias, counts))  # [rows, hidden]
        h = gate * grouped_linear(x, self.up.weight, self.up.bias, counts)
        return grouped_linear(h, self.down.weight, self.down.bias, counts)
