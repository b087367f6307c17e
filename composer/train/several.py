"""Several optimizers as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch.optim import Optimizer


class Several(Optimizer):
    """Optimizers that share the parameters of a model; groups and states are those of all of them."""

    def __init__(self, optimizers: Sequence[Optimizer]) -> None:
        super().__init__([group for each in optimizers for group in each.param_groups], {})
        self.optimizers = optimizers
        for each in optimizers:
            each.state = self.state

    def step(self, closure: Callable[[], float] | None = None) -> Any:
        """Let each optimizer make its step."""
        loss = None if closure is None else closure()
        for each in self.optimizers:
            each.step()
        return loss
