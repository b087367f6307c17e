"""`torch`, `nn` and `F`, imported on first use, so that blocks can be declared without importing torch."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    import torch.nn.functional as F
    from torch import nn
else:

    class _Lazy:
        """A proxy for a module that is not in `sys.modules`, so that tools that inspect modules do not import it."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            if name == "_module":  # on first use; as an attribute it is found faster than in `sys.modules`
                self._module = importlib.import_module(self._name)
                return self._module
            return getattr(self._module, name)

    torch = _Lazy("torch")
    nn = _Lazy("torch.nn")
    F = _Lazy("torch.nn.functional")

__all__ = ["F", "nn", "torch"]
