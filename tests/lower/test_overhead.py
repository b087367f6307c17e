"""Generated code computes what hand-written code computes, and costs Python hardly more."""

from __future__ import annotations

import re
import sys
from collections import Counter
from types import FrameType
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tests.bench.bench_forward import SIZES, pair

TOKENS = torch.randint(97, (2, 9), generator=torch.Generator().manual_seed(0))

PATHS = {"norm_1": "attn.norm", "attention": "attn.body", "norm_2": "ffn.norm", "feed_forward": "ffn.body"}
"""Modules of a hand-written layer, and of a generated one."""


class Operations(TorchDispatchMode):
    """Every aten operation, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


def operations(model: torch.nn.Module) -> list[str]:
    """Return what one forward asks of torch."""
    with torch.no_grad(), Operations() as seen:
        model(TOKENS)
    return seen.names


def python_calls(model: torch.nn.Module) -> int:
    """Count the Python functions entered in one forward, torch's own included."""
    calls = 0

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event == "call"

    with torch.no_grad():
        model(TOKENS)
        sys.setprofile(count)
        try:
            model(TOKENS)
        finally:
            sys.setprofile(None)
    return calls


def test_generated_gpt2_runs_the_operations_of_a_hand_written_one() -> None:
    """The same operations of torch, each as often."""
    generated, written = pair("gpt2")
    assert Counter(operations(generated.eval())) == Counter(operations(written.eval()))


@pytest.mark.parametrize(("name", "most"), [("gpt2", 1.06), ("llama3", 1.055)])
def test_generated_code_makes_hardly_more_python_calls(name: str, most: float) -> None:
    """Beside those of a hand-written model."""
    generated, written = pair(name)
    ratio = python_calls(generated.eval()) / python_calls(written.eval())
    assert ratio <= most, ratio


@pytest.mark.parametrize("name", SIZES)
def test_both_compute_the_same(name: str) -> None:
    """With the same weights the logits are equal, so the yardstick measures the same model."""
    generated, written = pair(name)
    state = {"embed.weight": generated.get_parameter("embed.weight"), "head.weight": generated.get_parameter("head.weight")}
    for theirs, _ in written.named_parameters():
        ours = theirs
        for short, path in PATHS.items():
            ours = re.sub(short, path, ours)
        state[theirs] = generated.get_parameter(ours)
    written.load_state_dict(state)
    torch.testing.assert_close(generated.eval()(TOKENS).logits, written.eval()(TOKENS), rtol=1e-5, atol=1e-6)
