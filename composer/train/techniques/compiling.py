"""Modules that `torch.compile` compiles while a model trains."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from composer.train.errors import TrainingError

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class CompileMode:
    """What is compiled."""

    modules: Callable[[nn.Module], list[nn.Module]]
    reads: frozenset[str] = frozenset()
    """The settings that only some modes read; there are none."""


def layers_of(model: nn.Module) -> list[nn.Module]:
    """Return the outermost layers of a model's repeats, or the whole model if it has none."""
    from torch import nn

    found: list[nn.Module] = []
    names: list[str] = []
    for name, module in model.named_modules():
        if isinstance(module, nn.ModuleList) and not any(name.startswith(f"{other}.") for other in names):
            names.append(name)
            found += module
    return found or [model]


COMPILE_MODES: Mapping[str, CompileMode] = {
    "off": CompileMode(lambda model: []),
    "auto": CompileMode(lambda model: []),  # a run begins with what it chose in place of it
    "block": CompileMode(layers_of),
    "whole": CompileMode(lambda model: [model]),
}


@contextmanager
def compiled_modules(model: nn.Module, mode: str, *, dynamic: bool) -> Iterator[None]:
    """Compile modules of a model for as long as it trains.

    Args:
        model: The model.
        mode: The name of a row of `COMPILE_MODES`.
        dynamic: Whether one program is for all lengths, rather than one for each. It is fixed from the start, since torch by
            itself would choose by the lengths that it has seen, and a resumed run has seen others.

    Raises:
        TrainingError: torch cannot compile it.
    """
    from torch._dynamo.exc import TorchDynamoException
    from torch._inductor.exc import InductorError

    modules = COMPILE_MODES[mode].modules(model)
    for module in modules:
        module.compile(dynamic=dynamic)
    try:
        yield
    except (TorchDynamoException, InductorError) as error:
        first = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise TrainingError(
            f"torch.compile fails: {first[:200]}",
            hint="it needs a C++ compiler, or Triton on a GPU; train without: --compile off",
        ) from error
    finally:
        for module in modules:
            module._compiled_call_impl = None  # what `nn.Module.compile` sets
