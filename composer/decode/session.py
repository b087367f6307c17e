"""Sessions: caches and carries that are attached to the modules of a model while a session is open."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, NoReturn, Self
from weakref import WeakSet

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from composer.decode.caches.cache import Cache, FixedModule, ModuleRun, RunSnapshot
from composer.decode.caches.fixed_cache import Clock, FixedCache
from composer.decode.caches.preallocation import obstacles
from composer.decode.counted_calls import CountedCalls
from composer.decode.errors import DecodeError
from composer.language.tasks import TASKS
from composer.language.wording import counted
from composer.lower.model import Model, module_at
from composer.lower.passes.tail import LOGITS


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
        self._inputs = tuple(inspect.signature(model.forward).parameters)
        self._optional = tuple(item.name for item in model.program.untyped.inputs if item.optional)
        self._text = TASKS[model.recipe.task].text if model.recipe.task else ""
        self._rows: int | None = None
        """Number of rows of the batch, known after the first call."""
        self._given: frozenset[str] | None = None
        """The optional inputs of the first call."""
        self._prefix = 0
        """The number of tokens at the start that see each other."""
        self._encoded: list[int | None] = []
        """The class of the length by which each of `by_length` has encoded the text, known after the first call."""
        nodes = model.cache_layout.nodes if model.cache_layout is not None else ()
        self._clock: Clock | None = None
        """Of a session with a maximum length, what counts its tokens."""
        self._calls: CountedCalls | None = None
        self._caches: list[Cache] = [Cache(node.slots, initial_length) for node in nodes]
        if max_length is not None and model.cache_layout is not None:
            if (reason := next(obstacles(model.program, model.cache_layout), None)) is not None:
                raise DecodeError(f"the model cannot have a session with `max_length`: {reason}")
            self._clock = Clock(max_length, next(model.parameters()).device)
            self._caches = [FixedCache(node, self._clock) for node in nodes]
            compiled = self.given_model if self.given_model is not model else None
            self._calls = CountedCalls(model, compiled, self._counted_call, self._last_logits)
        self._once: dict[str, FixedModule] = {}
        self._still: list[nn.Module] = []
        self._holders: list[Any] = []
        self.positions = 1
        """For how many positions at the end of each call the logits are computed, with `last_only`."""
        self._marks: WeakSet[SessionMark] = WeakSet()
        """Marks to which the session can go back."""
        self._without_gradients = torch.no_grad()
        self._hooks: list[RemovableHandle] = []

    def __enter__(self) -> Self:
        if self.model.cache_layout is None:
            raise writes_nothing("a session", self.model.recipe.task)
        for node, cache in zip(self.model.cache_layout.nodes, self._caches, strict=True):
            holder: Any = self.model.get_submodule(node.module)
            for name in node.attribute:
                holder = holder.__dict__[name]
            if holder.__dict__.get("cache") is not None:
                self._close()
                raise DecodeError("this model already has an open session; leave it first, and enter it again to go on")
            holder.__dict__["cache"] = cache
            self._holders.append(holder)
        self.model.__dict__["in_session"] = True
        if self._calls is not None:
            self._calls.attach()
        else:
            self._hooks.append(self.model.register_forward_pre_hook(self._before_call, with_kwargs=True))
            if self.last_only:
                self._hooks += last_position_hooks(self.model, lambda: self.positions)
        for fixed in self.model.cache_layout.fixed:
            module = module_at(self.model, fixed.module)
            if module is not None:
                once = self._once.setdefault(fixed.module, FixedModule(module.forward, fixed.batch))
                once.forward = module.forward
                module.__dict__["forward"] = once.__call__  # by a bound method, a compiled program does not depend on the object
                self._still.append(module)
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
        self._close()

    def _before_call(self, model: nn.Module, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        self._new_call(arguments, named)

    def _new_call(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> int:
        """Check a call that begins, and return how many tokens it has."""
        tokens = self._check_call(arguments, named)
        for cache in self._caches:
            cache.begin()
        for once in self._once.values():
            once.begin()
        return tokens

    @contextmanager
    def _counted_call(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> Iterator[None]:
        """Check a call of a session with a maximum length, and count its tokens at the end."""
        assert self._clock is not None
        tokens = self._new_call(arguments, named)
        yield
        self._clock.advance(tokens)

    def _last_logits(self, output: Any) -> Any:
        return _last_of(output, self.positions) if self.last_only else output

    def _check_call(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> int:
        """Return the number of tokens of a call, and raise `DecodeError` if it does not continue the previous one."""
        values = {**dict(zip(self._inputs, arguments, strict=False)), **named}
        text = values.get(self._text)
        if not isinstance(text, torch.Tensor) or text.dim() == 0:
            return 0  # the model itself reports a missing input
        if self._clock is not None and self.length + text.shape[1] > self._clock.max_length:
            raise DecodeError(
                f"this session has room for {counted(self._clock.max_length, 'token')}: it has read {self.length}, and this call "
                f"has {text.shape[1]}; open a session with a larger `max_length`"
            )
        if self._rows not in (None, len(text)):
            raise DecodeError(
                f"all calls of a session must have the same number of rows: this one has {len(text)}, the one before {self._rows}"
            )
        given = frozenset(name for name in self._optional if values.get(name) is not None)
        if self._given is not None and (changed := sorted(given ^ self._given)):
            first, now = ("without", "with") if changed[0] in given else ("with", "without")
            raise DecodeError(f"the first call of this session was {first} `{changed[0]}`, and this one is {now} it")
        self._check_rows(values, text.shape[1])
        if self._given is None:
            self._prefix = self._check_prefix(values, text.shape[1])
            self._encoded = self._length_classes(text.shape[1])
        elif not self.continues(text.shape[1]):
            raise DecodeError(
                f"in a text of {counted(self.length + text.shape[1], 'token')}, the model encodes the positions of earlier calls "
                "otherwise than it has; after truncate(0), read the whole text in one call"
            )
        self._rows, self._given = len(text), given
        return text.shape[1]

    def _check_rows(self, values: Mapping[str, Any], tokens: int) -> None:
        """Raise `DecodeError` if an input has not one value for each token of the call."""
        assert self.model.cache_layout is not None
        for name, item in self.model.cache_layout.inputs.items():
            value = values.get(name)
            if not isinstance(value, torch.Tensor) or value.dim() <= max(item.rows, item.all_rows or 0):
                continue
            if value.shape[item.rows] != tokens:
                raise DecodeError(f"a call with {counted(tokens, 'token')} has {value.shape[item.rows]} values of `{name}`")
            if item.all_rows is not None and value.shape[item.all_rows] < self.length + tokens:
                found, every = value.shape[item.all_rows], self.length + tokens
                raise DecodeError(f"`{name}` has {found} columns, which is fewer than the {every} tokens so far")

    def _check_prefix(self, values: Mapping[str, Any], tokens: int) -> int:
        """Return the longest prefix whose tokens see each other, and raise `DecodeError` if the first call does not hold it."""
        assert self.model.cache_layout is not None
        longest = 0
        for prefix in self.model.cache_layout.prefixes:
            length = values.get(prefix) if isinstance(prefix, str) else prefix
            if isinstance(length, torch.Tensor):
                length = int(length.max()) if length.numel() else 0
            if length is None:
                raise DecodeError("the model computes the length of a prefix, so a session cannot tell whether a call holds it")
            longest = max(longest, length)
        if tokens < longest:
            raise DecodeError(
                f"the first {counted(longest, 'token')} see each other, so the first call must hold them all; it has {tokens}"
            )
        return longest

    def _length_classes(self, tokens: int) -> list[int | None]:
        """Return the class of the length by which each of `by_length` encodes a text of so many tokens."""
        assert self.model.cache_layout is not None
        return [one.positions.length_class(tokens) for one in self.model.cache_layout.by_length]

    def _close(self) -> None:
        for hook in self._hooks:
            hook.remove()
        for holder in self._holders:
            holder.__dict__.pop("cache", None)
        for module in self._still:
            module.__dict__.pop("forward")
        if self._calls is not None:
            self._calls.detach()
        self._holders, self._still, self._hooks = [], [], []
        self.model.__dict__.pop("in_session", None)

    @property
    def length(self) -> int:
        """Number of tokens so far."""
        return max((run.counted for run in self._runs()), default=0) if self._clock is None else self._clock.count

    def _runs(self) -> Iterator[ModuleRun]:
        return (run for cache in self._caches for run in cache.runs)

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
        assert self.model.cache_layout is not None
        if self._given is None or not (encoded := self.model.cache_layout.by_length):
            return True
        return all(one.counted for one in encoded) and self._length_classes(self.length + tokens) == self._encoded

    def reorder(self, rows: torch.Tensor) -> None:
        """Continue with selected rows of the batch, which may repeat, as beam search needs.

        Inputs that do not grow have these rows too in later calls.

        Args:
            rows: Indices of rows, [B].

        Raises:
            DecodeError: The indices are not integers, or out of range, or the model merges the rows with another axis.
        """
        if rows.dim() != 1 or rows.dtype not in (torch.int64, torch.int32):
            raise DecodeError(f"`rows` must be a tensor of integers with one axis, not {rows.dtype} {list(rows.shape)}")
        if self._rows is not None:
            if wrong := [row for row in rows.tolist() if not 0 <= row < self._rows]:
                raise DecodeError(f"there is no row {wrong[0]}; the last call had {self._rows}, counted from 0")
            self._check_order()
            for run in self._runs():
                run.reorder(rows, self._rows)
            for once in self._once.values():
                once.reorder(rows, self._rows)
            self._rows = len(rows)

    def _check_order(self) -> None:
        """Raise `DecodeError` if the rows cannot be told apart in something that the session keeps."""
        layout = self.model.cache_layout
        assert layout is not None
        for node in layout.nodes:
            if any(slot.batch is not None and not slot.batch.is_known for slot in node.slots.values()):
                raise DecodeError(
                    f"`{node.module}` keeps values in which the rows of the batch are merged with another axis, in an order that "
                    "is not known; generate with `uncached`"
                )

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
        if 0 < length < min(self.length, self._prefix):
            raise DecodeError(
                f"the first {counted(self._prefix, 'token')} see each other, so a session cannot go back to {length} of them; "
                "start over with truncate(0), or open another session"
            )
        if length and not self.can_go_back(length) and any(run.states for run in self._runs()):
            raise DecodeError(
                f"after {self.length} tokens the state of a recurrent block cannot go back to {length}; "
                "start over with truncate(0), or open another session"
            )
        if length and not self.can_go_back(length):
            raise DecodeError(
                f"after {self.length} tokens a session cannot go back to {length}: keys that no later query sees were dropped; "
                "start over with truncate(0), or open another session"
            )
        self._forget_marks(length)
        for run in self._runs():
            run.truncate(length)
        if self._clock is not None:
            self._clock.set(min(length, self.length))
        if length == 0:
            self._given = None
            for once in self._once.values():
                once.given = []

    def can_go_back(self, length: int) -> bool:
        """Return whether `truncate(length)` is possible: not where a block has a state, unless to 0, nor where keys that would be
        seen again were dropped, or a part of a prefix would be left.

        Args:
            length: The number of tokens to keep.
        """
        if length == 0 or length >= self.length:
            return True
        return length >= self._prefix and all(not run.states and run.can_go_back(length) for run in self._runs())

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
        once = {name: tuple(one.given) for name, one in self._once.items()}
        caches = tuple(cache.snapshot() for cache in self._caches)
        found = SessionMark(self.length, self._rows, self._given, self._prefix, tuple(self._encoded), caches, once)
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
        self._restore(mark)
        self._forget_marks(mark.length)

    def copy(self) -> Session:
        """Return another session of the model, which goes on from the same text when it is entered."""
        other = Session(self.given_model, self.initial_length, max_length=self.max_length, last_only=self.last_only)
        other._once = {name: FixedModule(one.forward, one.batch) for name, one in self._once.items()}
        other._restore(self.mark(), copied=True)
        return other

    def _restore(self, mark: SessionMark, *, copied: bool = False) -> None:
        self._rows, self._given, self._prefix, self._encoded = mark.rows, mark.given, mark.prefix, list(mark.encoded)
        for cache, contents in zip(self._caches, mark.caches, strict=True):
            cache.restore(contents, copied=copied)
        if self._clock is not None:
            self._clock.set(mark.length)
        for name, one in self._once.items():
            one.given = list(mark.once.get(name, ()))

    def _forget_marks(self, length: int) -> None:
        """Forget marks behind a length, since what they hold will be overwritten."""
        for mark in [mark for mark in self._marks if mark.length > length]:
            self._marks.discard(mark)


@dataclass(frozen=True, eq=False)
class SessionMark:
    """What a session had read and kept at some time."""

    length: int
    """The number of tokens."""
    rows: int | None
    given: frozenset[str] | None
    prefix: int
    encoded: tuple[int | None, ...]
    caches: tuple[tuple[RunSnapshot, ...], ...]
    once: Mapping[str, tuple[Any, ...]]


@contextmanager
def without_noise(model: nn.Module) -> Iterator[None]:
    """Turn off what draws random numbers in a model, as a session does.

    Args:
        model: A compiled recipe.

    Examples:
        >>> import composer, torch
        >>> from composer.decode.session import without_noise
        >>> tiny = {"n_layers": 2, "d_model": 32, "n_heads": 4, "vocab": 61, "context": 16}
        >>> model = composer.load("gpt2", tiny).compile(seed=0).eval()
        >>> with without_noise(model):
        ...     model(tokens=torch.tensor([[1, 2, 3]])).logits.shape
        torch.Size([1, 3, 61])
    """
    layout = model.cache_layout if isinstance(model, Model) else None
    holders = [model.get_submodule(path) for path in (layout.random if layout is not None else ())]
    for holder in holders:
        holder.__dict__.setdefault("cache", Cache({}, 1))
    try:
        yield
    finally:
        for holder in holders:
            holder.__dict__.pop("cache", None)


def writes_nothing(what: str, task: str | None) -> DecodeError:
    """Return the error of a model whose task is not generative."""
    writes = ", ".join(name for name, known in TASKS.items() if known.text)
    return DecodeError(f"{what} needs a generative task ({writes}); this recipe has {task or 'no task'}")


def last_position_hooks(model: Model, count: Callable[[], int]) -> Iterator[RemovableHandle]:
    """Give a model hooks by which it computes its logits for the last positions of each call alone, as many as `count` says."""
    assert model.cache_layout is not None
    modules = ((module_at(model, last.node), last.axis) for last in model.cache_layout.last)
    for module, axis in ((module, axis) for module, axis in modules if module is not None):
        yield module.register_forward_pre_hook(partial(_narrowed, axis, count))
        break
    yield model.register_forward_hook(lambda _, __, output: _last_of(output, count()))


def _last_of(output: Any, positions: int) -> Any:
    """Return the outputs of a model with the logits of the last positions alone."""
    return output._replace(**{LOGITS: output.logits[:, -positions:]})


def _narrowed(axis: int, count: Callable[[], int], _: nn.Module, arguments: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Leave out all but the last positions of the first argument."""
    first, *others = arguments
    rows = count()
    return None if first.shape[axis] <= rows else (first.narrow(axis, first.shape[axis] - rows, rows), *others)


def session(model: nn.Module, initial_length: int = 256, *, max_length: int | None = None, last_only: bool = False) -> Session:
    """Return a session of a model, for a `with` statement: inside it, each call of the model, not of the session, takes only the
    next tokens.

    Args:
        model: A compiled recipe with a generative task; with `max_length`, also what `torch.compile` makes of it.
        initial_length: Number of tokens for which the cache is allocated at first; it grows as needed.
        max_length: Number of tokens for which the cache is allocated once and for all. Each step then has the same shapes, and is
            one program for `torch.compile`; None for a cache that grows.
        last_only: Whether only the logits of the last position of each call are wanted, [B, 1, V], as to choose the next token.

    Raises:
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
    return Session(model, initial_length, max_length=max_length, last_only=last_only)
