"""The run folder: creating, checking and opening it."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from torch import nn

from composer.atomic_files import StrPath
from composer.diagnostics import Diagnostic, RecipeError, Source
from composer.train.data.text import TextData
from composer.train.data.tokenizers import Tokenizer, load_tokenizer, save_tokenizer
from composer.train.errors import TrainingError
from composer.train.run import checkpoint as checkpoints
from composer.train.settings import TrainSettings, fixed_changes, load_settings, save_settings

Build = Callable[[str], nn.Module]
"""A function that compiles the text of a recipe to a model on its device."""


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


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained model with its tokenizer and settings, opened from a run folder."""

    model: nn.Module
    tokenizer: Tokenizer
    settings: TrainSettings
    step: int


def new_folder(path: Path) -> RunFolder:
    """Return the run folder to write at a path; raise `TrainingError` if it contains a run."""
    run = RunFolder(path)
    if run.settings.exists():
        raise TrainingError(
            f"{path} is a run folder already", hint=f"continue it with `{run.resume_command}`, or choose another folder"
        )
    return run


def create(path: Path, *, recipe: str, settings: TrainSettings, tokenizer: Tokenizer, data: TextData) -> RunFolder:
    """Write everything of a run but its metrics and checkpoints; raise `TrainingError` if the folder contains a run."""
    run = new_folder(path)
    path.mkdir(parents=True, exist_ok=True)
    run.recipe.write_text(recipe, encoding="utf-8")
    save_tokenizer(tokenizer, run.tokenizer)
    identity = {"path": str(data.path.absolute()), "sha256": data.sha256}
    run.data.write_text(json.dumps(identity, indent=2) + "\n", encoding="utf-8")
    save_settings(settings, run.settings)
    return run


def open_folder(path: Path) -> RunFolder:
    """Return a run folder; raise `TrainingError` if the folder does not contain a run."""
    run = RunFolder(path)
    for part in (run.recipe, run.settings, run.tokenizer, run.data):
        if not part.exists():
            raise TrainingError(f"{path} is not a run folder: there is no {part.name}", hint="`arco train` writes run folders")
    return run


def open_run(path: StrPath, *, build: Build | None = None, checkpoint: str | None = None) -> Trained:
    """Return the trained model of a run with its tokenizer and settings.

    Args:
        path: The run folder.
        build: Compiles the text of the recipe; pass your own if the recipe uses blocks of yours.
        checkpoint: The name of a checkpoint, such as `step-000500`; by default, the latest.

    Raises:
        TrainingError: The folder is not a run folder, or the checkpoint is missing or damaged.
        RecipeError: The recipe does not compile, such as for lack of your own blocks.

    Examples:
        >>> import composer
        >>> from composer.train import TrainSettings, characters_of, open_run, tokenize, train
        >>> text = "to be or not to be\\n" * 20
        >>> tokenizer = characters_of(text)
        >>> recipe = composer.load("gpt_mini", {"vocab": tokenizer.size, "d_model": 16, "n_layers": 1})
        >>> settings = TrainSettings(steps=1, batch_size=2, seq_len=8, log_every=100)
        >>> data = tokenize(text, tokenizer, path="hamlet.txt")
        >>> result = train(recipe.compile(seed=0), tokenizer, data, settings, "runs/hamlet", recipe=recipe.text)
        step 1/1  loss …
        validation at step 1: …
        >>> open_run("runs/hamlet").tokenizer.decode([0, 1])
        '\\n '
    """
    run = open_folder(Path(path))
    saved = checkpoints.load(folder_of(run, checkpoint))
    model = rebuilt(run, build or compiled)
    model.load_state_dict(dict(saved.model))
    return Trained(model.eval(), load_tokenizer(run.tokenizer), load_settings(run.settings), saved.step)


def rebuilt(run: RunFolder, build: Build) -> nn.Module:
    """Return the model of the recipe in a run folder, with its initial weights.

    Raises:
        RecipeError: The recipe does not compile, such as for lack of the user's own blocks; mistakes are located in its file.
    """
    text = run.recipe.read_text(encoding="utf-8")
    try:
        return build(text)
    except RecipeError as error:
        file = Source(str(run.recipe), text)
        raise RecipeError([_located(each, file) for each in error.diagnostics]) from None


def _located(found: Diagnostic, file: Source) -> Diagnostic:
    """Return a diagnostic of a file's text as one of the file."""
    span, labels = found.span, found.labels
    if span.source.text == file.text:
        span = replace(span, source=file)
    moved = (
        replace(each, span=replace(each.span, source=file)) if each.span.source.text == file.text else each for each in labels
    )
    return replace(found, span=span, labels=tuple(moved))


def folder_of(run: RunFolder, checkpoint: str | None) -> Path:
    """Return the folder of a checkpoint by its name, or that of the latest one."""
    return checkpoints.latest(run.checkpoints) if checkpoint is None else run.checkpoints / checkpoint


def compiled(recipe: str) -> nn.Module:
    """Compile the text of a recipe for the GPU if there is one, else for the CPU."""
    import torch

    from composer.recipe import load

    return load(recipe).compile(device="cuda" if torch.cuda.is_available() else "cpu")


def refuse_changes(run: RunFolder, *, recipe: str | None, settings: TrainSettings | None, text: str, path: Path) -> None:
    """Raise `TrainingError` if a resumed run would use another recipe, text or settings; the message names the differences."""
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
