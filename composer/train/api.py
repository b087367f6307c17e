"""Start a run, or resume one."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from composer.atomic_files import StrPath
from composer.language.tasks import TASKS
from composer.lower.int8 import refuse_int8
from composer.lower.model import Model
from composer.train.compile_choice import compile_choice
from composer.train.data.documents import read_documents, sources_of
from composer.train.data.examples import ExampleData, Examples, TrainingData
from composer.train.data.mixtures import mixed, weighed
from composer.train.data.objectives import Batches, Objective, check_mixture, objective_of, reads_plain
from composer.train.data.preferences import examples_for
from composer.train.data.prefixes import prefix_input
from composer.train.data.prepared.prepare import text_of_run
from composer.train.data.prepared.text_cache import DEFAULT
from composer.train.data.tables import is_table, read_table
from composer.train.data.text import TextData, fingerprint
from composer.train.data.tokenizers import Tokenizer
from composer.train.errors import TrainingError
from composer.train.following.callbacks import Callback
from composer.train.input_files import reason_of
from composer.train.loop import Result, fit
from composer.train.losses import Batch, task_of
from composer.train.memory import check_batch
from composer.train.objective_kinds import check_objective
from composer.train.optimization.accumulation import shares
from composer.train.optimization.width_transfer import width_scales
from composer.train.progress import Display, display
from composer.train.reference import ReferenceModel, check_reference, criterion_of, reopened, validation_criterion
from composer.train.run.checkpoint import changed_environment
from composer.train.run.folder import new_folder
from composer.train.run.lock import locked
from composer.train.run.reader import SavedRun, read_run, why_not_whole
from composer.train.run.trained import Build, check_vocabulary, compiled, rebuilt
from composer.train.run.writer import RunWriter, pending
from composer.train.settings import MAX_DATA_BYTES, TrainSettings, fixed_changes
from composer.train.starts import freeze
from composer.train.techniques.recompute import matching

D = TypeVar("D")


def train(
    model: nn.Module,
    tokenizer: Tokenizer,
    data: TrainingData,
    settings: TrainSettings,
    run: StrPath,
    *,
    recipe: str,
    reference: ReferenceModel | None = None,
    show: Display | None = None,
    callbacks: Sequence[Callback] = (),
) -> Result:
    """Train a model in a new run folder.

    Args:
        model: A freshly compiled recipe; it is trained in place, on its device.
        tokenizer: The tokenizer of `data`.
        data: The text, from `tokenize` or `prepare`, or examples, from `examples_of`.
        settings: The hyperparameters.
        run: The run folder to write, which must not contain a run yet.
        recipe: The text that the model was compiled from, `Recipe.text`; resuming compiles it again.
        reference: A second model that is read and never changed: what the objective dpo compares with, or else a teacher.
        show: The progress display; by default, a bar on a terminal and lines elsewhere.
        callbacks: What follows the run, such as `TensorBoard()` or `GradientNorms()`; it is no part of the run.

    Returns:
        The losses of the finished run, and its folder.

    Raises:
        TrainingError: Model, data and settings do not fit together, the folder contains a run or cannot be written, or the loss
            is not finite.
        Int8Error: The model has weights of 8 bits.
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
    refuse_int8(model, "be trained")
    objective = batches_of(model, tokenizer, data, settings)
    objective.check(data, settings.seq_len)
    check_batch(settings, windows=objective.windows)
    check_vocabulary(model, tokenizer)
    check_inputs(model, data, settings, objective)
    check_accumulation(model, data, settings, objective)
    criterion = criterion_of(model, settings, reference)
    if reference is not None:
        check_reference(model, tokenizer, data, one_of(objective, data, settings), reference)
    if reason := why_not_whole(recipe):
        raise TrainingError(f"`recipe` is not the whole text of a recipe: {reason}", hint="pass `Recipe.text`")
    freeze(model, settings.freeze)
    if settings.mup:
        width_scales(model, settings.mup, optimizer=settings.optimizer)  # what does not fit is told before anything is written
    matching(model, settings.recompute)
    for callback in callbacks:
        callback.check(model, settings)
    folder, show = new_folder(Path(run)).path, show or display()
    if settings.compile == "auto":
        choice = compile_choice(model, data, settings, objective, criterion, callbacks)
        settings = replace(settings, compile=choice.mode)
        show.note(str(choice))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TrainingError(f"cannot write {folder}: {reason_of(error)}", hint="choose another folder") from None
    with locked(folder) as lock:
        identity = None if reference is None else reference.identity
        writer = RunWriter.begin(lock, recipe=recipe, settings=settings, tokenizer=tokenizer, data=data, reference=identity)
        return fit(
            model, data, settings, writer, objective=objective, display=show, recipe=recipe, callbacks=callbacks,
            criterion=criterion, validated_by=validation_criterion(criterion),
        )  # fmt: skip


