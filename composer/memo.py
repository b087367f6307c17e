"""Memoization of results, and interning of equal objects.

Two tables, for two purposes. A `Memo` only saves time: its results are functions of their keys, and computing each anew, as
inside `off`, changes nothing. An `Interned` gives the identity of its objects a meaning, such as that equal passes of a repeat
are one graph. It keeps them in either case; while memos are off, it creates each object again and compares it with the one it
has, so that an incomplete key is found.

A key keeps its parts alive. Graphs and nodes compare by identity; `IdentityKey` does so for objects that compare by value.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
MISSING = object()
"""What a table gives for no result, so that the hash of a key is computed once for each question."""
_enabled: ContextVar[bool] = ContextVar("memos", default=True)


@contextmanager
def off() -> Iterator[None]:
    """Turn off all memos created inside this context, for tests: results must not depend on earlier ones."""
    token = _enabled.set(False)
    try:
        yield
    finally:
        _enabled.reset(token)


class Memo(Generic[K, V]):
    """A table of results by key."""

    __slots__ = ("_results",)

    def __init__(self) -> None:
        self._results: dict[K, Any] | None = {} if _enabled.get() else None

    def get(self, key: K, compute: Callable[[], V]) -> V:
        """Return the result of a key, computing it on first use."""
        if self._results is None:
            return compute()
        found: V = self._results.get(key, MISSING)
        if found is MISSING:
            found = self._results[key] = compute()
        return found

    def __len__(self) -> int:
        """Return the number of stored results."""
        return len(self._results or ())


class Interned(Generic[K, V]):
    """A table of one object per key."""

    __slots__ = ("_again", "_objects")

    def __init__(self) -> None:
        self._objects: dict[K, Any] = {}
        self._again = not _enabled.get()

    def get(self, key: K, make: Callable[[], V]) -> V:
        """Return the object of a key, creating it on first use.

        Raises:
            Ambient: Memos are off, and an object created again differs from the stored one.
        """
        found: V = self._objects.get(key, MISSING)
        if found is MISSING:
            found = self._objects[key] = make()
        elif self._again and not alike(found, make()):
            raise Ambient(f"equal keys give different objects, so the key lacks something: {key!r:.200}")
        return found


class Numbering(Generic[K]):
    """Consecutive numbers for keys, in the order of first use."""

    __slots__ = ("_numbers",)

    def __init__(self) -> None:
        self._numbers: dict[K, int] = {}

    def of(self, key: K) -> int:
        """Return the number of a key."""
        return self._numbers.setdefault(key, len(self._numbers))


class Ambient(AssertionError):
    """A result depends on a value that is missing from its key."""


class IdentityKey(Generic[V]):
    """An object as a key that compares by identity."""

    __slots__ = ("thing",)

    def __init__(self, thing: V) -> None:
        self.thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdentityKey) and other.thing is self.thing

    def __hash__(self) -> int:
        return id(self.thing)


class lazy(cached_property[V]):
    """A cached property of a frozen object, computed on each access while memos are off."""

    def __get__(self, instance: object, owner: type[Any] | None = None) -> Any:
        if instance is None or _enabled.get():
            return super().__get__(instance, owner)
        return self.func(instance)


def alike(one: Any, other: Any, partners: dict[IdentityKey[Any], IdentityKey[Any]] | None = None) -> bool:
    """Return whether two objects have equal contents and the same sharing of objects inside."""
    partners = {} if partners is None else partners
    if type(one) is not type(other):
        return False
    if is_dataclass(one):
        if type(one).__eq__ is object.__eq__:
            ours, theirs = IdentityKey(one), IdentityKey(other)
            if ours in partners or theirs in partners:
                return partners.get(ours) == theirs and partners.get(theirs) == ours
            partners |= {ours: theirs, theirs: ours}
        return one is other or all(
            alike(getattr(one, each.name), getattr(other, each.name), partners) for each in fields(one) if each.compare
        )
    if one is other:
        return True
    if isinstance(one, Mapping):
        return list(one) == list(other) and all(alike(value, other[name], partners) for name, value in one.items())
    if isinstance(one, Sequence) and not isinstance(one, str):
        return len(one) == len(other) and all(alike(*pair, partners) for pair in zip(one, other, strict=True))
    return bool(one == other)
