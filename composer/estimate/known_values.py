"""Values that are known without storage: indices, masks and other numbers that depend on no weight.

What a program does may depend on them, such as into how many documents a row is split. They are computed beside the tensors
without storage, by the same operators.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily
from torch.utils._pytree import tree_leaves, tree_map

MOST = 1 << 20
"""The most values of a tensor that are computed."""
UNDEFINED = frozenset({"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"})
"""Operators whose values are whatever is in memory."""


class KnownValues:
    """The values of tensors without storage, as far as they are known."""

    def __init__(self) -> None:
        self.found: dict[int, tuple[weakref.ref[Tensor], Tensor]] = {}

    def of(self, value: Tensor) -> Tensor | None:
        """Return the values of a tensor; None if they are not known."""
        if not isinstance(value, FakeTensor):
            return value.detach()
        pair = self.found.get(id(value))
        return None if pair is None or pair[0]() is not value else pair[1]

    def compute(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Return what an operator computes from values that are all known; None otherwise."""
        given = _tensors((args, kwargs))
        if (
            torch.Tag.nondeterministic_seeded in func.tags
            or _name(func) in UNDEFINED
            or any(self.of(one) is None for one in given)
        ):
            return None
        with unset_fake_temporarily(), torch.no_grad():
            return func(*tree_map(self._value, tuple(args)), **tree_map(self._value, dict(kwargs)))

    def note(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> None:
        """Note what is known after an operator has run without storage."""
        returned = _tensors(result)
        computed = None
        if all(each.numel() <= MOST for each in returned):
            computed = self.compute(func, args, kwargs)
        if computed is None:
            self._forget(func, args, kwargs)
            return
        for value, values in zip(returned, _tensors(computed), strict=True):
            self.say(value, values)

    def say(self, value: Tensor, values: Tensor) -> None:
        """Say the values of a tensor."""
        key = id(value)
        self.found[key] = (weakref.ref(value, lambda _: self.found.pop(key, None)), values)

    def _value(self, each: Any) -> Any:
        return self.of(each) if isinstance(each, Tensor) else each

    def _forget(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Forget the values of the tensors that an operator changes, and of all that share their memory."""
        if not func._schema.is_mutable:
            return
        arguments = {each.name: each for each in func._schema.arguments}
        for name, given in (dict(zip(arguments, args, strict=False)) | dict(kwargs)).items():
            alias = arguments[name].alias_info
            for each in _tensors(given) if alias is not None and alias.is_write else ():
                if (values := self.of(each)) is None:
                    continue
                place = values.untyped_storage().data_ptr()
                self.found = {key: pair for key, pair in self.found.items() if pair[1].untyped_storage().data_ptr() != place}


def _tensors(tree: object) -> list[Tensor]:
    return [each for each in tree_leaves(tree) if isinstance(each, Tensor)]


def _name(func: Any) -> str:
    return str(func._schema.name.partition("::")[2])
