"""What a session puts into the modules of its model while it is entered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn

from composer.decode.caches.cache import Cache, FixedModule
from composer.decode.errors import DecodeError
from composer.lower.model import Model, module_at
from composer.lower.passes.cache_layout import CachedNode


class Attachment:
    """The caches of the modules of a model, and in the place of the forward of others what computes once."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.holders: list[Any] = []
        self.once: list[nn.Module] = []

    def attach(self, caches: Sequence[Cache], once: Mapping[str, FixedModule]) -> None:
        """Give every module its cache.

        Args:
            caches: One for each node of the cache layout.
            once: What computes once, by the paths of the modules.

        Raises:
            DecodeError: The model has the caches of another session.
        """
        assert self.model.cache_layout is not None
        holders = [self._holder(node) for node in self.model.cache_layout.nodes]
        if any(holder.__dict__.get("cache") is not None for holder in holders):
            raise DecodeError("this model already has an open session; leave it first, and enter it again to go on")
        for holder, cache in zip(holders, caches, strict=True):
            holder.__dict__["cache"] = cache
        self.holders = holders
        self.model.__dict__["in_session"] = True
        for path, fixed in once.items():
            module = module_at(self.model, path)
            assert module is not None
            fixed.forward = module.forward
            module.__dict__["forward"] = fixed.__call__  # by a bound method, a compiled program does not depend on the object
            self.once.append(module)

    def _holder(self, node: CachedNode) -> Any:
        """Return what has the cache of a node: a module, or a part among its attributes."""
        holder: Any = self.model.get_submodule(node.module)
        for name in node.attribute:
            holder = holder.__dict__[name]
        return holder

    def detach(self) -> None:
        """Take away what was given."""
        for holder in self.holders:
            holder.__dict__.pop("cache", None)
        for module in self.once:
            module.__dict__.pop("forward")
        self.holders, self.once = [], []
        self.model.__dict__.pop("in_session", None)
