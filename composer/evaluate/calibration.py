"""Calibration: whether a model is right as often as it is sure."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

BINS = 10


@dataclass(frozen=True)
class Reliability:
    """The predictions whose confidence is in one range: the probability of the most probable class, or token."""

    least: float
    """The least confidence of the range."""
    most: float
    """The greatest."""
    count: int
    confidence: float
    """Mean confidence."""
    accuracy: float
    """Share that is right."""


@dataclass(frozen=True)
class Calibration:
    """How much the confidence of a model differs from how often it is right.

    Examples:
        >>> from composer.evaluate import Calibration, Reliability
        >>> Calibration((Reliability(0.5, 0.6, 30, 0.55, 0.5), Reliability(0.9, 1.0, 10, 0.95, 0.75))).error
        0.0875
    """

    bins: tuple[Reliability, ...]
    """The ranges in which there is any prediction, from the least confidence on."""

    @property
    def error(self) -> float:
        """The expected calibration error: the mean difference of confidence and accuracy of a range, each by its predictions
        (Guo et al. 2017).
        """
        total = sum(each.count for each in self.bins)
        return round(sum(each.count * abs(each.confidence - each.accuracy) for each in self.bins) / total, 12)

    def to_json(self) -> dict[str, object]:
        """Return the numbers by name."""
        return {"expected_calibration_error": self.error, "reliability": [vars_of(each) for each in self.bins]}

    def __str__(self) -> str:
        rows = [
            f"{each.least:4.0%} to {each.most:4.0%}  {each.count:>11,}  {each.confidence:10.2%}  {each.accuracy:8.2%}"
            for each in self.bins
        ]
        return "\n".join(["confidence    predictions        mean     right", *rows])


def vars_of(each: Reliability) -> dict[str, float | int]:
    """Return the numbers of a range by name."""
    least, most, count, confidence, accuracy = each.least, each.most, each.count, each.confidence, each.accuracy
    return {"least": least, "most": most, "count": count, "confidence": confidence, "accuracy": accuracy}


def _zeros() -> Tensor:
    return torch.zeros(BINS, dtype=torch.float64)


@dataclass
class Calibrator:
    """Adds up predictions by their confidence, batch by batch."""

    counts: Tensor = field(default_factory=_zeros)
    confidence: Tensor = field(default_factory=_zeros)
    right: Tensor = field(default_factory=_zeros)

    def add(self, logits: Tensor, targets: Tensor) -> None:
        """Add the predictions of logits [N, C] for targets [N]."""
        told = logits.to(torch.promote_types(logits.dtype, torch.float32)).softmax(-1).max(-1)
        sure = told.values.double().cpu()
        place = (sure * BINS).long().clamp(max=BINS - 1)
        self.counts.index_add_(0, place, torch.ones_like(sure))
        self.confidence.index_add_(0, place, sure)
        self.right.index_add_(0, place, (told.indices == targets).double().cpu())

    def found(self) -> Calibration:
        """Return what was added, range by range."""
        return Calibration(
            tuple(
                Reliability(at / BINS, (at + 1) / BINS, int(count), float(sure / count), float(right / count))
                for at, (count, sure, right) in enumerate(zip(self.counts, self.confidence, self.right, strict=True))
                if count
            )
        )
