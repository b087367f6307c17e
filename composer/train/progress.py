"""Progress displays of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from composer.printable import printable
from composer.train.validation import Validation


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


class Bar:
    """A progress bar, for a terminal."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.progress = Progress(
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
        self.progress.update(self.task, completed=moment.step, description=summary(moment))

    def validated(self, step: int, validation: Validation) -> None:
        self.note(validation_line(step, validation))

    def note(self, text: str) -> None:
        self.progress.console.print(printable(text, keep="\n"), markup=False, highlight=False, soft_wrap=True)


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
        self.console.print(printable(text, keep="\n"), markup=False, highlight=False, soft_wrap=True)


def display(console: Console | None = None) -> Display:
    """Return a progress display: a bar on a terminal, lines elsewhere.

    Args:
        console: The console to print to; by default, standard output.

    Examples:
        >>> from composer.train import display
        >>> with display() as shown:
        ...     shown.note("training")
        training
    """
    console = console or Console()
    return Bar(console) if console.is_terminal else LineDisplay(console)


def summary(moment: Moment) -> str:
    """Return `loss 1.832 (causal_lm 1.812, balance 0.020)  rate 2.1e-03  18 204 tokens/s  0:41 left`."""
    parts = ", ".join(f"{name} {value:.3f}" for name, value in moment.by_name.items())
    speed = f"{moment.tokens_per_second:,.0f}".replace(",", " ")
    loss = f"loss {moment.loss:.3f}{f' ({parts})' if parts else ''}"
    return f"{loss}  rate {moment.rate:.1e}  {speed} {moment.unit}s/s  {clock(moment.seconds_left)} left"


def validation_line(step: int, validation: Validation) -> str:
    """Return `validation at step 500: 1.702 nats per token, 1.702 per character`."""
    return f"validation at step {step}: {validation}"


def clock(seconds: float) -> str:
    """Return `0:41`, `12:05`, `3:00:10`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
