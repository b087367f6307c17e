"""Sessions: caches and carries that are attached to the modules of a model while a session is open."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import Any, NoReturn, Self

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from composer.decode.cache import Cache, FixedModule, ModuleRun
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

    def __init__(self, model: Model, initial_length: int = 256, *, last_only: bool = False) -> None:
        if not isinstance(model, Model):
            raise DecodeError(f"a session needs a compiled recipe, not a {type(model).__name__}")
        if initial_length < 1:
            raise DecodeError(f"the initial length is {initial_length}; it must be at least 1 token")
        self.model = model
        self.initial_length = initial_length
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
        self._caches: list[Cache] = []
        self._once: list[FixedModule] = []
        self._still: list[nn.Module] = []
        self._holders: list[Any] = []
        self._without_gradients = torch.no_grad()
        self._hooks: list[RemovableHandle] = []

    def __enter__(self) -> Self:
        if self.model.cache_layout is None:
            raise writes_nothing("a session", self.model.recipe.task)
        for node in self.model.cache_layout.nodes:
            holder: Any = self.model.get_submodule(node.module)
            for name in node.attribute:
                holder = holder.__dict__[name]
            if holder.__dict__.get("cache") is not None:
                self._close()
                raise DecodeError("this model already has an open session")
            holder.__dict__["cache"] = cache = Cache(node.slots, self.initial_length)
            self._caches.append(cache)
            self._holders.append(holder)
        self._hooks.append(self.model.register_forward_pre_hook(self._new_call, with_kwargs=True))
        if self.last_only:
            self._hooks += last_position_hooks(self.model)
        for fixed in self.model.cache_layout.fixed:
            module = module_at(self.model, fixed.module)
            if module is not None:
                module.__dict__["forward"] = once = FixedModule(module.forward, fixed.batch)
                self._once.append(once)
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

    def _new_call(self, model: nn.Module, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        self._check_call(arguments, named)
        for cache in self._caches:
            cache.begin()
        for once in self._once:
            once.begin()

    def _check_call(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> None:
        """Raise `DecodeError` if a call does not continue the previous one."""
        values = {**dict(zip(self._inputs, arguments, strict=False)), **named}
        text = values.get(self._text)
        if not isinstance(text, torch.Tensor) or text.dim() == 0:
            return  # the model itself reports a missing input
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
        self._holders, self._caches, self._still, self._once, self._hooks = [], [], [], [], []

    @property
    def length(self) -> int:
        """Number of tokens so far."""
        return max((run.counted for run in self._runs()), default=0)

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
            for once in self._once:
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
        if 0 < length < self.length and any(run.states for run in self._runs()):
            raise DecodeError(
                f"after {self.length} tokens the state of a recurrent block cannot go back to {length}; "
                "start over with truncate(0), or open another session"
            )
        if 0 < length < self.length and not all(run.can_go_back(length) for run in self._runs()):
            raise DecodeError(
                f"after {self.length} tokens a session cannot go back to {length}: keys that no later query sees were dropped; "
                "start over with truncate(0), or open another session"
            )
        for run in self._runs():
            run.truncate(length)
        if length == 0:
            self._given = None
            for once in self._once:
                once.given = []


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


def last_position_hooks(model: Model) -> Iterator[RemovableHandle]:
    """Give a model hooks by which it computes its logits for the last position of each call alone."""
    assert model.cache_layout is not None
    modules = ((module_at(model, last.node), last.axis) for last in model.cache_layout.last)
    for module, axis in ((module, axis) for module, axis in modules if module is not None):
        yield module.register_forward_pre_hook(partial(_narrowed, axis))
        break
    yield model.register_forward_hook(lambda _, __, output: output._replace(**{LOGITS: output.logits[:, -1:]}))


def _narrowed(axis: int, _: nn.Module, arguments: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Leave out all but the last position of the first argument."""
    first, *others = arguments
    return None if first.shape[axis] == 1 else (first.narrow(axis, first.shape[axis] - 1, 1), *others)


def session(model: Model, initial_length: int = 256, *, last_only: bool = False) -> Session:
    """Return a session of a model, for a `with` statement: inside it, each call of the model, not of the session, takes only the
    next tokens.

    Args:
        model: A compiled recipe with a generative task.
        initial_length: Number of tokens for which the cache is allocated at first; it grows as needed.
        last_only: Whether only the logits of the last position of each call are wanted, [B, 1, V], as to choose the next token.

    Raises:
        DecodeError: The model is not a compiled recipe, or, on entering, its task is not generative or a session is already open.

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
    return Session(model, initial_length, last_only=last_only)
