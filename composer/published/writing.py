"""An imported model as a folder: the recipe, the weights, and the settings and the tokenizer as published."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from composer.language.source_file import content_of
from composer.published.folder import CONFIG, RECIPE
from composer.published.gguf_tokenizer import gguf_tokenizer
from composer.published.importing import Imported
from composer.published.shards import write_shards
from composer.weights.other_formats import refuse
from composer.weights.published_files import PublishedCheckpoint
from composer.weights.transfer import refuse_numbers

MAX_SHARD_BYTES = 4 * 2**30
"""Bytes of weights in one file."""
MAX_COPIED_BYTES = 2**28
COPIED = (
    "generation_config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
    "vocab.txt", "vocab.json", "merges.txt", "tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "chat_template.jinja",
    "chat_template.json", "preprocessor_config.json", "processor_config.json", "modules.json", "sentence_bert_config.json",
    "config_sentence_transformers.json", "1_Pooling/config.json", "LICENSE", "LICENSE.txt", "NOTICE",
)  # fmt: skip
"""Files that are copied as they are: settings, the tokenizer with its special tokens and its chat template, preprocessing."""


def write_folder(found: Imported, folder: Path) -> None:
    """Write an imported model to a new folder, which appears once everything is in it.

    Raises:
        RecipeError: There is something at this place already, a tensor cannot be read or has numbers that are not finite, or the
            folder cannot be written.
    """
    with new_folder(folder) as aside:
        _fill(found, aside)


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Yield a folder to write to, which gets its name once everything is in it; after an error, nothing is left of it.

    Raises:
        RecipeError: There is something at this place already, or the folder cannot be written.
    """
    from safetensors import SafetensorError

    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
    if folder.exists() or folder.is_symlink():
        refuse("not-a-file", "there is something here already", folder, hint="name a new folder")
    aside = folder.with_name(f".{folder.name[:100]}.{os.getpid()}.part")
    try:
        aside.mkdir(parents=True)
        yield aside
        aside.rename(folder)
    except (OSError, SafetensorError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        refuse("unreadable-file", f"this folder cannot be written: {reason.lower()}", folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def copy_settings(origin: Path, folder: Path) -> None:
    """Copy the settings and the tokenizer of a published folder or a GGUF file, all but `config.json`.

    Raises:
        RecipeError: A file is too large.
    """
    if origin.is_file():
        for name, text in gguf_tokenizer(origin).items():
            (folder / name).write_text(text, encoding="utf-8")
    for name in COPIED:
        if (origin / name).is_file():
            content = content_of(origin / name, MAX_COPIED_BYTES + 1)
            if len(content) > MAX_COPIED_BYTES:
                refuse("too-large", f"files are copied up to {MAX_COPIED_BYTES} bytes", origin / name)
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(content)


def _fill(found: Imported, folder: Path) -> None:
    copy_settings(found.folder.path, folder)
    (folder / CONFIG).write_text(found.folder.config.text, encoding="utf-8")
    (folder / RECIPE).write_text(found.recipe.source.text, encoding="utf-8")
    if found.folder.weights is not None and found.match is not None and found.made is not None:
        read = [theirs for name, theirs in found.match.found.items() if name in found.made.published]
        with PublishedCheckpoint(found.folder.weights) as checkpoint:
            refuse_numbers(found.made, checkpoint)
            write_shards(checkpoint, read, folder, MAX_SHARD_BYTES)