def resume(
    run: StrPath,
    *,
    build: Build = compiled,
    steps: int | None = None,
    settings: TrainSettings | None = None,
    recipe: str | None = None,
    data: StrPath | Sequence[StrPath] | None = None,
    max_data_bytes: int = MAX_DATA_BYTES,
    cache: StrPath = DEFAULT,
    checkpoint: str | None = None,
    reference: StrPath | None = None,
    show: Display | None = None,
    callbacks: Sequence[Callback] = (),
) -> Result:
    """Continue a run from a checkpoint, exactly as if it had not stopped.

    Changes that would affect the result are rejected, except for `steps`: more of them stretch the cosine of the learning rate.

    Args:
        run: The run folder.
        build: Compiles the text of the recipe; pass your own if the recipe uses blocks of yours.
        steps: The total number of steps, in place of that of the settings.
        settings: The settings; only those that do not affect the result may differ, such as `log_every`.
        recipe: The text of the recipe, to check that it has not changed.
        data: The path of the text file, the paths and patterns of several, or a prepared text, if they have moved.
        max_data_bytes: The largest size of the text that is read, decompressed.
        cache: The folder of the cache of prepared texts, as for `prepare`.
        checkpoint: The name of a checkpoint, such as `step-000500`; by default, the latest.
        reference: The folder of the reference or teacher, if it has moved.
        show: The progress display, as for `train`.
        callbacks: What follows the run from here on, as for `train`.

    Returns:
        The losses of the finished run, and its folder.

    Raises:
        RecipeError: The recipe does not compile, such as for lack of your own blocks.
        TrainingError: The folder is not a run folder, is damaged or in use, all its steps are done, a change would affect the
            result, or the folder cannot be written.
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
    path = Path(run)
    read_run(path)  # a lock is not left in a folder that is none
    with locked(path) as lock:
        saved = read_run(path)
        name = saved.name(checkpoint)
        settings = refuse_changes(saved, recipe=recipe, settings=settings)
        settings = settings if steps is None else replace(settings, steps=steps)
        start = saved.checkpoint(name)
        report = pending(saved, start)
        if start.step > settings.steps or (start.step == settings.steps and report is None):
            raise TrainingError(
                f"{run} has already completed its {start.step} steps", hint="increase the number of steps to continue"
            )
        model = rebuilt(saved, build)
        freeze(model, settings.freeze)
        check_vocabulary(model, saved.tokenizer)
        sources = sources_of(data) if data else saved.data.paths
        again = read_again(model, saved, sources, max_data_bytes, cache)
        objective = batches_of(model, saved.tokenizer, again, settings)
        objective.check(again, settings.seq_len)
        check_inputs(model, again, settings, objective)
        known = saved.data.reference
        if known is None and reference is not None:
            raise TrainingError(f"{run} has neither a reference nor a teacher", hint="leave out the one given")
        second = None if known is None else reopened(known, reference, build)
        criterion = criterion_of(model, settings, second)
        for callback in callbacks:
            callback.check(model, settings)
        show = show or display()
        if differs := changed_environment(start):
            show.note(f"{name} was computed otherwise, so the last bits of what follows may differ: {differs}")
        writer = RunWriter.go_on(lock, saved, name=name, settings=settings)
        return fit(
            model, again, settings, writer, objective=objective, display=show, start=start, report=report,
            recipe=saved.recipe, callbacks=callbacks, criterion=criterion, validated_by=validation_criterion(criterion),
        )  # fmt: skip


def batches_of(model: nn.Module, tokenizer: Tokenizer, data: TrainingData, settings: TrainSettings) -> Batches[Any]:
    """Return what makes batches of data for a model."""
    table = isinstance(data, ExampleData)
    check_objective(settings.objective, task_of(model), table=table, end_tokens=settings.end_tokens)
    if isinstance(data, ExampleData):
        return Examples()
    objective = text_objective(model, tokenizer, settings)
    check_mixture(objective, data.weights)
    return objective


def text_objective(model: nn.Module, tokenizer: Tokenizer, settings: TrainSettings) -> Objective:
    """Return what a model learns from a text."""
    program = model.program if isinstance(model, Model) else None
    return objective_of(task_of(model), tokenizer, settings, program=program)


def read_again(model: nn.Module, saved: SavedRun, sources: Sequence[StrPath], max_bytes: int, cache: StrPath) -> TrainingData:
    """Return the data that a run started with.

    Raises:
        TrainingError: It has changed, or cannot be read.
    """
    names = " and ".join(map(str, sources))
    if isinstance(model, Model) and any(is_table(source, pairs=task_of(model) == "seq2seq_lm") for source in sources):
        table = read_table(sources, max_bytes=max_bytes)
        if table.sha256 != saved.data.sha256:
            raise TrainingError(f"{names} is not the table that this run started with: its checksum differs")
        kept = saved.settings
        examples = examples_for(
            kept.objective,
            table,
            model.program,
            saved.tokenizer,
            columns=kept.columns,
            seq_len=kept.seq_len,
            scales=saved.data.scales or None,
            sample_rate=kept.sample_rate,
        )
        return mixed(examples, saved.data.weights) if saved.data.weights else examples
    other = TrainingError(f"{names} is not the text that this run started with: its checksum differs")
    objective = text_objective(model, saved.tokenizer, saved.settings)
    if reads_plain(objective):
        found = text_of_run(
            sources, saved.tokenizer, sha256=saved.data.sha256, max_bytes=max_bytes, weights=saved.data.weights, cache=cache
        )
        if found is None:
            raise other
        return found
    documents = read_documents(sources, max_bytes=max_bytes)
    if fingerprint(documents) != saved.data.sha256:
        raise other
    return weighed(objective.tokenize(documents, path=sources), saved.data.weights, documents, sources)


def refuse_changes(saved: SavedRun, *, recipe: str | None, settings: TrainSettings | None) -> TrainSettings:
    """Return the settings of a resumed run.

    Raises:
        TrainingError: The run would use another recipe or other settings; the message names the differences.
    """
    if settings is not None and settings.compile == "auto":
        settings = replace(settings, compile=saved.settings.compile)  # the choice of its start
    began_with = saved.recipe
    if recipe is not None and recipe != began_with:
        lines = difflib.unified_diff(began_with.splitlines(), recipe.splitlines(), n=0, lineterm="")
        changed = [line for line in lines if line[0] in "+-" and line[:3] not in ("+++", "---")]
        raise TrainingError(f"the recipe is not the one that this run started with: {'; '.join(changed[:4])}")
    changes = [] if settings is None else fixed_changes(saved.settings, settings)
    if changes:
        raise TrainingError(f"a resumed run keeps its settings, but {', '.join(changes)}", hint="start a new run to change them")
    return settings or saved.settings


def one_of(objective: Batches[D], data: D, settings: TrainSettings) -> Batch:
    """Return a batch of one sequence, or of one row."""
    return objective.draw(data, batch_size=1, seq_len=settings.seq_len, generator=torch.Generator())


def check_inputs(model: nn.Module, data: D, settings: TrainSettings, objective: Batches[D]) -> None:
    """Raise `TrainingError` if the model lacks an input that every batch has, or needs one that no batch has."""
    batch = one_of(objective, data, settings)
    parameters = inspect.signature(model.forward).parameters
    for name, parameter in parameters.items():
        if name not in batch and parameter.default is parameter.empty:
            given = "a text" if isinstance(data, TextData) else "the table"
            gives = " and ".join(f"`{each}`" for each in batch if each in parameters)
            raise TrainingError(
                f"the model needs the input `{name}`, and {given} gives only {gives}",
                hint=hint_for(model, name),
            )
    task = task_of(model)
    known = {*parameters, *([TASKS[task].targets] if task is not None else [])}
    for name in batch.keys() - known:
        raise TrainingError(
            f"sequences of unequal length are padded, but the model has no input `{name}` for the padding mask",
            hint=f'add inputs: {{{name}: "bool[batch, {name.removesuffix("_valid")}_time]?"}}, and pass it on: '
            f"`valid({name})` in masks, `valid: {name}` to recurrent layers and `pool`",
        )


def hint_for(model: nn.Module, name: str) -> str:
    """Return what to do about an input that no batch has."""
    if isinstance(model, Model) and name == prefix_input(model.program):
        return "learn it from the columns prompt and answer of a table, or from a text with --objective prefix_lm"
    return "make it optional with `?`, give it a default, or train in a loop of your own with `composer.loss`"


def check_accumulation(model: nn.Module, data: D, settings: TrainSettings, objective: Batches[D]) -> None:
    """Raise `TrainingError` if accumulated batches do not equal one large batch."""
    one = one_of(objective, data, settings)
    shares(model, [one] * settings.grad_accum, [1] * settings.grad_accum, task_of(model) or "")
