"""A model written as a GGUF file, which llama.cpp runs: the inverse of what an import reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from composer.atomic_files import StrPath, aside
from composer.diagnostics import Diagnostic, RecipeError, Source
from composer.language.yaml.nodes import YamlEntry
from composer.loading import load
from composer.published.exporting import config_of, dtype_of_weights, home_of, refuse_changes, rules_entry
from composer.published.folder import PublishedFolder
from composer.published.gguf_settings import gguf_config, settings_of
from composer.published.gguf_tokenizer import tokenizer_settings
from composer.published.importing import imported_folder, zoo_recipe_for
from composer.published.tokenizer_files import tokenizer_files
from composer.recipe import Recipe
from composer.weights.adapters import merge_adapters
from composer.weights.config import model_type_of, parsed
from composer.weights.gguf.architectures import ARCHITECTURES, Architecture, Layout, architecture_of
from composer.weights.gguf.file import GGUF, read_header
from composer.weights.gguf.writing import DTYPES, dtype_of, write_gguf
from composer.weights.other_formats import refuse, refused_if_unwritten
from composer.weights.published_files import PublishedCheckpoint
from composer.weights.transfer import weight_map

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from composer.lower import Model
    from composer.train import Tokenizer

TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json", "tokenizer.model", "spiece.model", "sentencepiece.bpe.model")
"""Files of which a published folder has one if it has a tokenizer."""


def export_gguf(
    model: Model[Recipe],
    path: StrPath,
    model_type: str | None = None,
    *,
    dtype: torch.dtype | None = None,
    tokenizer: Tokenizer | None = None,
) -> None:
    """Write a model as a GGUF file of llama.cpp: its settings, its weights, and its tokenizer with the chat template.
    Adapters are merged into the weights.

    Before the file gets its name, it is read as an import reads it: it must give the model that is written, and its weights. What
    acts in training alone, such as dropout, is not in the file. What was loaded from a published folder keeps that folder's
    tokenizer.

    Args:
        model: A compiled recipe with `checkpoints:` of a model type that llama.cpp has.
        path: The file to write, usually `.gguf`; an existing one is replaced.
        model_type: The model type of transformers; by default, that of the published folder, or the only one for which the recipe
            has rules.
        dtype: The dtype of matrices, `torch.float32`, `float16` or `bfloat16`; by default, that of the weights. Vectors are
            written in float32, as llama.cpp computes with them.
        tokenizer: The tokenizer that the model was trained with.

    Raises:
        RecipeError: llama.cpp has no such model, the format cannot hold the recipe, its tokenizer or a number, or the file cannot
            be written.

    Examples:
        >>> import composer
        >>> from composer.published import export_gguf
        >>> tiny = {"n_layers": 2, "d_model": 32, "n_heads": 4, "vocab": 61, "context": 16}
        >>> model = composer.load("gpt2", tiny).compile(seed=0)
        >>> export_gguf(model, "mine.gguf")
        >>> composer.load("mine.gguf", {"dropout": 0.1}).diff(model.recipe).equal
        True
    """
    model = merge_adapters(model)
    recipe = model.recipe
    home = home_of(recipe)
    made = weight_map(model, model_type or (model_type_of(parsed(home.config)) if home is not None else None))
    entry = rules_entry(recipe, made)
    if (name := architecture_of(made.rules.model_type)) is None:
        known = ", ".join(kind for each in ARCHITECTURES.values() for kind in (each.model_type, *each.also))
        message = f"models of the type {entry.key.text} are not written as GGUF files"
        raise RecipeError([Diagnostic("checkpoints-unknown-type", message, entry.key.span, hint=f"those of {known} are")])
    tensors = made.save(model.state_dict())
    config = config_of(recipe, made, tensors, {}, tokenizer)
    kind = _dtype(tensors) if dtype is None else dtype
    words = _words(home, tokenizer, config)
    settings = {
        "general.name": _title(recipe, home),
        "general.file_type": DTYPES[str(kind).removeprefix("torch.")][1],
        **settings_of(name, config),
        **words,
    }
    stored = _stored(ARCHITECTURES[name], tensors, config, entry)
    _refuse_overflow(tensors, kind, Path(path))
    with refused_if_unwritten(Path(path)), aside(Path(path), GGUF) as temporary:
        write_gguf(temporary, settings, stored, kind)
        _prove(model, temporary, config, kind, entry)


def _title(recipe: Recipe, home: PublishedFolder | None) -> str:
    """Return a name with a capital, as llama.cpp's own have it: transformers takes `mistral` for an architecture."""
    name = recipe.name if home is None else home.title
    return name[:1].upper() + name[1:]


