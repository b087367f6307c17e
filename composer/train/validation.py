"""Validation on the held-out text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

import torch
from torch import nn

from blocks.losses.loss import Loss
from composer.graph.anatomy import wires_of
from composer.graph.typed import TypedBlock
from composer.language.tasks import TASKS
from composer.lower.model import Model
from composer.train.criteria.criterion import TASK_LOSS, Criterion
from composer.train.data.objectives import Batches
from composer.train.data.text import TextData
from composer.train.device import device_of, on_device
from composer.train.losses import task_of
from composer.train.techniques.precision import autocast

D = TypeVar("D")


@dataclass(frozen=True)
class Validation:
    """Mean loss over the held-out text; per character and per byte, it is comparable across tokenizers."""

    per_token: float
    """Nats."""
    per_character: float | None
    """Nats; None if only a part of the text is predicted, as in masked_lm."""
    per_byte: float | None
    """Nats; None like `per_character`."""
    tokens: int
    """Number of predicted tokens, or of examples."""
    accuracy: float | None = None
    """Share of the classes that have the largest score, or of pairs whose chosen answer is rewarded more; None without either."""
    unit: str = "token"
    """What the loss is a mean over: `token`, `example` for rows of a table with one target each, or `pair` of answers."""

    def line(self) -> dict[str, float | int]:
        """Return the entries for the file of metrics."""
        line = {
            "validation_loss": self.per_token,
            "validation_loss_per_character": self.per_character,
            "validation_loss_per_byte": self.per_byte,
            "validation_tokens": self.tokens,
            "validation_accuracy": self.accuracy,
        }
        return {name: value for name, value in line.items() if value is not None}

    def __str__(self) -> str:
        """`1.702 nats per token, 1.702 per character`."""
        whole = "" if self.per_character is None else f", {self.per_character:.3f} per character"
        right = "" if self.accuracy is None else f", accuracy {self.accuracy:.3f}"
        nats = "nats" if self.unit == "token" or right else "loss"
        return f"{self.per_token:.3f} {nats} per {self.unit}{whole}{right}"


@torch.no_grad()
def validate(
    model: nn.Module,
    data: D,
    objective: Batches[D],
    *,
    batch_size: int,
    seq_len: int,
    batches: int = 0,
    logits_chunk: int = 0,
    precision: str = "auto",
    criterion: Criterion = TASK_LOSS,
) -> Validation:
    """Return the losses on the held-out text, in evaluation mode; the model's states and random numbers are as before.

    Args:
        model: A compiled recipe.
        data: The text, whose last tenth is held out, or examples.
        objective: The objective of the model's task, from `objective_of`, or `Examples()`.
        batch_size: Sequences in one forward pass.
        seq_len: Length of a sequence, in tokens.
        batches: Number of batches to read, the same each time; 0 reads the whole held-out text.
        logits_chunk: Number of positions whose logits are computed at a time, as in `loss`.
        precision: That of matrix products: `"auto"`, `"fp32"` or `"bf16"`, as in `TrainSettings`.
        criterion: What is measured; by default, the loss of the task.

    Examples:
        >>> import composer
        >>> from composer.train import characters_of, objective_of, tokenize, validate
        >>> text = "to be or not to be\\n" * 20
        >>> tokenizer = characters_of(text)
        >>> model = composer.load("gpt_mini", {"vocab": tokenizer.size, "d_model": 16}).compile(seed=0)
        >>> data = tokenize(text, tokenizer, path="hamlet.txt")
        >>> validate(model, data, objective_of("causal_lm", tokenizer), batch_size=2, seq_len=8).tokens
        38
    """
    device, task = device_of(model), task_of(model) or ""
    nats, tokens = 0.0, 0
    told = classes_told(model)
    right, judged = 0, 0
    with unchanged(model):
        for part in islice(objective.held_out(data, batch_size=batch_size, seq_len=seq_len), batches or None):
            with autocast(device, precision):
                batch = on_device(part, device)
                found, output = criterion.loss(model, batch, logits_chunk=logits_chunk)
            count = criterion.count(part, task)
            nats += float(found.by_name.get(task, found.total)) * count
            tokens += count
            of_these, asked = criterion.judged(batch, output, told)
            right, judged = right + of_these, judged + asked
    per_token = nats / tokens
    accuracy = right / judged if judged else None
    if not isinstance(data, TextData):
        return Validation(per_token, None, None, tokens, accuracy, criterion.unit or unit_of(model, data))
    targets = objective.whole(data)
    if targets is None:
        return Validation(per_token, None, None, tokens, unit=unit_of(model, data))
    whole = per_token * targets  # if only some batches are read, an estimate
    return Validation(per_token, whole / data.characters, whole / data.bytes, tokens)


def unit_of(model: nn.Module, data: object) -> str:
    """Return what losses are means over: tokens, or examples with one target each."""
    task = task_of(model)
    each_token = task is not None and TASKS[task].targets in ("targets", "labels")
    return "token" if each_token or (task is not None and isinstance(data, TextData)) else "example"


def classes_told(model: nn.Module) -> list[tuple[str, str]]:
    """Return the outputs of a model that are scores of classes, each with the entry of a batch that has the right ones."""
    task = task_of(model)
    if task is not None and TASKS[task].classifies:
        return [("logits", TASKS[task].targets)]
    if task is not None or not isinstance(model, Model):
        return []
    root, found = model.program.root, []
    fields = {ref: field for (field, _), (_, ref) in zip(model.module.outputs, root.graph.outputs, strict=True)}
    for name in model.program.untyped.losses.values():
        node = root[name]
        read = {wire.port: wire.refs for wire in wires_of(node)}
        if isinstance(node, TypedBlock) and isinstance(node.part, Loss) and node.part.tells_classes() and len(read["input"]) == 1:
            (scores,), (target,) = read["input"], read["target"]
            given = model.program.inputs.get(target.node)
            if scores in fields and given is not None and given.dtype == "int":  # others are the probabilities of classes
                found.append((fields[scores], target.node))
    return found


@contextmanager
def unchanged(model: nn.Module) -> Iterator[None]:
    """Put a model into evaluation mode, and afterward restore its mode, its buffers and the random generators.

    A run that is resumed before a validation, which draws and updates the same again, then equals one that was not interrupted.
    """
    training, device = model.training, device_of(model)
    kept = {name: buffer.clone() for name, buffer in model.named_buffers()}
    model.eval()
    try:
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            yield
    finally:
        for name, buffer in model.named_buffers():
            buffer.copy_(kept[name])
        model.train(training)
