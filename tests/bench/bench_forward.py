"""How fast generated code is beside hand-written code: `python -m tests.bench --only forward`.

GPT-2 and Llama so narrow that nearly all time is spent in Python: what is measured is what the generated code adds.
"""

from __future__ import annotations

import itertools
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
    about="400 calls each, in turn; the control is the hand-written model beside itself",
)

SIZES = {
    "gpt2": {"n_layers": 12, "d_model": 32, "n_heads": 4, "vocab": 97, "context": 32, "dropout": 0},
    "llama3": {"n_layers": 12, "d_model": 32, "n_heads": 4, "n_kv_heads": 2, "vocab": 97, "hidden": 88},
}


def pair(name: str) -> tuple[composer.lower.Model, torch.nn.Module]:  # type: ignore[name-defined]  # a lazy attribute
    """Return the generated model and the hand-written one, of the same sizes."""
    generated = composer.load(name, overrides=SIZES[name]).compile(seed=0)
    torch.manual_seed(0)
    if name == "gpt2":
        return generated, GPT2(vocab=97, context=32, dim=32, layers=12, heads=4)
    return generated, Llama(vocab=97, dim=32, layers=12, heads=4, kv_heads=2, hidden=88)


def rows(*, toy: bool) -> Iterator[Row]:
    """Yield a row for each model and work."""
    for name, train in itertools.product(SIZES, (False, True)):
        generated, written = (model.train(train) for model in pair(name))
        tokens = torch.randint(97, (2, 32))
        works = {"hand-written": work(written, tokens, train=train), "generated": work(generated, tokens, train=train)}
        for each in works.values():
            for _ in range(2 if toy else 20):
                each()
        found = times(works, rounds=3 if toy else 400)
        ratio = found.seconds["generated"] / found.seconds["hand-written"]
        kind = "forward and backward" if train else "forward"
        yield {"model": name, "work": kind, "generated / hand-written": ratio, "control": found.control}


def work(model: torch.nn.Module, tokens: torch.Tensor, *, train: bool) -> Work:
    """Return a function for one forward, or a forward and a backward."""

    def forward() -> object:
        with torch.inference_mode():
            return model(tokens)

    def step() -> None:
        out = model(tokens)
        logits = out if isinstance(out, torch.Tensor) else out.logits
        logits.sum().backward()
        model.zero_grad(set_to_none=True)

    return step if train else forward
