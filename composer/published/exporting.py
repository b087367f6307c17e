"""A model written as a published folder, which plain `Auto…` classes of transformers load."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from composer.atomic_files import StrPath
from composer.diagnostics import Diagnostic, RecipeError, Source
from composer.diff.changes import Change, LearnedChange, nodes_of
from composer.diff.difference import Difference
from composer.diff.render import caption
from composer.language.tasks import TASKS
from composer.language.yaml.nodes import YamlEntry, YamlMapping
from composer.loading import load
from composer.published.folder import CONFIG, RECIPE, PublishedFolder, is_published, published_folder
from composer.published.heads import promised
from composer.published.importing import imported_folder, recipe_of_type
from composer.published.loaded_class import refuse_unloadable
from composer.published.shards import write_shards
from composer.published.tokenizer_files import token_ids, tokenizer_files
from composer.published.writing import copy_settings, new_folder
from composer.recipe import Recipe
from composer.weights.adapters import merge_adapters
from composer.weights.config import ABSENT, at, model_type_of, parsed
from composer.weights.config_syntax import REFUSED
from composer.weights.gguf.file import GGUF
from composer.weights.mapping import WeightMap, entry_of
from composer.weights.published_files import PublishedCheckpoint
from composer.weights.transfer import weight_map
from composer.weights.written_config import HeldValues, changed_values, config_in, written_config

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from composer.lower import Model
    from composer.train import Tokenizer

SHARD_BYTES = 5 * 10**9
"""Bytes of weights in one file, as transformers has them."""
GENERATION = "generation_config.json"


def export_folder(
    model: Model[Recipe],
    path: StrPath,
    model_type: str | None = None,
    *,
    tokenizer: Tokenizer | None = None,
    max_shard_bytes: int = SHARD_BYTES,
) -> None:
    """Write a model as a published folder: `config.json`, weights, the settings of generation, the tokenizer, and the recipe.
    Adapters are merged into the weights.

    The configuration is written by the rules that read one, and read again: it must give the model that is written. What was
    loaded from a published folder keeps that folder's tokenizer and settings, with the values of the recipe.

    Args:
        model: A compiled recipe with `checkpoints:`.
        path: The folder to write, which must be new or empty.
        model_type: The model type of transformers; by default, that of the published folder, or the only one for which the recipe
            has rules.
        tokenizer: The tokenizer that the model was trained with.
        max_shard_bytes: The most bytes of weights in a file; a larger tensor has a file of its own.

    Raises:
        RecipeError: The recipe has no rules for this model type, a `config.json` cannot hold it, the class of transformers
            does not load it (which is tried if transformers and accelerate are installed), there is something in the folder
            already, or it cannot be written. Nothing is left behind then.

    Examples:
        >>> import composer
        >>> from composer.published import export_folder
        >>> tiny = {"n_layers": 2, "d_model": 32, "n_heads": 4, "vocab": 61, "context": 16}
        >>> model = composer.load("gpt2", tiny).compile(seed=0)
        >>> export_folder(model, "mine")
        >>> composer.load("mine").diff(model.recipe).equal
        True
    """
    model = merge_adapters(model)
    recipe = model.recipe
    home = home_of(recipe)
    kept = parsed(home.config) if home is not None else {}
    made = weight_map(model, model_type or model_type_of(kept))
    kept = kept if model_type_of(kept) == made.rules.model_type else {}
    tensors = made.save(model.state_dict())
    if kept and recipe.published is not None:
        with PublishedCheckpoint(recipe.published) as checkpoint:
            spelled = made.spelled(checkpoint)
        tensors = {spelled.get(name, name): tensor for name, tensor in tensors.items()}
    config = config_of(recipe, made, tensors, kept, tokenizer)
    folder = Path(path)
    source = Source(str(folder / CONFIG), f"{json.dumps(config, indent=2)}\n")
    _prove(model, made, tensors, PublishedFolder(folder, source, folder, None))
    with new_folder(folder) as aside:
        if home is not None and tokenizer is None:
            copy_settings(home.path, aside)
        elif (task := TASKS.get(recipe.task or "")) is not None and task.text:
            ids = _generation_ids(config, token_ids(tokenizer, recipe.task))
            (aside / GENERATION).write_text(f"{json.dumps(ids, indent=2)}\n", encoding="utf-8")
        if tokenizer is not None:
            context = model.program.untyped.params.get("context")
            for name, text in tokenizer_files(tokenizer, context if isinstance(context, int) else None).items():
                (aside / name).write_text(text, encoding="utf-8")
        (aside / CONFIG).write_text(source.text, encoding="utf-8")
        (aside / RECIPE).write_text(recipe.text, encoding="utf-8")
        write_shards(tensors, list(tensors), aside, max_shard_bytes)
        refuse_unloadable(aside, rules_entry(recipe, made), tensors)


def published_model(recipe: Recipe) -> Model[Recipe]:
    """Return the model of a published folder in the dtype of its weights, or in float32 if they have several.

    Raises:
        RecipeError: The recipe has errors, or the weights do not fit.
    """
    assert recipe.published is not None
    with PublishedCheckpoint(recipe.published) as checkpoint:
        kind = dtype_of_weights(checkpoint[name].dtype for name in checkpoint)
    return recipe.pretrained(device="cpu", dtype=kind)


def dtype_of_weights(dtypes: Iterable[torch.dtype]) -> torch.dtype:
    """Return the dtype of floats that all weights have, or float32 if there is none."""
    import torch

    kinds = {*dtypes}
    kind = kinds.pop() if len(kinds) == 1 else torch.float32
    return kind if kind.is_floating_point else torch.float32


def home_of(recipe: Recipe) -> PublishedFolder | None:
    """Return the published folder that a recipe was loaded from."""
    if recipe.published is None:
        return None
    home = recipe.published if recipe.published.is_dir() or recipe.published.suffix == GGUF else recipe.published.parent
    return published_folder(home) if is_published(home) else None


def config_of(
    recipe: Recipe,
    made: WeightMap,
    tensors: Mapping[str, Tensor],
    kept: Mapping[str, Any],
    tokenizer: Tokenizer | None,
) -> dict[str, Any]:
    """Return the `config.json` of a model: what its rules say, and what every file has."""
    entry = rules_entry(recipe, made)
    config = config_in(entry.value.get("config") if isinstance(entry.value, YamlMapping) else None)
    if not config.settings:
        message = f"there is no `config` beside the rules of {entry.key.text}, by which a config.json is written"
        raise RecipeError([Diagnostic("config-unknown", message, entry.key.span, hint="config: {params: {OURS: KEY, …}}")])
    kinds = {str(tensor.dtype).removeprefix("torch.") for tensor in tensors.values() if tensor.is_floating_point()}
    start = {key: value for key, value in kept.items() if key not in ("torch_dtype", *REFUSED)} or {
        "model_type": entry.key.text,
        **({"architectures": [config.architecture]} if promised([config.architecture], recipe.task) else {}),
    }
    start |= {"dtype": kinds.pop() if len(kinds) == 1 else "float32"}
    found = written_config(config, _held(recipe), start)
    if tokenizer is not None or not kept:
        ignored = [key.text for key in config.ignore]
        said = [key for key in config.mapped if at(found, key) is not ABSENT]
        _set_beside_vocabulary(found, token_ids(tokenizer, recipe.task, also=ignored), said)
    return found


def _set_beside_vocabulary(config: dict[str, Any], ids: Mapping[str, int | None], said: Collection[str], above: str = "") -> bool:
    """Write the ids of special tokens beside every size of a vocabulary, and around it; return whether there is one.

    Args:
        config: The configuration, or an object inside of it.
        ids: The ids by key.
        said: The paths of the keys that the recipe sets, which stay: the model computes with these ids.
        above: The path of `config`, with the dot at its end.
    """
    there = [
        _set_beside_vocabulary(inside, ids, said, f"{above}{key}.") for key, inside in config.items() if isinstance(inside, dict)
    ]
    if any(there) or "vocab_size" in config:
        config |= {key: value for key, value in ids.items() if f"{above}{key}" not in said}
        return True
    return False


def _generation_ids(config: Mapping[str, Any], ids: Iterable[str]) -> dict[str, int]:
    """Return the ids of special tokens with which a text is generated: those of the configuration of the text's decoder."""
    inner = next((each for key in ("text_config", "decoder") if isinstance(each := config.get(key), dict)), config)
    found = {key: inner.get(key, config.get(key)) for key in ids}
    return {key: value for key, value in found.items() if isinstance(value, int)}


