"""What drawing a token costs beside the operations that it cannot do without: `python -m tests.bench --only draw-token`.

Greedy decoding beside `argmax`, top-k sampling beside `topk` and a draw among these in float32, and sampling from all tokens
beside a softmax and a draw; one row of logits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import torch
from torch import Tensor

from composer.decode import GREEDY, Sampling, draw
from tests.bench.tables import Column, Row, Table
from tests.bench.timing import times

TABLE = Table(
    name="draw-token",
    names=["what is drawn", "beside", "tokens"],
    columns={"times as long": Column("less")},
    about="200 calls each, in turn; the control is the operations beside themselves",
)


def by_top_k(logits: Tensor) -> Tensor:
    """Draw among the fifty most probable tokens."""
    scores, tokens = logits.topk(50)
    return tokens.gather(-1, torch.multinomial(scores.softmax(-1), 1))[:, 0]


def by_softmax(logits: Tensor) -> Tensor:
    """Draw among all tokens."""
    return torch.multinomial(logits.softmax(-1), 1)[:, 0]


WAYS: Mapping[str, tuple[Sampling, Callable[[Tensor], Tensor]]] = {
    "greedy": (GREEDY, lambda logits: logits.argmax(-1)),
    "top_k 50": (Sampling(top_k=50), by_top_k),
    "all tokens": (Sampling(), by_softmax),
}
WORDS = {
    "greedy": ("the most probable token", "`argmax`"),
    "top_k 50": ("one of the 50 most probable", "`topk` and a draw among them"),
    "all tokens": ("one of all", "a softmax and a draw"),
}


def rows(*, toy: bool) -> Iterator[Row]:
    """Yield a row for each way to draw and each vocabulary."""
    torch.manual_seed(0)
    generator = torch.Generator()
    for name, (sampling, plain) in WAYS.items():
        for tokens in (997,) if toy else (32_000, 128_256):
            logits = torch.randn(1, tokens)
            works = {"plain": lambda: plain(logits), "ours": lambda: draw(logits, sampling, generator)}  # noqa: B023
            found = times(works, rounds=3 if toy else 200)
            drawn, beside = WORDS[name]
            longer = found.seconds["ours"] / found.seconds["plain"]
            yield {
                "what is drawn": drawn, "beside": beside, "tokens": tokens, "times as long": longer, "control": found.control,
            }  # fmt: skip
