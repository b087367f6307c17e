"""Generated code computes what hand-written code computes, and costs Python hardly more."""

from __future__ import annotations

import sys
from collections import Counter
from types import FrameType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tests.bench.bench_forward import pair

TOKENS = torch.randint(97, (2, 9), generator=torch.Generator().manual_seed(0))


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
    generated, written = pair()
    assert Counter(operations(generated.eval())) == Counter(operations(written.eval()))


def test_generated_gpt2_makes_hardly_more_python_calls() -> None:
    """At most 1.08 times those of a hand-written one."""
    generated, written = pair()
    ratio = python_calls(generated.eval()) / python_calls(written.eval())
    assert ratio <= 1.08, ratio


def test_both_compute_the_same() -> None:
    """With the same weights the logits are equal, so the yardstick measures the same model."""
    generated, written = pair()
    names = dict(zip([n for n, _ in written.named_parameters()], [n for n, _ in _in_order(generated)], strict=True))
    state = {ours: generated.get_parameter(theirs) for ours, theirs in names.items()}
    written.load_state_dict({**state, "head.weight": state["embed.weight"]})
    torch.testing.assert_close(generated.eval()(TOKENS).logits, written.eval()(TOKENS), rtol=1e-5, atol=1e-6)


def _in_order(model: torch.nn.Module) -> list[tuple[str, torch.nn.Parameter]]:
    return list(model.named_parameters())
