"""The run folder: the paths of its files, and whether a new run may be written there."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from composer.train.errors import TrainingError
from composer.train.input_files import mode_of


@dataclass(frozen=True)
class RunFolder:
    """The paths of the files of a run.

    Examples:
        >>> from pathlib import Path
        >>> from composer.train import RunFolder
        >>> RunFolder(Path("runs/hamlet")).metrics.as_posix()
        'runs/hamlet/metrics.jsonl'
    """

    path: Path

    @property
    def manifest(self) -> Path:
        """The checksums of all files that the run depends on."""
        return self.path / "manifest.json"

    @property
    def recipe(self) -> Path:
        """The recipe as one text, with its overrides."""
        return self.path / "recipe.yaml"

    @property
    def settings(self) -> Path:
        """The hyperparameters."""
        return self.path / "settings.json"

    @property
    def tokenizer(self) -> Path:
        """The tokenizer."""
        return self.path / "tokenizer.json"

    @property
    def data(self) -> Path:
        """The path and the checksum of the text."""
        return self.path / "data.json"

    @property
    def metrics(self) -> Path:
        """The metrics, one line per logged step."""
        return self.path / "metrics.jsonl"

    @property
    def checkpoints(self) -> Path:
        """The folder of the checkpoints, with a folder for each."""
        return self.path / "checkpoints"

    @property
    def resume_command(self) -> str:
        """The command that resumes the run."""
        path = str(self.path)
        return f"arco train --resume {path if ' ' not in path else chr(34) + path + chr(34)}"


def new_folder(path: Path) -> RunFolder:
    """Return the run folder to write at a path, without writing anything.

    Raises:
        TrainingError: The folder contains a run, or cannot be written.
    """
    run = RunFolder(path)
    if mode_of(run.manifest) or mode_of(run.settings):
        if mode_of(run.checkpoints):
            hint = f"continue it with `{run.resume_command}`, or choose another folder"
        else:
            hint = "it has no checkpoint to continue from: choose another folder, or remove it if no process trains in it"
        raise TrainingError(f"{path} is a run folder already", hint=hint)
    for part in (run.recipe, run.tokenizer, run.data, run.metrics, run.checkpoints):
        if mode_of(part):
            raise TrainingError(f"{path} contains {part.name} already, which a run would replace", hint="choose another folder")
    existing = next(folder for folder in (path, *path.absolute().parents) if mode_of(folder))
    if not existing.is_dir():
        raise TrainingError(f"{path} cannot be a run folder: {existing} is not a folder", hint="choose another folder")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise TrainingError(f"{path} cannot be written: {existing} is read-only", hint="choose another folder")
    return run
