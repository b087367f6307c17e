"""A run: the folder that holds all of it, and how it is started, resumed and opened."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from torch import nn

from composer.atomic_files import StrPath
from composer.train.data.text import TextData
from composer.train.data.tokenizers import Tokenizer, load_tokenizer, save_tokenizer
from composer.train.errors import TrainingError
from composer.train.run import checkpoint as checkpoints
from composer.train.settings import TrainSettings, fixed_changes, load_settings, save_settings

Build = Callable[[str], nn.Module]
"""Compiles a recipe's text to a model on the device it is to run on."""


@dataclass(frozen=True)
class RunFolder:
    """Where a run keeps its things."""

    path: Path

    @property
    def recipe(self) -> Path:
        """The resolved recipe."""
        return self.path / "recipe.yaml"

    @property
    def settings(self) -> Path:
        """The hyperparameters."""
        return self.path / "settings.json"

    @property
    def tokenizer(self) -> Path:
        """The vocabulary."""
        return self.path / "tokenizer.json"

    @property
    def data(self) -> Path:
        """Which text, with its checksum."""
        return self.path / "data.json"

    @property
    def metrics(self) -> Path:
        """The measurements, one line each."""
        return self.path / "metrics.jsonl"

    @property
    def checkpoints(self) -> Path:
        """One folder for each checkpoint that is kept."""
        return self.path / "checkpoints"

    @property
    def resume_command(self) -> str:
        """The command that continues the run."""
        path = str(self.path)
        return f"arco train --resume {path if ' ' not in path else chr(34) + path + chr(34)}"


@dataclass(frozen=True, eq=False)
class Trained:
    """A run opened to be used: the model with the weights of its latest checkpoint."""

    model: nn.Module
    tokenizer: Tokenizer
    settings: TrainSettings
    step: int


def create(path: Path, *, recipe: str, settings: TrainSettings, tokenizer: Tokenizer, data: TextData) -> RunFolder:
    """Write all that a run is, before its first step; refuse a folder that holds one already."""
    run = RunFolder(path)
    if run.settings.exists():
        raise TrainingError(f"{path} is a run folder already", hint=f"continue it with `{run.resume_command}`, or name another")
    path.mkdir(parents=True, exist_ok=True)
    run.recipe.write_text(recipe, encoding="utf-8")
    save_tokenizer(tokenizer, run.tokenizer)
    identity = {"path": str(data.path.absolute()), "sha256": data.sha256}
    run.data.write_text(json.dumps(identity, indent=2) + "\n", encoding="utf-8")
    save_settings(settings, run.settings)
    return run


def open_folder(path: Path) -> RunFolder:
    """Open a run folder. Raise `TrainingError` where the folder is none."""
    run = RunFolder(path)
    for part in (run.recipe, run.settings, run.tokenizer, run.data):
        if not part.exists():
            raise TrainingError(f"{path} is not a run folder: there is no {part.name}")
    return run


def open_run(path: StrPath, *, build: Build | None = None, checkpoint: str | None = None) -> Trained:
    """Return the trained model of a run with its tokenizer and settings.

    Args:
        path: The folder of the run.
        build: Compiles the recipe's text; give your own where the recipe uses blocks of yours.
        checkpoint: The name of a checkpoint such as `step-000500`; the latest by default.

    Raises:
        TrainingError: The folder is no run, or a checkpoint is damaged.
    """
    run = open_folder(Path(path))
    saved = checkpoints.load(folder_of(run, checkpoint))
    model = (build or compiled)(run.recipe.read_text(encoding="utf-8"))
    model.load_state_dict(dict(saved.model))
    return Trained(model.eval(), load_tokenizer(run.tokenizer), load_settings(run.settings), saved.step)


def folder_of(run: RunFolder, checkpoint: str | None) -> Path:
    """Return a checkpoint's folder by its name, the latest by default."""
    return checkpoints.latest(run.checkpoints) if checkpoint is None else run.checkpoints / checkpoint


def compiled(recipe: str) -> nn.Module:
    """Compile the recipe's text for the accelerator, if there is one."""
    import torch

    from composer.recipe import load

    return load(recipe).compile(device="cuda" if torch.cuda.is_available() else "cpu")


def refuse_changes(run: RunFolder, *, recipe: str | None, settings: TrainSettings | None, text: str, path: Path) -> None:
    """Raise `TrainingError`, which says what differs, where a run would go on with something other than it began with."""
    identity = json.loads(run.data.read_text(encoding="utf-8"))
    if hashlib.sha256(text.encode("utf-8")).hexdigest() != identity["sha256"]:
        raise TrainingError(f"{path} is not the text that this run started with: its checksum differs")
    began_with = run.recipe.read_text(encoding="utf-8")
    if recipe is not None and recipe != began_with:
        lines = difflib.unified_diff(began_with.splitlines(), recipe.splitlines(), n=0, lineterm="")
        changed = [line for line in lines if line[0] in "+-" and line[:3] not in ("+++", "---")]
        raise TrainingError(f"the recipe is not the one that this run started with: {'; '.join(changed[:4])}")
    changes = [] if settings is None else fixed_changes(load_settings(run.settings), settings)
    if changes:
        raise TrainingError(f"a resumed run keeps its settings, but {', '.join(changes)}", hint="start a new run to change them")
