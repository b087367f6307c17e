"""How fast generated code is beside hand-written code: `python -m tests.bench --only forward`.

GPT-2 and Llama so narrow that nearly all time is spent in Python: what is measured is what the generated code adds.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator

import torch

import composer
from tests.bench.handwritten import GPT2, Llama
from tests.bench.tables import Column, Row, Table
from tests.bench.timing import Work, times

TABLE = Table(
    name="forward",
    names=["model", "work"],
    columns={"generated / hand-written": Column("less", 3)},
    about="medians of six models of each kind, 20 runs of ten calls in turn; the control is the hand-written model beside itself",
)

MODELS = 6
"""How many models of each kind are built, of every other pair the hand-written one first: where the objects of one lie in memory
changes its time by up to 3 %, and what is built later is faster."""
CALLS = 10
"""How many calls a run has."""
SIZES = {
    "gpt2": {"n_layers": 12, "d_model": 32, "n_heads": 4, "vocab": 97, "context": 32, "dropout": 0},
    "llama3": {"n_layers": 12, "d_model": 32, "n_heads": 4, "n_kv_heads": 2, "vocab": 97, "hidden": 88},
}


def pair(name: str) -> tuple[composer.lower.Model, torch.nn.Module]:  # type: ignore[name-defined]  # a lazy attribute
    """Return the generated model and the hand-written one, of the same sizes."""
    generated = composer.load(name, overrides=SIZES[name]).compile(seed=0)
    return generated, by_hand(name)


def by_hand(name: str) -> torch.nn.Module:
    """Return the hand-written model."""
    torch.manual_seed(0)
    if name == "gpt2":
        return GPT2(vocab=97, context=32, dim=32, layers=12, heads=4)
    return Llama(vocab=97, dim=32, layers=12, heads=4, kv_heads=2, hidden=88)


def rows(*, toy: bool) -> Iterator[Row]:
    """Yield a row for each model and work."""
    for name, train in itertools.product(SIZES, (False, True)):
        found = [beside(name, rounds=2 if toy else 20, train=train, later=number % 2) for number in range(1 if toy else MODELS)]
        kind = "forward and backward" if train else "forward"
        ratio, control = (statistics.median(values) for values in zip(*found, strict=True))
        yield {"model": name, "work": kind, "generated / hand-written": ratio, "control": control}


def beside(name: str, *, rounds: int, train: bool, later: int) -> tuple[float, float]:
    """Return the time of a generated model as a multiple of that of a hand-written one, both built anew, and the control. Of the
    two, the hand-written one is built as the first (0) or the `later` (1).
    """
    written = by_hand(name)
    generated, other = pair(name)
    written = (other if later else written).train(train)
    generated.train(train)
    tokens = torch.randint(97, (2, 32))
    run = work(generated, tokens, train=train)
    # The generated model twice too: what runs more often finds more of its own in the caches of the processor.
    found = times({"hand-written": work(written, tokens, train=train), "generated": run, "again": run}, rounds=rounds)
    return (found.seconds["generated"] + found.seconds["again"]) / 2 / found.seconds["hand-written"], found.control


def work(model: torch.nn.Module, tokens: torch.Tensor, *, train: bool) -> Work:
    """Return a function for a run of forwards, or of forwards and backwards: a single call between those of another model would
    find nothing of its own in the caches of the processor.
    """

    def forward() -> object:
        with torch.inference_mode():
            return [model(tokens) for _ in range(CALLS)]

    def step() -> None:
        for _ in range(CALLS):
            out = model(tokens)
            logits = out if isinstance(out, torch.Tensor) else out.logits
            logits.sum().backward()
            model.zero_grad(set_to_none=True)

    return step if train else forward
