"""How far the preparation of a text is: a bar on a terminal, a line now and then elsewhere, both on standard error."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn

BETWEEN = 10.0
"""Seconds between two lines."""


class Preparing(Protocol):
    """Protocol of what shows how far the preparation of a text is; a context manager around it."""

    def __enter__(self) -> Preparing: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /) -> None: ...

    def begin(self, what: str, total: int) -> None:
        """Begin a part of the work.

        Args:
            what: What is done, such as `tokenizing`.
            total: How much there is to do, in bytes or characters; 0 if that is not known.
        """
        ...

    def advance(self, count: int) -> None:
        """Count what has been done.

        Args:
            count: The number of bytes or characters.
        """
        ...


class PreparingBar:
    """A bar for each part, gone when all is done."""

    def __init__(self, console: Console) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        self.progress = Progress(*columns, console=console, transient=True)
        self.task: TaskID | None = None

    def __enter__(self) -> PreparingBar:
        self.progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /) -> None:
        self.progress.stop()

    def begin(self, what: str, total: int) -> None:
        self.task = self.progress.add_task(what, total=total or None)

    def advance(self, count: int) -> None:
        if self.task is not None:
            self.progress.advance(self.task, count)


class PreparingLines:
    """A line every ten seconds."""

    def __init__(self, console: Console, *, between: float = BETWEEN) -> None:
        self.console, self.between = console, between
        self.what, self.total, self.done, self.last = "", 0, 0, time.monotonic()

    def __enter__(self) -> PreparingLines:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /) -> None:
        return None

    def begin(self, what: str, total: int) -> None:
        self.what, self.total, self.done = what, total, 0

    def advance(self, count: int) -> None:
        self.done += count
        if time.monotonic() - self.last >= self.between:
            self.last = time.monotonic()
            share = f"{100 * self.done / self.total:.0f} %" if self.total else f"{self.done / 1e6:,.0f} MB"
            self.console.print(f"{self.what}: {share}", markup=False, highlight=False, soft_wrap=True)


def preparing(console: Console | None = None) -> Preparing:
    """Return what shows how far the preparation of a text is.

    Args:
        console: The console to print to; by default, standard error.
    """
    console = console or Console(stderr=True)
    return PreparingBar(console) if console.is_terminal else PreparingLines(console)
