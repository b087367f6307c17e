"""Opening a trained model from its run folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import nn

from composer.atomic_files import StrPath
from composer.diagnostics import Diagnostic, RecipeError, Source
from composer.graph.types import TensorType
from composer.language.tasks import TASKS
from composer.lower.model import Model
from composer.train.data.forecasting.windows import FORECAST
from composer.train.data.objectives import TEXT_TASKS, learnable, objective_of
from composer.train.data.tokenizers import Tokenizer
from composer.train.device import device_of
from composer.train.errors import TrainingError
from composer.train.losses import task_of
from composer.train.run.manifest import step_of
from composer.train.run.reader import SavedRun, read_run
from composer.train.run.state import load_weights
from composer.train.settings import TrainSettings
from composer.train.techniques.average import load_averages

Build = Callable[[str], nn.Module]
"""A function that compiles the text of a recipe to a model on its device."""


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained model with its tokenizer and settings, opened from a run folder."""

    model: nn.Module
    tokenizer: Tokenizer
    settings: TrainSettings
    step: int
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For each target that is a class, the names of the classes in the order of the model's scores; with a table only."""
    scales: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Of a model that forecasts, the mean and the deviation of each column by which its numbers are standardized."""


def open_run(path: StrPath, *, build: Build | None = None, checkpoint: str | None = None) -> Trained:
    """Return the trained model of a run with its tokenizer and settings.

    It reads the recipe, the settings, the tokenizer and the weights, and the names of classes if the model tells any, each
    compared with the manifest of the run first. What only the next step of training needs, such as the state of the optimizer, is
    not read and may be damaged or gone.

    Args:
        path: The run folder.
        build: Compiles the text of the recipe; pass your own if the recipe uses blocks of yours.
        checkpoint: The name of a checkpoint, such as `step-000500`; by default, the latest.

    Raises:
        TrainingError: The folder is not a run folder, there is no such checkpoint, or one of these files is missing or damaged.
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
    run = read_run(Path(path))
    name = run.name(checkpoint)
    weights, step = run.weights(name), step_of(name)
    tokenizer, settings = run.tokenizer, run.settings
    model = rebuilt(run, build or compiled)
    load_weights(weights, step, model)
    if settings.average:
        load_averages(model, run.moments(name))
    task = task_of(model)
    if task is not None and task in TEXT_TASKS:
        program = model.program if isinstance(model, Model) else None
        objective_of(task, tokenizer, settings, program=program)  # raises if the tokenizer lacks what the task needs
    check_vocabulary(model, tokenizer)
    forecasts = settings.objective == FORECAST
    labels = {} if task in TEXT_TASKS else {name: tuple(known) for name, known in run.data.labels.items()}
    scales = {name: (mean, deviation) for name, (mean, deviation) in run.data.scales.items()} if forecasts else {}
    return Trained(model.eval(), tokenizer, settings, step, labels, scales)


def rebuilt(run: SavedRun, build: Build) -> nn.Module:
    """Return the model of the recipe in a run folder, with its initial weights.

    Raises:
        RecipeError: The recipe does not compile, such as for lack of the user's own blocks; mistakes are located in its file.
    """
    text = run.recipe
    try:
        return build(text)
    except RecipeError as error:
        file = Source(str(run.folder.recipe), text)
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


def compiled(recipe: str) -> nn.Module:
    """Compile the text of a recipe for the GPU if there is one, else for the CPU."""
    from composer.loading import load

    return load(recipe).compile(device="cuda" if torch.cuda.is_available() else "cpu")


def check_vocabulary(model: nn.Module, tokenizer: Tokenizer) -> None:
    """Raise `TrainingError` if the tokenizer has more tokens than the model."""
    known = vocabulary_of(model)
    if known is not None and known < tokenizer.size:
        raise TrainingError(
            f"the model has a vocabulary of {known} tokens, the tokenizer one of {tokenizer.size}",
            hint=f"set the recipe's vocabulary to {tokenizer.size}",
        )


@torch.no_grad()
def vocabulary_of(model: nn.Module) -> int | None:
    """Return the number of tokens for which a model has logits; None if it has none, or their type does not say."""
    task = task_of(model)
    if task is None or "logits" not in TASKS[task].outputs or TASKS[task].classifies:
        return None
    if isinstance(model, Model):
        logits = model.program.root.outputs["logits"]
        size = logits.sizes[-1] if isinstance(logits, TensorType) else None
        return size if isinstance(size, int) else None
    training = model.training
    token = torch.zeros(1, 1, dtype=torch.int64, device=device_of(model))
    given = dict.fromkeys(TASKS[learnable(task_of(model))].inputs, token)
    known: int = model.eval()(**given).logits.shape[-1]
    model.train(training)
    return known
