"""Sampling: continue a prompt token by token."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Protocol, cast

import torch
from torch import Tensor, nn

from composer.decode.encoder_inputs import EncoderInputs, check_encoder_inputs, rows_of, text_of
from composer.decode.errors import DecodeError
from composer.decode.sample import Sampling, draw
from composer.decode.session import Session, session, without_noise
from composer.language.wording import counted
from composer.lower import Model


class DecodeStep(Protocol):
    """A model that continues from the tokens that it has read."""

    def __call__(self, tokens: Tensor) -> Tensor:
        """Read the next `tokens` [B, t], and return the logits [B, V] of the token that follows."""
        ...

    def reorder(self, rows: Tensor) -> None:
        """Continue with selected rows of the batch, which may repeat.

        Args:
            rows: Indices of rows, [B].
        """
        ...


Reading = Callable[[nn.Module, EncoderInputs, int], AbstractContextManager[DecodeStep]]
"""Opens a `DecodeStep`, given a model, its encoder inputs and the maximum number of tokens: `cached` or `uncached`."""


class Again:
    """A step that reads the whole text again."""

    def __init__(self, model: nn.Module, encoder_inputs: EncoderInputs) -> None:
        self.model, self.encoder_inputs, self.text = model, encoder_inputs, text_of(model)
        self.seen: Tensor | None = None

    def __call__(self, tokens: Tensor) -> Tensor:
        self.seen = tokens if self.seen is None else torch.cat([self.seen, tokens], dim=1)
        logits: Tensor = self.model(**{self.text: self.seen}, **self.encoder_inputs).logits
        return logits[:, -1]

    def reorder(self, rows: Tensor) -> None:
        self.encoder_inputs = rows_of(self.model, self.encoder_inputs, rows)
        if self.seen is not None:
            self.seen = self.seen[rows.to(self.seen.device)]


class Onward:
    """A step that reads only the new tokens, in a session; the whole text again where a longer one is encoded otherwise."""

    def __init__(self, model: nn.Module, encoder_inputs: EncoderInputs, session: Session) -> None:
        self.model, self.encoder_inputs, self.text, self.session = model, encoder_inputs, text_of(model), session
        self.seen: Tensor | None = None
        """The text so far, where it may have to be read again."""

    def __call__(self, tokens: Tensor) -> Tensor:
        unread = tokens
        if self.session.reads_again:
            self.seen = tokens if self.seen is None else torch.cat([self.seen, tokens], dim=1)
            if not self.session.continues(tokens.shape[1]):
                self.session.truncate(0)
                unread = self.seen
        logits: Tensor = self.model(**{self.text: unread}, **self.encoder_inputs).logits
        return logits[:, -1]

    def reorder(self, rows: Tensor) -> None:
        self.encoder_inputs = rows_of(self.model, self.encoder_inputs, rows)
        self.session.reorder(rows)
        if self.seen is not None:
            self.seen = self.seen[rows.to(self.seen.device)]


@contextmanager
def uncached(model: nn.Module, encoder_inputs: EncoderInputs, max_length: int) -> Iterator[DecodeStep]:
    """Open a model so that it reads the whole text again at each step.

    This is the reference that `cached` must equal.

    Args:
        model: A compiled recipe.
        encoder_inputs: The inputs of the model besides its text.
        max_length: Unused; the protocol `Reading` requires it.

    Examples:
        >>> import composer, torch
        >>> from composer.decode import uncached
        >>> tiny = {"n_layers": 2, "d_model": 32, "n_heads": 4, "vocab": 61, "context": 16}
        >>> model = composer.load("gpt2", tiny).compile(seed=0).eval()
        >>> with uncached(model, {}, 8) as step:
        ...     step(torch.tensor([[1, 2, 3]])).shape
        torch.Size([1, 61])
    """
    with without_noise(model):
        yield Again(model, encoder_inputs)


@contextmanager
def cached(model: nn.Module, encoder_inputs: EncoderInputs, max_length: int) -> Iterator[DecodeStep]:
    """Open a model so that it reads each token once, in a session: its blocks cache what they need of earlier tokens.

    Args:
        model: A compiled recipe.
        encoder_inputs: The inputs of the model besides its text.
        max_length: The maximum number of tokens, for which the cache is allocated.

    Examples:
        >>> import composer, torch
        >>> from composer.decode import cached
        >>> tiny = {"n_layers": 2, "d_model": 32, "n_heads": 4, "vocab": 61, "context": 16}
        >>> model = composer.load("gpt2", tiny).compile(seed=0).eval()
        >>> with cached(model, {}, 8) as step:
        ...     step(torch.tensor([[1, 2, 3]])).shape
        torch.Size([1, 61])
    """
    with session(cast(Model, model), max_length, last_only=True) as opened:
        yield Onward(model, encoder_inputs, opened)


@dataclass(frozen=True)
class Refuse:
    """Raise an error if the prompt and the new tokens together exceed the context of the model."""

    length: int
    """Length of the context."""


@dataclass(frozen=True)
class Slide:
    """Generate beyond the context of the model: whenever it is full, keep its later half and read that again."""

    length: int
    """Length of the context."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """How to continue a prompt.

    Examples:
        >>> from composer.decode import GREEDY, Request, Slide
        >>> Request(max_new_tokens=100, sampling=GREEDY, limit=Slide(128)).limit
        Slide(length=128)
    """

    max_new_tokens: int = 200
    """Maximum number of new tokens."""
    sampling: Sampling = field(default_factory=Sampling)
    """How each token is drawn."""
    stop: frozenset[int] = frozenset()
    """Tokens that end the text and are not part of it."""
    limit: Refuse | Slide | None = None
    """What to do at the end of the model's context; None if it is unlimited."""
    vocabulary: int | None = None
    """Number of tokens with a text; higher ids are never drawn, since a model may be padded beyond its tokenizer."""


