"""Adapters (LoRA) as a folder that PEFT reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from composer.atomic_files import StrPath
from composer.graph.ir import Adapter
from composer.graph.parameters import parameters
from composer.graph.passes.adapt import MATRICES
from composer.graph.typed import TypedProgram
from composer.published.writing import new_folder
from composer.weights.adapters import AdapterError, adapters_of
from composer.weights.mapping import WeightMap
from composer.weights.transfer import weight_map

if TYPE_CHECKING:
    from torch import Tensor

    from composer.lower import Model
    from composer.recipe import Recipe

A, B = MATRICES
TASK_TYPES = {
    "causal_lm": "CAUSAL_LM",
    "seq2seq_lm": "SEQ_2_SEQ_LM",
    "sequence_classification": "SEQ_CLS",
    "token_classification": "TOKEN_CLS",
}
"""What PEFT calls tasks."""


@dataclass(frozen=True)
class _Published:
    """What PEFT needs to know of an adapter: the published name of the module, and both matrices as its rows stand there."""

    module: str
    adapter: Adapter
    low: Tensor
    high: Tensor


def export_adapters(model: Model[Recipe], path: StrPath, model_type: str | None = None) -> None:
    """Write the adapters of a model as a folder that PEFT loads onto the published model: `adapter_config.json` and
    `adapter_model.safetensors`.

    What is trained as a whole is written too, as `modules_to_save`.

    Args:
        model: A compiled recipe with `adapters:` and `checkpoints:`.
        path: The folder to write, which must be new or empty.
        model_type: The model type of transformers; by default, the only one for which the recipe has rules.

    Raises:
        RecipeError: The recipe has no rules for this model type, there is something in the folder already, or it cannot be
            written. Nothing is left behind then.
        AdapterError: There are no adapters, or the published model keeps a weight in another form, such as queries, keys and
            values as one matrix, to which the adapter of a part of it cannot be added.
    """
    from safetensors.torch import save_file

    from composer.lower.int8 import refuse_int8

    refuse_int8(model, "be written")
    found = adapters_of(model.program)
    if not found:
        raise AdapterError("this recipe has no adapters")
    made = weight_map(model, model_type)
    state = model.state_dict()
    published = [_published(name, adapter, made, state) for name, adapter in found.items()]
    tensors = {}
    for each in published:
        tensors[f"base_model.model.{each.module}.lora_A.weight"] = each.low.contiguous()
        tensors[f"base_model.model.{each.module}.lora_B.weight"] = each.high.contiguous()
    whole = _whole(model.program, made, state)
    tensors |= {f"base_model.model.{name}": tensor.contiguous() for name, tensor in whole.items()}
    config = _config(published, whole, model.recipe)
    with new_folder(Path(path)) as aside:
        save_file(tensors, aside / "adapter_model.safetensors", metadata={"format": "pt"})
        (aside / "adapter_config.json").write_text(f"{json.dumps(config, indent=2)}\n", encoding="utf-8")


def _published(name: str, adapter: Adapter, made: WeightMap, state: Mapping[str, Tensor]) -> _Published:
    """Return an adapter as PEFT has it.

    Raises:
        AdapterError: The published model keeps the weight in another form.
    """
    weight = f"{name}.weight"
    move = next((move for move in made.moves if weight in move.ours), None)
    if move is None:
        raise AdapterError(f"the published model has no {weight}")
    rule = move.rule
    if len(move.ours) > 1 or len(move.theirs) > 1 or rule.stack or rule.transpose or rule.reshape is not None:
        form = f"as a part of {move.theirs[0]}" if len(move.ours) > 1 else f"in another form, {', '.join(move.theirs)}"
        hint = "merge the adapters instead, and write the whole model"
        raise AdapterError(f"the published model keeps {weight} {form}, to which its adapter cannot be added", hint=hint)
    (high,) = move.turned_rows((state[f"{name}.{B}"],))
    return _Published(move.theirs[0].removesuffix(".weight"), adapter, state[f"{name}.{A}"], high)


def _whole(typed: TypedProgram, made: WeightMap, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return what is trained as a whole, by published names."""
    names = {entry.owner for entry in parameters(typed) if entry.trainable and entry.parameter.role != "adapter"}
    found: dict[str, Tensor] = {}
    for move in made.moves:
        if names & {*move.ours}:
            found |= zip(move.theirs, move.save([state[name] for name in move.ours]), strict=True)
    return found


def _config(published: list[_Published], whole: Mapping[str, Tensor], recipe: Recipe) -> dict[str, Any]:
    """Return what PEFT reads beside the tensors: the most frequent rank and alpha, and by module what differs from them."""
    ranks = [each.adapter.rank for each in published]
    alphas = [each.adapter.alpha for each in published]
    rank, alpha = max(set(ranks), key=ranks.count), max(set(alphas), key=alphas.count)
    return {
        "peft_type": "LORA",
        "base_model_name_or_path": None if recipe.published is None else str(recipe.published),
        "task_type": TASK_TYPES.get(recipe.task or ""),
        "r": rank,
        "lora_alpha": alpha,
        "lora_dropout": max(each.adapter.dropout for each in published),
        "target_modules": sorted(each.module for each in published),
        "rank_pattern": {each.module: each.adapter.rank for each in published if each.adapter.rank != rank},
        "alpha_pattern": {each.module: each.adapter.alpha for each in published if each.adapter.alpha != alpha},
        "modules_to_save": sorted({name.rpartition(".")[0] for name in whole}) or None,
        "bias": "none",
        "fan_in_fan_out": False,
        "inference_mode": True,
    }
