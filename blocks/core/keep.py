"""What a module remembers from call to call while a text is being written."""

from __future__ import annotations

from typing import Any


def keep(holder: Any, name: str, value: Any) -> Any:
    """What earlier calls of the session left under `name` with `value` appended; outside a session, `value` alone.

    The holder declares the name and the growing axis under `keeps`; the session sets its `cache`. What does not grow, since it
    is made of a memory that stays the same, is the first call's, and `recall` gives it to those that follow.
    """
    cache = holder.cache
    return value if cache is None else cache.append(name, value)


def recall(holder: Any, name: str) -> Any:
    """The state that the call before left under `name`, or the value that does not grow; None in the first call of a session,
    and outside of one.
    """
    cache = holder.cache
    return None if cache is None else cache.recall(name)


def resume(holder: Any, name: str, start: Any) -> Any:
    """The state that the call before left under `name`, or `start` where there was none."""
    state = recall(holder, name)
    return start if state is None else state


def leave(holder: Any, positions: int, /, **states: Any) -> None:
    """Leaves states to the next call of the session, `positions` further on; outside a session, nothing.

    The holder declares their names under `carries`.
    """
    cache = holder.cache
    if cache is not None:
        cache.leave(positions, states)
