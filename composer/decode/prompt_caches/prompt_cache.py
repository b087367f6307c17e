"""Prompts that are read once and for all: a reading that keeps the beginning of a text in a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from torch import Tensor, nn

from composer.atomic_files import StrPath
from composer.decode.encoder_inputs import EncoderInputs
from composer.decode.errors import DecodeError
from composer.decode.prompt_caches.file import (
    Fingerprint,
    StoredPrompt,
    checksums_of,
    fingerprint_of,
    read_prompt_cache,
    write_prompt_cache,
)
from composer.decode.reading import DecodeStep, Onward, Reading, cached
from composer.lower.model import Model


class PromptCache:
    """A reading that keeps the prompt in a file, and of a prompt reads only what is not in there.

    The file is written when the first prompt has been read, unless all of that was in there. A prompt that begins as the one in
    the file goes on from where they part. The whole prompt is read where nothing is equal, where a source, an image or the number
    of rows is another, and where the model cannot go back to that place, since a block has a state or keys were dropped. Later
    prompts go on from the same one; the file is neither read nor written again, and the weights must not change meanwhile.

    Logits equal those of `reading`: bit by bit where the whole prompt is in the file, else up to rounding, as with calls of other
    lengths.

    Args:
        path: The file, by convention with the ending `.safetensors`.
        reading: How the rest is read: `cached` or `compiled(model)`.

    Examples:
        >>> import composer
        >>> from composer.decode import GREEDY, PromptCache, Request, generate
        >>> tiny = {"n_layers": 2, "d_model": 32, "n_heads": 4, "vocab": 61, "context": 16}
        >>> model = composer.load("gpt2", tiny).compile(seed=0).eval()
        >>> request = Request(max_new_tokens=4, sampling=GREEDY)
        >>> first = generate(model, [[1, 2, 3]], request, reading=PromptCache("prompt.safetensors"))
        >>> again = PromptCache("prompt.safetensors")
        >>> longer = generate(model, [[1, 2, 3, 4, 5]], request, reading=again)
        >>> again.found
        3
    """

    def __init__(self, path: StrPath, reading: Reading = cached) -> None:
        self.path, self.reading = Path(path), reading
        self.found = 0
        """How many tokens of the first prompt were not read, since the file had them."""
        self.length = 0
        """How many tokens the first prompt has."""
        self._is_first = True
        """Whether no prompt has been read."""
        self._model: Model | None = None
        self._fingerprint: Fingerprint | None = None
        self._prompt: StoredPrompt | None = None
        """What is in the file."""

    def open(self, model: Model) -> None:
        """Read the file, if it is there, before the first prompt does that.

        Args:
            model: The model that will read prompts.

        Raises:
            PromptCacheError: The file is damaged, or of another model or other weights.
        """
        self._model, self._fingerprint = model, fingerprint_of(model)
        if self.path.exists():
            self._prompt = read_prompt_cache(self.path, model, self._fingerprint)

    @contextmanager
    def __call__(self, model: nn.Module, encoder_inputs: EncoderInputs, max_length: int) -> Iterator[DecodeStep]:
        """Open a model, as the protocol `Reading` requires it.

        Raises:
            PromptCacheError: The file is damaged, or of another model or other weights.
            DecodeError: The reading is not in a session, or an earlier model was another one.
        """
        with self.reading(model, encoder_inputs, max_length) as step:
            if not isinstance(step, Onward):
                raise DecodeError("a prompt cache is for a reading in a session: `cached` or `compiled(model)`")
            if self._model is None:
                self.open(step.session.model)
            elif self._model is not step.session.model:
                raise DecodeError("this prompt cache is of another model; make one for each model, with a file of its own")
            yield _Step(self, step)

    def read(self, step: Onward, tokens: Tensor) -> Tensor:
        """Read a prompt [B, T], as far as it is not known, and return the logits [B, V] of the token that follows."""
        first, self._is_first = self._is_first, False
        shared = 0 if self._prompt is None else shared_tokens(self._prompt, tokens, step.encoder_inputs)
        found = 0 if self._prompt is None else go_on(step, self._prompt, tokens[:, :shared], tokens.shape[1])
        if first:
            self.found, self.length = found, tokens.shape[1]
        if self._prompt is not None and self._prompt.logits is not None and found == tokens.shape[1]:
            return self._prompt.logits.clone()
        logits = step(tokens[:, found:])
        if first and shared < tokens.shape[1]:
            session = step.session.copy() if step.session.reads_again else step.session  # which writes over what a mark holds
            self._prompt = StoredPrompt(tokens.cpu(), logits.clone(), session.mark())
            write_prompt_cache(self.path, self._prompt, session.model, self._fingerprint)
        return logits


class _Step:
    """A step whose first call is a prompt."""

    def __init__(self, cache: PromptCache, step: Onward) -> None:
        self.cache, self.step = cache, step
        self.is_first = True

    def __call__(self, tokens: Tensor) -> Tensor:
        if not self.is_first:
            return self.step(tokens)
        self.is_first = False
        return self.cache.read(self.step, tokens)

    def reorder(self, rows: Tensor) -> None:
        self.step.reorder(rows)


def shared_tokens(prompt: StoredPrompt, tokens: Tensor, whole: Mapping[str, Tensor]) -> int:
    """Return how many tokens at the start are equal in all rows of two prompts; none if another input is not.

    Args:
        prompt: A prompt that was read.
        tokens: One that is to be read, [B, T].
        whole: Its inputs that do not grow with the text.
    """
    calls = prompt.mark.calls
    if calls is None or len(prompt.tokens) != len(tokens) or not calls.given <= whole.keys():
        return 0
    if checksums_of(calls.whole) != checksums_of(whole):
        return 0
    length = min(prompt.tokens.shape[1], tokens.shape[1])
    equal = (prompt.tokens[:, :length] == tokens[:, :length].cpu()).all(dim=0)
    return int(equal.long().cumprod(dim=0).sum())


def go_on(step: Onward, prompt: StoredPrompt, shared: Tensor, length: int) -> int:
    """Let a step go on from a prompt that was read, and return how many tokens of the new one it then has.

    Args:
        step: A step that has read nothing.
        prompt: The prompt that was read.
        shared: The tokens at the start that are equal, [B, t].
        length: The number of tokens of the new prompt, of which the last is read again if its logits are not known.
    """
    session, mark = step.session, prompt.mark
    is_known = prompt.logits is not None and mark.length == length
    most = min(shared.shape[1], length if is_known else length - 1)
    if not most or (session.max_length is not None and mark.length > session.max_length):
        return 0
    session.restore(mark, copied=True)
    if session.can_go_back(most):
        session.truncate(most)
        if most == length or session.continues(length - most):
            step.seen = shared[:, :most] if session.reads_again else None
            return most
    session.truncate(0)
    return 0
