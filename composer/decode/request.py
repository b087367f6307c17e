"""How long a text is generated, how its tokens are drawn, and what happens at the end of the context."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from composer.decode.errors import DecodeError
from composer.decode.sample import Sampling
from composer.language.wording import counted


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

    def __post_init__(self) -> None:
        check_count(self.max_new_tokens)


def check_count(max_new_tokens: int) -> None:
    """Raise `DecodeError` unless a number of new tokens is one."""
    if isinstance(max_new_tokens, bool) or not isinstance(max_new_tokens, int) or max_new_tokens < 0:
        raise DecodeError(f"`max_new_tokens` is {max_new_tokens}; it must be a whole number, 0 or more")


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
