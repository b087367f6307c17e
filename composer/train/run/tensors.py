"""Files of tensors in the safetensors format, written piece by piece so that no second copy is held, and read with checks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from composer.train.errors import TrainingError

Tensors = Mapping[str, Tensor]

DTYPES = {
    torch.bool: "BOOL",
    torch.uint8: "U8",
    torch.int8: "I8",
    torch.int16: "I16",
    torch.int32: "I32",
    torch.int64: "I64",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.float32: "F32",
    torch.float64: "F64",
}
"""The names of dtypes in the format."""


def pieces(tensors: Tensors) -> Iterator[bytes | memoryview]:
    """Yield the content of a file of tensors: the length of the header, the header in JSON, and the tensors.

    Raises:
        TrainingError: A tensor has a dtype that the format does not have.
    """
    header, end = {}, 0
    ordered = sorted(tensors.items(), key=lambda item: (-item[1].element_size(), item[0]))  # each tensor is aligned
    for name, tensor in ordered:
        if tensor.dtype not in DTYPES:
            raise TrainingError(f"`{name}` has the dtype {tensor.dtype}, which a checkpoint cannot hold")
        start, end = end, end + tensor.numel() * tensor.element_size()
        header[name] = {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode("utf-8")
    text += b" " * (-len(text) % 8)
    yield len(text).to_bytes(8, "little") + text
    for _, tensor in ordered:
        if tensor.numel():
            plain = tensor.detach().cpu().contiguous().reshape(-1)
            yield plain.view(torch.uint8).numpy().data


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Return copies of the tensors of a file: the library maps it into memory, but the run may delete it later.

    Raises:
        TrainingError: The file is not one of tensors.
    """
    try:
        return {name: tensor.clone() for name, tensor in load_file(path).items()}
    except (OSError, SafetensorError) as error:
        raise TrainingError(f"{path} is not a file of tensors: {str(error).lower()}") from None
