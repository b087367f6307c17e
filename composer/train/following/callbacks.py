"""What follows a run: the interface that the training loop calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from math import isfinite

from torch import nn

from composer.train.run.folder import RunFolder
from composer.train.settings import TrainSettings


@dataclass(frozen=True, eq=False)
class RunStart:
    """What a callback learns when a run begins or goes on."""

    model: nn.Module
    """The model as it trains."""
    settings: TrainSettings
    folder: RunFolder
    recipe: str
    """The text of the recipe."""
    step: int
    """The steps that are done: 0, unless the run is resumed."""


class Callback:
    """What follows a run. The loop calls these methods, which do nothing unless a subclass defines them.

    A callback reads. It must leave the weights, the gradients and the random generators as they are; then a run with it equals
    one without it, bit for bit. It is no part of the run: a resumed run has those that are passed to `resume`.

    Examples:
        >>> from composer.train import Callback
        >>> class Best(Callback):
        ...     loss = float("inf")
        ...
        ...     def logged(self, line):
        ...         self.loss = min(self.loss, line.get("validation_loss", self.loss))
        >>> best = Best()
        >>> best.logged({"step": 5, "loss": 2.0, "validation_loss": 1.5})
        >>> best.loss
        1.5
    """

    def check(self, model: nn.Module, settings: TrainSettings) -> None:
        """Check a run before anything is written.

        Args:
            model: The model that is going to train.
            settings: The settings of the run.

        Raises:
            TrainingError: The callback cannot follow such a run.
        """

    def begin(self, run: RunStart) -> None:
        """Begin to follow a run, before its first step.

        Args:
            run: The model, the settings and the folder of the run.
        """

    def before_step(self, step: int, *, logged: bool) -> None:
        """Prepare for a step, before its forward pass.

        Args:
            step: The number of the step, from 1.
            logged: Whether the step is written to the file of metrics.
        """

    def after_backward(self, step: int) -> None:
        """Look at the gradients of a step: all of them, before they are clipped and the weights change.

        Args:
            step: The number of the step.
        """

    def metrics(self, line: Mapping[str, float | int]) -> Mapping[str, float]:
        """Return further entries for a line of the file of metrics; those that are not finite are left out.

        Args:
            line: The entries so far.
        """
        return {}

    def logged(self, line: Mapping[str, float | int]) -> None:
        """Take a line that was written to the file of metrics.

        Args:
            line: All its entries, with those of the validation if there was one.
        """

    def end(self) -> None:
        """End, where the run is over or interrupted, also by an error; only after `begin`."""


@dataclass(frozen=True)
class Callbacks:
    """The callbacks of a run as one."""

    each: Sequence[Callback]

    @contextmanager
    def following(self, run: RunStart) -> Iterator[None]:
        """Begin all callbacks, and end those that have begun, in the opposite order."""
        with ExitStack() as stack:
            for callback in self.each:
                callback.begin(run)
                stack.callback(callback.end)
            yield

    def before_step(self, step: int, *, logged: bool) -> None:
        """Tell all of a step that begins."""
        for callback in self.each:
            callback.before_step(step, logged=logged)

    def after_backward(self, step: int) -> None:
        """Tell all that the gradients are complete."""
        for callback in self.each:
            callback.after_backward(step)

    def with_metrics(self, line: Mapping[str, float | int]) -> dict[str, float | int]:
        """Return a line with the entries of all callbacks; none replaces one of the loop."""
        found = dict(line)
        for callback in self.each:
            for name, value in callback.metrics(found).items():
                if isfinite(value):
                    found.setdefault(name, value)
        return found

    def logged(self, line: Mapping[str, float | int]) -> None:
        """Tell all of a line that is written."""
        for callback in self.each:
            callback.logged(line)
