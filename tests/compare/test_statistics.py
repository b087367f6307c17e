"""Statistics against printed tables, scipy, and comparisons in which nothing differs but chance."""

from __future__ import annotations

import random
from statistics import fmean, stdev

import pytest

from composer.compare import PairedDifference, paired_difference
from composer.compare.statistics import two_sided_t

TABLE = {1: 12.7062, 2: 4.3027, 3: 3.1824, 4: 2.7764, 5: 2.5706, 7: 2.3646, 10: 2.2281, 29: 2.0452, 30: 2.0423, 120: 1.9799}
"""The t of 95 % by degrees of freedom, as books print it."""
LOSSES = [2.2262, 2.2114, 2.2330, 2.2188, 2.2205]
"""Of one model with five seeds, for a spread that is real."""
RUNS = [
    (2.2715, 2.3003), (2.2767, 2.2687), (2.2996, 2.2683), (2.2597, 2.2751), (2.2841, 2.2569), (2.2649, 2.2774),
    (2.2692, 2.2733), (2.2619, 2.2657), (2.2733, 2.2870), (2.2723, 2.2809), (2.2793, 2.2859), (2.2769, 2.2520),
    (2.2717, 2.2650), (2.2571, 2.3084), (2.2834, 2.2776), (2.2719, 2.2578), (2.2774, 2.2589), (2.2874, 2.3007),
    (2.2792, 2.2588), (2.2712, 2.2905), (2.2852, 2.2651), (2.2631, 2.2905), (2.2834, 2.2890), (2.2878, 2.2772),
    (2.2774, 2.2745), (2.2772, 2.2869), (2.2817, 2.2713), (2.2924, 2.2815), (2.2701, 2.2834), (2.2809, 2.2799),
]  # fmt: skip
"""Validation losses of 30 pairs of runs, both of which see the same batches, and start from other weights.

For each seed from 0 to 29, `train(recipe.compile(seed=seed), …)` and `train(recipe.compile(seed=seed + 1000), …)`, where the
recipe is gpt_mini with d_model 48 and 2 layers, the text the first 400,000 characters of the plays, and the settings
`TrainSettings(steps=200, batch_size=8, seq_len=64, learning_rate=0.005, warmup_steps=20, validate_every=0, seed=seed)`;
torch 2.13.0 on a CPU. Their differences have a standard deviation of 0.019.
"""


@pytest.mark.parametrize(("freedom", "expected"), TABLE.items())
def test_quantiles_are_those_of_the_tables(freedom, expected):
    """To all digits that are printed, for even and odd degrees of freedom."""
    assert two_sided_t(0.95, freedom) == pytest.approx(expected, abs=5.1e-5)


def test_intervals_are_those_of_scipy():
    """Of pairs of every number up to 30."""
    stats = pytest.importorskip("scipy.stats")
    chance = random.Random(3)
    for pairs in range(2, 31):
        reference = [chance.gauss(2, 0.1) for _ in range(pairs)]
        values = [other + chance.gauss(0.02, 0.03) for other in reference]
        theirs = stats.ttest_rel(values, reference)
        low, high = theirs.confidence_interval(0.95)
        found = paired_difference(values, reference)
        assert (found.low, found.high) == pytest.approx((low, high), rel=1e-9)
        assert (found.verdict == "no difference seen") == (theirs.pvalue > 0.05)


def test_the_interval_is_the_formula():
    """Mean ± t · s / √n, with t from the table."""
    values, reference = [1.0, 1.4, 1.1, 1.3], [1.1, 1.2, 1.0, 1.0]
    differences = [-0.1, 0.2, 0.1, 0.3]
    margin = 3.1824 * stdev(differences) / 2
    found = paired_difference(values, reference)
    assert (found.mean, found.low, found.high) == pytest.approx(
        (fmean(differences), fmean(differences) - margin, fmean(differences) + margin), abs=1e-4
    )
    assert found.pairs == 4 and paired_difference([1.0], [2.0]) is None


@pytest.mark.parametrize("seeds", [2, 3, 5, 10])
def test_chance_alone_is_seldom_called_a_difference(seeds):
    """One time in twenty, to three standard deviations; with five seeds, a difference of four spreads is nearly always seen."""
    chance, spread, times = random.Random(seeds), stdev(LOSSES), 4000

    def verdict(shift):
        shared = [chance.gauss(fmean(LOSSES), 3 * spread) for _ in range(seeds)]  # what the order of the data does to both
        first, second = ([each + chance.gauss(0, spread) for each in shared] for _ in range(2))
        return paired_difference([each + shift for each in second], first).verdict

    called = sum(verdict(0) != "no difference seen" for _ in range(times))
    assert abs(called / times - 0.05) < 3 * (0.05 * 0.95 / times) ** 0.5
    if seeds >= 5:
        assert sum(verdict(-4 * spread) == "lower" for _ in range(500)) > 450


@pytest.mark.parametrize("draw", range(5))
def test_real_runs_differ_where_something_was_planted_alone(draw):
    """With five seeds, at most 8 of 100 comparisons see a difference between runs of equal models, and at least 80 of 100 a
    difference of 0.05 nats.
    """
    chance = random.Random(draw)

    def verdict(planted):
        pairs = [chance.sample(pair, 2) for pair in chance.sample(RUNS, 5)]  # either of both may be the reference
        return paired_difference([first + planted for first, _ in pairs], [second for _, second in pairs]).verdict

    assert sum(verdict(0.0) != "no difference seen" for _ in range(100)) <= 8
    assert sum(verdict(0.05) == "higher" for _ in range(100)) >= 80


def test_the_verdict_is_that_of_the_interval():
    """Zero at its very end is in it, and equal runs do not differ."""
    assert PairedDifference(0.2, 0.0, 0.4, 3).verdict == "no difference seen"
    assert PairedDifference(0.2, 0.1, 0.3, 3).verdict == "higher"
    assert PairedDifference(-0.2, -0.3, -0.1, 3).verdict == "lower"
    assert paired_difference([1.0, 2.0], [1.0, 2.0]) == PairedDifference(0.0, 0.0, 0.0, 2)
