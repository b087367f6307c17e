"""The training loss: that of the task and those of the recipe."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from blocks.losses.contrastive import symmetric_cross_entropy
from blocks.losses.cross_entropy import mean_cross_entropy
from composer.language.tasks import TASKS
from composer.lower.model import Model
from composer.lower.tail_module import tail
from composer.train.chunked_loss import chunked_cross_entropy
from composer.train.errors import TrainingError
from composer.train.unwrap import unwrapped

IGNORED = -100
"""The target that is left out of the loss, as in torch."""

Batch = Mapping[str, Tensor]
"""The model's inputs by name (`tokens` [B, T], optionally `valid` [B, T]) and the targets: optionally `targets` [B, T] for
generative tasks, `labels` [B, T] for masked_lm and token_classification, `label` [B] for the class of a sequence or image."""


OUTPUT_LOSSES: Mapping[str, Callable[[Any], Tensor]] = {
    "contrastive": lambda output: symmetric_cross_entropy(output.a, output.b, output.scale)
}
"""The losses of tasks without targets, which compare outputs with each other; all other tasks use cross-entropy."""


class BatchLoss(NamedTuple):
    """The scalar to minimize, and its terms by name: that of the task under the task's name, those of the recipe under theirs."""

    total: Tensor
    by_name: dict[str, Tensor]


def loss(model: nn.Module, batch: Batch, *, label_smoothing: float = 0.0, logits_chunk: int = 0) -> BatchLoss:
    """Return the loss of a model on a batch: that of the task, averaged over the targets, plus those of the recipe.

    In generative tasks, the target of each position is the next token, unless the batch has `targets`. A target of −100 is
    ignored. To split a large batch into smaller ones with unequal numbers of targets, weight each total by its share of the
    targets.

    Args:
        model: A compiled recipe, also after `torch.compile`, or in wrappers such as DDP, FSDP, PEFT's and checkpointing.
        batch: The model's inputs by name, and the task's targets: `targets` [B, T], `labels` [B, T] or `label` [B].
        label_smoothing: Share of each target's probability that is spread evenly over the vocabulary.
        logits_chunk: Number of positions whose logits are computed at a time, which saves memory with a large vocabulary, and
            time where few positions have targets; 0 computes all. It applies to models that are not wrapped or compiled whole and
            whose logits follow position by position from hidden states, and only one `backward` of it is possible.

    Returns:
        The total to minimize, and its terms by name.

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
    return loss_and_output(model, batch, label_smoothing=label_smoothing, logits_chunk=logits_chunk)[0]


def loss_and_output(
    model: nn.Module, batch: Batch, *, label_smoothing: float = 0.0, logits_chunk: int = 0, count: int | None = None
) -> tuple[BatchLoss, Any]:
    """Return the loss as `loss` does, and what the model returned; in chunks, the logits of one position only.

    `count` is what `target_count` returns; where it is known, the device need not count again.
    """
    task = task_of(model)
    asked = TASKS[task].targets if task is not None else ""
    by_name: dict[str, Tensor] = {}
    end = tail(model) if logits_chunk and asked and isinstance(model, Model) and not _is_compiled(model) else None
    if end is not None and task is not None:
        with end.taken() as taken:
            output = _output_of(model, batch, asked)
        (hidden,) = taken
        by_name[task] = chunked_cross_entropy(
            end, hidden, targets_of(task, batch), positions=logits_chunk, label_smoothing=label_smoothing, ignored=IGNORED
        )
        return _together(by_name | output.losses), output
    output = _output_of(model, batch, asked)
    if task is not None and task in OUTPUT_LOSSES:
        by_name[task] = OUTPUT_LOSSES[task](output)
    elif task is not None and asked:
        by_name[task] = cross_entropy(output.logits, targets_of(task, batch), label_smoothing, count)
    by_name |= output.losses
    if not by_name:
        raise TrainingError("the recipe has no losses and no task with one, so there is nothing to train")
    return _together(by_name), output


def _is_compiled(model: nn.Module) -> bool:
    """Return whether `model.compile()` was called: what compiles the whole model takes no account of hooks."""
    return model._compiled_call_impl is not None


def _together(by_name: dict[str, Tensor]) -> BatchLoss:
    """Return the sum of losses, with its terms."""
    wide = [value.to(torch.promote_types(value.dtype, torch.float32)) for value in by_name.values()]
    return BatchLoss(wide[0] if len(wide) == 1 else torch.stack(wide).sum(), by_name)


def output_of(model: nn.Module, batch: Batch) -> Any:
    """Return what a model computes from a batch, whose targets it reads only if a loss of the recipe does."""
    task = task_of(model)
    return _output_of(model, batch, TASKS[task].targets if task is not None else "")


def _output_of(model: nn.Module, batch: Batch, asked: str) -> Any:
    """Return what a model computes from a batch, whose entry `asked` it reads only if a loss of the recipe does."""
    code = cast(Any, type(unwrapped(model))).forward.__code__  # a signature takes a tenth of the time of a small step
    own = asked in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return model(**{name: value for name, value in batch.items() if name != asked or own})


def targets_of(task: str, batch: Batch) -> Tensor:
    """Return the targets of a batch for a task, `IGNORED` at positions without one."""
    name, text = TASKS[task].targets, TASKS[task].text
    if text:
        return next_tokens(batch, text)
    if name not in batch:
        raise TrainingError(f"a batch of {task} needs `{name}`", hint=f"use {IGNORED} where there is no target")
    return batch[name]


def task_of(model: nn.Module) -> str | None:
    """Return the task of a model's recipe, or None without one.

    Args:
        model: A compiled recipe, also in wrappers.

    Examples:
        >>> import composer
        >>> from composer.train import task_of
        >>> task_of(composer.load("gpt_mini").compile(seed=0))
        'causal_lm'
    """
    return cast("str | None", cast(Any, unwrapped(model)).recipe.task)  # nn.Module types every attribute as a tensor or a module


def next_tokens(batch: Batch, text: str) -> Tensor:
    """Return the next token of each position of the input `text`, [B, T]; `IGNORED` at padding, before padding and at the end."""
    valid = batch.get("valid")
    if "targets" in batch:
        targets = batch["targets"]
    else:
        tokens = batch[text]
        real = tokens if valid is None else tokens.masked_fill(~valid, IGNORED)
        targets = F.pad(real[:, 1:], (0, 1), value=IGNORED)
    return targets if valid is None else targets.masked_fill(~valid, IGNORED)


def target_count(batch: Batch, task: str) -> int:
    """Return the number of targets in the batch; that of its rows for a task without targets, or for none."""
    if task not in TASKS or not TASKS[task].targets:
        return len(next(iter(batch.values())))
    targets = targets_of(task, batch)
    if type(targets) is Tensor and targets.device.type == "cpu":  # not one that only traces
        return int(np.count_nonzero(targets.numpy() != IGNORED))  # in a small step, three operators of torch are felt
    return int((targets != IGNORED).sum())


def cross_entropy(logits: Tensor, targets: Tensor, label_smoothing: float = 0.0, count: int | None = None) -> Tensor:
    """Return the mean cross-entropy, in nats, of `logits` [B, T, V] over the `targets` [B, T] that are not ignored, `count` if
    that is known.
    """
    return mean_cross_entropy(logits, targets, label_smoothing, IGNORED, count)  # 0 if all targets are ignored
