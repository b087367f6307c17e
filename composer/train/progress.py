"""Progress displays of a run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, ProgressColumn, TaskID, TextColumn
from rich.text import Text

from composer.printable import markup, printable
from composer.train.following.loss_curve import LossCurve
from composer.train.validation import Validation

CURVE_HEIGHT = 8
"""Lines of the curve in a terminal."""
MOVED_AFTER = 0.1
"""Seconds between moves of the bar in a terminal."""
RENEWED_AFTER = 2.0
"""Seconds between pictures in a notebook."""
NOTES = 10
"""Notes that a notebook shows."""


@dataclass(frozen=True)
class Moment:
    """The progress of a run after a step."""

    step: int
    steps: int
    loss: float
    rate: float
    """Learning rate of the step."""
    tokens_per_second: float
    """Targets per second, over the latest steps."""
    seconds_left: float
    """Estimated from the latest steps, without validation and saving."""
    by_name: Mapping[str, float] = field(default_factory=dict)
    """The terms of the loss, if there are several."""
    unit: str = "token"
    """What the targets are of: `token` or `example`."""
    utilization: float | None = None
    """The share of the peak of the device that was used; None if the peak is not known."""


class Display(Protocol):
    """Protocol of progress displays, which are context managers around the training loop."""

    def __enter__(self) -> Display: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /) -> None: ...

    def step(self, moment: Moment, *, logged: bool) -> None:
        """Update the display after a step.

        Args:
            moment: The progress after the step.
            logged: Whether the step is also written to the file of metrics.
        """
        ...

    def validated(self, step: int, validation: Validation) -> None:
        """Show the result of a validation.

        Args:
            step: The step after which the model was validated.
            validation: The losses on the held-out text.
        """
        ...

    def note(self, text: str) -> None:
        """Print a permanent line.

        Args:
            text: The line.
        """
        ...


class BarWithCurve(Progress):
    """A progress bar with the smoothed loss below it, if there is room."""

    def __init__(self, *columns: ProgressColumn, console: Console) -> None:
        self.curve, self.page = LossCurve(), console
        super().__init__(*columns, console=console)

    def get_renderables(self) -> Iterator[RenderableType]:
        """Yield the bar and the curve."""
        yield self.make_tasks_table(self.tasks)
        if self.page.height >= 3 * CURVE_HEIGHT:
            yield Text(self.curve.text(width=min(self.page.width, 100), height=CURVE_HEIGHT))


class Bar:
    """A progress bar, for a terminal, with the curve of the loss."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        """Choose where to show.

        Args:
            console: The terminal.
            clock: The time in seconds, by which the bar moves ten times a second, as often as it is drawn.
        """
        self.console, self.clock = console, clock
        self.moved_at = float("-inf")
        self.progress = BarWithCurve(
            TextColumn("{task.completed:.0f}/{task.total:.0f}"), BarColumn(), TextColumn("{task.description}"), console=console
        )
        self.task: TaskID | None = None

    def __enter__(self) -> Bar:
        self.progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /) -> None:
        self.progress.stop()

    def step(self, moment: Moment, *, logged: bool) -> None:
        if self.task is None:
            self.task = self.progress.add_task("", total=moment.steps)
        self.progress.curve.add(moment.step, moment.loss)
        if moment.step < moment.steps and self.clock() < self.moved_at + MOVED_AFTER:
            return
        self.moved_at = self.clock()
        self.progress.update(self.task, completed=moment.step, description=summary(moment))

    def validated(self, step: int, validation: Validation) -> None:
        self.progress.curve.validated(step, validation.per_token)
        self.note(validation_line(step, validation))

    def note(self, text: str) -> None:
        self.progress.console.print(printable(text, keep="\n"), markup=False, highlight=False, soft_wrap=True)


class Notebook:
    """A line and a curve that are replaced as the run goes on, for a notebook."""

    def __init__(self, place: Callable[[str], Callable[[str], None]], clock: Callable[[], float] = time.monotonic) -> None:
        """Choose where to show.

        Args:
            place: Shows a piece of HTML, and returns what replaces it.
            clock: The time in seconds, by which the page is renewed once in two seconds.
        """
        self.place, self.clock = place, clock
        self.curve = LossCurve()
        self.replace: Callable[[str], None] | None = None
        self.shown_at = float("-inf")
        self.notes: list[str] = []
        self.now = ""

    def __enter__(self) -> Notebook:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /) -> None:
        self._show(at_once=True)

    def step(self, moment: Moment, *, logged: bool) -> None:
        self.curve.add(moment.step, moment.loss)
        self.now = f"step {moment.step}/{moment.steps}  {summary(moment)}"
        self._show()

    def validated(self, step: int, validation: Validation) -> None:
        self.curve.validated(step, validation.per_token)
        self.note(validation_line(step, validation))

    def note(self, text: str) -> None:
        self.notes = [*self.notes, text][-NOTES:]
        self._show(at_once=True)

    def _show(self, *, at_once: bool = False) -> None:
        if not at_once and self.clock() < self.shown_at + RENEWED_AFTER:
            return
        self.shown_at = self.clock()
        lines = "<br>".join(markup(line) for line in (self.now, *self.notes) if line)
        content = f"{self.curve.svg()}<div>{lines}</div>"
        if self.replace is None:
            self.replace = self.place(content)
        else:
            self.replace(content)


def in_notebook(content: str) -> Callable[[str], None]:
    """Show a piece of HTML below the cell of a notebook, and return what replaces it."""
    from IPython.display import HTML, display

    handle = display(HTML(content), display_id=True)
    return lambda text: handle.update(HTML(text))


class LineDisplay:
    """A line for each logged step, for a file or a pipe."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def __enter__(self) -> LineDisplay:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /) -> None:
        return None

    def step(self, moment: Moment, *, logged: bool) -> None:
        if logged:
            self.note(f"step {moment.step}/{moment.steps}  {summary(moment)}")

    def validated(self, step: int, validation: Validation) -> None:
        self.note(validation_line(step, validation))

    def note(self, text: str) -> None:
        print(printable(text, keep="\n"), file=self.console.file, flush=True)  # `Console.print` takes as long as a small step


def display(console: Console | None = None) -> Display:
    """Return a progress display: a bar with a curve on a terminal, a curve in a notebook, lines elsewhere.

    Args:
        console: The console to print to; by default, standard output.

    Examples:
        >>> from composer.train import display
        >>> with display() as shown:
        ...     shown.note("training")
        training
    """
    console = console or Console()
    if console.is_jupyter:
        return Notebook(in_notebook)
    return Bar(console) if console.is_terminal else LineDisplay(console)


def summary(moment: Moment) -> str:
    """Return `loss 1.832 (causal_lm 1.812, balance 0.020)  rate 2.1e-03  18 204 tokens/s  0:41 left`."""
    parts = ", ".join(f"{name} {value:.3f}" for name, value in moment.by_name.items())
    speed = f"{moment.tokens_per_second:,.0f}".replace(",", " ")
    loss = f"loss {moment.loss:.3f}{f' ({parts})' if parts else ''}"
    used = "" if moment.utilization is None else f"  MFU {moment.utilization:.1%}"
    return f"{loss}  rate {moment.rate:.1e}  {speed} {moment.unit}s/s{used}  {clock(moment.seconds_left)} left"


def validation_line(step: int, validation: Validation) -> str:
    """Return `validation at step 500: 1.702 nats per token, 1.702 per character`."""
    return f"validation at step {step}: {validation}"


def clock(seconds: float) -> str:
    """Return `0:41`, `12:05`, `3:00:10`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
