"""A second model that a run reads and never changes: the reference of DPO, or the teacher of a distillation."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import nn

from composer.atomic_files import StrPath
from composer.language.tasks import TASKS
from composer.lower.checksums import checksum_of
from composer.train.criteria.criterion import TASK_LOSS, Criterion
from composer.train.criteria.distillation import Distillation
from composer.train.criteria.preferences import DirectPreference, RewardModel
from composer.train.data.examples import ExampleData, TrainingData
from composer.train.data.fitting import padding_of
from composer.train.data.tokenizers import MarkedTokenizer, Tokenizer
from composer.train.device import device_of
from composer.train.errors import TrainingError
from composer.train.losses import Batch, task_of
from composer.train.run.reader import ReferenceIdentity, read_run
from composer.train.run.trained import Build, compiled, open_run
from composer.train.settings import TrainSettings


@dataclass(frozen=True, eq=False)
class ReferenceModel:
    """A model that a run reads and never changes.

    Examples:
        >>> import composer
        >>> from pathlib import Path
        >>> from composer.train import ReferenceModel, characters_of
        >>> tokenizer = characters_of("to be or not to be")
        >>> teacher = composer.load("gpt_mini", {"vocab": tokenizer.size, "d_model": 16}).compile(seed=0)
        >>> len(ReferenceModel(teacher, tokenizer, Path("runs/teacher")).sha256)
        64
    """

    model: nn.Module
    tokenizer: Tokenizer
    path: Path
    """The run folder or the published folder that it was opened from, where a resumed run opens it again."""
    checkpoint: str | None = None
    """The checkpoint of the run; None for the latest at the time, and for a published folder."""
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For each target that is a class, the names of the classes."""

    @cached_property
    def sha256(self) -> str:
        """The checksum of the names, types and values of its weights; it must be the same when a run is resumed."""
        return checksum_of(self.model.state_dict())

    @property
    def identity(self) -> ReferenceIdentity:
        """What a run folder keeps of it."""
        return ReferenceIdentity(str(self.path.absolute()), self.checkpoint, self.sha256)


def open_reference_model(path: StrPath, *, build: Build | None = None, checkpoint: str | None = None) -> ReferenceModel:
    """Return the model of a run or of a published folder, to be read in a run.

    Args:
        path: The run folder, the published folder, or a GGUF file.
        build: Compiles the text of the recipe of a run; pass your own if the recipe uses blocks of yours.
        checkpoint: The name of a checkpoint of a run, such as `step-000500`; by default, the latest.

    Raises:
        TrainingError: There is no run, or it is damaged.
        RecipeError: The folder cannot be read as a model.
    """
    from composer.published.folder import is_published

    where = Path(path)
    if is_published(where):
        from composer.loading import load
        from composer.published.starting import tokenizer_to_train

        return ReferenceModel(load(where).pretrained().eval(), tokenizer_to_train(where), where)
    trained = open_run(where, build=build or compiled, checkpoint=checkpoint)
    return ReferenceModel(trained.model, trained.tokenizer, where, checkpoint or read_run(where).name(None), trained.labels)


def reopened(known: ReferenceIdentity, path: StrPath | None, build: Build) -> ReferenceModel:
    """Return the second model of a run that is resumed.

    Args:
        known: What the run keeps of it.
        path: Where it is now, if it has moved.
        build: Compiles the text of its recipe.

    Raises:
        TrainingError: It is not there, or has changed.
    """
    where = known.path if path is None else path
    try:
        found = open_reference_model(where, build=build, checkpoint=known.checkpoint)
    except TrainingError as error:
        hint = error.hint if path is not None else f"if {known.path} has moved, say where it is: --reference RUN"
        raise TrainingError(f"the model that this run reads beside its own: {error}", hint=hint) from None
    if found.sha256 != known.sha256:
        raise TrainingError(f"{where} is not the model that this run started with: the checksum of its weights differs")
    return found


def criterion_of(model: nn.Module, settings: TrainSettings, reference: ReferenceModel | None) -> Criterion:
    """Return what a run minimizes.

    Raises:
        TrainingError: A reference is missing, or is for nothing.
    """
    second = None if reference is None else _still(reference.model, model)
    if settings.objective == "dpo":
        if second is None:
            raise TrainingError(
                "the objective dpo compares the model with a reference, and there is none",
                hint="start from the model that is to be tuned: --init RUN",
            )
        return DirectPreference(second, settings.dpo_beta)
    if settings.objective == "reward":
        if second is not None:
            raise TrainingError("the objective reward reads no second model", hint="leave out --teacher")
        return RewardModel()
    return TASK_LOSS if second is None else Distillation(second, settings.distillation_weight, settings.distillation_temperature)


def validation_criterion(criterion: Criterion) -> Criterion:
    """Return what a run is validated on: of a distillation the loss of the task, which other runs are compared by."""
    return TASK_LOSS if isinstance(criterion, Distillation) else criterion


def _still(reference: nn.Module, model: nn.Module) -> nn.Module:
    """Return a model on the device of another one, in evaluation mode and without gradients."""
    return reference.to(device_of(model)).eval().requires_grad_(False)


def check_reference(model: nn.Module, tokenizer: Tokenizer, data: TrainingData, batch: Batch, reference: ReferenceModel) -> None:
    """Raise `TrainingError` unless a second model reads what the model reads and tells what it tells.

    Args:
        model: The model that is trained.
        tokenizer: Its tokenizer.
        data: What it is trained on.
        batch: A batch of that.
        reference: The second model.
    """
    task, other, where = task_of(model), task_of(reference.model), reference.path
    if task is None or "logits" not in TASKS[task].outputs:
        raise TrainingError(
            f"a recipe with {f'the task {task}' if task else 'no task'} has no logits to compare with a teacher's"
        )
    if task != other:
        raise TrainingError(f"{where} has {f'the task {other}' if other else 'no task'}, and the recipe the task {task}")
    if _tokens_of(tokenizer) != _tokens_of(reference.tokenizer):
        raise TrainingError(
            f"{where} has another tokenizer than this run: token by token, their probabilities cannot be compared",
            hint=f"train with its tokenizer: --init {where}, or leave out --tokenizer"
            if padding_of(tokenizer) is None or padding_of(reference.tokenizer) is not None
            else "the recipe needs a padding token, which the other tokenizer lacks; a model of the same recipe has one",
        )
    if isinstance(data, ExampleData):
        for name in data.labels.keys() & reference.labels.keys():
            if tuple(data.labels[name]) != tuple(reference.labels[name]):
                raise TrainingError(
                    f"{where} knows other classes for `{name}`: {', '.join(reference.labels[name][:8])}; "
                    f"those of the data are {', '.join(data.labels[name][:8])}"
                )
    read = inspect.signature(reference.model.forward).parameters
    given = {name for name in batch if name != TASKS[task].targets}
    needed = {name for name, parameter in read.items() if parameter.default is parameter.empty}
    if unread := sorted(given - read.keys()) or sorted(needed - given):
        raise TrainingError(f"{where} {'has no' if unread[0] in given else 'needs an'} input `{unread[0]}`, unlike the recipe")


def _tokens_of(tokenizer: Tokenizer) -> Any:
    """Return what tells whether two tokenizers make the same tokens; marks that a text's own tokenizer knows add none."""
    if isinstance(tokenizer, MarkedTokenizer):
        return (tokenizer.text.to_json(), tokenizer.added)
    return (tokenizer.to_json(), ())
