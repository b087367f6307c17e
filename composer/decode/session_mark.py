"""What a session had read and kept at some time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from composer.decode.caches.contents import CacheSnapshots
from composer.decode.calls.checks import CallsSoFar


@dataclass(frozen=True, eq=False)
class SessionMark:
    """What a session had read and kept at some time."""

    length: int
    """The number of tokens."""
    rows: int | None
    """The number of rows of the batch."""
    calls: CallsSoFar | None
    """What later calls must agree with."""
    caches: CacheSnapshots
    """The contents of each cache."""
    once: Mapping[str, tuple[Any, ...]]
    """What was computed once, by the paths of the modules."""
