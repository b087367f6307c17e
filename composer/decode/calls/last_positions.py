"""Logits of the last positions of a call alone, as they are needed to choose the next token."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from torch import nn
from torch.utils.hooks import RemovableHandle

from composer.lower.model import Model, module_at
from composer.lower.passes.tail import LOGITS


def last_position_hooks(model: Model, count: Callable[[], int]) -> Iterator[RemovableHandle]:
    """Give a model hooks by which it computes its logits for the last positions of each call alone, as many as `count` says."""
    assert model.cache_layout is not None
    modules = ((module_at(model, last.node), last.axis) for last in model.cache_layout.last)
    for module, axis in ((module, axis) for module, axis in modules if module is not None):
        yield module.register_forward_pre_hook(partial(_narrowed, axis, count))
        break
    yield model.register_forward_hook(lambda _, __, output: last_of(output, count()))


def last_of(output: Any, positions: int) -> Any:
    """Return the outputs of a model with the logits of the last positions alone."""
    return output._replace(**{LOGITS: output.logits[:, -positions:]})


def _narrowed(axis: int, count: Callable[[], int], _: nn.Module, arguments: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Leave out all but the last positions of the first argument."""
    first, *others = arguments
    rows = count()
    return None if first.shape[axis] <= rows else (first.narrow(axis, first.shape[axis] - rows, rows), *others)
