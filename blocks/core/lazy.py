"""`torch`, `nn` and `F`, loaded on first use: declarations must be readable where torch is not installed."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    import torch.nn.functional as F
    from torch import nn
else:

    class _Lazy:
        """A stand-in for a module that is not in `sys.modules`, so that nothing that inspects modules loads it."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            return getattr(importlib.import_module(self._name), name)

    torch = _Lazy("torch")
    nn = _Lazy("torch.nn")
    F = _Lazy("torch.nn.functional")

__all__ = ["F", "nn", "torch"]
