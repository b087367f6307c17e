"""Continue a prompt, token by token."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Protocol, cast

import torch
from torch import Tensor, nn

from composer.decode.errors import DecodeError
from composer.decode.sample import Sampling, draw
from composer.decode.session import Session, session, writes_nothing
from composer.language.tasks import TASKS
from composer.lower import Model

EncoderInputs = Mapping[str, Tensor]
"""What a model reads whole beside the text that it writes, by name: `source` [B, S], `image`; a row for each text."""


class DecodeStep(Protocol):
    """The model, going on from the tokens it was given before."""

    def __call__(self, tokens: Tensor) -> Tensor:
        """Read `tokens` [B, t]; the logits [B, t, V] at each of them."""
        ...

    def reorder(self, rows: Tensor) -> None:
        """Continue with these rows of the batch, chosen or repeated.

        Args:
            rows: Indices of rows, [B].
        """
        ...


Reading = Callable[[nn.Module, EncoderInputs, int], AbstractContextManager[DecodeStep]]
"""Open a `DecodeStep` for a model, what it reads beside the text, and the most tokens it will read: `cached` or `uncached`."""


class Again:
    """Reads everything again at each step."""

    def __init__(self, model: nn.Module, encoder_inputs: EncoderInputs) -> None:
        self.model, self.encoder_inputs, self.text = model, encoder_inputs, text_of(model)
        self.seen: Tensor | None = None

    def __call__(self, tokens: Tensor) -> Tensor:
        self.seen = tokens if self.seen is None else torch.cat([self.seen, tokens], dim=1)
        logits: Tensor = self.model(**{self.text: self.seen}, **self.encoder_inputs).logits
        return logits[:, -tokens.shape[1] :]

    def reorder(self, rows: Tensor) -> None:
        self.encoder_inputs = rows_of(self.encoder_inputs, rows)
        if self.seen is not None:
            self.seen = self.seen[rows.to(self.seen.device)]


class Onward:
    """Reads each token once, in a session."""

    def __init__(self, model: nn.Module, encoder_inputs: EncoderInputs, session: Session) -> None:
        self.model, self.encoder_inputs, self.text, self.session = model, encoder_inputs, text_of(model), session

    def __call__(self, tokens: Tensor) -> Tensor:
        logits: Tensor = self.model(**{self.text: tokens}, **self.encoder_inputs).logits
        return logits

    def reorder(self, rows: Tensor) -> None:
        self.encoder_inputs = rows_of(self.encoder_inputs, rows)
        self.session.reorder(rows)


@contextmanager
def uncached(model: nn.Module, encoder_inputs: EncoderInputs, max_length: int) -> Iterator[DecodeStep]:
    """Open a model so that it reads everything again at each step.

    This is right for every model, and the reference that `cached` must equal.

    Args:
        model: A compiled recipe.
        encoder_inputs: What the model reads beside its text.
        max_length: Not needed here.
    """
    yield Again(model, encoder_inputs)


@contextmanager
def cached(model: nn.Module, encoder_inputs: EncoderInputs, max_length: int) -> Iterator[DecodeStep]:
    """Open a model so that it reads each token once: its blocks keep what they need of the tokens before.

    Args:
        model: A compiled recipe.
        encoder_inputs: What the model reads beside its text.
        max_length: The most tokens that it will read, for which room is made.
    """
    with session(cast(Model, model), max_length) as opened:
        yield Onward(model, encoder_inputs, opened)


def text_of(model: nn.Module) -> str:
    """Return the name of the input that a model writes itself.

    Raises:
        DecodeError: where it writes none.
    """
    recipe = getattr(model, "recipe", None)
    if recipe is None:
        raise DecodeError(f"generation needs a compiled recipe, not a {type(model).__name__}")
    task = TASKS.get(recipe.task or "")
    if task is None or not task.text:
        raise writes_nothing("generation", recipe.task)
    return task.text


def check_encoder_inputs(model: nn.Module, encoder_inputs: EncoderInputs, rows: int) -> None:
    """Raise `DecodeError` where what is given beside the text is not what the model reads, with a row for each prompt."""
    text, parameters = text_of(model), inspect.signature(model.forward).parameters
    for name, value in encoder_inputs.items():
        if name not in parameters or name == text:
            raise DecodeError(f"the model has no input `{name}` besides `{text}`")
        if len(value) != rows:
            raise DecodeError(f"`{name}` has {len(value)} rows for {rows} prompts")
    for name, parameter in parameters.items():
        if name != text and name not in encoder_inputs and parameter.default is parameter.empty:
            raise DecodeError(f"the model also reads `{name}`, which is not in `encoder_inputs`")


def rows_of(encoder_inputs: EncoderInputs, rows: Tensor | Sequence[int]) -> EncoderInputs:
    """Return the encoder's inputs of some of the texts."""
    return {
        name: value[rows.to(value.device) if isinstance(rows, Tensor) else list(rows)] for name, value in encoder_inputs.items()
    }


