"""What a module remembers from call to call while a text is being written."""

from __future__ import annotations

from typing import Any


def keep(holder: Any, name: str, value: Any) -> Any:
    """What earlier calls of the session left under `name` with `value` appended; outside a session, `value` alone.

    The holder declares the name and the growing axis under `keeps`; the session sets its `cache`.
    """
    cache = holder.cache
    return value if cache is None else cache.append(name, value)
