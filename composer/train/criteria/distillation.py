"""Distillation: learning the probabilities of another model beside the targets (Hinton et al. 2015)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from composer.train.criteria.criterion import TaskLoss
from composer.train.losses import IGNORED, Batch, BatchLoss, loss_and_output, output_of, targets_of, task_of

DISTILLATION = "distillation"
"""The name of the loss."""


def distillation_loss(logits: Tensor, teacher: Tensor, targets: Tensor, temperature: float) -> Tensor:
    """Return the mean over all targets of T² KL(teacher ‖ model) at the temperature T, in nats.

    The factor keeps the size of the gradients what it is at other temperatures. Logits that only one of both has, of rows that no
    token uses, are left out.

    Args:
        logits: Those of the model, [..., V].
        teacher: Those of the teacher, [..., W].
        targets: The targets, [...]; places without one are left out.
        temperature: What both logits are divided by.
    """
    asked, size = targets != IGNORED, min(logits.shape[-1], teacher.shape[-1])
    own, wanted = (F.log_softmax(each[asked][:, :size].float() / temperature, -1) for each in (logits, teacher))
    return temperature**2 * F.kl_div(own, wanted, reduction="sum", log_target=True) / asked.sum().clamp(min=1)


@dataclass(frozen=True, eq=False)
class Distillation(TaskLoss):
    """The loss of the task, of which a teacher's probabilities have a share."""

    teacher: nn.Module
    weight: float
    temperature: float

    def loss(
        self, model: nn.Module, batch: Batch, *, label_smoothing: float = 0.0, logits_chunk: int = 0, count: int | None = None
    ) -> tuple[BatchLoss, Any]:
        task = task_of(model) or ""
        # Not in chunks, which would leave no logits.
        found, output = loss_and_output(model, batch, label_smoothing=label_smoothing, count=count)
        with torch.no_grad():
            known = output_of(self.teacher, batch).logits
        learned = distillation_loss(output.logits, known, targets_of(task, batch), self.temperature)
        by_name = {name: value * (1 - self.weight) if name == task else value for name, value in found.by_name.items()}
        by_name[DISTILLATION] = self.weight * learned
        return BatchLoss(torch.stack([value.float() for value in by_name.values()]).sum(), by_name), output
