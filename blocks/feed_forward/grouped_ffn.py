"""Feed-forward layers of many experts in one module, each applied to its own rows."""

from __future__ import annotations

from typing import Any

from blocks.core import F, Part, torch
from blocks.experts.grouped_linear import grouped_linear, register_grouped_linear


class GroupedFeedForward(Part):
    """The feed-forward layers of all experts, each applied to its own rows; the weights of each map are one stacked tensor."""

    outputs = {"y": "float[rows, dim]"}

    def setup(self) -> None:
        register_grouped_linear()

    def forward(self: Any, x: torch.Tensor, counts: torch.Tensor) -> Any:
        h = self.activation(grouped_linear(x, self.up.weight, self.up.bias, counts))  # [rows, hidden]
        if self.dropout:
            h = F.dropout(h, self.dropout, self.training)
        return grouped_linear(h, self.down.weight, self.down.bias, counts)


class GroupedGatedFeedForward(Part):
    """The gated feed-forward layers of all experts, each applied to its own rows; the weights of each map are one stacked
    tensor.
    """

    outputs = {"y": "float[rows, dim]"}

    def setup(self) -> None:
        register_grouped_linear()

    def forward(self: Any, x: torch.Tensor, counts: torch.Tensor) -> Any:
        gate = self.activation(grouped_linear(x, self.gate.weight, self.gate.bias, counts))  # [rows, hidden]
        up = grouped_linear(x, self.up.weight, self.up.bias, counts)
        if self.up_limit is not None:
            up = up.clamp(-self.up_limit, self.up_limit)
        if self.up_offset:
            up = up + self.up_offset
        return grouped_linear(gate * up, self.down.weight, self.down.bias, counts)
