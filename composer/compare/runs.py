"""The runs of an experiment: a run folder for each variant and seed, each finished once."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from composer.atomic_files import StrPath
from composer.compare.experiment import Experiment
from composer.compare.planning import PlannedVariant, plan_of, sound_recipe
from composer.compare.results import ExperimentResult, RunResult, VariantResult, compared
from composer.own_blocks import Blocks
from composer.recipe import Recipe
from composer.train import (
    Objective,
    TextData,
    TextDocument,
    Tokenizer,
    TrainingError,
    TrainSettings,
    learnable,
    make_tokenizer,
    marked,
    objective_of,
    read_documents,
    resume,
    train,
)
from composer.train.data.ended import learned_from
from composer.train.data.fitting import with_padding
from composer.train.data.objectives import whole_text
from composer.train.data.text import fingerprint
from composer.train.input_files import reason_of
from composer.train.loop import build_optimizer, update
from composer.train.objective_kinds import check_objective
from composer.train.progress import Display, display
from composer.train.run import disk
from composer.train.run.folder import RunFolder
from composer.train.run.lock import locked
from composer.train.run.reader import SavedRun, read_run
from composer.train.settings import MAX_DATA_BYTES, fixed_changes

WARM, TIMED = 3, 12
"""Steps that are taken before the speed of a model is measured, and while it is, at least."""
TIMED_SECONDS = 2.0
"""How long the speed of a model is measured, at least."""


@dataclass(frozen=True, eq=False)
class Material:
    """What all runs of an experiment have in common."""

    experiment: Experiment
    documents: Sequence[TextDocument]
    tokenizer: Tokenizer
    data: TextData
    objective: Objective
    folder: Path
    device: str


def compare(
    experiment: Experiment,
    folder: StrPath,
    *,
    blocks: Blocks = (),
    device: str | None = None,
    max_data_bytes: int = MAX_DATA_BYTES,
    tell: Callable[[str], None] | None = None,
    show: Callable[[], Display] | None = None,
) -> ExperimentResult:
    """Train every variant of an experiment with every seed, and compare them.

    Each run has a run folder of its own, `FOLDER/VARIANT/seed-SEED`. A run that is finished is not trained again, and one that
    was stopped continues, so that a call after a stop returns what one without a stop does. Runs with one seed see the same
    batches in the same order.

    Args:
        experiment: The experiment, from `read_experiment`.
        folder: The folder for the run folders.
        blocks: Block classes of your own, or Python files that define some.
        device: The device; by default, the GPU if there is one.
        max_data_bytes: The largest size of the texts that are read, decompressed.
        tell: Takes a line about what is done next; by default, it is printed.
        show: Returns the progress display of a run; by default, as for `train`.

    Raises:
        RecipeError: A recipe has errors, or no width matches.
        TrainingError: The texts or the variants cannot be used, or the folder has runs of another experiment.
        Interrupted: The process was asked to stop; the same call continues.
    """
    tell, show = tell or print, show or display
    material, variants = prepared(experiment, Path(folder), blocks=blocks, device=device, max_data_bytes=max_data_bytes)
    variants = [replace(each, steps=each.steps or timed_steps(each, material, tell)) for each in variants]
    for each in variants:  # refuse runs of another experiment before the first is trained
        for seed in experiment.seeds:
            saved_run(each, seed, material)
    results: dict[str, list[RunResult]] = {each.variant.name: [] for each in variants}
    for seed in experiment.seeds:
        for each in variants:
            results[each.variant.name].append(finished(each, seed, material, tell, show, blocks))
    rows = [
        VariantResult(
            name=each.variant.name,
            parameters=each.parameters,
            steps=each.steps or 0,
            flops=each.flops * (each.steps or 0),
            width=each.width,
            runs=tuple(results[each.variant.name]),
        )
        for each in variants
    ]
    width = None if experiment.match is None else experiment.match.by
    return compared(rows, name=experiment.name, doc=experiment.doc, width=width)


def prepared(
    experiment: Experiment,
    folder: Path,
    *,
    blocks: Blocks = (),
    device: str | None = None,
    max_data_bytes: int = MAX_DATA_BYTES,
) -> tuple[Material, Sequence[PlannedVariant]]:
    """Return the texts as tokens, and the plan for a tokenizer of this size."""
    documents = read_documents(experiment.data, max_bytes=max_data_bytes)
    settings = experiment.settings
    recipes = [sound_recipe(variant, blocks) for variant in experiment.variants]
    task = learnable(recipes[0].task)
    learned = learned_from(experiment.tokenizer, whole_text(task, documents, settings), ends=settings.end_tokens)
    text = make_tokenizer(experiment.tokenizer, learned, size=experiment.vocab_size)
    tokenizer = with_padding(marked(text, task, settings), *recipes)
    variants = plan_of(experiment, recipes, tokenizer)
    check_objective(settings.objective, task, table=False, end_tokens=settings.end_tokens)
    objective = objective_of(task, tokenizer, settings, program=variants[0].recipe.program)
    data = objective.tokenize(documents, path=experiment.data)
    objective.check(data, experiment.settings.seq_len)
    chosen = device or ("cuda" if torch.cuda.is_available() else "cpu")
    return Material(experiment, documents, tokenizer, data, objective, folder, chosen), variants


def settings_of(planned: PlannedVariant, seed: int, material: Material) -> TrainSettings:
    """Return the settings of a run."""
    return replace(material.experiment.settings, steps=planned.steps or 1, seed=seed)


def folder_of(planned: PlannedVariant, seed: int, material: Material) -> Path:
    """Return the run folder of a variant and a seed."""
    return material.folder / planned.variant.name / f"seed-{seed}"


def saved_run(planned: PlannedVariant, seed: int, material: Material) -> SavedRun | None:
    """Return the run of a variant and a seed as far as it came; None if there is none.

    Raises:
        TrainingError: It is of another experiment, or damaged.
    """
    folder = folder_of(planned, seed, material)
    if not RunFolder(folder).manifest.exists():
        return None
    saved, settings = read_run(folder), settings_of(planned, seed, material)
    changes = fixed_changes(saved.settings, settings)
    if saved.settings.steps != settings.steps:
        changes.append(f"steps: {saved.settings.steps} → {settings.steps}")
    if saved.recipe != planned.recipe.text:
        changes.append("its recipe")
    if saved.data.sha256 != fingerprint(material.documents):
        changes.append("its text")
    if changes:
        raise TrainingError(
            f"{folder} is a run of another experiment: what differs is {', '.join(changes)}",
            hint="compare in another folder, or delete this one",
        )
    return saved


def finished(
    planned: PlannedVariant,
    seed: int,
    material: Material,
    tell: Callable[[str], None],
    show: Callable[[], Display],
    blocks: Blocks,
) -> RunResult:
    """Return the result of a run, after training what it lacks."""
    from composer.loading import load

    saved, folder, settings = (
        saved_run(planned, seed, material),
        folder_of(planned, seed, material),
        settings_of(planned, seed, material),
    )
    found = None if saved is None else result_of(saved, seed)
    if found is not None:
        tell(f"{folder} is finished")
        return found
    if saved is not None and saved.manifest.latest is None:
        tell(f"{folder} has no checkpoint, and begins again")
        clear(saved)
        saved = None
    if saved is None:
        tell(f"training {folder}")
        model = planned.recipe.compile(device=material.device, seed=seed)
        train(model, material.tokenizer, material.data, settings, folder, recipe=planned.recipe.text, show=show())
    else:
        tell(f"resuming {folder}")
        resume(
            folder,
            build=lambda recipe: load(recipe, blocks=blocks).compile(device=material.device),
            settings=settings,
            recipe=planned.recipe.text,
            data=material.experiment.data,
            show=show(),
        )
    found = result_of(read_run(folder), seed)
    assert found is not None  # training ends with a validation
    return found


def clear(saved: SavedRun) -> None:
    """Remove what a run has written before its first checkpoint, from which nothing can be continued."""
    folder = saved.folder
    with locked(folder.path):
        try:
            for path in (folder.checkpoints, folder.metrics, folder.recipe, folder.settings, folder.tokenizer, folder.data):
                disk.remove(path)
                disk.remove(disk.aside_of(path))
            disk.remove(folder.manifest)
        except OSError as error:
            raise TrainingError(f"cannot write {error.filename or folder.path}: {reason_of(error)}") from None


def result_of(saved: SavedRun, seed: int) -> RunResult | None:
    """Return the result of a run; None if it is not finished.

    Raises:
        TrainingError: Its metrics are damaged.
    """
    if saved.manifest.latest is None:
        return None
    lines = [json.loads(line) for line in saved.metrics(saved.manifest.latest).splitlines()]
    validated = [line for line in lines if "validation_loss" in line]
    if not validated or validated[-1]["step"] != saved.settings.steps:
        return None
    last = validated[-1]
    curve = tuple((line["tokens"], line["validation_loss"]) for line in validated)
    return RunResult(seed, last["validation_loss"], last["tokens"], last["seconds"], curve)


def timed_steps(planned: PlannedVariant, material: Material, tell: Callable[[str], None]) -> int:
    """Return how many steps a variant takes in the minutes of the budget: those of its runs that exist, or as measured."""
    for seed in material.experiment.seeds:
        folder = folder_of(planned, seed, material)
        if RunFolder(folder).manifest.exists():
            return read_run(folder).settings.steps
    seconds = seconds_per_step(planned.recipe, material)
    steps = max(1, int(60 * material.experiment.budget.amount / seconds))
    tell(f"{planned.variant.name}: {seconds:.3g} s per step, so {steps:,} steps")
    return steps


def seconds_per_step(recipe: Recipe, material: Material) -> float:
    """Measure the seconds of a training step, of a model that is then thrown away: the mean of some after the first few."""
    settings, objective = material.experiment.settings, material.objective
    model = recipe.compile(device=material.device, seed=0).train()
    optimizer = build_optimizer(model, settings)
    generator = torch.Generator().manual_seed(0)
    step, began, elapsed = 0, 0.0, 0.0
    while step < WARM + TIMED or elapsed < TIMED_SECONDS:
        if step == WARM:
            began = time.perf_counter()
        batches = [
            objective.draw(material.data, batch_size=settings.batch_size, seq_len=settings.seq_len, generator=generator)
            for _ in range(settings.grad_accum)
        ]
        update(model, optimizer, batches, settings, rate=0.0)  # losses stay finite, whatever the learning rate is
        step += 1
        elapsed = time.perf_counter() - began if step > WARM else 0.0
    return elapsed / (step - WARM)
