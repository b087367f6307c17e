"""Callbacks that write the metrics of a run for the viewers of other projects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from composer.train.errors import TrainingError
from composer.train.following.callbacks import Callback, RunStart

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import nn

    from composer.train.settings import TrainSettings


class TensorBoard(Callback):
    """Writes the metrics for TensorBoard, into the folder `tensorboard` of the run: `tensorboard --logdir RUN`.

    A resumed run hides what was written after its checkpoint, as TensorBoard does with `purge_step`.

    Examples:
        >>> from composer.train import TensorBoard
        >>> TensorBoard().logged({"step": 1, "loss": 2.5})  # nothing before a run begins
    """

    def __init__(self, folder: Path | str | None = None) -> None:
        """Choose the folder.

        Args:
            folder: The folder to write into; by default, `tensorboard` in that of the run.
        """
        self.folder = None if folder is None else Path(folder)
        self._writer: Any = None  # torch's own, which leaves its methods untyped

    def check(self, model: nn.Module, settings: TrainSettings) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise missing("tensorboard", "TensorBoard") from None
        del SummaryWriter

    def begin(self, run: RunStart) -> None:
        from torch.utils.tensorboard import SummaryWriter

        folder = self.folder or run.folder.path / "tensorboard"
        try:
            self._writer = SummaryWriter(str(folder), purge_step=run.step + 1 if run.step else None)
        except OSError as error:
            raise TrainingError(f"cannot write {folder}: {error.strerror or error}", hint="choose another folder") from None
        if not run.step:
            self._writer.add_text("recipe", _as_code(run.recipe))
            self._writer.add_text("settings", _as_code("\n".join(f"{name}: {v}" for name, v in asdict(run.settings).items())))

    def logged(self, line: Mapping[str, float | int]) -> None:
        if self._writer is None:
            return
        for name, value in line.items():
            if name != "step":
                self._writer.add_scalar(name, value, int(line["step"]))
        self._writer.flush()

    def end(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None


class WeightsAndBiases(Callback):
    """Writes the metrics for Weights & Biases, into the folder `wandb` of the run, without any connection: what is in it is sent
    by `wandb sync RUN/wandb/offline-run-…`, if you want that.

    A resumed run is a further one there, in the group that has the name of the run folder.

    Examples:
        >>> from composer.train import WeightsAndBiases
        >>> WeightsAndBiases(project="hamlet").logged({"step": 1, "loss": 2.5})  # nothing before a run begins
    """

    def __init__(self, *, project: str = "composer") -> None:
        """Name the project.

        Args:
            project: The project that the runs belong to.
        """
        self.project = project
        self._run: Any = None  # of a package that need not be installed

    def check(self, model: nn.Module, settings: TrainSettings) -> None:
        try:
            import wandb
        except ImportError:
            raise missing("wandb", "Weights & Biases") from None
        del wandb

    def begin(self, run: RunStart) -> None:
        import wandb

        name = run.folder.path.name
        self._run = wandb.init(
            project=self.project,
            name=name if not run.step else f"{name} from step {run.step}",
            group=name,
            dir=str(run.folder.path),
            mode="offline",
            config={**asdict(run.settings), "recipe": run.recipe},
            settings=wandb.Settings(silent=True, console="off", save_code=False, disable_git=True),
        )

    def logged(self, line: Mapping[str, float | int]) -> None:
        if self._run is not None:
            self._run.log({name: value for name, value in line.items() if name != "step"}, step=int(line["step"]))

    def end(self) -> None:
        if self._run is not None:
            self._run.finish()
            self._run = None


def missing(package: str, viewer: str) -> TrainingError:
    """Return the error of a package that is not installed."""
    return TrainingError(f"writing for {viewer} needs the package {package}", hint=f"pip install {package}")


def _as_code(text: str) -> str:
    """Return a text as Markdown shows it unchanged."""
    return "\n".join(f"    {line}" for line in text.splitlines())


TRACKERS: Mapping[str, Callable[[], Callback]] = {"tensorboard": TensorBoard, "wandb": WeightsAndBiases}
"""The viewers, by the name that the command line takes."""
