"""The optimizers that a run can use: a row of a table each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from torch.optim import Optimizer  # naming the settings loads no torch


class OptimizerSettings(Protocol):
    """What an optimizer is told of a run's settings, beside the decay, which is in its groups, and the rate of each step."""

    @property
    def beta1(self) -> float:
        """Its memory of the gradient."""

    @property
    def beta2(self) -> float:
        """Its memory of the squared gradient."""

    @property
    def eps(self) -> float:
        """Its addition to the denominator."""


ParameterGroups: TypeAlias = Sequence[Mapping[str, Any]]
"""Parameters with the decay that pulls on them, as `param_groups` makes them."""


def adamw(groups: ParameterGroups, settings: OptimizerSettings) -> Optimizer:
    """Return AdamW (Loshchilov and Hutter 2019), fused, which is several times faster on either device."""
    from torch.optim import AdamW

    return AdamW(map(dict, groups), betas=(settings.beta1, settings.beta2), eps=settings.eps, fused=True)


OPTIMIZERS: Mapping[str, Callable[[ParameterGroups, OptimizerSettings], Optimizer]] = {"adamw": adamw}
