"""Estimated times of training steps, against steps that run on this machine, and which of two recipes is faster.

    python -m tests.bench.bench_estimates
    python -m tests.bench.bench_estimates --threads 1 --device laptop.json

Every step is timed twice in turn (A/A). Where the two differ by more than 5 %, the machine is busy, and nothing is judged.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

import composer
from composer.estimate import Estimate, estimate, measure_device, read_device
from composer.estimate.estimating import batch_of
from composer.train import TrainSettings
from composer.train.loop import build_optimizer, update, with_logits_chunk
from tests.bench.tables import BUSY
from tests.bench.timing import times

SMALL: Mapping[str, Any] = {"vocab": 4001, "d_model": 256, "n_layers": 4, "n_heads": 4}
CASES: Sequence[tuple[str, Mapping[str, Any], Mapping[str, int]]] = (
    ("gpt2", {**SMALL, "context": 256}, {"batch": 4}),
    ("llama3", {**SMALL, "n_kv_heads": 2, "hidden": 700}, {"batch": 4, "time": 256}),
    ("bert", {**SMALL, "context": 256, "hidden": 1024}, {"batch": 4}),
    ("t5", {**SMALL, "hidden": 1024}, {"batch": 4, "source_time": 128, "time": 128}),
    ("vit", {"n_layers": 3}, {"batch": 4}),
    ("resnet", {}, {"batch": 2}),
    ("mixtral", {**SMALL, "n_kv_heads": 2, "hidden": 400}, {"batch": 4, "time": 256}),
    ("mamba", {"vocab": 4001, "d_model": 256, "n_layers": 2}, {"batch": 4, "time": 128}),
    ("lstm_lm", {}, {"batch": 32, "time": 128}),
    ("conv_lm", {}, {"batch": 16, "time": 256}),
    ("gpt_mini", {}, {"batch": 8, "time": 64}),
)
LONG = 0.1
"""Seconds of a step from which on it is held to a quarter, if products of matrices dominate; others to a factor of 2."""
SETTINGS = TrainSettings(precision="fp32")


def main() -> None:
    """Print a row for each recipe, and exit with 1 if an estimate is out of its bounds, with 2 if some are not judged."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", help="a file from `arco bench -o FILE`, in place of measuring")
    parser.add_argument("--steps", type=int, default=7)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    device = measure_device() if options.device is None else read_device(options.device)
    print(f"torch {torch.__version__}, {device.name}")
    rows: list[tuple[float, float]] = []
    wrong = busy = 0
    for name, params, lengths in CASES:
        recipe = composer.load(name, dict(params))
        found = estimate(recipe, lengths, device=device, settings=SETTINGS)
        assert found.step is not None
        timed = times({name: step_of(recipe, found)}, rounds=options.steps)
        real, apart = timed.seconds[name], abs(timed.control - 1)
        ratio = found.step.seconds / real
        products = found.step.parts.get("matrix products", 0.0) / found.step.seconds
        most = 1.25 if real >= LONG and products > 0.5 else 2.0
        judged = apart <= BUSY
        fits = 1 / most <= ratio <= most
        busy += not judged
        wrong += judged and not fits
        rows.append((found.step.seconds, real))
        verdict = "not judged" if not judged else "" if fits else f"beyond a factor of {most}"
        print(
            f"{name:10} estimated {found.step.seconds * 1e3:8.1f} ms  ran {real * 1e3:8.1f} ms  ratio {ratio:5.2f}  "
            f"A/A {apart:5.1%}  {found.step.bottleneck:15}  {verdict}",
            flush=True,
        )
    if busy:
        print(f"{busy} of {len(CASES)} were not judged: the machine was busy, A/A is above {BUSY:.0%}")
    else:
        order = rank_correlation(rows)
        print(f"rank correlation {order:.3f}")
        wrong += order < 0.95
    sys.exit(1 if wrong else 2 if busy else 0)


def step_of(recipe: composer.Recipe, found: Estimate) -> Callable[[], object]:
    """Return a training step as `arco train` runs it."""
    torch.manual_seed(0)
    model = recipe.compile(seed=0).train()
    optimizer = build_optimizer(model, SETTINGS)
    settings = with_logits_chunk(SETTINGS, model)
    batch = {
        name: torch.randn_like(value) if value.is_floating_point() else value
        for name, value in batch_of(model.program, found.lengths).items()
    }
    return lambda: update(model, optimizer, [batch], settings, rate=1e-4)


def rank_correlation(pairs: Sequence[tuple[float, float]]) -> float:
    """Return Spearman's correlation of estimated and real times."""
    ranks = [[sorted(values).index(value) for value in values] for values in zip(*pairs, strict=True)]
    return statistics.correlation(*[[float(rank) for rank in each] for each in ranks])


if __name__ == "__main__":
    main()
