"""How much work something is, whatever machine it runs on: the Python functions that it enters."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def at_most(calls: int) -> Iterator[None]:
    """Fail where more functions are entered than that, at the one too many, so that what would never end does."""
    entered = 0

    def enter(frame: FrameType, event: str, argument: object) -> None:
        nonlocal entered
        entered += 1
        if entered > calls:
            raise AssertionError(f"more than {calls:,} functions are entered")

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        yield
    finally:
        sys.settrace(before)