def rules_entry(recipe: Recipe, made: WeightMap) -> YamlEntry:
    assert recipe.checkpoints is not None  # of which the map was made
    return entry_of(recipe.checkpoints, made.rules.model_type)


def _held(recipe: Recipe) -> HeldValues:
    assert recipe.document.root is not None  # it was compiled
    return HeldValues(recipe.document.root, recipe.library, recipe.program.untyped.params)


def _prove(model: Model[Recipe], made: WeightMap, tensors: Mapping[str, Tensor], folder: PublishedFolder) -> None:
    """Raise `RecipeError` unless what is about to be written reads as the model.

    The values are read again by the recipe's own rules, and the whole by the recipe of the zoo for this type of model, since a
    changed recipe may still have the rules of the model that it once was.
    """
    recipe = model.recipe
    entry = rules_entry(recipe, made)
    config = config_in(entry.value.get("config") if isinstance(entry.value, YamlMapping) else None)
    again = recipe.read_config(folder.config)
    reread = replace(recipe, overrides=(*recipe.overrides, *again.overrides))
    if not any(each.severity == "error" for each in reread.check()):
        for setting in changed_values(config, _held(recipe), _held(reread)):
            message = f"{setting.path.text} does not come back from the config.json that is written for it"
            raise RecipeError([Diagnostic("config-value", message, setting.path.span)])
    if again.wrong:
        raise RecipeError(again.wrong)
    name = recipe_of_type(entry.key.text)
    plain = replace(recipe, overrides=()) if name is None else load(name, blocks=recipe.blocks)
    by_config = plain.with_config(parsed(folder.config)).diff(recipe)
    if name is None:
        refuse_changes(by_config, entry)
        return
    shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    try:
        found = imported_folder(folder, blocks=recipe.blocks, shapes=shapes)
    except RecipeError:  # which the change of a node explains better than a tensor
        refuse_changes(by_config, entry)
        raise
    whole = found.recipe.diff(recipe)  # without a head where there is none
    refuse_changes(min(whole, by_config, key=lambda each: len(each.changes)), entry)
    if found.made is not None and not whole.renamed:
        _same_weights(model, found.made, tensors, entry)


