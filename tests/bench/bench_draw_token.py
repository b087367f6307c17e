"""What drawing a token costs beside the operations that it cannot do without: `python -m tests.bench.bench_draw_token`.

Greedy decoding beside `argmax`, top-k sampling beside `topk` and a draw among these in float32, and sampling from all tokens
beside a softmax and a draw; one row of logits. They are run in turn, call by call, in one process with one thread; the control is
torch's operations beside themselves.
"""

from __future__ import annotations

import torch
from torch import Tensor

from composer.decode import GREEDY, Sampling, draw
from tests.bench.bench_forward import ratio


def by_top_k(logits: Tensor) -> Tensor:
    """Draw among the fifty most probable tokens."""
    scores, tokens = logits.topk(50)
    return tokens.gather(-1, torch.multinomial(scores.softmax(-1), 1))[:, 0]


def by_softmax(logits: Tensor) -> Tensor:
    """Draw among all tokens."""
    return torch.multinomial(logits.softmax(-1), 1)[:, 0]


WAYS = {
    "greedy": (GREEDY, lambda logits: logits.argmax(-1)),
    "top_k 50": (Sampling(top_k=50), by_top_k),
    "all tokens": (Sampling(), by_softmax),
}


def main() -> None:
    """Print the ratios."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    generator = torch.Generator()
    print(f"torch {torch.__version__}, one thread, one row, 200 calls each, in turn")
    for vocabulary in (32_000, 128_256):
        logits = torch.randn(1, vocabulary)
        for name, (sampling, plain) in WAYS.items():
            ours, theirs = lambda: draw(logits, sampling, generator), lambda: plain(logits)  # noqa: B023
            ours(), theirs()
            found, control = ratio(ours, theirs, calls=200), ratio(theirs, theirs, calls=200)
            print(f"{name} of {vocabulary:,}: {found[0]:.2f}; control {control[0]:.2f}", flush=True)


if __name__ == "__main__":
    main()
