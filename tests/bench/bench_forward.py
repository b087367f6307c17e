"""How fast generated code is beside hand-written code: `python -m tests.bench.bench_forward [--device cuda] [--train]`.

Both are run in turn, call by call, in one process with one thread; the ratio of the medians is printed beside that of the
hand-written model to a copy of itself, which says how far the machine can be believed.
"""

from __future__ import annotations

import argparse
import copy
import statistics
import time
from collections.abc import Callable

import torch

import composer
from tests.bench.handwritten import GPT2

SIZES = {"n_layers": 12, "d_model": 32, "n_heads": 4, "vocab": 97, "context": 32, "dropout": 0}


def pair() -> tuple[composer.lower.Model, GPT2]:  # type: ignore[name-defined]  # a lazy attribute
    """Return the generated model and the hand-written one, of the same sizes."""
    generated = composer.load("gpt2", overrides=SIZES).compile(seed=0)
    torch.manual_seed(0)
    return generated, GPT2(vocab=97, context=32, dim=32, layers=12, heads=4)


def ratio(first: Callable[[], object], second: Callable[[], object], *, calls: int) -> tuple[float, float]:
    """Return the median time of the first over that of the second, and the median of the pairwise ratios."""
    times: tuple[list[float], list[float]] = ([], [])
    for index in range(calls):
        for which in ((0, 1), (1, 0))[index % 2]:
            start = time.perf_counter()
            (first, second)[which]()
            times[which].append(time.perf_counter() - start)
    medians = statistics.median(times[0]) / statistics.median(times[1])
    return medians, statistics.median(a / b for a, b in zip(*times, strict=True))


def work(model: torch.nn.Module, tokens: torch.Tensor, *, train: bool) -> Callable[[], object]:
    """Return a function for one forward, or a forward and a backward."""

    def forward() -> object:
        with torch.inference_mode():
            return model(tokens)

    def step() -> None:
        out = model(tokens)
        logits = out if isinstance(out, torch.Tensor) else out.logits
        logits.sum().backward()
        model.zero_grad(set_to_none=True)
        if tokens.is_cuda:
            torch.cuda.synchronize()

    return step if train else forward


def main() -> None:
    """Print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--train", action="store_true", help="forward and backward")
    parser.add_argument("--calls", type=int, default=400)
    options = parser.parse_args()
    torch.set_num_threads(1)
    generated, written = (model.to(options.device).train(options.train) for model in pair())
    tokens = torch.randint(97, (2, 32), device=options.device)
    runs = {name: work(m, tokens, train=options.train) for name, m in (("generated", generated), ("hand-written", written))}
    control = work(copy.deepcopy(written), tokens, train=options.train)
    for run in (*runs.values(), control):
        for _ in range(20):
            run()
    kind = "forward and backward" if options.train else "forward"
    print(
        f"torch {torch.__version__}, {options.device}, one thread, {kind}, 12 layers of 32, {options.calls} calls each, in turn"
    )
    print(
        "generated / hand-written  {:.3f}  (pairwise {:.3f})".format(
            *ratio(runs["generated"], runs["hand-written"], calls=options.calls)
        )
    )
    print(
        "hand-written / its copy   {:.3f}  (pairwise {:.3f})".format(*ratio(control, runs["hand-written"], calls=options.calls))
    )


if __name__ == "__main__":
    main()