def _dtype(tensors: Mapping[str, Tensor]) -> torch.dtype:
    """Return the dtype of the weights, or float32 if they have several or one that a file cannot have."""
    import torch

    kind = dtype_of_weights(tensor.dtype for tensor in tensors.values())
    return kind if str(kind).removeprefix("torch.") in DTYPES else torch.float32


def _words(home: PublishedFolder | None, tokenizer: Tokenizer | None, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the tokenizer."""
    from tokenizers import Tokenizer as Pieces

    from composer.published.tokenizer import published_tokenizer

    size = int(config["vocab_size"])
    if tokenizer is not None:
        texts = tokenizer_files(tokenizer, None)
        special = {key: word for key, word in json.loads(texts["tokenizer_config.json"]).items() if isinstance(word, str)}
        return tokenizer_settings(Pieces.from_str(texts["tokenizer.json"]), special, None, size, Path("tokenizer"))
    if home is not None and home.path.is_file():  # a GGUF file, of which all is kept
        return {key: value for key, value in read_header(home.path).settings.items() if key.startswith("tokenizer.")}
    if home is None or not any((home.path / name).is_file() for name in TOKENIZERS):
        return {"tokenizer.ggml.model": "no_vocab"}
    found = published_tokenizer(home.path)
    return tokenizer_settings(found.pieces, found.special, found.chat_template, size, home.path)


def _stored(
    architecture: Architecture, tensors: Mapping[str, Tensor], config: Mapping[str, Any], entry: YamlEntry
) -> dict[str, tuple[Tensor, Layout]]:
    """Return published tensors by their names in a file, with how they lie there."""
    heads = config.get("num_attention_heads")
    found = {}
    for name, tensor in tensors.items():
        stored = architecture.stored(name)
        if stored is None:
            message = f"llama.cpp has no name for {name} in models of the type {architecture.model_type}"
            hint = "a GGUF file cannot hold this recipe; `arco export --to python` can"
            raise RecipeError([Diagnostic("checkpoints-differ", message, entry.key.span, hint=hint)])
        found[stored] = tensor, architecture.layout(stored, heads, config.get("num_key_value_heads", heads))
    return found


def _refuse_overflow(tensors: Mapping[str, Tensor], kind: torch.dtype, file: Path) -> None:
    """Raise `RecipeError` for numbers that are too large for a dtype."""
    for name, tensor in tensors.items():
        rounded = tensor.to(dtype_of(tensor, kind))
        if bool((rounded.isinf() & tensor.isfinite()).any()):
            message = f"{name} has numbers that {str(rounded.dtype).removeprefix('torch.')} cannot hold"
            refuse("unreadable-file", message, file, hint="write them as bfloat16 or float32")


def _prove(model: Model[Recipe], file: Path, config: Mapping[str, Any], kind: torch.dtype, entry: YamlEntry) -> None:
    """Raise `RecipeError` unless a file reads as the model: as an import reads it, with what acts in training alone."""
    import torch

    recipe, read = model.recipe, gguf_config(file)
    again = parsed(read)
    again |= {key: config[key] for key in again if key.endswith("_pdrop") and key in config}
    folder = PublishedFolder(file, Source(read.name, json.dumps(again)), file, None)
    other = f"a GGUF file of the architecture {read_header(file).architecture}", "a GGUF file"
    try:
        by_config = load(zoo_recipe_for(folder), blocks=recipe.blocks).with_config(again).diff(recipe)
        refuse_changes(by_config, entry, *other)
        found = imported_folder(folder, blocks=recipe.blocks)
    except RecipeError as error:
        first = error.diagnostics[0]
        if first.span.source is entry.key.span.source:
            raise
        message = f"{other[0]} cannot hold this recipe: {first.message}"
        raise RecipeError([Diagnostic("checkpoints-differ", message, entry.key.span, hint=first.hint)]) from None
    whole = found.recipe.diff(recipe)
    refuse_changes(whole, entry, *other)
    assert found.made is not None  # a file has weights
    ours, exact = model.state_dict(), torch.finfo(torch.float32).eps
    with PublishedCheckpoint(file) as checkpoint:
        for name, tensor in found.made.stream(checkpoint):
            wanted = ours[name].cpu().to(dtype_of(ours[name], kind)).float()
            room = exact * (1 + wanted.abs()) if wanted.ndim == 1 else 0  # a 1 was added to gains
            if not bool(((tensor.float() - wanted).abs() <= room).all()) and not whole.renamed:
                message = f"the file has something else than {name}"
                raise RecipeError([Diagnostic("checkpoints-differ", message, entry.key.span)])
