"""Copies of matrices in the layout that is fastest for few rows."""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

ROUNDS = 5
"""How often each layout is measured."""
WORTH = 0.95
"""A copy is kept if it takes at most this share of the time of the matrix itself."""


@contextmanager
def prepacked(model: nn.Module, rows: int = 1) -> Iterator[int]:
    """Keep copies of the matrices of linear maps as [in, out] on a CPU, where these are faster for few rows; both layouts are
    measured first. The results are equal up to rounding. Weights must not change inside; with gradients, no copy is used.

    Args:
        model: A model, which keeps its modules and its `state_dict`.
        rows: Number of rows in a decoding step, such as prompts or beams.

    Yields:
        The size of the copies, in bytes.

    Examples:
        >>> import composer
        >>> from composer.decode import GREEDY, Request, cached, generate, prepacked
        >>> tiny = {"n_layers": 2, "d_model": 32, "n_heads": 4, "vocab": 61, "context": 16}
        >>> model = composer.load("gpt2", tiny).compile(seed=0).eval()
        >>> with prepacked(model):
        ...     texts = generate(model, [[1, 2, 3]], Request(max_new_tokens=4, sampling=GREEDY), reading=cached)
    """
    linears = list(dict.fromkeys(each for each in model.modules() if type(each) is nn.Linear and "forward" not in vars(each)))
    linears = [each for each in linears if each.weight.device.type == "cpu" and type(each.weight) is nn.Parameter]
    kept = copies(linears, rows)
    for module, copy in kept.items():
        vars(module)["forward"] = partial(few_rows, module, copy, rows)
    try:
        yield sum(copy.nbytes for copy in kept.values())
    finally:
        for module in kept:
            vars(module).pop("forward", None)  # a session that was opened inside may have taken it away


def few_rows(module: nn.Linear, copy: Tensor, rows: int, x: Tensor) -> Tensor:
    """Return what a linear map does, with its copy [out, in] if there are at most so many rows and no gradients."""
    alike = x.numel() <= rows * module.in_features and x.dtype == copy.dtype and not torch.is_grad_enabled()
    return F.linear(x, copy if alike else module.weight, module.bias)


@torch.no_grad()
def copies(linears: Sequence[nn.Linear], rows: int) -> dict[nn.Linear, Tensor]:
    """Return the copies that are faster, [out, in] with the outputs next to each other in memory."""
    if not linears:
        return {}
    copied = {module: module.weight.t().contiguous().t() for module in linears}
    plain: dict[Any, list[float]] = defaultdict(list)
    packed: dict[Any, list[float]] = defaultdict(list)
    for _ in range(ROUNDS):
        for times, weights in ((plain, {module: module.weight for module in linears}), (packed, copied)):
            for module, weight in weights.items():  # one after the other as in a model, whose weights are more than a cache holds
                x = torch.ones(rows, 1, module.in_features, dtype=weight.dtype)
                times[_kind(module)].append(seconds(partial(F.linear, x, weight, module.bias)))
    faster = {kind for kind in plain if statistics.median(packed[kind]) <= WORTH * statistics.median(plain[kind])}
    return {module: copy for module, copy in copied.items() if _kind(module) in faster}


def seconds(function: Callable[[], object]) -> float:
    """Return how long a call takes."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def _kind(module: nn.Linear) -> tuple[Any, ...]:
    """Return what decides how fast a linear map is."""
    return module.out_features, module.in_features, module.weight.dtype, module.bias is None
