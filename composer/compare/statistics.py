"""Statistics of a comparison: differences of pairs of runs with the same seed, and their confidence interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

CONFIDENCE = 0.95
"""How often an interval holds the true difference, if only chance were repeated."""


@dataclass(frozen=True)
class PairedDifference:
    """The mean of the differences of pairs, and the interval that holds the true one with 95 % confidence.

    Examples:
        >>> from composer.compare import PairedDifference
        >>> PairedDifference(mean=-0.02, low=-0.05, high=0.01, pairs=3).verdict
        'no difference seen'
    """

    mean: float
    low: float
    high: float
    pairs: int

    @property
    def verdict(self) -> str:
        """`lower` or `higher`, or `no difference seen` where the interval contains 0."""
        if self.low <= 0 <= self.high:
            return "no difference seen"
        return "lower" if self.high < 0 else "higher"


def paired_difference(values: Sequence[float], reference: Sequence[float]) -> PairedDifference | None:
    """Return the mean difference of values from those of a reference with the same seeds; None for fewer than two pairs.

    The interval is that of the t-test for pairs (Student 1908): mean ± t · s / √n, where s is the standard deviation of the n
    differences, and t the quantile of Student's distribution with n − 1 degrees of freedom.

    Args:
        values: A number for each seed.
        reference: The number of the reference for each of these seeds, in the same order.

    Examples:
        >>> from composer.compare import paired_difference
        >>> found = paired_difference([1.5, 1.75, 2.0], [1.0, 1.5, 1.25])
        >>> found.mean, found.verdict
        (0.5, 'no difference seen')
    """
    differences = [value - other for value, other in zip(values, reference, strict=True)]
    if len(differences) < 2:
        return None
    mean, error = fmean(differences), stdev(differences) / math.sqrt(len(differences))
    margin = two_sided_t(CONFIDENCE, len(differences) - 1) * error
    return PairedDifference(mean, mean - margin, mean + margin, len(differences))


def two_sided_t(confidence: float, freedom: int) -> float:
    """Return the t for which a variable of Student's distribution lies between −t and t with a probability."""
    low, high = 0.0, math.pi / 2  # of atan(t / √freedom), in which the distribution is smooth and bounded
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if within(middle, freedom) < confidence else (low, middle)
    return math.sqrt(freedom) * math.tan(low)


def within(angle: float, freedom: int) -> float:
    """Return the probability that |T| ≤ √freedom · tan(angle), in closed form (Abramowitz and Stegun 1964, 26.7.3 and 26.7.4)."""
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    term, total = (cosine if odd else 1.0), 0.0
    for index in range(2 + odd, freedom + 1, 2):
        total += term
        term *= cosine**2 * (index - 1) / index
    return 2 / math.pi * (angle + sine * total) if odd else sine * total
