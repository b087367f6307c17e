"""Tensors written as a published checkpoint: one file, or several with an index."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from composer.weights.other_formats import refuse
from composer.weights.published_files import INDEX, ONE, PublishedCheckpoint

if TYPE_CHECKING:
    from torch import Tensor


def write_shards(tensors: Mapping[str, Tensor], names: Sequence[str], folder: Path, max_bytes: int) -> None:
    """Write tensors to one file, or to several with an index if they are large, and read them again.

    Args:
        tensors: The tensors by name; each may be read on access.
        names: Those that are written.
        folder: A folder without weights.
        max_bytes: The most bytes of tensors in a file; a larger tensor has a file of its own.

    Raises:
        RecipeError: A tensor was not written as it is.
    """
    from safetensors.torch import save_file

    shards = list(_shards(tensors, names, max_bytes))
    files = [
        folder / (ONE if len(shards) == 1 else f"model-{n:05}-of-{len(shards):05}.safetensors") for n in range(1, len(shards) + 1)
    ]
    mode = _mode(folder / INDEX)
    for file, shard in zip(files, shards, strict=True):
        save_file({name: tensors[name].contiguous().clone() for name in shard}, file, metadata={"format": "pt"})
        file.chmod(mode)  # safetensors lets only the owner read it
    if len(shards) > 1:
        homes = {name: file.name for file, shard in zip(files, shards, strict=True) for name in shard}
        index = {"metadata": {"total_size": sum(tensors[name].nbytes for name in names)}, "weight_map": homes}
        (folder / INDEX).write_text(json.dumps(index, indent=2), encoding="utf-8")
    _compare(tensors, names, folder)


def _mode(file: Path) -> int:
    """Return the mode of a new file, which depends on the process."""
    file.touch()
    mode = file.stat().st_mode
    file.unlink()
    return mode


def _shards(tensors: Mapping[str, Tensor], names: Sequence[str], max_bytes: int) -> Iterator[list[str]]:
    """Yield the names of tensors in groups that fit into a file each."""
    shard: list[str] = []
    size = 0
    for name in names:
        more = tensors[name].nbytes
        if shard and size + more > max_bytes:
            yield shard
            shard, size = [], 0
        shard.append(name)
        size += more
    yield shard


def _compare(tensors: Mapping[str, Tensor], names: Sequence[str], folder: Path) -> None:
    """Raise `RecipeError` unless the tensors in the files are these, bit for bit."""
    import torch

    with PublishedCheckpoint(folder) as copy:
        for name in names:
            ours, theirs = copy[name], tensors[name].cpu().contiguous()
            if ours.dtype != theirs.dtype or not torch.equal(ours.view(-1).view(torch.uint8), theirs.view(-1).view(torch.uint8)):
                refuse("unreadable-file", f"{name} was not written as it was read", folder)
        if len(copy) != len(names):
            refuse("unreadable-file", f"{len(names)} tensors were written, and {len(copy)} are there", folder)
