"""How a model is trained: every number that a run can be told."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from composer.train.errors import TrainingError
from composer.train.optimizers import OPTIMIZERS


@dataclass(frozen=True, kw_only=True)
class TrainSettings:
    """A run's hyperparameters; with the recipe, the data and the seed they decide every loss it prints."""

    steps: int = 1000
    """Updates of the weights."""
    batch_size: int = 32
    """Windows in one forward pass."""
    grad_accum: int = 1
    """Forward passes whose gradients make one update; the update is that of one batch this many times as large."""
    seq_len: int = 128
    """Length of a window, in tokens."""

    optimizer: str = "adamw"
    """How gradients become updates."""
    learning_rate: float = 1e-3
    """The highest rate, reached when warm-up ends."""
    warmup_steps: int = 100
    """Steps over which the rate rises from 0, in a straight line."""
    min_lr_ratio: float = 0.1
    """Where the cosine ends, as a share of the highest rate."""
    weight_decay: float = 0.1
    """Pull toward zero on matrices, experts and embeddings, per unit of the rate."""
    beta1: float = 0.9
    """The optimizer's memory of the gradient."""
    beta2: float = 0.95
    """The optimizer's memory of the squared gradient."""
    eps: float = 1e-8
    """The optimizer's addition to the denominator."""
    max_grad_norm: float = 1.0
    """Largest norm of all gradients together; 0 leaves them as they are."""
    label_smoothing: float = 0.0
    """Share of each target spread evenly over the vocabulary; never used in validation."""

    seed: int = 0
    """Decides the order of the data and the dropout."""
    log_every: int = 10
    """Steps between lines in the metrics."""
    validate_every: int = 250
    """Steps between validations; 0 validates at the end only."""
    validation_batches: int = 0
    """Batches of a validation on the way; 0 takes the whole held-out text, as the last validation always does."""
    save_every: int = 250
    """Steps between checkpoints; 0 saves at the end only."""

    def __post_init__(self) -> None:
        if self.optimizer not in OPTIMIZERS:
            raise TrainingError(f"optimizer is {self.optimizer}; it must be {' or '.join(OPTIMIZERS)}")
        for field in fields(self):
            if field.name != "optimizer":
                check_range(field.name, getattr(self, field.name))


AT_LEAST_ONE = frozenset({"steps", "batch_size", "grad_accum", "seq_len", "log_every"})
ABOVE_ZERO = frozenset({"learning_rate", "eps"})
BELOW_ONE = frozenset({"beta1", "beta2", "label_smoothing"})

CHANGEABLE = frozenset({"steps", "log_every", "validate_every", "validation_batches", "save_every"})
"""What may differ when a run is resumed: how long it goes on and what it reports, not what it computes on the way."""


def check_range(name: str, value: float) -> None:
    """Raise `TrainingError` where a setting lies outside its range, infinities and NaN included."""
    shown = name.replace("_", " ")
    if name in AT_LEAST_ONE and not value >= 1:
        raise TrainingError(f"{shown} is {value}; it must be at least 1")
    if name in ABOVE_ZERO and not 0 < value < float("inf"):
        raise TrainingError(f"{shown} is {value}; it must be a finite number above 0")
    if name in BELOW_ONE and not 0 <= value < 1:
        raise TrainingError(f"{shown} is {value}; it must be at least 0 and below 1")
    if name == "min_lr_ratio" and not 0 <= value <= 1:
        raise TrainingError(f"min lr ratio is {value}; it must be a fraction of the learning rate, from 0 to 1")
    if not 0 <= value < float("inf"):
        raise TrainingError(f"{shown} is {value}; it must be a finite number, at least 0")


def save_settings(settings: TrainSettings, path: Path) -> None:
    """Write the settings as JSON."""
    path.write_text(json.dumps(asdict(settings), indent=2) + "\n", encoding="utf-8")


def load_settings(path: Path) -> TrainSettings:
    """Read the settings that `save_settings` wrote."""
    values = json.loads(path.read_text(encoding="utf-8"))
    unknown = sorted(set(values) - {field.name for field in fields(TrainSettings)})
    if unknown:
        raise TrainingError(f"{path.name} sets `{unknown[0]}`, which this version does not know")
    return TrainSettings(**values)


def fixed_changes(old: TrainSettings, new: TrainSettings) -> list[str]:
    """Return the changes that a resumed run may not make, as `name: old → new`."""
    before, after = asdict(old), asdict(new)
    changed = [name for name in before if name not in CHANGEABLE and before[name] != after[name]]
    return [f"{name}: {before[name]} → {after[name]}" for name in changed]
