"""The zoo's recipes give the logits of transformers' implementations with the same weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import composer
from composer.weights import load_published, mapping, save_published
from composer.weights.mapping import shapes_of
from tests.parity.reference import REFERENCE, perturbed, published

VOCAB, T = 53, 11
TINY: dict[str, dict[str, Any]] = {
    "gpt2": {"vocab": VOCAB, "context": 16, "d_model": 24, "n_layers": 3, "n_heads": 3},
    "llama3": {"vocab": VOCAB, "d_model": 48, "n_layers": 2, "n_heads": 6, "n_kv_heads": 2, "hidden": 40, "theta": 300},
    "mixtral": {
        "vocab": VOCAB, "d_model": 48, "n_layers": 2, "n_heads": 6, "n_kv_heads": 2, "hidden": 20, "n_experts": 5, "top_k": 3,
        "theta": 300,
    },
    "albert": {"vocab": VOCAB, "context": 16, "d_embed": 10, "d_model": 24, "n_layers": 3, "n_heads": 3, "hidden": 40},
    "bert": {"vocab": VOCAB, "context": 16, "d_model": 48, "n_layers": 2, "n_heads": 6, "hidden": 40},
    # A window of 4 in 11 positions; the third layer sees all of them.
    "gemma3": {
        "vocab": VOCAB, "d_model": 40, "n_layers": 4, "n_heads": 4, "n_kv_heads": 2, "head_dim": 16, "hidden": 56,
        "query_scale": 9, "sliding_window": 4, "period": 3, "local_theta": 50, "global_theta": 900,
    },
}  # fmt: skip
LLAMA31 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
PADDING: dict[str, list[int]] = {"none": [0, 0, 0], "right": [0, 3, 6], "left": [0, -3, -6]}
"""Positions of padding in each row; negative before the text."""


def pair(name: str, ours: dict[str, Any], theirs: dict[str, Any]) -> tuple[Any, Any]:
    """Return the recipe's model and transformers', with one set of weights, none of them at its initial value."""
    reference = perturbed(REFERENCE[name](theirs))
    model = composer.load(name, overrides=ours).compile(seed=0).eval()
    load_published(model, published(reference))
    return model, reference


def text() -> torch.Tensor:
    return torch.randint(VOCAB, (3, T), generator=torch.Generator().manual_seed(2))  # [B, T]


def real(padding: list[int]) -> torch.Tensor:
    """Return a tensor that is true where a token is no padding, [B, T]."""
    at = torch.arange(T)
    return torch.stack([at < T - n if n >= 0 else at >= -n for n in padding])


def close(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    """Assert equality within 1e-5 of the largest logit."""
    assert ours.dtype == theirs.dtype == torch.float32
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5 * theirs.abs().max().item())


@torch.no_grad()
@pytest.mark.parametrize("padding", PADDING)
@pytest.mark.parametrize("name", TINY)
def test_logits_are_those_of_transformers(name: str, padding: str) -> None:
    """At the real tokens: what comes out at padding has no meaning. Both count positions from the first column, padding
    included, which transformers does wherever no `position_ids` are given.
    """
    assert_same_logits(name, TINY[name], padding)


@torch.no_grad()
@pytest.mark.exhaustive
@pytest.mark.parametrize("padding", PADDING)
@pytest.mark.parametrize(("layers", "width"), [(1, 1), (7, 2), (4, 5)])
@pytest.mark.parametrize("name", TINY)
def test_logits_are_those_of_transformers_at_other_sizes(name: str, layers: int, width: int, padding: str) -> None:
    """Other numbers of layers, and streams that are several times as wide."""
    assert_same_logits(name, {**TINY[name], "n_layers": layers, "d_model": width * TINY[name]["d_model"]}, padding)


def assert_same_logits(name: str, sizes: dict[str, Any], padding: str) -> None:
    """Assert the same logits at every token that is no padding."""
    model, reference = pair(name, sizes, sizes)
    tokens, valid = text(), real(PADDING[padding])
    theirs = reference(tokens, attention_mask=valid.long()).logits  # [B, T, V]
    ours = model(tokens, valid=valid).logits
    close(ours[valid], theirs[valid])
    if valid.all():
        close(model(tokens).logits, theirs)


@torch.no_grad()
@pytest.mark.parametrize("name", ["llama3", "gemma3"])
def test_left_padding_moves_no_rotary_position(name: str) -> None:
    """In `generate`, transformers counts positions from each row's first real token; distances, and so logits, are the same."""
    model, reference = pair(name, TINY[name], TINY[name])
    tokens, valid = text(), real(PADDING["left"])
    positions = (valid.long().cumsum(-1) - 1).clamp(min=0)
    theirs = reference(tokens, attention_mask=valid.long(), position_ids=positions).logits
    close(model(tokens, valid=valid).logits[valid], theirs[valid])


