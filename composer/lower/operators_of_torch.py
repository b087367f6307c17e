"""Models in operators of torch alone, for programs that run where Composer is not."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from blocks.experts.grouped_kernels import each_forward_in_operators
from blocks.experts.grouped_linear import register_grouped_linear


class InOperatorsOfTorch(TorchFunctionMode):
    """Takes operators of torch for the one that Composer registers for experts."""

    def __init__(self) -> None:
        super().__init__()
        register_grouped_linear()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        own = torch.ops.composer.grouped_linear
        if func in (own, own.default):
            return each_forward_in_operators(*args)
        return func(*args, **(kwargs or {}))
