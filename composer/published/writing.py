"""An imported model as a folder: the recipe, the weights, and the settings and the tokenizer as published."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from composer.diagnostics import RecipeError
from composer.language.source_file import content_of
from composer.published.folder import CONFIG, RECIPE
from composer.published.gguf_settings import gguf_tokenizer
from composer.published.importing import Imported
from composer.weights.other_formats import refuse
from composer.weights.published_files import INDEX, ONE, PublishedCheckpoint

if TYPE_CHECKING:
    from torch import Tensor

MAX_SHARD_BYTES = 4 * 2**30
"""Bytes of weights in one file."""
MAX_COPIED_BYTES = 2**28
COPIED = (
    CONFIG, "generation_config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
    "vocab.txt", "vocab.json", "merges.txt", "tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "chat_template.jinja",
    "chat_template.json", "preprocessor_config.json", "processor_config.json", "modules.json", "sentence_bert_config.json",
    "config_sentence_transformers.json", "1_Pooling/config.json", "LICENSE", "LICENSE.txt", "NOTICE",
)  # fmt: skip
"""Files that are copied as they are: settings, the tokenizer with its special tokens and its chat template, preprocessing."""


def write_folder(found: Imported, folder: Path) -> None:
    """Write an imported model to a new folder, which appears once everything is in it.

    Raises:
        RecipeError: There is something at this place already, a tensor cannot be read, or the folder cannot be written.
    """
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
    if folder.exists() or folder.is_symlink():
        refuse("not-a-file", "there is something here already", folder, hint="name a new folder")
    aside = folder.with_name(f".{folder.name[:100]}.{os.getpid()}.part")
    try:
        aside.mkdir(parents=True)
        _fill(found, aside)
        aside.rename(folder)
    except OSError as error:
        refuse("unreadable-file", f"this folder cannot be written: {(error.strerror or str(error)).lower()}", folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _fill(found: Imported, folder: Path) -> None:
    if found.folder.path.is_file():
        for name, text in gguf_tokenizer(found.folder.path).items():
            (folder / name).write_text(text, encoding="utf-8")
    for name in COPIED:
        if (found.folder.path / name).is_file():
            content = content_of(found.folder.path / name, MAX_COPIED_BYTES + 1)
            if len(content) > MAX_COPIED_BYTES:
                refuse("too-large", f"files are copied up to {MAX_COPIED_BYTES} bytes", found.folder.path / name)
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(content)
    (folder / CONFIG).write_text(found.folder.config.text, encoding="utf-8")
    (folder / RECIPE).write_text(found.recipe.source.text, encoding="utf-8")
    if found.folder.weights is not None and found.match is not None and found.made is not None:
        read = [theirs for name, theirs in found.match.found.items() if name in found.made.published]
        with PublishedCheckpoint(found.folder.weights) as checkpoint:
            written = _weights(checkpoint, read, folder)
            _compare(checkpoint, read, folder)
        assert written


def _weights(checkpoint: PublishedCheckpoint, names: Sequence[str], folder: Path) -> list[Path]:
    """Write tensors to one file, or to several with an index if they are large."""
    from safetensors.torch import save_file

    shards = list(_shards(checkpoint, names))
    files = [
        folder / (ONE if len(shards) == 1 else f"model-{n:05}-of-{len(shards):05}.safetensors") for n in range(1, len(shards) + 1)
    ]
    for file, shard in zip(files, shards, strict=True):
        save_file({name: checkpoint[name].contiguous().clone() for name in shard}, file, metadata={"format": "pt"})
        file.chmod((folder / RECIPE).stat().st_mode)  # safetensors lets only the owner read it
    if len(shards) > 1:
        homes = {name: file.name for file, shard in zip(files, shards, strict=True) for name in shard}
        index = {"metadata": {}, "weight_map": homes}
        (folder / INDEX).write_text(json.dumps(index, indent=2), encoding="utf-8")
    return files


def _shards(checkpoint: Mapping[str, Tensor], names: Sequence[str]) -> Iterator[list[str]]:
    """Yield the names of tensors in groups that fit into a file each."""
    shard: list[str] = []
    size = 0
    for name in names:
        more = checkpoint[name].nbytes
        if shard and size + more > MAX_SHARD_BYTES:
            yield shard
            shard, size = [], 0
        shard.append(name)
        size += more
    yield shard


def _compare(checkpoint: PublishedCheckpoint, names: Sequence[str], folder: Path) -> None:
    """Raise `RecipeError` unless the tensors that were written are those that were read, bit for bit."""
    import torch

    with PublishedCheckpoint(folder) as copy:
        for name in names:
            ours, theirs = copy[name], checkpoint[name].contiguous()
            if ours.dtype != theirs.dtype or not torch.equal(ours.view(-1).view(torch.uint8), theirs.view(-1).view(torch.uint8)):
                refuse("unreadable-file", f"{name} was not written as it was read", folder)
        if len(copy) != len(names):
            raise RecipeError([])
