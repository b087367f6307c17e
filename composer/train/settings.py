"""The hyperparameters of training, and their ranges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from composer.train.errors import TrainingError
from composer.train.objective_kinds import END_TOKENS, OBJECTIVES, EndTokens, ObjectiveKind
from composer.train.optimization.optimizers import OPTIMIZERS, OptimizerRow
from composer.train.optimization.schedule import SCHEDULES, Schedule
from composer.train.techniques.compiling import COMPILE_MODES, CompileMode
from composer.train.techniques.precision import PRECISIONS, Precision


@dataclass(frozen=True, kw_only=True)
class TrainSettings:
    """The hyperparameters of a run, which together with the recipe and the data determine every loss.

    Examples:
        >>> from composer.train import TrainSettings
        >>> TrainSettings(steps=500, learning_rate=3e-3).batch_size
        32
    """

    steps: int = 1000
    """Number of optimizer steps."""
    batch_size: int = 32
    """Sequences in one forward pass."""
    grad_accum: int = 1
    """Forward passes whose gradients are accumulated for one step, which equals a step on a batch that many times larger."""
    seq_len: int = 128
    """Length of a training sequence, in tokens."""

    objective: str = "auto"
    """What is learned: auto is what the recipe's task asks for; others hide spans, learn from preferences, or forecast."""
    end_tokens: str = "none"
    """Where an end token stands in the text of a causal_lm, at which generation stops: none, after each line, or each file."""
    dpo_beta: float = 0.1
    """How strongly dpo keeps the model near its reference: the factor of the log-ratios."""
    window: int = 5
    """How far the neighbors of a word are at most with skip_gram, in tokens."""
    negatives: int = 5
    """Words that skip_gram draws for each neighbor, to be told from it."""
    distillation_weight: float = 0.5
    """Share of a teacher in the loss, from 0 to 1; the rest is that of the targets."""
    distillation_temperature: float = 2.0
    """Temperature at which the probabilities of a teacher and of the model are compared."""

    optimizer: str = "adamw"
    """Optimizer; with muon, AdamW trains embeddings, the outputs, experts, gains and biases."""
    schedule: str = "cosine"
    """How the learning rate falls after warm-up; wsd keeps it and lets it fall in the last steps (warm-up, stable, decay)."""
    learning_rate: float = 1e-3
    """Peak learning rate, reached at the end of warm-up."""
    warmup_steps: int = 100
    """Steps of linear warm-up from 0."""
    min_lr_ratio: float = 0.1
    """Final learning rate of the schedules cosine, linear and wsd, as a fraction of the peak."""
    decay_ratio: float = 0.2
    """Share of the steps in which the learning rate falls, with the schedule wsd."""
    mup: tuple[str, ...] = ()
    """Widths of a narrow model whose learning rate and initial weights are kept (muP), as PATH=VALUE, such as d_model=64."""
    weight_decay: float = 0.1
    """Weight decay of matrices, experts and embeddings; an L2 penalty with adam and sgd, and decoupled with all others."""
    beta1: float = 0.9
    """Decay rate of the mean of gradients in adamw, adam, nadam, and muon's AdamW."""
    beta2: float = 0.95
    """Decay rate of the mean of squared gradients in adamw, adam, nadam, and muon's AdamW."""
    eps: float = 1e-8
    """Term added to the denominator in adamw, adam, nadam, and muon's AdamW."""
    momentum: float | None = None
    """Decay rate of the sum of gradients in sgd and muon; None is 0.9 for sgd and 0.95 for muon."""
    max_grad_norm: float = 1.0
    """Maximum norm of all gradients together, for clipping; 0 turns it off."""
    label_smoothing: float = 0.0
    """Share of each target's probability that is spread evenly over the vocabulary, in training only."""
    logits_chunk: int | None = None
    """Positions whose logits are computed at a time, 0 for all; None is the width of the head, from 16,384 words on."""
    columns: tuple[str, ...] = ()
    """Entries of a batch whose columns in a table have other names, as NAME=COLUMN; a pattern takes several columns."""
    sample_rate: int = 16000
    """Samples per second of recordings; files of another rate are refused."""
    precision: str = "auto"
    """Precision of matrix products: bf16 or fp32, and auto is bf16 on CUDA and fp32 elsewhere; weights and sums stay in fp32."""
    compile: str = "off"
    """Modules that torch.compile compiles: each layer of a repeat (block), or the whole model; auto tries block in long runs."""
    recompute: tuple[str, ...] = ()
    """Modules that keep only their inputs and compute the rest again in the backward pass, to save memory, such as layers.*."""
    average: float = 0.0
    """Decay of a moving average of the weights, such as 0.999, which is then validated and opened; 0 is none."""
    freeze: tuple[str, ...] = ()
    """Names of parameters that are not trained, as patterns of a shell, such as layers.*."""

    seed: int = 0
    """Random seed of the order of the data and of dropout; in `arco train`, also of the initial weights."""
    log_every: int = 10
    """Steps between lines in the file of metrics."""
    validate_every: int = 250
    """Steps between validations; 0 validates only at the end."""
    validation_batches: int = 0
    """Batches of each validation before the last; 0 takes the whole held-out text, as the last validation always does."""
    save_every: int = 250
    """Steps between checkpoints; 0 saves only at the end."""

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            if getattr(self, name) not in [*choices]:
                raise TrainingError(f"`{name}` is {getattr(self, name)}; it must be {' or '.join(choices)}")
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in SEVERAL:
                check_patterns(field.name, value)
            elif field.name not in CHOICES and (value is not None or field.default is not None):
                check_type(field.name, value, whole=field.name in WHOLE or isinstance(field.default, int))
                check_range(field.name, value)
        for name, choices in CHOICES.items():
            chosen = getattr(self, name)
            optional = frozenset[str]().union(*(row.reads for row in choices.values()))
            for field in fields(self):
                given = getattr(self, field.name)
                if field.name in optional - choices[chosen].reads and given != field.default:
                    readers = " or ".join(other for other, row in choices.items() if field.name in row.reads)
                    raise TrainingError(f"`{field.name}` is {given}, which {chosen} does not read; `{name}` must be {readers}")
        if self.mup and self.optimizer == "adam" and self.weight_decay:
            message = f"`weight_decay` is {self.weight_decay}, which adam adds to the gradient, and muP has no rule for that"
            raise TrainingError(message, hint="set it to 0, or use adamw")


