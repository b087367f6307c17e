"""How a model reads a text while it generates: each token once, in a session, or the whole text again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol, cast

import torch
from torch import Tensor, nn

from composer.decode.encoder_inputs import EncoderInputs, rows_of, text_of
from composer.decode.errors import DecodeError
from composer.decode.noise import without_noise
from composer.decode.session import Session, session
from composer.lower import Model

SHORTEST = 64
"""The least length for which a compiled step is made."""


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

    def __init__(
        self, model: nn.Module, encoder_inputs: EncoderInputs, session: Session, single: nn.Module | None = None
    ) -> None:
        self.model, self.encoder_inputs, self.text, self.session = model, encoder_inputs, text_of(model), session
        self.single = model if single is None else single
        """The model for calls with one token after the first call, such as a compiled one."""
        self.seen: Tensor | None = None
        """The text so far, where it may have to be read again."""

    def __call__(self, tokens: Tensor) -> Tensor:
        unread = tokens
        if self.session.reads_again:
            self.seen = tokens if self.seen is None else torch.cat([self.seen, tokens], dim=1)
            if not self.session.continues(tokens.shape[1]):
                self.session.truncate(0)
                unread = self.seen
        model = self.single if unread.shape[1] == 1 and self.session.length else self.model
        logits: Tensor = model(**{self.text: unread}, **self.encoder_inputs).logits
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


def compiled(model: nn.Module, **options: Any) -> Reading:
    """Return a reading that is `cached` with a compiled step: `torch.compile` makes one program of a call with one token.

    The prompt is read by the model itself. Compiling takes up to minutes, so it pays for long texts or many of them; the program
    is used again for texts of up to the same power of two in length. Logits equal those of `cached` up to rounding.

    Args:
        model: A compiled recipe, the one that will be read.
        **options: Options of `torch.compile`, such as `mode="reduce-overhead"` for CUDA graphs.

    Raises:
        DecodeError: On opening, if the model reads all tokens so far other than behind a mask; see `session` with `max_length`.
            Where a step runs, if torch cannot compile it.

    Examples:
        >>> import composer
        >>> from composer.decode import GREEDY, Request, compiled, generate
        >>> tiny = {"n_layers": 2, "d_model": 32, "n_heads": 4, "vocab": 61, "context": 16}
        >>> model = composer.load("gpt2", tiny).compile(seed=0).eval()
        >>> reading = compiled(model, backend="eager")
        >>> len(generate(model, [[1, 2, 3]], Request(max_new_tokens=4, sampling=GREEDY), reading=reading)[0])
        4
    """
    from torch._dynamo.exc import TorchDynamoException
    from torch._inductor.exc import InductorError

    program = cast(nn.Module, torch.compile(model, **{"fullgraph": True, **options}))

    @contextmanager
    def reading(model: nn.Module, encoder_inputs: EncoderInputs, max_length: int) -> Iterator[DecodeStep]:
        room = max(SHORTEST, 1 << (max_length - 1).bit_length())
        try:
            with session(program, max_length=room, last_only=True) as opened:
                yield Onward(model, encoder_inputs, opened, program)
        except (TorchDynamoException, InductorError) as error:
            first = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
            raise DecodeError(
                f"torch.compile fails: {first[:200]}; it needs a C++ compiler, or Triton on a GPU; `cached` needs neither"
            ) from error

    return reading