@dataclass(frozen=True)
class Refuse:
    """Reject where prompt and new tokens together are longer than the model reads."""

    length: int


@dataclass(frozen=True)
class Slide:
    """Go on for ever: when the model's `length` is full, keep the later half and read that afresh."""

    length: int


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is wanted after a prompt."""

    max_new_tokens: int = 200
    """Where it ends at the latest."""
    sampling: Sampling = field(default_factory=Sampling)
    """How each token is drawn."""
    stop: frozenset[int] = frozenset()
    """Tokens that end it; they are not part of it."""
    limit: Refuse | Slide | None = None
    """What happens at the model's longest context; None where it has none."""
    vocabulary: int | None = None
    """Tokens from this one on have no text and are never drawn: a model may be padded beyond its tokenizer."""


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

    Prompts of equal length are read together, and none is padded, so each gets, when greedy, what it would get alone. For a model
    with an encoder, the prompts begin its own text, usually with a start token alone.

    Args:
        model: A compiled recipe that writes.
        prompts: Tokens to continue, one list for each text.
        request: How many tokens, how they are sampled, and where the text ends.
        encoder_inputs: What the model reads beside its text, by name, with a row for each prompt: `source` [B, S], `image`.
        seed: Decides the samples.
        reading: `cached` reads each token once; `uncached` reads everything again at each step.

    Raises:
        DecodeError: A prompt is empty or longer than the model reads, or `encoder_inputs` does not fit the model.

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
        given = rows_of(encoder_inputs or {}, rows)
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
        model: A compiled recipe that writes.
        prompt: Tokens to continue.
        request: How many tokens, how they are sampled, and where the text ends.
        encoder_inputs: What the model reads beside its text, by name, with one row.
        seed: Decides the samples.
        reading: `cached` reads each token once; `uncached` reads everything again at each step.

    Raises:
        DecodeError: The prompt is empty or longer than the model reads, or `encoder_inputs` does not fit the model.
    """
    check_encoder_inputs(model, encoder_inputs or {}, 1)
    generator = torch.Generator().manual_seed(seed)
    for tokens in continuations(model, [prompt], request, encoder_inputs or {}, generator, reading):
        token = int(tokens[0])
        if token in request.stop:
            return
        yield token


@torch.no_grad()  # as a decorator it lets go of autograd's switch at every yield
def continuations(
    model: nn.Module,
    prompts: Sequence[Sequence[int]],
    request: Request,
    encoder_inputs: EncoderInputs,
    generator: torch.Generator,
    reading: Reading,
) -> Iterator[Tensor]:
    """Yield the next tokens [B] of prompts of equal length, again and again, stop tokens or not."""
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
                    logits = step(unread.to(device))[:, -1, : request.vocabulary]
                    unread = draw(logits, request.sampling, generator)[:, None]  # [B, 1]
                    sequence = torch.cat([sequence, unread], dim=1)
                    left -= 1
                    yield unread[:, 0]
    finally:
        model.train(was_training)


def latest(sequence: Tensor, limit: Refuse | Slide | None) -> Tensor:
    """Return as much of the sequence's end as is read first."""
    if not isinstance(limit, Slide) or sequence.shape[1] <= limit.length:
        return sequence
    return sequence[:, -max(1, limit.length // 2) :]


def check_length(prompt: int, new: int, limit: Refuse | Slide | None) -> None:
    """Raise `DecodeError` where there is nothing to go on from, or too much."""
    if prompt == 0:
        raise DecodeError("the prompt is empty; generation needs at least one token to continue")
    whole = prompt + new
    if isinstance(limit, Refuse) and whole > limit.length:
        raise DecodeError(
            f"the prompt has {prompt} tokens and {new} new ones are requested, {whole} in all; the context is {limit.length}"
        )
