"""Decoders whose rotary frequencies are scaled, as their configurations say it, against transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, PreTrainedModel

import composer
from composer.decode import DecodeError
from composer.decode.session import session
from composer.published import export_folder
from composer.weights import load_published
from tests.parity.decoders import FAMILIES
from tests.parity.reference import perturbed, published
from tests.parity.test_transformers import close, real, text

YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}
FACTORS = {"short_factor": [1.0, 1.25, 1.5, 2.0], "long_factor": [1.0, 2.5, 6.0, 9.0]}
LLAMA3 = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
SCALED: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("llama2", {"rope_type": "linear", "factor": 2.5}, {}),
    ("llama2", {"rope_type": "dynamic", "factor": 3.0}, {"max_position_embeddings": 6}),
    ("llama2", {"rope_type": "dynamic", "factor": 3.0}, {"max_position_embeddings": 16}),
    ("llama2", {**LLAMA3, "original_max_position_embeddings": 24}, {}),
    ("llama2", {"rope_type": "proportional", "partial_rotary_factor": 0.5, "factor": 2.0}, {}),
    ("mistral", {**YARN, "beta_fast": 3.0, "beta_slow": 0.5, "truncate": False}, {}),
    ("qwen2", YARN, {}),
    ("qwen2", {**YARN, "attention_factor": 0.8}, {}),
    ("qwen3", {**YARN, "mscale": 0.7, "mscale_all_dim": 0.3}, {}),
    ("deepseek_v2", {**YARN, "beta_fast": 3.0, "beta_slow": 0.5, "mscale": 0.7, "mscale_all_dim": 1.5}, {}),
    ("deepseek_v3", {**YARN, "attention_factor": 0.8, "mscale_all_dim": 1.5, "truncate": False}, {}),
    ("llama2", {"rope_type": "longrope", **FACTORS, "original_max_position_embeddings": 5}, {"max_position_embeddings": 40}),
    ("phi3", {"rope_type": "longrope", **FACTORS}, {"max_position_embeddings": 40, "original_max_position_embeddings": 16}),
    ("phi3", {"rope_type": "longrope", **FACTORS}, {"max_position_embeddings": 40, "original_max_position_embeddings": 5}),
]
FEW = (1, 4, 8, 13)
"""Run by every `make test`: dynamic NTK, proportional, YaRN, and LongRoPE beyond the original length."""
each_scaling = pytest.mark.parametrize(
    ("name", "rope", "sizes"),
    [one if index in FEW else pytest.param(*one, marks=pytest.mark.exhaustive) for index, one in enumerate(SCALED)],
)


def small(name: str, rope: dict[str, Any], sizes: dict[str, Any]) -> PreTrainedModel:
    """Return transformers' model; where frequencies have factors one by one, with as many pairs as these."""
    whole = {**rope, "rope_theta": 300.0}
    if name == "phi3":
        whole["partial_rotary_factor"] = 1.0
    return perturbed(FAMILIES[name].small(rope_parameters=whole, **sizes))


def loaded(reference: PreTrainedModel, name: str, config: dict[str, Any]) -> composer.Model:
    model = composer.load(name).with_config(config).compile(seed=0).eval()
    load_published(model, published(reference), reference.config.model_type)
    return model


@torch.no_grad()
@each_scaling
def test_scaled_logits_are_those_of_transformers(name: str, rope: dict[str, Any], sizes: dict[str, Any]) -> None:
    """By either spelling of the keys, padded and not."""
    reference = small(name, rope, sizes)
    config = reference.config.to_dict()
    model = loaded(reference, name, config)
    tokens, valid = text(), real([0, 3, 6])
    close(model(tokens).logits, reference(tokens).logits)
    close(model(tokens, valid=valid).logits[valid], reference(tokens, attention_mask=valid.long()).logits[valid])
    scaling = dict(config.pop("rope_parameters"))
    older = {**config, "rope_theta": scaling.pop("rope_theta"), "rope_scaling": {"type": scaling.pop("rope_type"), **scaling}}
    older |= {key: scaling.pop(key) for key in ("partial_rotary_factor",) if key in scaling}
    older["rope_scaling"].pop("partial_rotary_factor", None)
    assert composer.load(name).with_config(older).program.untyped.params == model.program.untyped.params


@torch.no_grad()
@each_scaling
def test_a_scaled_model_goes_out_as_a_folder(name: str, rope: dict[str, Any], sizes: dict[str, Any], tmp_path: Path) -> None:
    """With what its positions are scaled by."""
    reference = small(name, rope, sizes)
    export_folder(loaded(reference, name, reference.config.to_dict()), tmp_path / "out")
    written = json.loads((tmp_path / "out" / "config.json").read_text(encoding="utf-8"))
    assert rope.items() <= written["rope_parameters"].items()
    back = AutoModelForCausalLM.from_pretrained(tmp_path / "out").eval()
    close(back(text()).logits, reference(text()).logits)


@torch.no_grad()
def test_a_session_beyond_the_original_length_is_one_call_of_transformers() -> None:
    """A model of LongRoPE that has begun with a short text is refused, where transformers goes on with keys of both kinds."""
    reference = small(*SCALED[-1])
    model, tokens = loaded(reference, "phi3", reference.config.to_dict()), text()
    with session(model) as opened:
        ours = torch.cat([model(part).logits for part in tokens.split([6, 1, 4], dim=1)], dim=1)
        close(ours, reference(tokens).logits)
        opened.truncate(0)
        model(tokens[:, :5])
        with pytest.raises(DecodeError, match="in a text of 6 tokens"):
            model(tokens[:, 5:6])


def test_a_phi3_without_scaling_names_no_factors(tmp_path: Path) -> None:
    """What an empty list stands for is left out."""
    model = composer.load("phi3").with_config(FAMILIES["phi3"].small().config.to_dict()).compile(seed=0)
    export_folder(model, tmp_path / "out")
    written = json.loads((tmp_path / "out" / "config.json").read_text(encoding="utf-8"))
    assert not [key for key in (*written, *written["rope_parameters"]) if key.endswith("_factor") and "partial" not in key]
