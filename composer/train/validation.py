"""Validation on the held-out text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice

import torch
from torch import nn

from composer.train.data.objectives import Objective
from composer.train.data.text import TextData
from composer.train.device import autocast, device_of, on_device
from composer.train.losses import loss, target_count, task_of


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
    """Number of predicted tokens."""

    def line(self) -> dict[str, float | int]:
        """Return the entries for the file of metrics."""
        line = {
            "validation_loss": self.per_token,
            "validation_loss_per_character": self.per_character,
            "validation_loss_per_byte": self.per_byte,
            "validation_tokens": self.tokens,
        }
        return {name: value for name, value in line.items() if value is not None}

    def __str__(self) -> str:
        """`1.702 nats per token, 1.702 per character`."""
        whole = "" if self.per_character is None else f", {self.per_character:.3f} per character"
        return f"{self.per_token:.3f} nats per token{whole}"


@torch.no_grad()
def validate(
    model: nn.Module,
    data: TextData,
    objective: Objective,
    *,
    batch_size: int,
    seq_len: int,
    batches: int = 0,
    logits_chunk: int = 0,
) -> Validation:
    """Return the losses on the held-out text, in evaluation mode; the model's states and random numbers are as before.

    Args:
        model: A compiled recipe.
        data: The text, whose last tenth is held out.
        objective: The objective of the model's task, from `objective_of`.
        batch_size: Sequences in one forward pass.
        seq_len: Length of a sequence, in tokens.
        batches: Number of batches to read, the same each time; 0 reads the whole held-out text.
        logits_chunk: Number of positions whose logits are computed at a time, as in `loss`.

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
    with unchanged(model):
        for part in islice(objective.held_out(data, batch_size=batch_size, seq_len=seq_len), batches or None):
            with autocast(device):
                mean = loss(model, on_device(part, device), logits_chunk=logits_chunk).by_name[task]
            count = int(target_count(part, task))
            nats += float(mean) * count
            tokens += count
    per_token = nats / tokens
    targets = objective.whole(data)
    if targets is None:
        return Validation(per_token, None, None, tokens)
    whole = per_token * targets  # if only some batches are read, an estimate
    return Validation(per_token, whole / data.characters, whole / data.bytes, tokens)


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
