"""Where the model computes, and how precisely."""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch
from torch import Tensor, nn

from composer.train.losses import Batch


def device_of(model: nn.Module) -> torch.device:
    """Return the device of the model's first parameter; training keeps a model on one."""
    return next(model.parameters()).device


def autocast(device: torch.device) -> AbstractContextManager[None]:
    """Return the context of a forward: bfloat16 for matrix products on CUDA, full precision elsewhere. Weights
    stay as they are.
    """
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda")


def on_device(batch: Batch, device: torch.device) -> dict[str, Tensor]:
    """Return the batch beside the model."""
    return {name: value.to(device, non_blocking=True) for name, value in batch.items()}
