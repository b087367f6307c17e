"""The distribution of the next token."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from composer.decode.encoder_inputs import EncoderInputs, check_encoder_inputs
from composer.decode.reading import uncached
from composer.decode.request import Refuse, Slide, check_length, latest
from composer.decode.sample import Sampling, probabilities


@torch.no_grad()
def next_token(
    model: nn.Module,
    prompt: Sequence[int],
    sampling: Sampling | None = None,
    *,
    encoder_inputs: EncoderInputs | None = None,
    limit: Refuse | Slide | None = None,
    vocabulary: int | None = None,
) -> Tensor:
    """Return the probability of each token after a prompt, [V] in float64 on the CPU: what the first token is drawn from.

    Args:
        model: A compiled recipe with a generative task.
        prompt: Tokens to continue.
        sampling: How a token would be drawn; by default, the probabilities are those of the model.
        encoder_inputs: The other inputs of the model by name, with one row.
        limit: What to do if the prompt is longer than the model's context; None if that is unlimited.
        vocabulary: Number of tokens with a text; higher ids are never drawn.

    Raises:
        DecodeError: The prompt is empty or too long for the context, or `encoder_inputs` does not fit the model.

    Examples:
        >>> import composer
        >>> from composer.decode import next_token
        >>> tiny = {"n_layers": 2, "d_model": 32, "n_heads": 4, "vocab": 61, "context": 16}
        >>> model = composer.load("gpt2", tiny).compile(seed=0)
        >>> f"{next_token(model, [1, 2, 3]).sum():.4f}"
        '1.0000'
    """
    check_encoder_inputs(model, encoder_inputs or {}, 1)
    check_length(len(prompt), 1, limit)
    device = next(model.parameters()).device
    given = {name: value.to(device) for name, value in (encoder_inputs or {}).items()}
    text = torch.tensor([list(prompt)], dtype=torch.int64)
    was_training = model.training
    model.eval()
    try:
        with uncached(model, given, text.shape[1]) as step:
            logits = step(latest(text, limit).to(device))[:, :vocabulary].cpu()
    finally:
        model.train(was_training)
    return probabilities(logits, sampling or Sampling(), text)[0]
