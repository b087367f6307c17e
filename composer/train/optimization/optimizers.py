"""The optimizers that a run can use, one row of a table each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer  # naming the settings loads no torch


class OptimizerSettings(Protocol):
    """The settings of an optimizer, besides the learning rate, which each step sets."""

    @property
    def optimizer(self) -> str:
        """The name of its row."""

    @property
    def weight_decay(self) -> float:
        """Weight decay of matrices, experts and embeddings."""

    @property
    def beta1(self) -> float:
        """Decay rate of the mean of gradients."""

    @property
    def beta2(self) -> float:
        """Decay rate of the mean of squared gradients."""

    @property
    def eps(self) -> float:
        """Term added to the denominator."""

    @property
    def mup(self) -> tuple[str, ...]:
        """The values of params in the narrow model of muP, as `PATH=VALUE`; none without muP."""

    @property
    def momentum(self) -> float | None:
        """Decay rate of the sum of gradients; None for the optimizer's own default."""


def groups_of(model: nn.Module, settings: OptimizerSettings) -> list[dict[str, Any]]:
    """Return the parameters of a model in groups, with decay by role, and with muP with a factor of the learning rate each."""
    from composer.train.optimization.decay_groups import param_groups

    groups = param_groups(model, weight_decay=settings.weight_decay)
    if not settings.mup:
        return groups
    from composer.train.optimization.width_transfer import by_width

    return by_width(model, groups, settings.mup, optimizer=settings.optimizer)


def adamw(model: nn.Module, settings: OptimizerSettings) -> Optimizer:
    """Return AdamW (Loshchilov and Hutter 2019); the fused version is several times faster on both CPU and CUDA."""
    from torch.optim import AdamW

    return AdamW(groups_of(model, settings), betas=(settings.beta1, settings.beta2), eps=settings.eps, fused=True)


def adam(model: nn.Module, settings: OptimizerSettings) -> Optimizer:
    """Return Adam (Kingma and Ba 2015), whose weight decay is an L2 penalty: part of the gradient."""
    from torch.optim import Adam

    return Adam(groups_of(model, settings), betas=(settings.beta1, settings.beta2), eps=settings.eps, fused=True)


def nadam(model: nn.Module, settings: OptimizerSettings) -> Optimizer:
    """Return NAdam (Dozat 2016), with decoupled weight decay."""
    from torch.optim import NAdam

    betas = (settings.beta1, settings.beta2)
    return NAdam(groups_of(model, settings), betas=betas, eps=settings.eps, decoupled_weight_decay=True)


def sgd(model: nn.Module, settings: OptimizerSettings) -> Optimizer:
    """Return stochastic gradient descent with momentum, whose weight decay is an L2 penalty: part of the gradient."""
    from torch.optim import SGD

    return SGD(groups_of(model, settings), lr=0.0, momentum=0.9 if settings.momentum is None else settings.momentum)


def adafactor(model: nn.Module, settings: OptimizerSettings) -> Optimizer:
    """Return Adafactor (Shazeer and Stern 2018), whose state of a matrix is one number for each row and column. Its steps are
    relative to the size of the parameters, and the learning rate is at most 1 / √step.
    """
    from torch.optim import Adafactor

    return Adafactor(groups_of(model, settings))


def muon(model: nn.Module, settings: OptimizerSettings) -> Optimizer:
    """Return Muon (Jordan et al. 2024) for the matrices inside, with steps of the size of AdamW's (Liu et al. 2025), and AdamW
    for all else: embeddings, the matrices of the outputs, experts in one tensor, gains and biases.
    """
    from torch.optim import AdamW, Muon

    from composer.train.optimization.decay_groups import hidden_matrices
    from composer.train.several import Several

    inside = hidden_matrices(model)
    groups = [
        [
            {**group, "params": chosen}
            for group in groups_of(model, settings)
            if (chosen := [p for p in group["params"] if which(p)])
        ]
        for which in (inside.__contains__, lambda parameter: parameter not in inside)
    ]
    momentum = 0.95 if settings.momentum is None else settings.momentum
    made: list[Optimizer] = []
    if groups[0]:
        made.append(Muon(groups[0], momentum=momentum, adjust_lr_fn="match_rms_adamw"))
    if groups[1]:
        made.append(AdamW(groups[1], betas=(settings.beta1, settings.beta2), eps=settings.eps, fused=True))
    return Several(made)


@dataclass(frozen=True, slots=True)
class OptimizerRow:
    """An optimizer, and the settings that only some optimizers read."""

    build: Callable[[nn.Module, OptimizerSettings], Optimizer]
    """Returns it for the parameters of a model that are trained."""
    reads: frozenset[str] = frozenset()


MOMENTS = frozenset({"beta1", "beta2", "eps"})
OPTIMIZERS: Mapping[str, OptimizerRow] = {
    "adamw": OptimizerRow(adamw, MOMENTS | {"mup"}),
    "adam": OptimizerRow(adam, MOMENTS | {"mup"}),
    "nadam": OptimizerRow(nadam, MOMENTS | {"mup"}),
    "sgd": OptimizerRow(sgd, frozenset({"momentum", "mup"})),
    "adafactor": OptimizerRow(adafactor),
    "muon": OptimizerRow(muon, MOMENTS | {"momentum", "mup"}),
}
