"""Access to the cache of a module, which a session provides; `holder` is the module, `self` in `forward`."""

from __future__ import annotations

from typing import Any


def append_to_cache(holder: Any, name: str, value: Any) -> Any:
    """Append `value` to the cache slot `name` and return the whole slot; outside a session, return `value`.

    The block declares the slot and its growing axis in `cache_slots`; the session sets its `cache`. A value that does not grow,
    because it is computed from a memory that stays the same, is stored by the first call and returned by `cached` in later ones.
    """
    cache = holder.cache
    return value if cache is None else cache.append(name, value)


def cached(holder: Any, name: str) -> Any:
    """Return the carry that the previous call stored under `name`, or a slot that does not grow; None in the first call of a
    session, and outside of one.
    """
    cache = holder.cache
    return None if cache is None else cache.get(name)


def rows_before(holder: Any, rows: int) -> int:
    """Return the number of rows of earlier calls of the session, and count `rows` more; outside a session, return 0.

    The block declares a slot without axes in `cache_slots`, such as `{"length": "int[]"}`.
    """
    cache = holder.cache
    return 0 if cache is None else int(cache.advance(rows))


def load_carry(holder: Any, name: str, start: Any) -> Any:
    """Return the carry that the previous call stored under `name`, or `start` if there is none."""
    state = cached(holder, name)
    return start if state is None else state


def store_carry(holder: Any, positions: int, /, **states: Any) -> None:
    """Store the carry for the next call of the session, `positions` further on; outside a session, do nothing.

    The block declares the names in `carry`.
    """
    cache = holder.cache
    if cache is not None:
        cache.store(positions, states)
