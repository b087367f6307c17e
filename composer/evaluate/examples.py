"""Evaluation on the rows of a table: the loss, and for classes how often and where the model is right."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NamedTuple

import torch

from composer.atomic_files import StrPath
from composer.evaluate.calibration import Calibration, Calibrator
from composer.evaluate.forecasts import ForecastMeter, Forecasts, meter_of
from composer.evaluate.retrieval import Retrieval, retrieved
from composer.evaluate.transcripts import ErrorRates, error_rates, hearing_of
from composer.evaluate.translations import Translations, translations_of_rows
from composer.language.tasks import TASKS
from composer.lower.model import Model
from composer.train.criteria.criterion import Criterion
from composer.train.data.examples import ExampleData, Examples
from composer.train.data.fields import MissingColumnError
from composer.train.data.forecasting.windows import forecast_inputs
from composer.train.data.preferences import PREFERENCES, examples_for
from composer.train.data.tables import read_table
from composer.train.data.tokenizers import MarkedTokenizer, Tokenizer
from composer.train.device import device_of, on_device
from composer.train.errors import TrainingError
from composer.train.losses import IGNORED, targets_of, task_of
from composer.train.reference import criterion_of, reopened, validation_criterion
from composer.train.run.reader import DataIdentity
from composer.train.run.trained import Build, Trained, compiled
from composer.train.techniques.precision import autocast
from composer.train.validation import classes_told, unchanged, unit_of

MOST_SHOWN = 12
"""The number of classes up to which the table of right and wrong ones is shown."""


def perplexity_of(loss: float) -> float:
    """Return the exponential of a loss in nats, which may be infinite."""
    try:
        return math.exp(loss)
    except OverflowError:
        return math.inf


@dataclass(frozen=True)
class ClassScores:
    """How often each class was told for each.

    Examples:
        >>> from composer.evaluate import ClassScores
        >>> found = ClassScores(("cat", "dog"), ((8, 2), (1, 9)))
        >>> round(found.accuracy, 3), round(found.f1, 3)
        (0.85, 0.85)
    """

    names: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    """For each true class, how often each class was told: the confusion matrix."""
    calibration: Calibration | None = None
    """Whether the model is right as often as it is sure, if that was asked for."""

    @property
    def accuracy(self) -> float:
        """The share of examples whose class was told."""
        return sum(row[place] for place, row in enumerate(self.counts)) / sum(map(sum, self.counts))

    @property
    def f1(self) -> float:
        """The mean over all classes of F1, the harmonic mean of precision and recall; classes that never occur are left out."""
        scores = [score for score in map(self.f1_of, range(len(self.names))) if score is not None]
        return sum(scores) / len(scores)

    def f1_of(self, place: int) -> float | None:
        """Return F1 of a class; None if it never occurs and was never told.

        Args:
            place: The number of the class.
        """
        told, true = sum(row[place] for row in self.counts), sum(self.counts[place])
        return 2 * self.counts[place][place] / (told + true) if told + true else None

    def __str__(self) -> str:
        rows = [["true \\ told", *self.names, "F1"]]
        for place, (name, row) in enumerate(zip(self.names, self.counts, strict=True)):
            score = self.f1_of(place)
            rows.append([name, *map(str, row), "" if score is None else f"{score:.3f}"])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(cell.ljust(width) if not place else cell.rjust(width) for place, (cell, width) in enumerate(pairs)).rstrip()
            for pairs in (list(zip(row, widths, strict=True)) for row in rows)
        )


@dataclass(frozen=True)
class TableEvaluation:
    """How well a trained model predicts the targets of a table.

    Examples:
        >>> from pathlib import Path
        >>> from composer.evaluate import TableEvaluation
        >>> print(TableEvaluation(Path("runs/iris"), 500, "", "iris.csv", True, 15, 0.25, "example"))
        runs/iris, step 500, on the held-out rows of iris.csv
        loss        0.2500 per example, over 15 examples
    """

    run: Path
    step: int
    """The step of the checkpoint."""
    task: str
    """The model's task; empty for one with losses of its own."""
    data: str
    """The name of the table."""
    held_out: bool
    """Whether the table is the one of the run, of which only the held-out rows are read; all of any other table are."""
    targets: int
    """Number of targets: of examples, or of tokens."""
    loss: float
    """Mean loss, in nats where it is cross-entropy."""
    unit: str
    """What the loss is a mean over: `example`, `token`, or `pair` of answers."""
    classes: Mapping[str, ClassScores] = field(default_factory=dict)
    """For each target that is a class, how often which was told."""
    preferred: float | None = None
    """Share of pairs whose chosen answer is rewarded more than the rejected one; None for others."""
    part: str = "rows"
    """What is held out of the data: its `rows`, or a `part` of a text whose neighboring words are the examples."""
    retrieval: Mapping[str, Retrieval] = field(default_factory=dict)
    """Of a contrastive model, how well each `b` is found for its `a`, and each `a` for its `b`."""
    transcripts: ErrorRates | None = None
    """How far the transcripts of speech are from what was said; None for other models."""
    forecasts: Forecasts | None = None
    """How far forecasts are from what came, in the units of the data; None for other models."""
    accuracy: float | None = None
    """Of a model that writes a text, the share of its tokens that are the most probable one; None for other models."""
    translations: Translations | None = None
    """What became of the translations, if there were any."""

    @property
    def perplexity(self) -> float | None:
        """Of a model that writes a text, the exponential of the loss; None for other models."""
        return None if self.accuracy is None else perplexity_of(self.loss)

    def to_json(self) -> dict[str, object]:
        """Return the numbers by name."""
        told = {
            name: {
                "accuracy": scores.accuracy,
                "f1": scores.f1,
                "classes": [*scores.names],
                "counts": [*map(list, scores.counts)],
                **({} if scores.calibration is None else scores.calibration.to_json()),
            }
            for name, scores in self.classes.items()
        }
        numbers = {"run": str(self.run), "step": self.step, "task": self.task, "data": self.data, "held_out": self.held_out}
        return {
            **numbers,
            f"{self.unit}s": self.targets,
            "loss": self.loss,
            **({} if self.perplexity is None or self.perplexity == math.inf else {"perplexity": self.perplexity}),
            **({} if self.accuracy is None else {"accuracy": self.accuracy}),
            **({} if self.translations is None else asdict(self.translations)),
            **({} if self.preferred is None else {"reward_accuracy": self.preferred}),
            **({} if self.transcripts is None else {"wer": self.transcripts.wer, "cer": self.transcripts.cer}),
            **({} if self.forecasts is None else {"forecasts": self.forecasts.to_json()}),
            **({"classes": told} if told else {}),
            **({"retrieval": {name: each.to_json() for name, each in self.retrieval.items()}} if self.retrieval else {}),
        }

    def __str__(self) -> str:
        task = f"{self.task} " if self.task else ""
        rows = f"the held-out {self.part} of {self.data}" if self.held_out else self.data
        lines = [
            f"{self.run}, step {self.step}, {task}on {rows}",
            f"loss        {self.loss:.4f} per {self.unit}, over {self.targets:,} {self.unit}s",
        ]
        if self.accuracy is not None:
            lines += [f"perplexity  {self.perplexity:.4g}", f"accuracy    {self.accuracy:.2%} of the tokens"]
        if self.translations is not None:
            lines.append(str(self.translations))
        if self.preferred is not None:
            lines.append(f"accuracy    {self.preferred:.2%} of the chosen answers have the larger reward")
        if self.transcripts is not None:
            lines.append(str(self.transcripts))
        if self.forecasts is not None:
            lines += ["", str(self.forecasts)]
        for name, scores in self.classes.items():
            lines.append(f"accuracy    {scores.accuracy:.2%} of `{name}`, macro F1 {scores.f1:.3f}")
            if scores.calibration is not None:
                lines.append(f"calibration {scores.calibration.error:.4f} expected error")
            lines += ["", str(scores)] if len(scores.names) <= MOST_SHOWN else []
            lines += ["", str(scores.calibration)] if scores.calibration is not None else []
        lines += [f"{name:<11} {each}" for name, each in self.retrieval.items()]
        return "\n".join(lines)


