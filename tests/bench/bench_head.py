"""What a loss from chunks of logits saves: `python -m tests.bench --only head`.

A step of GPT-2's shape in small (forward, loss and backward), with the logits of all positions at once and in the chunks that
`arco train` takes. The memory is what a process of its own has at most, beyond what it has before the first step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from multiprocessing import get_context
from pathlib import Path

import torch

import composer
from composer.train.chunked_loss import positions_at_a_time
from tests.bench.tables import Column, Row, Table
from tests.bench.timing import times

TABLE = Table(
    name="head",
    names=["words", "positions at a time"],
    columns={
        "times as fast": Column("more"), "memory": Column("less", 0, "MB"), "all at once": Column("less", 0, "MB"),
    },
    about="medians of 7 steps each, in turn; the control is all at once beside itself",
)  # fmt: skip

ROWS, LENGTH, DIM, LAYERS = 4, 512, 256, 4
VOCABULARIES: tuple[int, ...] = (16_384, 32_000, 50_257)


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


def rows(*, toy: bool) -> Iterator[Row]:
    """Yield a row for each vocabulary."""
    for words in VOCABULARIES[:1] if toy else VOCABULARIES:
        chunk = positions_at_a_time(words, words * DIM)
        found = times({"at once": step_of(words, 0), "in parts": step_of(words, chunk)}, rounds=1 if toy else 7)
        with get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
            at_once, in_parts = pool.starmap(peak, [(words, 0), (words, chunk)], chunksize=1)
        yield {
            "words": words,
            "positions at a time": chunk,
            "times as fast": found.speed("in parts", beside="at once"),
            "memory": in_parts,
            "all at once": at_once,
            "control": found.control,
        }
