"""Numbers of a checkpoint with which no model can compute are refused by the tensor's name, and loaded by who says so."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import composer
from composer.diagnostics import RecipeError
from composer.weights import load_published, save_published

TINY = {"n_layers": 2, "d_model": 32, "n_heads": 4, "vocab": 61, "context": 16}


@pytest.fixture
def tensors(tmp_path: Path) -> dict[str, torch.Tensor]:
    save_published(composer.load("gpt2", TINY).compile(seed=0), tmp_path / "sound.safetensors")
    return load_file(tmp_path / "sound.safetensors")


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("way", ["a file", "tensors", "a new model"])
def test_a_number_that_is_not_finite_is_refused(
    way: str, number: float, tensors: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    """At the rule that reads it, before anything is changed; all tensors at once."""
    tensors["h.1.ln_1.weight"][3] = number
    tensors["wte.weight"][5, 7] = number
    save_file(tensors, tmp_path / "model.safetensors")
    recipe = composer.load("gpt2", TINY)
    model = recipe.compile(seed=1)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with pytest.raises(RecipeError) as stopped:
        if way == "a new model":
            recipe.pretrained(tmp_path / "model.safetensors")
        else:
            load_published(model, tensors if way == "tensors" else tmp_path / "model.safetensors")
    found = {each.message: each for each in stopped.value.diagnostics}
    assert found.keys() == {f"{name} has numbers that are not finite" for name in ("h.1.ln_1.weight", "wte.weight")}
    assert {each.code for each in found.values()} == {"checkpoints-value"}
    assert all("allow_nonfinite=True" in each.hint and each.span.source.name == "gpt2.yaml" for each in found.values())
    assert all(tensor.equal(before[name]) for name, tensor in model.state_dict().items())
    load_published(model, tensors, allow_nonfinite=True)
    again = recipe.pretrained(tensors, allow_nonfinite=True)
    for loaded in (model, again):
        assert loaded.state_dict()["embed.weight"][5, 7].item() == pytest.approx(number, nan_ok=True)


def test_a_number_beyond_the_dtype_is_refused(tensors: dict[str, torch.Tensor]) -> None:
    """bfloat16 holds what float16 does not; what is as large as float16 goes is loaded."""
    tensors = {name: tensor.bfloat16() for name, tensor in tensors.items()}
    tensors["ln_f.weight"][0] = -65280.0
    recipe = composer.load("gpt2", TINY)
    assert recipe.pretrained(tensors, dtype=torch.float16).state_dict()["norm.weight"][0] == -65280
    tensors["ln_f.weight"][0] = 1e5
    says = "ln_f.weight has numbers beyond the range of float16, whose largest is 65504"
    with pytest.raises(RecipeError, match=says) as stopped:
        recipe.pretrained(tensors, dtype=torch.float16)
    assert "torch.bfloat16" in stopped.value.diagnostics[0].hint
    assert recipe.pretrained(tensors, dtype=torch.bfloat16).state_dict()["norm.weight"][0] == torch.tensor(1e5).bfloat16()
    assert recipe.pretrained(tensors, dtype=torch.float16, allow_nonfinite=True).state_dict()["norm.weight"][0] == math.inf


def test_what_no_rule_reads_may_be_anything(tensors: dict[str, torch.Tensor]) -> None:
    """Such as the mask of older files, with minus infinity."""
    tensors["h.0.attn.bias"] = torch.full((1, 1, 16, 16), -math.inf)
    assert composer.load("gpt2", TINY).pretrained(tensors).state_dict()["norm.weight"].isfinite().all()