def evaluated_table(
    trained: Trained,
    run: Path,
    saved: DataIdentity,
    sources: Sequence[StrPath],
    *,
    given: bool,
    batch_size: int,
    seq_len: int,
    max_data_bytes: int,
    build: Build | None = None,
    calibration: bool = False,
    season: int | None = None,
    translate: bool = False,
) -> TableEvaluation:
    """Return how well a model predicts the targets of a table.

    Args:
        trained: The model of a run.
        run: The run folder.
        saved: What the run was trained on.
        sources: The paths of tables.
        given: Whether they were named, rather than those of the run.
        batch_size: Rows in one forward pass.
        seq_len: Length of a sequence, in tokens.
        max_data_bytes: The largest size of all tables.
        build: Compiles the text of the recipe of a reference.
        calibration: Whether to compare how sure the model is of classes with how often it is right.
        season: Of a model that forecasts, the number of rows after which values are taken to repeat.
        translate: Whether to translate each source, and compare it with the target.

    Raises:
        TrainingError: A table cannot be read or does not fit the model, or the loss is not finite.
    """
    model = trained.model
    if not isinstance(model, Model):
        raise TrainingError("only a model that was compiled from a recipe is evaluated on a table: it says what columns become")
    table = read_table(sources, max_bytes=max_data_bytes)
    own = table.sha256 == saved.sha256
    if not own and not given:
        raise TrainingError(
            f"{table.name} is not the table that this run was trained on: its checksum differs",
            hint="name a table to evaluate the model on: all of its rows are read",
        )
    settings, known = trained.settings, saved.reference
    try:
        data = examples_for(
            settings.objective,
            table,
            model.program,
            trained.tokenizer,
            columns=settings.columns,
            seq_len=seq_len,
            labels=saved.labels,
            scales=saved.scales,
            unseen=not own,
            sample_rate=settings.sample_rate,
        )
    except MissingColumnError as error:
        hint = "rename its column: what a run reads is named as in the table that it was trained on"
        raise TrainingError(str(error), hint=hint) from None
    if calibration and not any(entry in data.labels for _, entry in classes_told(model)):
        raise TrainingError("the model tells no classes, so that nothing is calibrated", hint="leave out calibration")
    if not len(data.validation):
        raise TrainingError(f"{table.name} has no row that can be read with {seq_len} tokens")
    meter = meter_of(data, season)
    needed = settings.objective in PREFERENCES and known is not None
    reference = reopened(known, None, build or compiled) if needed and known is not None else None
    criterion = validation_criterion(criterion_of(model, settings, reference))
    sizes = {"batch_size": batch_size, "seq_len": seq_len}
    found = _predicted(model, data, criterion, trained.tokenizer, meter, **sizes, calibration=calibration)
    if not math.isfinite(found.loss):
        raise TrainingError(f"the model's loss on {table.name} is not finite", hint="evaluate an earlier checkpoint")
    translations = None
    if translate and isinstance(trained.tokenizer, MarkedTokenizer):
        translations = translations_of_rows(model, trained.tokenizer, data, batch_size=batch_size, longest=seq_len)
    return TableEvaluation(
        run,
        trained.step,
        task_of(model) or "",
        table.name,
        own,
        found.targets,
        found.loss,
        criterion.unit or unit_of(model, data),
        found.classes,
        found.preferred,
        retrieval=found.retrieval,
        transcripts=error_rates(found.transcribed) if found.transcribed else None,
        forecasts=None if meter is None else meter.found(),
        accuracy=found.accuracy,
        translations=translations,
    )


