"""Files of llama.cpp, written: a header of settings, and tensors one after the other."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from composer.weights.gguf.architectures import Layout
from composer.weights.gguf.file import ARRAY, MAGIC, SCALARS, STRING
from composer.weights.gguf.numbers import KINDS

if TYPE_CHECKING:
    import torch
    from torch import Tensor

VERSION, ALIGNMENT = 3, 32
BOOLEAN, COUNT, WHOLE, REAL = 7, 4, 5, 6
"""Kinds of values: booleans, numbers from 0 on, numbers in lists, floats."""
DTYPES = {"float32": ("F32", 0), "float16": ("F16", 1), "bfloat16": ("BF16", 32)}
"""The kind of numbers that each dtype of torch is written as, and the number of a file of them."""


def dtype_of(tensor: Tensor, dtype: torch.dtype) -> torch.dtype:
    """Return the dtype in which a tensor is written: vectors are in float32, as llama.cpp computes with them."""
    import torch

    return dtype if tensor.ndim > 1 else torch.float32


def write_gguf(file: Path, settings: Mapping[str, Any], tensors: Mapping[str, tuple[Tensor, Layout]], dtype: torch.dtype) -> None:
    """Write a file of version 3.

    Args:
        file: The file.
        settings: Its settings: whole numbers, floats, booleans, texts, and lists of one of them.
        tensors: Published tensors, and how they lie in the file, by their names in it.
        dtype: The dtype of matrices.

    Raises:
        OSError: The file cannot be written.
    """
    numbers = {kind.name: number for number, kind in KINDS.items()}
    parts = [MAGIC, struct.pack("<IQQ", VERSION, len(tensors), len(settings))]
    parts += [_text(key) + _value(value) for key, value in settings.items()]
    place = 0
    for name, (tensor, layout) in tensors.items():
        shape, kind = layout.shape(tuple(tensor.shape)), dtype_of(tensor, dtype)
        parts += [_text(name), struct.pack(f"<I{len(shape)}Q", len(shape), *reversed(shape))]
        parts += [struct.pack("<IQ", numbers[DTYPES[str(kind).removeprefix("torch.")][0]], place)]
        place += _whole(tensor.numel() * kind.itemsize)
    head = b"".join(parts)
    with file.open("wb") as target:
        target.write(head.ljust(_whole(len(head)), b"\0"))
        for tensor, layout in tensors.values():
            raw = _bytes(tensor, layout, dtype_of(tensor, dtype))
            target.write(raw)
            target.write(bytes(_whole(len(raw)) - len(raw)))


def _bytes(tensor: Tensor, layout: Layout, dtype: torch.dtype) -> bytes:
    import torch

    stored = layout.stored(tensor.detach().cpu().to(torch.float32 if layout.more else tensor.dtype)).to(dtype)
    raw: bytes = stored.contiguous().view(-1).view(torch.uint8).numpy().tobytes()
    return raw


def _whole(size: int) -> int:
    """Return a number of bytes, up to the next place where a tensor may begin."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def _text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def _value(value: Any) -> bytes:
    match value:
        case bool():
            return _number(BOOLEAN, value)
        case int():
            return _number(COUNT, value)
        case float():
            return _number(REAL, value)
        case str():
            return struct.pack("<I", STRING) + _text(value)
        case [int() | float(), *_]:
            kind = REAL if any(isinstance(each, float) for each in value) else WHOLE
            return struct.pack("<IIQ", ARRAY, kind, len(value)) + struct.pack(f"<{len(value)}{SCALARS[kind][1:]}", *value)
    return struct.pack("<IIQ", ARRAY, STRING, len(value)) + b"".join(map(_text, value))


def _number(kind: int, value: float) -> bytes:
    return struct.pack("<I", kind) + struct.pack(SCALARS[kind], value)
