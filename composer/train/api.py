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
    """Train a freshly compiled model where it stands, and keep everything in the new folder `run`.

    `recipe` is the resolved text that the model was compiled from; a resumed run compiles it again.
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
    """Go on from the latest checkpoint, or a named one, as if the run had never stopped.

    `steps`, `settings`, `recipe` and `data` (a file that has moved) may be repeated; whatever would change what the run
    computes is refused. More steps stretch the cosine, from here on.
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
    """Raises: TrainingError where the model has no place for something that comes with every batch."""
    batch = objective.draw(data, batch_size=1, seq_len=settings.seq_len, generator=torch.Generator())
    known = {*inspect.signature(model.forward).parameters, TASKS[learnable(task_of(model))].targets}
    for name in batch.keys() - known:
        raise TrainingError(
            f"sequences of unequal length are padded, and the model has no input `{name}` for the padding mask",
            hint=f'inputs: {{{name}: "bool[batch, {name.removesuffix("_valid")}_time]?"}}, and `valid({name})` in its masks',
        )


def check_accumulation(model: nn.Module, data: TextData, settings: TrainSettings, objective: Objective) -> None:
    """Raises: TrainingError where several batches to a step are not the large one."""
    one = objective.draw(data, batch_size=1, seq_len=settings.seq_len, generator=torch.Generator())
    shares(model, [one] * settings.grad_accum, [1] * settings.grad_accum, task_of(model) or "")


@torch.no_grad()
def check_vocabulary(model: nn.Module, tokenizer: Tokenizer) -> None:
    """Raises: TrainingError where the tokenizer makes tokens that the model does not have."""
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
