"""How fast masks are beside the causal kernel: `python -m tests.bench.bench_masks [--train] [--lengths 2048]`.

For each mask, attention as a compiled model has it, torch's causal kernel, and torch's kernel with the dense matrix of the mask,
which is ready; 8 heads of 64 channels, one row. They are run in turn, call by call, in one process with one thread. Speeds are
multiples of the causal kernel's; that of the causal kernel beside itself says how far the machine can be believed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from statistics import median
from time import perf_counter
from typing import Any

import torch
import torch.nn.functional as F

import composer
from tests.bench.bench_recurrences import Function, work

HEADS, CHANNELS = 8, 64
MASKS = (
    "causal and block_window(64, 2)",
    "causal and (window(128) or global_first(4))",
    "causal and dilated(64, 4)",
    "causal and window(256) and documents(documents)",
    "block_window(64, 1) or random(3, 64, 0) or global_first(64)",
    "causal and random(8, 64, 1)",
    "causal and strided(128)",
)
RECIPE = """
recipe: one
inputs: {{x: "float[batch, time, {width}]", documents: "int[batch, time]?"}}
graph: {{y: {{type: attention, heads: {heads}, mask: "{mask}", in: x}}}}
"""


def prepared(mask: str, length: int) -> Any:
    """Return a mask as attention uses it."""
    text = RECIPE.format(width=HEADS * CHANNELS, heads=HEADS, mask=mask)
    model: Any = composer.load(text).compile(seed=0)
    documents = (torch.arange(length) // 300)[None]
    data = {"documents_documents": documents} if "documents" in mask else {}
    return model.mask.prepare(torch.arange(length), torch.arange(length), **data)


def share(view: Any, length: int) -> float:
    """Return the share of the blocks of pairs that are computed."""
    blocks = -(-length // 64)
    return float(sum(queries.numel() * keys.shape[1] for queries, keys, _ in view.groups) / blocks**2)


def speeds(functions: list[Function], *, train: bool, calls: int) -> list[float]:
    """Return how many times faster than the first function each is, by the medians of calls in turn."""
    first, *others = medians([work(function, train=train) for function in functions], calls=calls)
    return [first / other for other in others]


def medians(functions: Sequence[Callable[[], object]], *, calls: int, clock: Callable[[], float] = perf_counter) -> list[float]:
    """Return the median time of each function, called in turn, without their first calls."""
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(calls + 1):
        for function, measured in zip(functions, times, strict=True):
            start = clock()
            function()
            measured.append(clock() - start)
    return [median(measured[1:]) for measured in times]


def main() -> None:
    """Print the speeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--train", action="store_true", help="forward and backward")
    parser.add_argument("--calls", type=int, default=9)
    parser.add_argument("--lengths", type=int, nargs="+", default=[2048])
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    kind = "forward and backward" if options.train else "forward"
    print(f"torch {torch.__version__}, one thread, {kind}, {options.calls} calls each, in turn")
    for length in options.lengths:
        q, k, v = (torch.randn(1, HEADS, length, CHANNELS, requires_grad=True) for _ in range(3))
        causal = lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True)  # noqa: B023, E731
        for mask in MASKS:
            view = prepared(mask, length)
            matrix = view.dense()
            ours = lambda: view.attend(q, k, v, CHANNELS**-0.5, 0.0)  # noqa: B023, E731
            dense = lambda: F.scaled_dot_product_attention(q, k, v, attn_mask=matrix)  # noqa: B023, E731
            torch.testing.assert_close(ours(), dense())
            found = speeds([causal, ours, dense, causal], train=options.train, calls=options.calls)
            print("{:60} at {}: {:.3f} of the blocks; ours {:.2f}, dense {:.2f}, control {:.2f}".format(
                mask, length, share(view, length), *found), flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
