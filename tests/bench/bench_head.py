"""What a loss from chunks of logits saves: `python -m tests.bench.bench_head`.

A step of GPT-2's shape in small (forward, loss and backward), with the logits of all positions at once and in the chunks that
`arco train` takes. They are run in turn, step by step, in one process with one thread; the first beside itself says how far the
machine can be believed. The memory is what a process of its own has at most, beyond what it has before the first step.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path

import torch

import composer
from composer.train.chunked_loss import positions_at_a_time
from tests.bench.bench_masks import medians

ROWS, LENGTH, DIM, LAYERS = 4, 512, 256, 4
VOCABULARIES = (16_384, 32_000, 50_257)


def step_of(words: int, chunk: int) -> Callable[[], None]:
    """Return a step with a vocabulary, and logits in chunks of positions; all at once for 0."""
    sizes = {"vocab": words, "d_model": DIM, "n_layers": LAYERS, "n_heads": 4, "context": LENGTH}
    model = composer.load("gpt2", sizes).compile(seed=0)
    tokens = torch.randint(words, (ROWS, LENGTH), generator=torch.Generator().manual_seed(0))

    def step() -> None:
        model.zero_grad()
        composer.loss(model, {"tokens": tokens}, logits_chunk=chunk).total.backward()

    return step


def peak(words: int, chunk: int) -> float:
    """Return the megabytes that two steps take at most, beyond what there was before."""
    torch.set_num_threads(1)
    step = step_of(words, chunk)
    before = most_memory()
    step()
    step()
    return most_memory() - before


def most_memory() -> float:
    """Return the most memory that this process has had, in megabytes, on Linux."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def main() -> None:
    """Print ratios of times and the memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=7)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, one thread, {os.uname().machine}, {ROWS * LENGTH} positions, {options.calls} steps each")
    for words in VOCABULARIES:
        chunk = positions_at_a_time(words, words * DIM)
        whole, parts, again = medians([step_of(words, 0), step_of(words, chunk), step_of(words, 0)], calls=options.calls)
        with get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
            at_once, in_parts = pool.starmap(peak, [(words, 0), (words, chunk)], chunksize=1)
        print(
            f"{words:,} words, {chunk} at a time: {whole / parts:.2f} times as fast (control {whole / again:.2f}), "
            f"{in_parts:.0f} MB instead of {at_once:.0f} MB",
            flush=True,
        )


if __name__ == "__main__":
    sys.exit(main())
