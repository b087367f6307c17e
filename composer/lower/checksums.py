"""Checksums of tensors, by which a file says of which weights it is."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import torch
from torch import Tensor

from composer.lower.int8 import Int8Matrix


def checksum_of(tensors: Mapping[str, Tensor]) -> str:
    """Return the SHA-256 of the names, dtypes, shapes and values of tensors, wherever they are.

    Examples:
        >>> import torch
        >>> from composer.lower.checksums import checksum_of
        >>> checksum_of({"a": torch.zeros(2)}) == checksum_of({"a": torch.zeros(2, 1)[:, 0]})
        True
    """
    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}\n".encode())
        for part in (tensor.integers, tensor.scale) if isinstance(tensor, Int8Matrix) else (tensor,):
            digest.update(part.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()
