"""Start a run, or resume one."""

from __future__ import annotations

import inspect
import json
from dataclasses import replace
from pathlib import Path

import torch
from torch import nn

from composer.atomic_files import StrPath
from composer.language.tasks import TASKS
from composer.train import metrics
from composer.train.accumulation import shares
from composer.train.data.objectives import Objective, learnable, objective_of
from composer.train.data.text import TextData, read_text
from composer.train.data.tokenizers import Tokenizer, load_tokenizer
from composer.train.device import device_of
from composer.train.errors import TrainingError
from composer.train.loop import Result, fit
from composer.train.losses import task_of
from composer.train.progress import Display, display
from composer.train.run import checkpoint as checkpoints
from composer.train.run.folder import Build, compiled, create, folder_of, open_folder, rebuilt, refuse_changes
from composer.train.settings import TrainSettings, load_settings, save_settings


def train(
    model: nn.Module,
    tokenizer: Tokenizer,
    data: TextData,
    settings: TrainSettings,
    run: StrPath,
    *,
    recipe: str,
    show: Display | None = None,
) -> Result:
    """Train a model in a new run folder.

    Args:
        model: A freshly compiled recipe; it is trained in place, on its device.
        tokenizer: The tokenizer of `data`.
        data: The text, from `tokenize`.
        settings: The hyperparameters.
        run: The run folder to write, which must not contain a run yet.
        recipe: The text that the model was compiled from, `Recipe.text`; resuming compiles it again.
        show: The progress display; by default, a bar on a terminal and lines elsewhere.

    Returns:
        The losses of the finished run, and its folder.

    Raises:
        TrainingError: Model, data and settings do not fit together, the folder contains a run, or the loss is not finite.
        Interrupted: The process was asked to stop; the run can be resumed.

    Examples:
        >>> import composer
        >>> from composer.train import TrainSettings, characters_of, open_run, tokenize, train
        >>> text = "to be or not to be\\n" * 20
        >>> tokenizer = characters_of(text)
        >>> tiny = {"n_layers": 2, "d_model": 32, "n_heads": 4, "context": 16, "vocab": tokenizer.size}
        >>> recipe = composer.load("gpt2", tiny)
        >>> data = tokenize(text, tokenizer, path="hamlet.txt")
        >>> settings = TrainSettings(steps=2, batch_size=2, seq_len=8, log_every=100)
        >>> result = train(recipe.compile(seed=0), tokenizer, data, settings, "runs/hamlet", recipe=recipe.text)
        step 2/2  loss …
        validation at step 2: …
        >>> open_run("runs/hamlet").step
        2
    """
    objective = objective_of(learnable(task_of(model)), tokenizer)
    objective.check(data, settings.seq_len)
    check_vocabulary(model, tokenizer)
    check_inputs(model, data, settings, objective)
    check_accumulation(model, data, settings, objective)
    folder = create(Path(run), recipe=recipe, settings=settings, tokenizer=tokenizer, data=data)
    return fit(model, data, settings, folder, objective=objective, display=show or display())


