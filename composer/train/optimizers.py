"""The optimizers that a run can use, one row of a table each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from torch.optim import Optimizer  # naming the settings loads no torch


class OptimizerSettings(Protocol):
    """The settings of an optimizer, besides weight decay, which its groups carry, and the learning rate, which each step sets."""

    @property
    def beta1(self) -> float:
        """Decay rate of the mean of gradients."""

    @property
    def beta2(self) -> float:
        """Decay rate of the mean of squared gradients."""

    @property
    def eps(self) -> float:
        """Term added to the denominator."""


ParameterGroups: TypeAlias = Sequence[Mapping[str, Any]]
"""Parameter groups with their weight decay, from `param_groups`."""


def adamw(groups: ParameterGroups, settings: OptimizerSettings) -> Optimizer:
    """Return AdamW (Loshchilov and Hutter 2019); the fused version is several times faster on both CPU and CUDA."""
    from torch.optim import AdamW

    return AdamW(map(dict, groups), betas=(settings.beta1, settings.beta2), eps=settings.eps, fused=True)


OPTIMIZERS: Mapping[str, Callable[[ParameterGroups, OptimizerSettings], Optimizer]] = {"adamw": adamw}
