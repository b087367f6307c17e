"""The device of a model, and its precision in the forward pass."""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch
from torch import Tensor, nn

from composer.train.losses import Batch


def device_of(model: nn.Module) -> torch.device:
    """Return the device of the model's first parameter; all parameters are on one device in training."""
    return next(model.parameters()).device


def autocast(device: torch.device) -> AbstractContextManager[None]:
    """Return the autocast context of a forward pass: bfloat16 matrix products on CUDA, full precision elsewhere. Weights keep
    their dtype.
    """
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda")


def on_device(batch: Batch, device: torch.device) -> dict[str, Tensor]:
    """Return the batch moved to a device."""
    return {name: value.to(device, non_blocking=True) for name, value in batch.items()}
