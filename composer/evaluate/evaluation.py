"""Evaluation: how well a trained model predicts a text that it was not trained on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from torch import nn

from composer.atomic_files import StrPath
from composer.evaluate.calibration import Calibration, Calibrator
from composer.evaluate.examples import TableEvaluation, evaluated_table, perplexity_of
from composer.evaluate.translations import Translations, check_installed, translations_of
from composer.lower.model import Model
from composer.lower.model_inputs import InputError
from composer.train.data.documents import read_documents, sources_of
from composer.train.data.objectives import TEXT_TASKS, Objective, Translation, objective_of, reads_plain
from composer.train.data.prepared.prepare import text_of_run
from composer.train.data.prepared.token_files import is_prepared
from composer.train.data.skip_gram import SkipGram
from composer.train.data.tables import is_table
from composer.train.data.text import TextData, fingerprint
from composer.train.device import device_of, on_device
from composer.train.errors import TrainingError
from composer.train.losses import IGNORED, cross_entropy, output_of, targets_of, task_of
from composer.train.run.reader import read_run
from composer.train.run.trained import Build, open_run
from composer.train.settings import MAX_DATA_BYTES
from composer.train.techniques.precision import autocast
from composer.train.validation import unchanged, validate


@dataclass(frozen=True)
class Prediction:
    """How well a model predicts the targets of a held-out text, given all true tokens before each."""

    tokens: int
    """Number of predicted tokens."""
    loss: float
    """Mean cross-entropy, in nats per predicted token."""
    accuracy: float
    """Share of the targets that are the most probable token."""
    calibration: Calibration | None = None
    """Whether it is right as often as it is sure, if that was asked for."""

    @property
    def perplexity(self) -> float:
        """The exponential of the loss: of how many equally probable tokens the model chooses."""
        return perplexity_of(self.loss)


@dataclass(frozen=True)
class Evaluation:
    """How well a trained model predicts a text.

    Examples:
        >>> from pathlib import Path
        >>> from composer.evaluate import Evaluation
        >>> found = Evaluation(Path("runs/small"), 500, "causal_lm", "plays.txt", True, 1000, 1.5, 0.5, 1.5, 1.5)
        >>> f"{found.perplexity:.2f}"
        '4.48'
    """

    run: Path
    """The run folder, or a published one."""
    step: int | None
    """The step of the checkpoint; None for a published model."""
    task: str
    data: str
    """The name of the text."""
    held_out: bool
    """Whether the text is the one of the run, of which only the held-out part is read; all of any other text is."""
    tokens: int
    """Number of predicted tokens."""
    loss: float
    """Mean cross-entropy, in nats per predicted token."""
    accuracy: float
    """Share of the predicted tokens that are the most probable one, from 0 to 1."""
    per_character: float | None = None
    """Nats per character; None if only a part of the text is predicted, as in masked_lm."""
    per_byte: float | None = None
    """Nats per byte; None like `per_character`."""
    translations: Translations | None = None
    """What became of the translations, if there were any."""
    calibration: Calibration | None = None
    """Whether the model is right as often as it is sure, if that was asked for."""

    @property
    def perplexity(self) -> float:
        """The exponential of the loss: of how many equally probable tokens the model chooses."""
        return Prediction(self.tokens, self.loss, self.accuracy).perplexity

    def to_json(self) -> dict[str, object]:
        """Return the numbers by name; those that the task does not have are left out."""
        numbers = {
            "run": str(self.run),
            "step": self.step,
            "task": self.task,
            "data": self.data,
            "held_out": self.held_out,
            "tokens": self.tokens,
            "loss": self.loss,
            "perplexity": self.perplexity,
            "accuracy": self.accuracy,
            "bits_per_character": bits(self.per_character),
            "bits_per_byte": bits(self.per_byte),
            **({} if self.translations is None else asdict(self.translations)),
            **({} if self.calibration is None else self.calibration.to_json()),
        }
        known = {name: value for name, value in numbers.items() if value is not None}
        return {name: None if value == math.inf else value for name, value in known.items()}

    def __str__(self) -> str:
        what = "the held-out part of " if self.held_out else ""
        lines = [
            f"{self.run}{'' if self.step is None else f', step {self.step}'}, {self.task} on {what}{self.data}",
            f"loss        {self.loss:.4f} nats per token, over {self.tokens:,} tokens",
            f"perplexity  {self.perplexity:.4g}",
            f"accuracy    {self.accuracy:.2%} of the tokens",
        ]
        if self.per_character is not None and self.per_byte is not None:
            lines.append(f"bits        {bits(self.per_character):.4f} per character, {bits(self.per_byte):.4f} per byte")
        lines += [] if self.translations is None else [str(self.translations)]
        if self.calibration is not None:
            lines += [f"calibration {self.calibration.error:.4f} expected error", "", str(self.calibration)]
        return "\n".join(lines)


def evaluate(
    run: StrPath,
    data: StrPath | Sequence[StrPath] | None = None,
    *,
    build: Build | None = None,
    checkpoint: str | None = None,
    batch_size: int | None = None,
    seq_len: int | None = None,
    max_data_bytes: int = MAX_DATA_BYTES,
    translate: bool = False,
    calibration: bool = False,
    season: int | None = None,
) -> Evaluation | TableEvaluation:
    """Measure how well the model of a run predicts a text or the targets of a table, each time with the same numbers.

    Args:
        run: The run folder.
        data: The path of a text or a table to read, or the paths and patterns of several; by default, that of the run. Of that
            one only the held-out part is read, which the model was not trained on, and all of any other.
        build: Compiles the text of the recipe; pass your own if the recipe uses blocks of yours.
        checkpoint: The name of a checkpoint, such as `step-000500`; by default, the latest.
        batch_size: Sequences in one forward pass; by default, as many as in training.
        seq_len: Length of a sequence, in tokens; by default, that of training.
        max_data_bytes: The largest size of the text that is read, decompressed.
        translate: With the task seq2seq_lm, also translate each source, taking the most probable token each time, and compare it
            with its target.
        calibration: Also compare how sure the model is of classes or tokens with how often it is right.
        season: Of a model that forecasts, the number of rows after which values are taken to repeat: also measure the forecast of
            the values one season before.

    Raises:
        TrainingError: The folder is not a run folder or is damaged, the text cannot be read or used, the model's numbers are not
            finite, `translate` is not for this task, or a package is missing.
        RecipeError: The recipe does not compile, such as for lack of your own blocks.

    Examples:
        >>> import composer
        >>> from pathlib import Path
        >>> from composer.evaluate import evaluate
        >>> from composer.train import TrainSettings, characters_of, tokenize, train
        >>> text = "to be or not to be\\n" * 20
        >>> written = Path("hamlet.txt").write_text(text)
        >>> tokenizer = characters_of(text)
        >>> recipe = composer.load("gpt_mini", {"vocab": tokenizer.size, "d_model": 16, "n_layers": 1})
        >>> settings = TrainSettings(steps=1, batch_size=2, seq_len=8, log_every=100)
        >>> data = tokenize(text, tokenizer, path="hamlet.txt")
        >>> result = train(recipe.compile(seed=0), tokenizer, data, settings, "runs/hamlet", recipe=recipe.text)
        step 1/1  loss …
        validation at step 1: …
        >>> found = evaluate("runs/hamlet")
        >>> found.tokens, found.loss == result.validation.per_token
        (38, True)
    """
    check_sizes(batch_size=batch_size, seq_len=seq_len)
    trained = open_run(run, build=build, checkpoint=checkpoint)
    batch_size, seq_len = batch_size or trained.settings.batch_size, seq_len or trained.settings.seq_len
    saved = read_run(Path(run)).data
    sources = sources_of(data) if data else saved.paths
    task = task_of(trained.model)
    if any(is_table(source, pairs=task == "seq2seq_lm") for source in sources):
        if translate:
            check_translated(task)
        sizes = {"batch_size": batch_size, "seq_len": seq_len, "max_data_bytes": max_data_bytes}
        return evaluated_table(
            trained, Path(run), saved, sources, given=bool(data), **sizes, build=build, calibration=calibration, season=season,
            translate=translate,
        )  # fmt: skip
    if season is not None:
        raise TrainingError("a season is for models that forecast series", hint="leave out the season")
    near = trained.settings.objective == "skip_gram"
    if not near and (task is None or task not in TEXT_TASKS):
        what = f"the task {task}" if task else "no task"
        raise TrainingError(f"a model of {what} predicts no text", hint="it is evaluated on tables: --data FILE.csv")
    program = trained.model.program if isinstance(trained.model, Model) else None
    objective = objective_of(task, trained.tokenizer, replace(trained.settings, seq_len=seq_len), program=program)
    if translate:
        check_translated(task)
    own_text: TextData | None = None
    try:
        if reads_plain(objective):
            own_text = text_of_run(sources, trained.tokenizer, sha256=saved.sha256, max_bytes=max_data_bytes)
        if own_text is None and any(map(is_prepared, sources)):
            raise TrainingError(f"{sources[0]} is not the text that this run was trained on", hint="name the text it is made of")
        documents = () if own_text is not None else read_documents(sources, max_bytes=max_data_bytes)
    except TrainingError as error:
        hint = error.hint or ("" if data else "if the text of the run has moved, say where it is, or give another one")
        raise TrainingError(str(error), hint=hint) from None
    own = own_text is not None or fingerprint(documents) == saved.sha256
    if not own and not data:
        raise TrainingError(
            f"{' and '.join(map(str, sources))} is not the text that this run was trained on: its checksum differs",
            hint="name a text to evaluate the model on: all of a text is read that the run does not know",
        )
    text = own_text or (objective.tokenize if own else objective.unseen)(documents, path=sources)
    if isinstance(objective, SkipGram):
        if calibration:
            raise TrainingError(
                "skip_gram tells no classes or tokens, so that nothing is calibrated", hint="leave out calibration"
            )
        of_pairs = validate(trained.model, text, objective, batch_size=batch_size, seq_len=seq_len)
        told_of = (Path(run), trained.step, "", text.name, own, of_pairs.tokens, of_pairs.per_token, of_pairs.unit)
        return TableEvaluation(*told_of, part="part")
    found = evaluated(
        trained.model, text, objective, batch_size=batch_size, seq_len=seq_len, run=Path(run), step=trained.step, held_out=own,
        calibration=calibration,
    )  # fmt: skip
    if isinstance(objective, Translation) and translate:
        translations = translations_of(trained.model, objective, text, batch_size=batch_size, longest=seq_len)
        return replace(found, translations=translations)
    return found


def evaluated(
    model: nn.Module,
    text: TextData,
    objective: Objective,
    *,
    batch_size: int,
    seq_len: int,
    run: Path,
    step: int | None,
    held_out: bool,
    calibration: bool = False,
) -> Evaluation:
    """Return how well a model predicts the held-out part of a text.

    Raises:
        TrainingError: There is nothing to predict, the loss is not finite, or the model cannot read so many tokens.
    """
    try:
        found = predicted(model, text, objective, batch_size=batch_size, seq_len=seq_len, calibration=calibration)
    except InputError as error:  # an id beyond the vocabulary
        raise TrainingError(str(error)) from None
    except IndexError as error:  # learned positions, of which there is a number
        raise TrainingError(f"the model cannot read {seq_len} tokens: {str(error).splitlines()[0]}") from None
    targets = objective.whole(text)
    whole = None if targets is None else found.loss * targets
    return Evaluation(
        run=run,
        step=step,
        task=task_of(model) or "",
        data=text.name,
        held_out=held_out,
        tokens=found.tokens,
        loss=found.loss,
        accuracy=found.accuracy,
        per_character=None if whole is None else whole / text.characters,
        per_byte=None if whole is None else whole / text.bytes,
        calibration=found.calibration,
    )


@torch.no_grad()
def predicted(
    model: nn.Module, data: TextData, objective: Objective, *, batch_size: int, seq_len: int, calibration: bool = False
) -> Prediction:
    """Return how well a model predicts a held-out text, in the batches of `validate`.

    Raises:
        TrainingError: There is nothing to predict, or the loss is not finite.
    """
    device, task = device_of(model), task_of(model) or ""
    nats, right, tokens = 0.0, 0, 0
    calibrator = Calibrator()
    with unchanged(model):
        for batch in objective.held_out(data, batch_size=batch_size, seq_len=seq_len):
            part = on_device(batch, device)
            targets = targets_of(task, part)
            with autocast(device):
                logits = output_of(model, part).logits
                mean = cross_entropy(logits, targets)
            asked = targets != IGNORED
            count = int(asked.sum())
            if calibration:
                calibrator.add(logits[asked], targets[asked])
            nats += float(mean) * count
            right += int((logits.argmax(-1) == targets).sum())
            tokens += count
    if not tokens:
        raise TrainingError(f"{data.name} is too short: there is nothing in it to predict")
    if not math.isfinite(nats):
        raise TrainingError(f"the model's loss on {data.name} is not finite", hint="evaluate an earlier checkpoint")
    return Prediction(tokens, nats / tokens, right / tokens, calibrator.found() if calibration else None)


def check_sizes(**sizes: int | None) -> None:
    """Raise `TrainingError` if a size is given and below 1."""
    for name, size in sizes.items():
        if size is not None and size < 1:
            raise TrainingError(f"`{name}` is {size}; it must be at least 1")


def check_translated(task: str | None) -> None:
    """Raise `TrainingError` if a model does not translate, or its translations cannot be measured."""
    if task != "seq2seq_lm":
        raise TrainingError(f"a model of the task {task or 'none'} does not translate", hint="those of seq2seq_lm do")
    check_installed()


def bits(nats: float | None) -> float | None:
    """Return nats as bits."""
    return None if nats is None else nats / math.log(2)
