"""The device of a model, and of its batches."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from composer.train.losses import Batch


def device_of(model: nn.Module) -> torch.device:
    """Return the device of the model's first parameter; all parameters are on one device in training."""
    return next(model.parameters()).device


def on_device(batch: Batch, device: torch.device) -> dict[str, Tensor]:
    """Return the batch moved to a device."""
    return {name: value.to(device, non_blocking=True) for name, value in batch.items()}
