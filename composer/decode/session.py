"""Sessions: caches and carries that are attached to the modules of a model while a session is open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self
from weakref import WeakSet

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from composer.atomic_files import StrPath
from composer.decode.caches.contents import Contents
from composer.decode.calls.attachment import Attachment
from composer.decode.calls.checks import CallChecks
from composer.decode.calls.counted_calls import CountedCalls
from composer.decode.calls.last_positions import last_of, last_position_hooks
from composer.decode.errors import DecodeError, PromptCacheError, writes_nothing
from composer.decode.prompt_caches.file import StoredPrompt, read_prompt_cache, write_prompt_cache
from composer.decode.session_mark import SessionMark
from composer.language.wording import counted
from composer.lower.model import Model


class Session:
    """An open session, in which each call of the model, not of the session, takes only the next tokens.

    The logits equal those of one call over all tokens, and outputs that depend on the whole text are None. All calls of a session
    have the same rows. If the first call passes an optional input such as `valid`, all others must too, each for its own tokens;
    if the model has a prefix whose tokens see each other, the first call holds it. Inputs that do not grow with the text, such as
    the `source` of an encoder, are passed whole in each call; values computed only from them are computed in the first call. With
    `last_only`, the logits are those of the last position of each call, [B, 1, V], and the head is not computed for the others.

    With `max_length`, the cache is allocated once, so that no shape, no address and no path through the model depends on how many
    tokens there are, and nothing waits for the device: `torch.compile` makes one program of a step.

    A session that is left keeps what it has, and goes on when it is entered again: a model may have any number of sessions, of
    which one is entered at a time. `copy` gives another session that goes on from the same text. It is for the weights of then.

    Examples:
        >>> import composer, torch
        >>> from composer.decode import session
        >>> tiny = {"n_layers": 2, "d_model": 32, "n_heads": 4, "vocab": 61, "context": 16}
        >>> model = composer.load("gpt2", tiny).compile(seed=0).eval()
        >>> with session(model) as opened:
        ...     logits = model(tokens=torch.tensor([[1, 2, 3]])).logits
        ...     opened.truncate(1)
        ...     opened.length
        1
    """

    def __init__(
        self, model: nn.Module, initial_length: int = 256, *, max_length: int | None = None, last_only: bool = False
    ) -> None:
        inner = getattr(model, "_orig_mod", model)  # of `torch.compile`
        if not isinstance(inner, Model):
            raise DecodeError(f"a session needs a compiled recipe, not a {type(inner).__name__}")
        for name, length in (("initial", initial_length), ("maximum", max_length)):
            if length is not None and length < 1:
                raise DecodeError(f"the {name} length is {length}; it must be at least 1 token")
        self.given_model = model
        """The model, as `torch.compile` returned it if it was given so."""
        self.model = model = inner
        self.initial_length = initial_length
        self.max_length = max_length
        self.last_only = last_only
        self.positions = 1
        """For how many positions at the end of each call the logits are computed, with `last_only`."""
        self._checks = CallChecks(model, max_length)
        self._contents = Contents(model, initial_length, max_length)
        self._counted_calls: CountedCalls | None = None
        if self._contents.clock is not None:
            compiled = self.given_model if self.given_model is not model else None
            self._counted_calls = CountedCalls(model, compiled, self._counted_call, self._last_logits)
        self._attachment = Attachment(model)
        self._marks: WeakSet[SessionMark] = WeakSet()
        """Marks to which the session can go back."""
        self._without_gradients = torch.no_grad()
        self._hooks: list[RemovableHandle] = []

    def __enter__(self) -> Self:
        if self.model.cache_layout is None:
            raise writes_nothing("a session", self.model.recipe.task)
        self._attachment.attach(self._contents.caches, self._contents.once)
        if self._counted_calls is not None:
            self._counted_calls.attach()
        else:
            self._hooks.append(self.model.register_forward_pre_hook(self._before_call, with_kwargs=True))
            if self.last_only:
                self._hooks += last_position_hooks(self.model, lambda: self.positions)
        self._without_gradients.__enter__()
        return self

    def __call__(self, *arguments: object, **named: object) -> NoReturn:
        """Refuse to be called, in place of the model.

        Raises:
            DecodeError: Always.
        """
        raise DecodeError("a session is not called: inside of `with session(model)`, call the model with the next tokens")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._without_gradients.__exit__(kind, error, traceback)
        for hook in self._hooks:
            hook.remove()
        self._hooks = []
        if self._counted_calls is not None:
            self._counted_calls.detach()
        self._attachment.detach()

    def _before_call(self, model: nn.Module, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        self._new_call(arguments, named)

    def _new_call(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> int:
        """Check a call that begins, and return how many tokens it has."""
        tokens = self._checks.check(arguments, named, self.length)
        self._contents.begin()
        return tokens

    @contextmanager
    def _counted_call(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> Iterator[None]:
        """Check a call of a session with a maximum length, and count its tokens at the end."""
        assert self._contents.clock is not None
        tokens = self._new_call(arguments, named)
        yield
        self._contents.clock.advance(tokens)

    def _last_logits(self, output: Any) -> Any:
        return last_of(output, self.positions) if self.last_only else output

    @property
    def length(self) -> int:
        """Number of tokens so far."""
        return self._contents.length

    @property
    def reads_again(self) -> bool:
        """Whether the model encodes positions by the length of the text, so that a longer one may have to be read again."""
        assert self.model.cache_layout is not None
        return bool(self.model.cache_layout.by_length)

    def continues(self, tokens: int) -> bool:
        """Return whether the next call may have so many tokens: always, unless the model encodes positions by the length of the
        text, and those of earlier calls would then be encoded otherwise. If they are not counted but given, that is not known.

        Args:
            tokens: The number of tokens of the next call.
        """
        return self._checks.continues(tokens, self.length)

    def reorder(self, rows: torch.Tensor) -> None:
        """Continue with selected rows of the batch, which may repeat, as beam search needs.

        Inputs that do not grow have these rows too in later calls.

        Args:
            rows: Indices of rows, [B].

        Raises:
            DecodeError: The indices are not integers, or out of range, or the model merges the rows with another axis.
        """
        count = self._checks.rows
        self._checks.reorder(rows)
        if count is not None:
            self._contents.reorder(rows, count)

    def truncate(self, length: int) -> None:
        """Drop all but the first `length` tokens; at 0, also the values computed from inputs that do not grow.

        Args:
            length: The number of tokens to keep.

        Raises:
            DecodeError: The length is negative, or a recurrent block has a state, which cannot go back, or keys behind a window
                that were dropped would be seen again.
        """
        if length < 0:
            raise DecodeError(f"the length is {length}; it must be at least 0 tokens")
        if not self.can_go_back(length):
            start_over = "start over with truncate(0), or open another session"
            prefix, after = self._checks.prefix, f"after {self.length} tokens"
            if length < prefix:
                message = f"the first {counted(prefix, 'token')} see each other, so a session cannot go back to {length} of them"
            elif self._contents.has_states:
                message = f"{after} the state of a recurrent block cannot go back to {length}"
            else:
                message = f"{after} a session cannot go back to {length}: keys that no later query sees were dropped"
            raise DecodeError(f"{message}; {start_over}")
        self._forget_marks(length)
        self._contents.truncate(length)
        if length == 0:
            self._checks.calls = None

    def can_go_back(self, length: int) -> bool:
        """Return whether `truncate(length)` is possible: not where a block has a state, unless to 0, nor where keys that would be
        seen again were dropped, or a part of a prefix would be left.

        Args:
            length: The number of tokens to keep.
        """
        if length == 0 or length >= self.length:
            return True
        return length >= self._checks.prefix and self._contents.can_go_back(length)

    def mark(self) -> SessionMark:
        """Return a mark to which `rewind` goes back, whatever the blocks keep. It copies nothing, unless the session has a
        maximum length: later calls write over what is there then.

        Examples:
            >>> import composer, torch
            >>> from composer.decode import session
            >>> tiny = {"n_layers": 2, "d_model": 32, "n_heads": 4, "vocab": 61, "context": 16}
            >>> model = composer.load("gpt2", tiny).compile(seed=0).eval()
            >>> with session(model) as opened:
            ...     _ = model(tokens=torch.tensor([[1, 2, 3]]))
            ...     prompt = opened.mark()
            ...     _ = model(tokens=torch.tensor([[4, 5]]))
            ...     opened.rewind(prompt)
            ...     opened.length
            3
        """
        found = SessionMark(self.length, self._checks.rows, self._checks.calls, *self._contents.snapshot())
        self._marks.add(found)
        return found

    def rewind(self, mark: SessionMark) -> None:
        """Go back to a mark: later tokens are dropped, and rows of the batch are again those of then.

        Args:
            mark: A mark of this session, since which it was not shorter.

        Raises:
            DecodeError: The mark is of another session, or the session was shorter since.
        """
        if mark not in self._marks:
            raise DecodeError("this mark is of another session, or the session was shorter since it was made")
        self.restore(mark)

    def save(self, path: StrPath, tokens: torch.Tensor) -> None:
        """Write a prompt cache: a file from which `session(model, prompt_cache=path)` goes on as this session would.

        Args:
            path: The file, by convention with the ending `.safetensors`; one that is there is replaced.
            tokens: The tokens that the session has read, [B, T], by which `PromptCache` knows prompts that begin with them.

        Raises:
            PromptCacheError: The session has read nothing, or other numbers of rows or tokens.
            OSError: The file cannot be written; an existing one is left unchanged.

        Examples:
            >>> import composer, torch
            >>> from composer.decode import session
            >>> tiny = {"n_layers": 2, "d_model": 32, "n_heads": 4, "vocab": 61, "context": 16}
            >>> model = composer.load("gpt2", tiny).compile(seed=0).eval()
            >>> tokens = torch.tensor([[1, 2, 3]])
            >>> with session(model) as opened:
            ...     _ = model(tokens=tokens)
            ...     opened.save("prompt.safetensors", tokens)
            >>> session(model, prompt_cache="prompt.safetensors").length
            3
        """
        clock = self._contents.clock
        if clock is not None and int(clock.position) != clock.count:
            raise PromptCacheError("steps that a CUDA graph replayed are not counted, so what this session has read is not known")
        write_prompt_cache(Path(path), StoredPrompt(tokens, None, self.mark()), self.model)

    def copy(self) -> Session:
        """Return another session of the model, which goes on from the same text when it is entered."""
        other = Session(self.given_model, self.initial_length, max_length=self.max_length, last_only=self.last_only)
        other.restore(self.mark(), copied=True)
        return other

    def restore(self, mark: SessionMark, *, copied: bool = False) -> None:
        """Go on from a mark of this or of another session of the model, or from a copy of it, so that the other goes on too.

        Raises:
            PromptCacheError: There is no room for so many tokens.
        """
        if self.max_length is not None and mark.length > self.max_length:
            raise PromptCacheError(
                f"the prompt cache has {counted(mark.length, 'token')}, and this session room for {self.max_length}; "
                "open a session with a larger `max_length`"
            )
        self._checks.rows, self._checks.calls = mark.rows, mark.calls
        self._forget_marks(mark.length)
        self._contents.restore(mark.length, mark.caches, mark.once, copied=copied)

    def _forget_marks(self, length: int) -> None:
        """Forget marks behind a length, since what they hold will be overwritten."""
        for mark in [mark for mark in self._marks if mark.length > length]:
            self._marks.discard(mark)


def session(
    model: nn.Module,
    initial_length: int = 256,
    *,
    max_length: int | None = None,
    last_only: bool = False,
    prompt_cache: StrPath | None = None,
) -> Session:
    """Return a session of a model, for a `with` statement: inside it, each call of the model, not of the session, takes only the
    next tokens.

    Args:
        model: A compiled recipe with a generative task; with `max_length`, also what `torch.compile` makes of it.
        initial_length: Number of tokens for which the cache is allocated at first; it grows as needed.
        max_length: Number of tokens for which the cache is allocated once and for all. Each step then has the same shapes, and is
            one program for `torch.compile`; None for a cache that grows.
        last_only: Whether only the logits of the last position of each call are wanted, [B, 1, V], as to choose the next token.
        prompt_cache: A file that `Session.save` wrote, behind whose tokens the session goes on; it is for the same weights.

    Raises:
        PromptCacheError: The prompt cache is not there or damaged, or it is of another model, of other weights, or too long.
        DecodeError: The model is not a compiled recipe, or reads all tokens so far other than behind a mask, which a session with
            `max_length` cannot; or, on entering, its task is not generative or a session is already open.

    Examples:
        >>> import composer, torch
        >>> from composer.decode import session
        >>> tiny = {"n_layers": 2, "d_model": 32, "n_heads": 4, "vocab": 61, "context": 16}
        >>> model = composer.load("gpt2", tiny).compile(seed=0).eval()
        >>> with session(model) as opened:
        ...     first = model(tokens=torch.tensor([[1, 2]])).logits
        ...     after = model(tokens=torch.tensor([[3]])).logits
        ...     opened.length
        3
    """
    opened = Session(model, initial_length, max_length=max_length, last_only=last_only)
    if prompt_cache is not None:
        opened.restore(read_prompt_cache(Path(prompt_cache), opened.model).mark)
    return opened