def resume(
    run: StrPath,
    *,
    build: Build = compiled,
    steps: int | None = None,
    settings: TrainSettings | None = None,
    recipe: str | None = None,
    data: StrPath | None = None,
    checkpoint: str | None = None,
    show: Display | None = None,
) -> Result:
    """Continue a run from a checkpoint, exactly as if it had not stopped.

    Changes that would affect the result are rejected, except for `steps`: more of them stretch the cosine of the learning rate.

    Args:
        run: The run folder.
        build: Compiles the text of the recipe; pass your own if the recipe uses blocks of yours.
        steps: The total number of steps, in place of that of the settings.
        settings: The settings; only those that do not affect the result may differ, such as `log_every`.
        recipe: The text of the recipe, to check that it has not changed.
        data: The path of the text file, if it has moved.
        checkpoint: The name of a checkpoint, such as `step-000500`; by default, the latest.
        show: The progress display, as for `train`.

    Returns:
        The losses of the finished run, and its folder.

    Raises:
        RecipeError: The recipe does not compile, such as for lack of your own blocks.
        TrainingError: The folder is not a run folder, all its steps are done, or a change would affect the result.
        Interrupted: The process was asked to stop; the run can be resumed.

    Examples:
        >>> import composer
        >>> from pathlib import Path
        >>> from composer.train import TrainSettings, characters_of, resume, tokenize, train
        >>> text = "to be or not to be\\n" * 20
        >>> written = Path("hamlet.txt").write_text(text)
        >>> tokenizer = characters_of(text)
        >>> tiny = {"n_layers": 2, "d_model": 32, "n_heads": 4, "context": 16, "vocab": tokenizer.size}
        >>> recipe = composer.load("gpt2", tiny)
        >>> data = tokenize(text, tokenizer, path="hamlet.txt")
        >>> settings = TrainSettings(steps=2, batch_size=2, seq_len=8, log_every=100)
        >>> result = train(recipe.compile(seed=0), tokenizer, data, settings, "runs/hamlet", recipe=recipe.text)
        step 2/2  loss …
        validation at step 2: …
        >>> resume("runs/hamlet", steps=3).step
        step 3/3  loss …
        validation at step 3: …
        3
    """
    folder = open_folder(Path(run))
    text_path = Path(data or json.loads(folder.data.read_text(encoding="utf-8"))["path"])
    tokenizer = load_tokenizer(folder.tokenizer)
    content = read_text(text_path)
    refuse_changes(folder, recipe=recipe, settings=settings, text=content, path=text_path)
    settings = settings or load_settings(folder.settings)
    settings = settings if steps is None else replace(settings, steps=steps)
    start = checkpoints.load(folder_of(folder, checkpoint))
    if start.step >= settings.steps:
        raise TrainingError(
            f"{run} has already completed its {start.step} steps", hint="increase the number of steps to continue"
        )
    model = rebuilt(folder, build)
    objective = objective_of(learnable(task_of(model)), tokenizer)
    text = objective.tokenize(content, path=text_path)
    save_settings(settings, folder.settings)
    metrics.rewind(folder.metrics, start.step)
    return fit(model, text, settings, folder, objective=objective, display=show or display(), start=start)


def check_inputs(model: nn.Module, data: TextData, settings: TrainSettings, objective: Objective) -> None:
    """Raise `TrainingError` if the model lacks an input that every batch has."""
    batch = objective.draw(data, batch_size=1, seq_len=settings.seq_len, generator=torch.Generator())
    known = {*inspect.signature(model.forward).parameters, TASKS[learnable(task_of(model))].targets}
    for name in batch.keys() - known:
        raise TrainingError(
            f"sequences of unequal length are padded, but the model has no input `{name}` for the padding mask",
            hint=f'add inputs: {{{name}: "bool[batch, {name.removesuffix("_valid")}_time]?"}}, and pass it on: '
            f"`valid({name})` in masks, `valid: {name}` to recurrent layers and `pool`",
        )


def check_accumulation(model: nn.Module, data: TextData, settings: TrainSettings, objective: Objective) -> None:
    """Raise `TrainingError` if accumulated batches do not equal one large batch."""
    one = objective.draw(data, batch_size=1, seq_len=settings.seq_len, generator=torch.Generator())
    shares(model, [one] * settings.grad_accum, [1] * settings.grad_accum, task_of(model) or "")


@torch.no_grad()
def check_vocabulary(model: nn.Module, tokenizer: Tokenizer) -> None:
    """Raise `TrainingError` if the tokenizer has more tokens than the model."""
    training = model.training
    token = torch.zeros(1, 1, dtype=torch.int64, device=device_of(model))
    given = dict.fromkeys(TASKS[learnable(task_of(model))].inputs, token)
    known = model.eval()(**given).logits.shape[-1]
    model.train(training)
    if known < tokenizer.size:
        raise TrainingError(
            f"the model has a vocabulary of {known} tokens, the tokenizer one of {tokenizer.size}",
            hint=f"set the recipe's vocabulary to {tokenizer.size}",
        )
