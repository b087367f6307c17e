"""Activations that are not kept for the backward pass but computed again in it (Chen et al. 2016)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from torch import nn
from torch.utils.checkpoint import checkpoint

from composer.train.techniques.names import none_called


def matching(model: nn.Module, patterns: Sequence[str]) -> list[nn.Module]:
    """Return the modules whose names match one of some patterns, without those inside of another one.

    Raises:
        TrainingError: A pattern matches none.
    """
    named = {name: module for name, module in model.named_modules() if name and not isinstance(module, nn.ModuleList)}
    found: list[str] = []
    for pattern in patterns:
        names = [name for name in named if fnmatchcase(name, pattern)]
        if not names:
            raise none_called("recompute", "module", pattern, named)
        found += names
    inner = {name for name in found if any(name.startswith(f"{other}.") for other in found)}
    return [named[name] for name in dict.fromkeys(found) if name not in inner]


@contextmanager
def recomputing(model: nn.Module, patterns: Sequence[str]) -> Iterator[None]:
    """Let the modules keep nothing but their inputs while a model trains; random numbers are drawn again alike.

    Raises:
        TrainingError: A pattern matches no module.
    """
    modules = matching(model, patterns)
    try:
        for module in modules:
            module.__dict__["forward"] = partial(_again, module, module.forward)
        yield
    finally:
        for module in modules:
            module.__dict__.pop("forward", None)


def _again(module: nn.Module, forward: Any, *args: Any, **kwargs: Any) -> Any:
    if not module.training:
        return forward(*args, **kwargs)
    return checkpoint(forward, *args, use_reentrant=False, **kwargs)