def generate(
    model: nn.Module,
    prompts: Sequence[Sequence[int]],
    request: Request,
    *,
    encoder_inputs: EncoderInputs | None = None,
    seed: int = 0,
    reading: Reading = uncached,
) -> list[list[int]]:
    """Return the tokens that follow each prompt.

    Prompts of equal length form a batch, without padding, so with greedy decoding each continuation is the same as for the prompt
    alone. For a model with an encoder, a prompt is the start of the target, usually only a start token.

    Args:
        model: A compiled recipe with a generative task.
        prompts: Tokens to continue, one list per text.
        request: How many tokens to generate, how to sample them, and when to stop.
        encoder_inputs: The other inputs of the model by name, such as `source` [B, S] or `image`, with a row for each prompt.
        seed: Random seed of the samples.
        reading: `cached` reads each token once; `uncached` reads the whole text again at each step.

    Returns:
        The new tokens of each text, without the prompt and the stop token.

    Raises:
        DecodeError: A prompt is empty or too long for the context, or `encoder_inputs` does not fit the model.

    Examples:
        >>> import composer
        >>> from composer.decode import GREEDY, Request, cached, generate
        >>> tiny = {"n_layers": 2, "d_model": 32, "n_heads": 4, "vocab": 61, "context": 16}
        >>> model = composer.load("gpt2", tiny).compile(seed=0).eval()
        >>> texts = generate(model, [[1, 2, 3]], Request(max_new_tokens=4, sampling=GREEDY), reading=cached)
        >>> len(texts[0])
        4
    """
    check_encoder_inputs(model, encoder_inputs or {}, len(prompts))
    generator = torch.Generator().manual_seed(seed)
    answers: list[list[int]] = [[] for _ in prompts]
    for length in sorted({len(prompt) for prompt in prompts}):
        rows = [row for row, prompt in enumerate(prompts) if len(prompt) == length]
        open_rows = set(rows)
        given = rows_of(model, encoder_inputs or {}, rows)
        for tokens in continuations(model, [prompts[row] for row in rows], request, given, generator, reading):
            for row, token in zip(rows, tokens.tolist(), strict=True):
                if token in request.stop:
                    open_rows.discard(row)
                if row in open_rows:
                    answers[row].append(token)
            if not open_rows:
                break
    return answers


