"""The precision in which a model computes while its weights, gradients and the optimizer's state stay in fp32."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class Precision:
    """Where a precision lets torch choose bfloat16 for matrix products and what is like them."""

    bfloat16: Mapping[str, bool]
    """By the type of the device; every other device is as `cpu`."""
    reads: frozenset[str] = frozenset()
    """The settings that only some precisions read; there are none."""


PRECISIONS: Mapping[str, Precision] = {
    "auto": Precision({"cuda": True, "cpu": False}),
    "fp32": Precision({"cuda": False, "cpu": False}),
    "bf16": Precision({"cuda": True, "cpu": True}),
}


def is_bfloat16(precision: str, device: str) -> bool:
    """Return whether the matrix products of a precision are in bfloat16 on a type of device, such as `cuda`."""
    row = PRECISIONS[precision].bfloat16
    return row.get(device, row["cpu"])


def autocast(device: torch.device, precision: str = "auto") -> AbstractContextManager[None]:
    """Return the autocast context of a forward pass; weights keep their dtype.

    Where nothing is to be changed, it is an empty one: torch's costs the host as much as several operators.

    Args:
        device: The device of the model.
        precision: The name of a row of `PRECISIONS`.
    """
    import torch

    enabled = is_bfloat16(precision, device.type)
    if not enabled and not torch.is_autocast_enabled(device.type):
        return nullcontext()
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=enabled)
