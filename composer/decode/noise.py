"""Models without random numbers, as they are in a session."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from composer.decode.caches.cache import Cache
from composer.lower.model import Model


@contextmanager
def without_noise(model: nn.Module) -> Iterator[None]:
    """Turn off what draws random numbers in a model, as a session does.

    Args:
        model: A compiled recipe.

    Examples:
        >>> import composer, torch
        >>> from composer.decode.noise import without_noise
        >>> tiny = {"n_layers": 2, "d_model": 32, "n_heads": 4, "vocab": 61, "context": 16}
        >>> model = composer.load("gpt2", tiny).compile(seed=0).eval()
        >>> with without_noise(model):
        ...     model(tokens=torch.tensor([[1, 2, 3]])).logits.shape
        torch.Size([1, 3, 61])
    """
    layout = model.cache_layout if isinstance(model, Model) else None
    holders = [model.get_submodule(path) for path in (layout.random if layout is not None else ())]
    for holder in holders:
        holder.__dict__.setdefault("cache", Cache({}, 1))
    try:
        yield
    finally:
        for holder in holders:
            holder.__dict__.pop("cache", None)