def stream(
    model: nn.Module,
    prompt: Sequence[int],
    request: Request,
    *,
    encoder_inputs: EncoderInputs | None = None,
    seed: int = 0,
    reading: Reading = uncached,
) -> Iterator[int]:
    """Yield the tokens that follow one prompt, each as soon as it is drawn.

    Args:
        model: A compiled recipe with a generative task.
        prompt: Tokens to continue.
        request: How many tokens to generate, how to sample them, and when to stop.
        encoder_inputs: The other inputs of the model by name, with one row.
        seed: Random seed of the samples.
        reading: `cached` reads each token once; `uncached` reads the whole text again at each step.

    Raises:
        DecodeError: The prompt is empty or too long for the context, or `encoder_inputs` does not fit the model.

    Examples:
        >>> import composer
        >>> from composer.decode import Request, cached, stream
        >>> tiny = {"n_layers": 2, "d_model": 32, "n_heads": 4, "vocab": 61, "context": 16}
        >>> model = composer.load("gpt2", tiny).compile(seed=0)
        >>> len(list(stream(model, [1, 2, 3], Request(max_new_tokens=4), reading=cached)))
        4
    """
    check_encoder_inputs(model, encoder_inputs or {}, 1)
    generator = torch.Generator().manual_seed(seed)
    for tokens in continuations(model, [prompt], request, encoder_inputs or {}, generator, reading):
        token = int(tokens[0])
        if token in request.stop:
            return
        yield token


@torch.no_grad()  # as a decorator, it restores autograd's mode at every yield
def continuations(
    model: nn.Module,
    prompts: Sequence[Sequence[int]],
    request: Request,
    encoder_inputs: EncoderInputs,
    generator: torch.Generator,
    reading: Reading,
) -> Iterator[Tensor]:
    """Yield the next tokens [B] of prompts of equal length up to `max_new_tokens` times; stop tokens do not end it."""
    device = next(model.parameters()).device
    encoder_inputs = {name: value.to(device) for name, value in encoder_inputs.items()}
    sequence = torch.tensor(prompts, dtype=torch.int64)  # [B, T]; grows
    check_length(sequence.shape[1], request.max_new_tokens, request.limit)
    left = request.max_new_tokens
    was_training = model.training
    model.eval()
    try:
        while left:
            window = latest(sequence, request.limit)
            room = left if not isinstance(request.limit, Slide) else request.limit.length - window.shape[1] + 1
            with reading(model, encoder_inputs, window.shape[1] + min(left, room) - 1) as step:
                unread = window
                for _ in range(min(left, room)):
                    logits = step(unread.to(device))[:, : request.vocabulary]
                    unread = draw(logits, request.sampling, generator, sequence)[:, None]  # [B, 1]
                    sequence = torch.cat([sequence, unread], dim=1)
                    left -= 1
                    yield unread[:, 0]
    finally:
        model.train(was_training)


def latest(sequence: Tensor, limit: Refuse | Slide | None) -> Tensor:
    """Return the end of the sequence that fits the context."""
    if not isinstance(limit, Slide) or sequence.shape[1] <= limit.length:
        return sequence
    return sequence[:, -max(1, limit.length // 2) :]


def check_length(prompt: int, new: int, limit: Refuse | Slide | None) -> None:
    """Raise `DecodeError` if the prompt is empty, or too long for the context together with the new tokens."""
    if prompt == 0:
        raise DecodeError("the prompt is empty; generation needs at least one token to continue")
    whole = prompt + new
    if isinstance(limit, Refuse) and whole > limit.length:
        raise DecodeError(
            f"the prompt has {counted(prompt, 'token')} and {counted(new, 'new one')} {'is' if new == 1 else 'are'} requested, "
            f"{whole} in all; the context is {limit.length}"
        )
