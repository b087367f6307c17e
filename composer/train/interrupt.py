"""Graceful stopping on Ctrl-C and SIGTERM."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupted(KeyboardInterrupt):
    """The run was asked to stop, and has saved a checkpoint. Like every `KeyboardInterrupt` here, it has the number of the signal
    as its argument.
    """


class StopRequest:
    """A flag that says whether the run was asked to stop."""

    def __init__(self) -> None:
        self.made = False
        self.number: int = signal.SIGINT
        """The signal that asked."""


@contextmanager
def stop_requests(tell: Callable[[str], None]) -> Iterator[StopRequest]:
    """Turn the first Ctrl-C or SIGTERM into a request that the loop checks between steps; a second one quits at once."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request  # only the main thread receives signals
        return

    def on_signal(number: int, frame: FrameType | None) -> None:
        if request.made:
            raise KeyboardInterrupt(number)
        request.made, request.number = True, number
        again = "press Ctrl-C again to quit" if number == signal.SIGINT else "another SIGTERM quits"
        tell(f"stopping after this step; {again} at once")

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
