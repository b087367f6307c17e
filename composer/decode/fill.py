"""Filling in hidden tokens."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from composer.decode.errors import DecodeError


@torch.no_grad()
def fill(model: nn.Module, tokens: Sequence[int], mask: int, *, vocabulary: int | None = None) -> list[int]:
    """Return a text with the likeliest token in the place of each that is hidden, all found at once.

    Args:
        model: A compiled recipe with the task `masked_lm`.
        tokens: The text.
        mask: The token that stands for a hidden one; it is never an answer.
        vocabulary: Number of tokens with a text; higher ids are never an answer.

    Raises:
        DecodeError: The model is not of this task, or no token is hidden.

    Examples:
        >>> import composer
        >>> from composer.decode import fill
        >>> tiny = {"n_layers": 2, "d_model": 32, "n_heads": 4, "hidden": 32, "vocab": 61, "context": 16}
        >>> model = composer.load("bert", tiny).compile(seed=0)
        >>> filled = fill(model, [1, 60, 3], mask=60)
        >>> filled[0], filled[2], filled[1] == 60
        (1, 3, False)
    """
    recipe = getattr(model, "recipe", None)
    if recipe is None or recipe.task != "masked_lm":
        raise DecodeError("only a compiled recipe with the task masked_lm fills in hidden tokens")
    if mask not in tokens:
        raise DecodeError("no token of the text is hidden")
    was_training = model.training
    model.eval()
    try:
        logits = model(torch.tensor([list(tokens)], device=next(model.parameters()).device)).logits[0, :, :vocabulary].clone()
    finally:
        model.train(was_training)
    logits[:, mask : mask + 1] = -torch.inf
    answers = logits.argmax(-1).tolist()
    return [answer if token == mask else token for token, answer in zip(tokens, answers, strict=True)]