def refuse_changes(difference: Difference, entry: YamlEntry, other: str = "", held_by: str = "a config.json") -> None:
    """Raise `RecipeError` for the first change of what the model computes.

    Args:
        difference: How what is written differs from the recipe.
        entry: The rules by which it is written.
        other: What is written; by default, a model of transformers.
        held_by: Where it is written.
    """
    for change in difference.changes:
        if _computes(change):
            where, what = caption(change)
            what_else = other or f"a {entry.key.text} of transformers"
            message = f"{what_else} is another model than this recipe: {where}: {what}"
            hint = f"{held_by} cannot hold this change; `arco export --to python` can"
            raise RecipeError([Diagnostic("checkpoints-differ", message, entry.key.span, hint=hint)])


def _computes(change: Change) -> bool:
    """Return whether a change is one of what the model computes, and not of training alone: initial values, losses."""
    return not isinstance(change, LearnedChange) and not any(
        nodes is not None and nodes.name.startswith("losses.") for nodes in nodes_of(change)
    )


def _same_weights(model: Model[Recipe], made: WeightMap, tensors: Mapping[str, Tensor], entry: YamlEntry) -> None:
    """Raise `RecipeError` if the rules of the zoo read other weights than those of the recipe have written."""
    import torch

    ours = model.state_dict()
    for name, tensor in made.stream(tensors):
        if name in ours and not torch.equal(ours[name], tensor):
            message = f"the rules write {name} where a {entry.key.text} of transformers has something else"
            raise RecipeError([Diagnostic("checkpoints-differ", message, entry.key.span)])
