"""How long it takes until a model is there, in milliseconds of CPU: `python -m tests.bench.bench_start [--runs 15]`.

The first model of a process beyond `import torch`, and then medians: a recipe loaded and checked, the same recipe compiled again,
loaded and compiled again, and with other sizes; and a model of 1.5 billion parameters on the meta device.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

import composer

TINY = {"n_layers": 2, "d_model": 32, "n_heads": 4, "vocab": 61, "context": 16}
LARGE = {"n_layers": 16, "d_model": 2048, "n_heads": 32, "hidden": 8192}


def milliseconds(work: Callable[[], object]) -> float:
    """Return the CPU time of one call."""
    start = time.process_time()
    work()
    return (time.process_time() - start) * 1000


def compiled(sizes: dict[str, Any], name: str = "gpt2", **options: Any) -> object:
    """Return a model of a recipe that is loaded anew."""
    return composer.load(name, sizes).compile(seed=0, **options)


def main() -> None:
    """Print all of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=15)
    runs = range(parser.parse_args().runs)
    print(f"torch {torch.__version__}")
    print(f"the first model               {milliseconds(lambda: compiled(TINY)):7.1f} ms")
    recipe = composer.load("gpt2", TINY)
    works: dict[str, Callable[[int], object]] = {
        "loaded and checked": lambda run: composer.load("gpt2", {**TINY, "d_model": 32 + 4 * run}).check(),
        "the same recipe": lambda run: recipe.compile(seed=run),
        "loaded and compiled": lambda run: compiled(TINY),
        "other sizes": lambda run: compiled({**TINY, "d_model": 36 + 4 * run}),
        "1.5 billion on meta": lambda run: compiled({**LARGE, "vocab": 128256 + run}, "llama3", device="meta"),
    }
    for what, work in works.items():
        times = [milliseconds(lambda work=work, run=run: work(run)) for run in runs]  # type: ignore[misc]  # mypy cannot type it
        print(f"{what:29s} {statistics.median(times):7.1f} ms")


if __name__ == "__main__":
    main()
