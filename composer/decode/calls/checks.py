"""What the calls of a session must have in common, so that each continues the one before."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from composer.decode.encoder_inputs import rows_of
from composer.decode.errors import DecodeError
from composer.language.tasks import TASKS
from composer.language.wording import counted
from composer.lower.checksums import checksum_of
from composer.lower.model import Model
from composer.lower.passes.cache_layout import CacheLayout


@dataclass(frozen=True)
class CallsSoFar:
    """What later calls of a session must agree with, known after the first."""

    given: frozenset[str]
    """The optional inputs that were passed."""
    prefix: int
    """The number of tokens at the start that see each other."""
    encoded: tuple[int | None, ...]
    """The class of the length by which each of `by_length` has encoded the text."""
    whole: Mapping[str, Tensor | str]
    """The inputs that do not grow with the text, as the latest call had them; those of a prompt cache as their checksums, empty
    where the rows were selected since.
    """


class CallChecks:
    """Holds each call of a session against those before it."""

    def __init__(self, model: Model, max_length: int | None) -> None:
        self.model, self.max_length = model, max_length
        self.inputs = tuple(inspect.signature(model.forward).parameters)
        self.optional = tuple(item.name for item in model.program.untyped.inputs if item.optional)
        self.text = TASKS[model.recipe.task].text if model.recipe.task else ""
        self.rows: int | None = None
        """Number of rows of the batch, known after the first call."""
        self.calls: CallsSoFar | None = None

    @property
    def prefix(self) -> int:
        """The number of tokens at the start that see each other."""
        return 0 if self.calls is None else self.calls.prefix

    @property
    def layout(self) -> CacheLayout:
        """What the model caches."""
        assert self.model.cache_layout is not None
        return self.model.cache_layout

    def check(self, arguments: tuple[Any, ...], named: Mapping[str, Any], length: int) -> int:
        """Return the number of tokens of a call.

        Args:
            arguments: The inputs of the call without names.
            named: Those with names.
            length: The number of tokens before.

        Raises:
            DecodeError: The call does not continue the previous one.
        """
        values = {**dict(zip(self.inputs, arguments, strict=False)), **named}
        text = values.get(self.text)
        if not isinstance(text, Tensor) or text.dim() == 0:
            return 0  # the model itself reports a missing input
        tokens = text.shape[1]
        if self.max_length is not None and length + tokens > self.max_length:
            raise DecodeError(
                f"this session has room for {counted(self.max_length, 'token')}: it has read {length}, and this call "
                f"has {tokens}; open a session with a larger `max_length`"
            )
        if self.rows not in (None, len(text)):
            raise DecodeError(
                f"all calls of a session must have the same number of rows: this one has {len(text)}, the one before {self.rows}"
            )
        given = frozenset(name for name in self.optional if values.get(name) is not None)
        if self.calls is not None and (changed := sorted(given ^ self.calls.given)):
            first, now = ("without", "with") if changed[0] in given else ("with", "without")
            raise DecodeError(f"the first call of this session was {first} `{changed[0]}`, and this one is {now} it")
        self._check_rows(values, tokens, length)
        whole = {name: value for name, value in values.items() if isinstance(value, Tensor) and name not in self.layout.inputs}
        if self.calls is None:
            prefix, encoded = self._longest_prefix(values, tokens), self.length_classes(tokens)
        else:
            prefix, encoded = self.calls.prefix, self.calls.encoded
            self._check_whole(self.calls.whole, whole)
            if not self.continues(tokens, length):
                raise DecodeError(
                    f"in a text of {counted(length + tokens, 'token')}, the model encodes the positions of earlier calls "
                    "otherwise than it has; after truncate(0), read the whole text in one call"
                )
        self.rows, self.calls = len(text), CallsSoFar(given, prefix, encoded, whole)
        return tokens

    def _check_rows(self, values: Mapping[str, Any], tokens: int, length: int) -> None:
        """Raise `DecodeError` if an input has not one value for each token of the call."""
        for name, item in self.layout.inputs.items():
            value = values.get(name)
            if not isinstance(value, Tensor) or value.dim() <= max(item.rows, item.all_rows or 0):
                continue
            if value.shape[item.rows] != tokens:
                raise DecodeError(f"a call with {counted(tokens, 'token')} has {value.shape[item.rows]} values of `{name}`")
            if item.all_rows is not None and value.shape[item.all_rows] < length + tokens:
                found, every = value.shape[item.all_rows], length + tokens
                raise DecodeError(f"`{name}` has {found} columns, which is fewer than the {every} tokens so far")

    def _longest_prefix(self, values: Mapping[str, Any], tokens: int) -> int:
        """Return the longest prefix whose tokens see each other, and raise `DecodeError` if the first call does not hold it."""
        longest = 0
        for prefix in self.layout.prefixes:
            length = values.get(prefix) if isinstance(prefix, str) else prefix
            if isinstance(length, Tensor):
                length = int(length.max()) if length.numel() else 0
            if length is None:
                raise DecodeError("the model computes the length of a prefix, so a session cannot tell whether a call holds it")
            longest = max(longest, length)
        if tokens < longest:
            raise DecodeError(
                f"the first {counted(longest, 'token')} see each other, so the first call must hold them all; it has {tokens}"
            )
        return longest

    def _check_whole(self, before: Mapping[str, Tensor | str], now: Mapping[str, Tensor]) -> None:
        """Raise `DecodeError` if an input that does not grow is not the one with which a session was saved."""
        for name, value in now.items():
            checksum = before.get(name)
            if isinstance(checksum, str) and checksum and checksum != checksum_of({name: value}):
                raise DecodeError(f"this `{name}` is another one than that of the prompt cache; read the prompt anew")

    def length_classes(self, tokens: int) -> tuple[int | None, ...]:
        """Return the class of the length by which each of `by_length` encodes a text of so many tokens."""
        return tuple(one.positions.length_class(tokens) for one in self.layout.by_length)

    def continues(self, tokens: int, length: int) -> bool:
        """Return whether the next call may have so many tokens, after `length` of them: whether the model encodes positions by
        the length of the text, and those of earlier calls as it has.
        """
        if self.calls is None or not (encoded := self.layout.by_length):
            return True
        return all(one.counted for one in encoded) and self.length_classes(length + tokens) == self.calls.encoded

    def reorder(self, rows: Tensor) -> None:
        """Continue with selected rows of the batch.

        Raises:
            DecodeError: The indices are not integers, or out of range, or the model merges the rows with another axis.
        """
        if rows.dim() != 1 or rows.dtype not in (torch.int64, torch.int32):
            raise DecodeError(f"`rows` must be a tensor of integers with one axis, not {rows.dtype} {list(rows.shape)}")
        if self.rows is None:
            return
        if wrong := [row for row in rows.tolist() if not 0 <= row < self.rows]:
            raise DecodeError(f"there is no row {wrong[0]}; the last call had {self.rows}, counted from 0")
        for node in self.layout.nodes:
            if any(slot.batch is not None and not slot.batch.is_known for slot in node.slots.values()):
                raise DecodeError(
                    f"`{node.module}` keeps values in which the rows of the batch are merged with another axis, in an order that "
                    "is not known; generate with `uncached`"
                )
        self.rows = len(rows)
        if self.calls is not None:
            known = {name: value for name, value in self.calls.whole.items() if isinstance(value, Tensor)}
            unknown = dict.fromkeys(self.calls.whole.keys() - known.keys(), "")
            self.calls = replace(self.calls, whole={**unknown, **rows_of(self.model, known, rows)})
