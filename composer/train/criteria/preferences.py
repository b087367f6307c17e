"""Learning from preferences: direct preference optimization, and reward models.

A batch has the chosen answers in its first half and, in the same order, the rejected ones in its second.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from composer.train.losses import IGNORED, Batch, BatchLoss, output_of, targets_of, task_of


def answer_log_probabilities(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the log-probability of each row's targets together, [B], from `logits` [B, T, V] and `targets` [B, T]."""
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return -F.cross_entropy(wide.flatten(0, 1), targets.flatten(), ignore_index=IGNORED, reduction="none").view_as(targets).sum(1)


def preference_loss(margins: Tensor, label_smoothing: float = 0.0) -> Tensor:
    """Return the mean loss of pairs, in nats, from how much more the chosen answer of each is rewarded, [B] (Bradley and Terry).

    Args:
        margins: The reward of each chosen answer less that of the rejected one.
        label_smoothing: The probability that a preference is the wrong way round (conservative DPO, Mitchell 2023).
    """
    return -((1 - label_smoothing) * F.logsigmoid(margins) + label_smoothing * F.logsigmoid(-margins)).mean()


def with_losses(task: str, loss: Tensor, output: Any) -> BatchLoss:
    """Return a loss together with those of the recipe, such as that of a router."""
    by_name = {task: loss, **output.losses}
    return BatchLoss(torch.stack([value.float() for value in by_name.values()]).sum(), by_name)


@dataclass(frozen=True)
class Judged:
    """What a model returned for pairs, and what it makes of them."""

    output: Any
    margins: Tensor
    """How much more each chosen answer is rewarded than the rejected one, [B]."""


class AnswerPairs:
    """What the criteria of pairs have in common: losses are means over pairs, and the larger reward is to be the chosen one's."""

    unit: str | None = "pair"

    def count(self, batch: Batch, task: str) -> int:
        return len(batch["tokens"]) // 2

    def judged(self, batch: Batch, output: Judged, told: list[tuple[str, str]]) -> tuple[int, int]:
        return int((output.margins > 0).sum()), len(output.margins)


@dataclass(frozen=True, eq=False)
class DirectPreference(AnswerPairs):
    """Direct preference optimization (Rafailov et al. 2023): the loss is −log σ of the chosen answer's reward less the rejected
    one's, where a reward is `beta` times the logarithm of how much more probable an answer is to the model than to the reference.
    """

    reference: nn.Module
    beta: float

    def loss(
        self, model: nn.Module, batch: Batch, *, label_smoothing: float = 0.0, logits_chunk: int = 0, count: int | None = None
    ) -> tuple[BatchLoss, Judged]:
        task = task_of(model) or ""
        targets, output = targets_of(task, batch), output_of(model, batch)
        with torch.no_grad():
            known = answer_log_probabilities(output_of(self.reference, batch).logits, targets)
        chosen, rejected = (self.beta * (answer_log_probabilities(output.logits, targets) - known)).chunk(2)
        return with_losses(task, preference_loss(chosen - rejected, label_smoothing), output), Judged(output, chosen - rejected)


@dataclass(frozen=True)
class RewardModel(AnswerPairs):
    """A reward model (Ouyang et al. 2022, section 3.5): the loss is −log σ of the chosen answer's reward less the rejected one's.
    The reward is the only logit of a classifier.
    """

    def loss(
        self, model: nn.Module, batch: Batch, *, label_smoothing: float = 0.0, logits_chunk: int = 0, count: int | None = None
    ) -> tuple[BatchLoss, Judged]:
        output = output_of(model, batch)
        rewards = output.logits.squeeze(-1)  # [2B]
        chosen, rejected = rewards.to(torch.promote_types(rewards.dtype, torch.float32)).chunk(2)
        task = task_of(model) or ""
        return with_losses(task, preference_loss(chosen - rejected, label_smoothing), output), Judged(output, chosen - rejected)