CHOICES: Mapping[str, Mapping[str, OptimizerRow | Schedule | CompileMode | Precision | ObjectiveKind | EndTokens]] = {
    "optimizer": OPTIMIZERS,
    "schedule": SCHEDULES,
    "compile": COMPILE_MODES,
    "precision": PRECISIONS,
    "objective": OBJECTIVES,
    "end_tokens": END_TOKENS,
}
"""Settings that name a row of a table."""
AT_LEAST_ONE = frozenset({"steps", "batch_size", "grad_accum", "seq_len", "log_every", "window", "negatives", "sample_rate"})
SEVERAL = {
    "columns": "NAME=COLUMN",
    "mup": "PATH=VALUE",
    "freeze": "patterns for names of parameters",
    "recompute": "patterns for names of modules",
}
"""Settings that are several texts, and what these are."""
WHOLE = frozenset({"logits_chunk"})
"""Whole numbers whose default is None."""
ABOVE_ZERO = frozenset({"learning_rate", "eps", "dpo_beta", "distillation_temperature"})
BELOW_ONE = frozenset({"beta1", "beta2", "label_smoothing", "momentum", "average"})

MAX_DATA_BYTES = 1 << 30
"""The largest text that is read unless another limit is given."""
LARGEST = 2**63 - 1
"""The largest whole number that torch takes."""

CHANGEABLE = frozenset({"steps", "log_every", "validate_every", "validation_batches", "save_every"})
"""Settings that may change when a run is resumed: they affect its length and its reports, not its weights along the way."""


def check_type(name: str, value: object, *, whole: bool) -> None:
    """Raise `TrainingError` if a setting is not a number, or not a whole one where that is needed."""
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        raise TrainingError(f"`{name}` is {value!r:.40}; it must be {'a whole number' if whole else 'a number'}")
    if isinstance(value, int) and abs(value) > LARGEST:
        raise TrainingError(f"`{name}` is larger than {LARGEST:,}")


def check_patterns(name: str, value: object) -> None:
    """Raise `TrainingError` if a setting is not a tuple of texts."""
    if not isinstance(value, tuple) or not all(isinstance(each, str) and each for each in value):
        raise TrainingError(f"`{name}` is {value!r:.40}; it must be a tuple of {SEVERAL[name]}")


def check_range(name: str, value: float) -> None:
    """Raise `TrainingError` if a setting is outside its range, infinite or NaN."""
    if name in AT_LEAST_ONE and not value >= 1:
        raise TrainingError(f"`{name}` is {value}; it must be at least 1")
    if name in ABOVE_ZERO and not 0 < value < float("inf"):
        raise TrainingError(f"`{name}` is {value}; it must be a finite number above 0")
    if name in BELOW_ONE and not 0 <= value < 1:
        raise TrainingError(f"`{name}` is {value}; it must be at least 0 and below 1")
    if name == "decay_ratio" and not 0 <= value <= 1:
        raise TrainingError(f"`{name}` is {value}; it must be a fraction of the steps, from 0 to 1")
    if name == "distillation_weight" and not 0 <= value <= 1:
        raise TrainingError(f"`{name}` is {value}; it must be a share of the loss, from 0 to 1")
    if name == "min_lr_ratio" and not 0 <= value <= 1:
        raise TrainingError(f"`{name}` is {value}; it must be a fraction of the learning rate, from 0 to 1")
    if not 0 <= value < float("inf"):
        raise TrainingError(f"`{name}` is {value}; it must be a finite number, at least 0")


def settings_from_json(values: object, path: Path) -> TrainSettings:
    """Return the settings of a file.

    Args:
        values: The content of the file.
        path: The file, for errors.

    Raises:
        TrainingError: The file has another form, or a setting is missing, unknown or out of range.
    """
    if not isinstance(values, dict):
        raise TrainingError(f"{path} does not contain settings")
    known = {field.name for field in fields(TrainSettings)}
    if unknown := sorted(values.keys() - known):
        raise TrainingError(f"{path} has a setting `{unknown[0]}` that this version does not support")
    if missing := sorted(known - values.keys()):
        raise TrainingError(f"{path} lacks the setting `{missing[0]}`")
    lists = {name: tuple(values[name]) for name in SEVERAL if isinstance(values[name], list)}
    try:
        return TrainSettings(**{**values, **lists})
    except TrainingError as error:
        raise TrainingError(f"{path}: {error}") from None


def fixed_changes(old: TrainSettings, new: TrainSettings) -> list[str]:
    """Return the changed settings that must stay the same in a resumed run, as `name: old → new`."""
    before, after = asdict(old), asdict(new)
    changed = [name for name in before if name not in CHANGEABLE and before[name] != after[name]]
    return [f"{name}: {before[name]} → {after[name]}" for name in changed]