class _Found(NamedTuple):
    """What a model tells of rows that are held out."""

    loss: float
    """A mean over the targets."""
    targets: int
    classes: Mapping[str, ClassScores]
    preferred: float | None
    """The share of chosen answers with the larger reward; None where there are none."""
    retrieval: Mapping[str, Retrieval]
    transcribed: Sequence[tuple[str, str]]
    """What was said, with its transcript."""
    accuracy: float | None
    """Of a model that writes a text, the share of the tokens that are the most probable one."""


@torch.no_grad()
def _predicted(
    model: Model,
    data: ExampleData,
    criterion: Criterion,
    tokenizer: Tokenizer,
    meter: ForecastMeter | None,
    *,
    batch_size: int,
    seq_len: int,
    calibration: bool,
) -> _Found:
    hearing, transcribed = hearing_of(model), list[tuple[str, str]]()
    forecast = None if meter is None else forecast_inputs(model.program).output
    fields = {name: field for field, name in model.module.outputs}
    device, task = device_of(model), task_of(model) or ""
    writes = criterion.unit is None and task in TASKS and bool(TASKS[task].text)
    total, targets, right, right_tokens = 0.0, 0, 0, 0
    told = [(output, entry) for output, entry in classes_told(model) if entry in data.labels]
    counts: dict[str, torch.Tensor] = {}
    calibrators = {entry: Calibrator() for _, entry in told}
    a: list[torch.Tensor] = []
    b: list[torch.Tensor] = []
    with unchanged(model):
        for batch in Examples().held_out(data, batch_size=batch_size, seq_len=seq_len):
            part = on_device(batch, device)
            with autocast(device):
                found, output = criterion.loss(model, part)
            count = criterion.count(batch, task)
            if hearing is not None:
                said = [row[row != IGNORED].tolist() for row in part[hearing.alignment.target]]
                heard = hearing.tokens(output, part)
                transcribed += zip(map(tokenizer.decode, said), map(tokenizer.decode, heard), strict=True)
            if meter is not None and forecast is not None:
                meter.add(getattr(output, fields[forecast]).float().cpu().numpy())
            if writes:
                right_tokens += int((output.logits.argmax(-1) == targets_of(task, part)).sum())
            if criterion.unit is not None:
                right += criterion.judged(part, output, [])[0]
            total, targets = total + float(found.by_name.get(task, found.total)) * count, targets + count
            for name, entry in told:
                scores = getattr(output, name)
                size = max(scores.shape[-1], len(data.labels[entry]))
                asked = part[entry] != IGNORED
                if calibration:
                    calibrators[entry].add(scores[asked], part[entry][asked])
                places = part[entry][asked] * size + scores.argmax(-1)[asked]
                counted = torch.bincount(places.cpu(), minlength=size * size).view(size, size)
                counts[entry] = counts[entry] + counted if entry in counts else counted
            if task == "contrastive":
                a.append(output.a.cpu())
                b.append(output.b.cpu())
    classes = {}
    for entry, table in counts.items():
        known = data.labels[entry]
        names = (*known, *(f"<{place}>" for place in range(len(known), len(table))))  # the model may tell more than there are
        used = [place for place in range(len(names)) if place < len(known) or bool(table[:, place].any())]
        rows = tuple(tuple(int(table[row, column]) for column in used) for row in used)
        calibrated = calibrators[entry].found() if calibration else None
        classes[entry] = ClassScores(tuple(names[place] for place in used), rows, calibrated)
    preferred = None if criterion.unit is None else right / max(targets, 1)
    retrieval = {"a to b": retrieved(a, b), "b to a": retrieved(b, a)} if a else {}
    accuracy = right_tokens / max(targets, 1) if writes else None
    return _Found(total / max(targets, 1), targets, classes, preferred, retrieval, transcribed, accuracy)
