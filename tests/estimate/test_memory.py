"""The memory of training steps, against what torch's allocator gives the step when it runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch

import composer
from composer.cost.lengths import lengths_of
from composer.decode.session import Session
from composer.estimate import DeviceSpec, EstimateError, TrainingMemory, estimate
from composer.estimate.estimating import traced_session, traced_step
from composer.train import TrainSettings
from tests.estimate.real import peak_of

SMALL: Mapping[str, Any] = {"vocab": 1001, "d_model": 128, "n_layers": 3, "n_heads": 4}
TINY: Mapping[str, Any] = {"vocab": 67, "d_model": 32, "n_layers": 2, "n_heads": 2, "context": 24}
CPU = DeviceSpec(name="cpu", matmul={"fp32": ((1.0, 1e11),)}, bandwidth=((1.0, 1e10),), launch=5e-6, overlaps=False)
GPT = {**SMALL, "context": 128}
LARGE = {**GPT, "vocab": 20_011}
USUAL, RECURRENT = 0.10, 0.25


def estimated(recipe: composer.Recipe, lengths: Mapping[str, int], settings: TrainSettings) -> TrainingMemory:
    """Return the memory of the step on a CPU."""
    model = recipe.compile(device="meta")
    return traced_step(model, lengths_of(model.program, lengths), settings, on_gpu=False).memory


@pytest.mark.parametrize(
    ("name", "params", "lengths", "settings", "within"),
    [
        ("gpt2", TINY, {"batch": 6}, {}, USUAL),
        pytest.param("gpt2", GPT, {"batch": 8}, {}, USUAL, marks=pytest.mark.slow),
        pytest.param("gpt2", LARGE, {"batch": 8}, {}, USUAL, marks=pytest.mark.slow),
        pytest.param("gpt2", LARGE, {"batch": 8}, {"logits_chunk": 150}, USUAL, marks=pytest.mark.slow),
        pytest.param("gpt2", GPT, {"batch": 8}, {"recompute": ("layers.*",)}, USUAL, marks=pytest.mark.exhaustive),
        pytest.param("gpt2", GPT, {"batch": 8}, {"grad_accum": 3, "optimizer": "sgd"}, USUAL, marks=pytest.mark.exhaustive),
        pytest.param("gpt2", GPT, {"batch": 8}, {"optimizer": "adafactor"}, USUAL, marks=pytest.mark.exhaustive),
        pytest.param("gpt2", GPT, {"batch": 8}, {"optimizer": "muon", "average": 0.9}, USUAL, marks=pytest.mark.exhaustive),
        pytest.param("gpt2", GPT, {"batch": 8}, {"precision": "bf16"}, USUAL, marks=pytest.mark.exhaustive),
        pytest.param("llama3", {**SMALL, "n_kv_heads": 2, "hidden": 300}, {"batch": 4, "time": 200}, {}, USUAL,
                     marks=pytest.mark.exhaustive),
        pytest.param("bert", {**GPT, "hidden": 300}, {"batch": 8}, {}, USUAL, marks=pytest.mark.exhaustive),
        pytest.param("t5", SMALL, {"batch": 8, "source_time": 100, "time": 90}, {}, USUAL, marks=pytest.mark.exhaustive),
        pytest.param("vit", {"n_layers": 2}, {"batch": 2}, {}, USUAL, marks=pytest.mark.exhaustive),
        pytest.param("swin", {}, {"batch": 2}, {}, USUAL, marks=pytest.mark.exhaustive),
        pytest.param("resnet", {}, {"batch": 2}, {}, USUAL, marks=pytest.mark.exhaustive),
        pytest.param("conv_lm", {}, {"batch": 16, "time": 256}, {}, USUAL, marks=pytest.mark.exhaustive),
        pytest.param("captioner", {}, {"batch": 2, "time": 50}, {}, USUAL, marks=pytest.mark.exhaustive),
        pytest.param("mixtral", {**SMALL, "n_kv_heads": 2, "hidden": 150}, {"batch": 4, "time": 128}, {}, RECURRENT,
                     marks=pytest.mark.exhaustive),
        pytest.param("mamba", {"vocab": 1001, "d_model": 128, "n_layers": 2}, {"batch": 4, "time": 100}, {}, RECURRENT,
                     marks=pytest.mark.exhaustive),
        pytest.param("lstm_lm", {}, {"batch": 16, "time": 128}, {}, RECURRENT, marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_the_peak_is_what_the_allocator_gives(
    name: str, params: Mapping[str, Any], lengths: Mapping[str, int], settings: Mapping[str, Any], within: float
) -> None:
    """Within a tenth, and within a quarter with experts and recurrences."""
    recipe = composer.load(name, dict(params))
    chosen = TrainSettings(**{"precision": "fp32", **settings})
    found = estimated(recipe, lengths, chosen).peak
    assert found == pytest.approx(peak_of(recipe, lengths_of(recipe.program, lengths), chosen), rel=within)


def test_parts_of_the_memory_follow_from_the_model() -> None:
    """Weights, gradients and two moments of each weight that is trained, and activations of the nodes that make them."""
    recipe = composer.load("gpt2", dict(TINY))
    count = sum(each.numel() for each in recipe.compile(device="meta").parameters())
    whole = estimated(recipe, {"batch": 3}, TrainSettings(precision="fp32"))
    assert (whole.weights, whole.gradients) == (4 * count, 4 * count)
    assert whole.optimizer == pytest.approx(8 * count, rel=0.01)  # and the number of steps of each parameter
    assert sum(whole.by_node.values()) == whole.activations and "layers.*.ffn" in whole.by_node
    frozen = estimated(recipe, {"batch": 3}, TrainSettings(precision="fp32", freeze=("layers.*",)))
    inside = sum(each.numel() for name, each in recipe.compile(device="meta").named_parameters() if name.startswith("layers."))
    assert frozen.gradients == 4 * (count - inside) and frozen.optimizer < whole.optimizer
    again = estimated(recipe, {"batch": 3}, TrainSettings(precision="fp32", recompute=("layers.*",)))
    assert again.activations < 0.5 * whole.activations and again.weights == whole.weights


def test_a_session_holds_its_caches() -> None:
    """As many bytes as the slots of a session that runs."""
    model = composer.load("gpt2", dict(TINY)).compile(seed=0).eval()
    traced = traced_session(model, {"batch": 2, "time": 24}, TrainSettings(precision="fp32"), on_gpu=False)
    assert traced is not None
    with torch.no_grad(), Session(model, 24, last_only=True):
        model(tokens=torch.zeros(2, 24, dtype=torch.long))
    keys_and_values = 2 * 2 * 2 * 24 * 32 * 4  # layers, keys and values, rows, positions, width, bytes
    assert traced.kept == pytest.approx(keys_and_values, rel=0.1)


def test_a_model_without_a_loss_has_no_training_step() -> None:
    """Only a forward pass."""
    found = estimate(composer.load("minilm", {"n_layers": 1}), {"batch": 2, "time": 8})
    assert found.training is None and found.step is None and found.forward_peak > 0
    assert "no training step" in str(found)


def test_tensors_beyond_all_memory_are_refused() -> None:
    """With what to change; tensors that merely fit nowhere are estimated."""
    recipe = composer.load("gpt2", dict(TINY))
    with pytest.raises(EstimateError, match="2\\^63"):
        estimate(recipe, {"time": 10**17})
    many = estimate(recipe, {"batch": 10**6})
    assert many.training is not None and many.training.peak > 2**36