@torch.no_grad()
@pytest.mark.parametrize("setting", ["sliding_window", "period", "local_theta", "global_theta", "query_scale"])
def test_every_setting_of_gemma3_matters(setting: str) -> None:
    """With another window, pattern or base the logits differ, so that the comparison above can see them."""
    model, reference = pair("gemma3", {**TINY["gemma3"], setting: TINY["gemma3"][setting] - 1}, TINY["gemma3"])
    with pytest.raises(AssertionError):
        close(model(text()).logits, reference(text()).logits)


@torch.no_grad()
def test_scaled_rotary_positions_are_those_of_llama31() -> None:
    """One param turns Llama 3 into Llama 3.1; here the first training saw four positions."""
    scaling = "{type: llama3, factor: 8, original_max_position_embeddings: 4}"
    rope = {**LLAMA31, "rope_theta": 300.0, "original_max_position_embeddings": 4}
    model, reference = pair("llama3", {**TINY["llama3"], "scaling": scaling}, {**TINY["llama3"], "rope": rope})
    close(model(text()).logits, reference(text()).logits)


@torch.no_grad()
def test_a_llama_with_a_tied_head_loads_too() -> None:
    """As Llama 3.2 1B has it; its file may hold the head or not."""
    tie = {"graph.head.tie": "{weight: embed.weight}"}
    model, reference = pair("llama3", {**TINY["llama3"], **tie}, {**TINY["llama3"], "tied": True})
    close(model(text()).logits, reference(text()).logits)


@pytest.mark.parametrize("name", TINY)
def test_weights_come_back_bit_for_bit(name: str) -> None:
    """Saved again, what was loaded is the `state_dict` of transformers, but for names that repeat another."""
    reference = perturbed(REFERENCE[name](TINY[name]))
    model = composer.load(name, overrides=TINY[name]).compile(seed=0)
    load_published(model, published(reference), reference.config.model_type)
    rules = model.program.untyped.recipe.checkpoints
    assert rules is not None
    ours, theirs = model.state_dict(), published(reference)
    made = mapping(rules, reference.config.model_type, shapes_of(ours))
    saved, found = made.save(ours), made.found(theirs)
    assert found.keys() - saved.keys() <= {copy.name for copy in made.rules.copies} and saved.keys() <= found.keys()
    assert all(torch.equal(saved[key], theirs[found[key]]) for key in saved)


@torch.no_grad()
def test_a_model_loads_from_the_file_that_it_wrote(tmp_path: Path) -> None:
    """And transformers' model loads it too."""
    first, reference = pair("gpt2", TINY["gpt2"], TINY["gpt2"])
    file = tmp_path / "model.safetensors"
    save_published(first, file)
    second = composer.load("gpt2", overrides=TINY["gpt2"]).compile(seed=3).eval()
    load_published(second, file)
    assert torch.equal(first(text()).logits, second(text()).logits)
    other = perturbed(REFERENCE["gpt2"](TINY["gpt2"]))
    assert not torch.equal(other(text()).logits, reference(text()).logits)
    other.get_submodule("transformer").load_state_dict(load_file(file))
    assert torch.equal(other(text()).logits, reference(text()).logits)


@torch.no_grad()
@pytest.mark.parametrize("name", TINY)
def test_a_folder_that_transformers_wrote_loads(name: str, tmp_path: Path) -> None:
    """In several files with an index; its `config.json` says which rules hold."""
    reference = perturbed(REFERENCE[name](TINY[name]))
    reference.save_pretrained(tmp_path, max_shard_size="20KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    model = composer.load(name, overrides=TINY[name]).compile(seed=0).eval()
    load_published(model, tmp_path)
    close(model(text()).logits, reference(text()).logits)
