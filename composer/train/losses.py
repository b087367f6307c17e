"""What training minimizes: the task's loss and the recipe's own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from blocks.losses.contrastive import symmetric_cross_entropy
from blocks.losses.cross_entropy import mean_cross_entropy
from composer.language.tasks import TASKS
from composer.train.errors import TrainingError

IGNORED = -100
"""A target that asks for nothing."""

Batch = Mapping[str, Tensor]
"""The model's inputs by name (`tokens` [B, T], perhaps `valid` [B, T]), and what is asked for: perhaps `targets` [B, T] of a
model that writes, `labels` [B, T] of a masked_lm and of token_classification, `label` [B] of a sequence or an image."""


OUTPUT_LOSSES: Mapping[str, Callable[[Any], Tensor]] = {
    "contrastive": lambda output: symmetric_cross_entropy(output.a, output.b, output.scale)
}
"""The losses of tasks that judge a model's outputs by each other; every other task asks for targets, by cross-entropy."""


class BatchLoss(NamedTuple):
    """A scalar to minimize, and its parts by name: the task's under the task's name, the recipe's under their own."""

    total: Tensor
    by_name: dict[str, Tensor]


def loss(model: nn.Module, batch: Batch, *, label_smoothing: float = 0.0) -> BatchLoss:
    """Return the loss of a model on a batch: the task's, averaged over the batch's targets, plus the recipe's own.

    A model that writes predicts, at each position, the next token of its text, unless the batch has `targets`. A target of −100
    is ignored. Where a large batch is split into small ones with unequal numbers of targets, weight each total by its share of
    the targets to get the loss of the large batch.

    Args:
        model: A compiled recipe, or what `torch.compile` makes of it.
        batch: The model's inputs by name, and the task's targets: `targets` [B, T], `labels` [B, T] or `label` [B].
        label_smoothing: The share of each target that is spread evenly over the vocabulary.

    Raises:
        TrainingError: The recipe has neither a task with a loss nor losses of its own, or the batch lacks the targets.

    Examples:
        >>> import composer, torch
        >>> tiny = {"n_layers": 2, "d_model": 32, "n_heads": 4, "vocab": 61, "context": 16}
        >>> model = composer.load("gpt2", tiny).compile(seed=0)
        >>> total, by_name = composer.loss(model, {"tokens": torch.tensor([[1, 2, 3, 4]])})
        >>> list(by_name)
        ['causal_lm']
    """
    task = task_of(model)
    asked = TASKS[task].targets if task is not None else ""
    own = asked in inspect.signature(model.forward).parameters  # a loss of the recipe may ask for the same
    inputs = {name: value for name, value in batch.items() if name != asked or own}
    output = model(**inputs)
    by_name: dict[str, Tensor] = {}
    if task is not None and task in OUTPUT_LOSSES:
        by_name[task] = OUTPUT_LOSSES[task](output)
    elif task is not None and asked:
        by_name[task] = cross_entropy(output.logits, targets_of(task, batch), label_smoothing)
    by_name |= output.losses
    if not by_name:
        raise TrainingError("the recipe has no losses and no task with one, so there is nothing to train")
    wide = [value.to(torch.promote_types(value.dtype, torch.float32)) for value in by_name.values()]
    return BatchLoss(torch.stack(wide).sum(), by_name)


def targets_of(task: str, batch: Batch) -> Tensor:
    """Return what a batch asks for under a task; `IGNORED` where it asks for nothing."""
    name, text = TASKS[task].targets, TASKS[task].text
    if text:
        return next_tokens(batch, text)
    if name not in batch:
        raise TrainingError(f"a batch of {task} has `{name}`", hint=f"{IGNORED} where there is no target")
    return batch[name]


def task_of(model: nn.Module) -> str | None:
    """Return the task of a model's recipe; None where it has none."""
    return cast("str | None", cast(Any, model).recipe.task)  # nn.Module types every attribute as a tensor or a module


def next_tokens(batch: Batch, text: str) -> Tensor:
    """Return what each position of the `text` is asked for, [B, T]; `IGNORED` at padding, before padding and at the end."""
    valid = batch.get("valid")
    if "targets" in batch:
        targets = batch["targets"]
    else:
        tokens = batch[text]
        real = tokens if valid is None else tokens.masked_fill(~valid, IGNORED)
        targets = F.pad(real[:, 1:], (0, 1), value=IGNORED)
    return targets if valid is None else targets.masked_fill(~valid, IGNORED)


def target_count(batch: Batch, task: str) -> Tensor:
    """Return how many targets the batch asks for."""
    return (targets_of(task, batch) != IGNORED).sum()


def cross_entropy(logits: Tensor, targets: Tensor, label_smoothing: float = 0.0) -> Tensor:
    """Return the mean cross-entropy in nats of `logits` [B, T, V] over the `targets` [B, T] that ask for
    something; also without T.
    """
    return mean_cross_entropy(logits, targets, label_smoothing, IGNORED)  # a batch of nothing but padding adds nothing
