"""What a run folder tells of a run, without its weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

from composer.train.errors import TrainingError
from composer.train.input_files import opened, typed_json
from composer.train.run.reader import METRICS_LIMIT, RESTORE, read_run
from composer.train.settings import TrainSettings

Line = Mapping[str, float | int]


@dataclass(frozen=True)
class RunRecord:
    """The recipe, the settings, the data and the metrics of a run."""

    path: Path
    recipe: str
    settings: TrainSettings
    data: tuple[str, ...]
    """The paths of what it trains on."""
    lines: Sequence[Line]
    """The lines of the file of metrics, by step."""

    def series(self, name: str) -> list[tuple[float, float]]:
        """Return step and value of an entry, where it is finite."""
        return [(line["step"], line[name]) for line in self.lines if isfinite(line.get(name, float("nan")))]

    def names(self, start: str) -> Iterator[str]:
        """Yield the rest of all names that begin with a text, in order of appearance."""
        found = dict.fromkeys(name for line in self.lines for name in line if name.startswith(start))
        return (name.removeprefix(start) for name in found)

    def last(self, name: str) -> float | None:
        """Return the last value of an entry; None without any."""
        found = self.series(name)
        return found[-1][1] if found else None

    def best_validation(self) -> tuple[float, float] | None:
        """Return step and loss of the best validation; None without any."""
        return min(self.series("validation_loss"), key=lambda each: each[1], default=None)


def read_record(path: Path) -> RunRecord:
    """Return what a run folder tells, also of a run that is going on: with the lines after its last checkpoint.

    Raises:
        TrainingError: It is not a run folder, has no metrics yet, or a file of it is damaged.
    """
    run = read_run(path)
    name = run.manifest.latest
    sealed = b"" if name is None else run.metrics(name)
    metrics = run.folder.metrics
    if not metrics.exists() and name is None:
        raise TrainingError(f"{path} has no metrics yet", hint="look again after the first logged step")
    with opened(metrics, follow=False) as file:
        file.seek(len(sealed))
        more = file.read(METRICS_LIMIT + 1 - len(sealed))
    if len(sealed) + len(more) > METRICS_LIMIT:
        raise TrainingError(f"{metrics} has more than {METRICS_LIMIT:,} bytes", hint=RESTORE)
    content = sealed + more[: more.rfind(b"\n") + 1]  # a line that is being written is left out
    lines = typed_json(b"[" + b",".join(content.splitlines()) + b"]", list[dict[str, float | int]], metrics)
    if not lines:
        raise TrainingError(f"{path} has no metrics yet", hint="look again after the first logged step")
    if any("step" not in line for line in lines):
        raise TrainingError(f"{metrics} is not one of metrics: a line has no step")
    return RunRecord(path, run.recipe, run.settings, tuple(run.data.paths), lines)
