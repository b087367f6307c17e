"""Access to the cache of a module, which a session provides; `holder` is the module, `self` in `forward`."""

from __future__ import annotations

from typing import Any

from blocks.core.lazy import torch


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


def next_positions(holder: Any, rows: int, device: Any) -> Any:
    """Return the positions of the rows of this call, [rows], continued from those of earlier calls of the session.

    The block declares a slot without axes in `cache_slots`, such as `{"length": "int[]"}`.
    """
    cache = holder.cache
    return torch.arange(rows, device=device) if cache is None else cache.next_positions(rows, device)


def is_preallocated(holder: Any) -> bool:
    """Return whether what the cache returns has places for later rows, which only a mask hides: in a session with a maximum
    length, where neither shapes nor the path through `forward` may depend on how many rows there are.
    """
    cache = holder.cache
    return cache is not None and bool(cache.is_preallocated)


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
