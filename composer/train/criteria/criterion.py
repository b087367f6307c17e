"""Criteria: what a run minimizes on a batch. By default that is the loss of the task."""

from __future__ import annotations

from typing import Any, Protocol

from torch import nn

from composer.train.losses import IGNORED, Batch, BatchLoss, loss_and_output, target_count


class Criterion(Protocol):
    """Protocol of what a run minimizes."""

    @property
    def unit(self) -> str | None:
        """What its losses are means over, such as `pair`; None for what those of the task are means over."""
        ...

    def loss(
        self, model: nn.Module, batch: Batch, *, label_smoothing: float = 0.0, logits_chunk: int = 0, count: int | None = None
    ) -> tuple[BatchLoss, Any]:
        """Return the losses of a model on a batch, the mean to minimize under the name of its task; and what it returned.

        `count` is what the method of this name returns, if it is known.
        """
        ...

    def count(self, batch: Batch, task: str) -> int:
        """Return over how many targets of a batch the loss is a mean."""
        ...

    def judged(self, batch: Batch, output: Any, told: list[tuple[str, str]]) -> tuple[int, int]:
        """Return how often the model was right on a batch, and how often it was asked."""
        ...


class TaskLoss:
    """The loss of the task, with those of the recipe."""

    unit: str | None = None

    def loss(
        self, model: nn.Module, batch: Batch, *, label_smoothing: float = 0.0, logits_chunk: int = 0, count: int | None = None
    ) -> tuple[BatchLoss, Any]:
        return loss_and_output(model, batch, label_smoothing=label_smoothing, logits_chunk=logits_chunk, count=count)

    def count(self, batch: Batch, task: str) -> int:
        return target_count(batch, task)

    def judged(self, batch: Batch, output: Any, told: list[tuple[str, str]]) -> tuple[int, int]:
        right, asked_for = 0, 0
        for field, target in ((field, target) for field, target in told if target in batch):
            asked = batch[target] != IGNORED
            right += int(((getattr(output, field).argmax(-1) == batch[target]) & asked).sum())
            asked_for += int(asked.sum())
        return right, asked_for


TASK_LOSS = TaskLoss()
"""The loss of the task."""
