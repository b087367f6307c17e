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
from composer.train.run.folder import Build, compiled, create, folder_of, open_folder, refuse_changes
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
    """Train a model, and keep everything about the run in a new folder.

    Args:
        model: A freshly compiled recipe; it is trained in place, on the device that it is on.
        tokenizer: What made the tokens of `data`.
        data: The text, from `tokenize`.
        settings: The hyperparameters.
        run: The folder of the run, which must not hold one yet.
        recipe: The text that the model was compiled from, `Recipe.text`; a resumed run compiles it again.
        show: Where progress goes; a bar on a terminal and lines elsewhere by default.

    Raises:
        TrainingError: Model, data and settings do not go together, the folder holds a run, or the loss stops being a number.
        Interrupted: The process was asked to stop; the run can be resumed.

    Examples:
        >>> import composer
        >>> from composer.train import TrainSettings, characters_of, open_run, tokenize, train
        >>> text = "to be or not to be\\n" * 20
        >>> tokenizer = characters_of(text)
        >>> tiny = {**{"n_layers": 2, "d_model": 32, "n_heads": 4, "vocab": 61, "context": 16}, "vocab": tokenizer.size}
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
    """Continue a run from a checkpoint, exactly as if it had never stopped.

    What would change what the run computes is refused. More steps stretch the learning rate's cosine from here on.

    Args:
        run: The folder of the run.
        build: Compiles the recipe's text; give your own where the recipe uses blocks of yours.
        steps: How many steps the run makes in all, in place of the settings' number.
        settings: The settings, which may differ in what does not change the computation, such as `log_every`.
        recipe: The recipe's text, to be sure that it is still the same.
        data: The file of the text, where it has moved.
        checkpoint: The name of a checkpoint such as `step-000500`; the latest by default.
        show: Where progress goes.

    Raises:
        TrainingError: The folder is no run, the run has made all its steps, or something would change what it computes.
        Interrupted: The process was asked to stop; the run can be resumed.
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
        raise TrainingError(f"{run} has already completed its {start.step} steps", hint="set more steps to continue")
    model = build(folder.recipe.read_text(encoding="utf-8"))
    objective = objective_of(learnable(task_of(model)), tokenizer)
    text = objective.tokenize(content, path=text_path)
    save_settings(settings, folder.settings)
    metrics.rewind(folder.metrics, start.step)
    return fit(model, text, settings, folder, objective=objective, display=show or display(), start=start)


def check_inputs(model: nn.Module, data: TextData, settings: TrainSettings, objective: Objective) -> None:
    """Raise `TrainingError` where the model has no place for something that comes with every batch."""
    batch = objective.draw(data, batch_size=1, seq_len=settings.seq_len, generator=torch.Generator())
    known = {*inspect.signature(model.forward).parameters, TASKS[learnable(task_of(model))].targets}
    for name in batch.keys() - known:
        raise TrainingError(
            f"sequences of unequal length are padded, and the model has no input `{name}` for the padding mask",
            hint=f'inputs: {{{name}: "bool[batch, {name.removesuffix("_valid")}_time]?"}}, and `valid({name})` in its masks',
        )


def check_accumulation(model: nn.Module, data: TextData, settings: TrainSettings, objective: Objective) -> None:
    """Raise `TrainingError` where several batches to a step are not the large one."""
    one = objective.draw(data, batch_size=1, seq_len=settings.seq_len, generator=torch.Generator())
    shares(model, [one] * settings.grad_accum, [1] * settings.grad_accum, task_of(model) or "")


@torch.no_grad()
def check_vocabulary(model: nn.Module, tokenizer: Tokenizer) -> None:
    """Raise `TrainingError` where the tokenizer makes tokens that the model does not have."""
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
