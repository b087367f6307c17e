"""Linformer, and Show, Attend and Tell, against readings of their papers."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest
import torch

import composer
from composer.decode import GREEDY, Request, cached, generate, session
from composer.graph.parameters import parameters
from tests.parity.readings_of_memories import linformer, show_attend_tell
from tests.parity.test_readings import assert_same, moved, tokens

LINFORMER: dict[str, Any] = {
    "vocab": 11, "context": 9, "d_model": 12, "n_layers": 2, "n_heads": 3, "hidden": 20, "n_places": 4,
}  # fmt: skip
CAPTIONER: dict[str, Any] = {
    "vocab": 11, "size": 12, "n_channels": 2, "depths": [1, 2], "widths": [3, 4], "d_embed": 5, "hidden": 6, "align": 7,
}  # fmt: skip
B, T = 3, 7


@torch.no_grad()
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("padding", ["none", "right", "left"])
def test_linformer_attends_to_projected_keys_and_values(padding: str, shared: bool) -> None:
    """Texts that are shorter than the projection read its first rows; padding counts nothing, whatever stands there."""
    model = moved("linformer", {**LINFORMER, "shared": shared})
    valid = torch.arange(T) < torch.tensor([[T], [4], [2]])
    valid = {"none": torch.ones(B, T, dtype=torch.bool), "right": valid, "left": valid.flip(1)}[padding]
    given = (2 + tokens(9, B, T)).where(valid, 1)
    read = linformer(model.state_dict(), given, valid, shared=shared)
    assert_same(model(given, valid=valid).logits[valid], read[valid])
    if padding == "none":
        assert_same(model(given).logits, read)
    else:
        assert not torch.equal(model(given).logits[valid], read[valid])


def test_linformer_has_one_matrix_more_than_roberta() -> None:
    """Of all layers, or of each."""
    plain = composer.load("roberta", {"vocab": 50304}).summary().costs.parameters
    assert composer.load("linformer").summary().costs.parameters - plain == 512 * 256
    assert composer.load("linformer", {"shared": False}).summary().costs.parameters - plain == 12 * 512 * 256


def images() -> torch.Tensor:
    return torch.randn(B, 2, 12, 12, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


def test_a_captioner_looks_at_the_places_of_its_paper() -> None:
    """Logits, weights, gradients of all but VGG, which is frozen, and words one at a time."""
    model, image, words = moved("show_attend_tell", CAPTIONER), images(), tokens(11, B, T)
    w = dict(model.named_parameters())
    read = [show_attend_tell(w, *row) for row in zip(image, words, strict=True)]
    logits, weights = (torch.stack(each) for each in zip(*read, strict=True))
    out = model(image, words)
    assert_same(out.logits, logits)
    assert_same(out.weights, weights)
    total = logits.sin().sum() + ((1 - weights.sum(1)) ** 2).sum(1).mean()
    wanted = torch.autograd.grad(total, trained := [each for each in w.values() if each.requires_grad])
    found = torch.autograd.grad(out.logits.sin().sum() + out.losses["doubly_stochastic"], trained)
    for ours, theirs in zip(found, wanted, strict=True):
        assert_same(ours, theirs)
    assert {name for name, each in w.items() if not each.requires_grad} == {name for name in w if name.startswith("encoder.")}
    with torch.no_grad(), session(model):
        steps = [model(image, some).logits for some in words.split([3, 1, 3], 1)]
    assert_same(torch.cat(steps, 1), logits)


@torch.no_grad()
def test_places_are_looked_at_evenly_by_the_loss_of_the_paper() -> None:
    """Equation 14, of the words that are no padding; it is weighted, and left out of the sum with a weight of 0."""
    model, image, words = moved("show_attend_tell", {**CAPTIONER, "evenness": 0.5}), images(), tokens(11, B, T)
    valid = torch.arange(T) < torch.tensor([[T], [4], [2]])
    wanted = 0.0
    for row in range(B):
        _, alpha = show_attend_tell(model.state_dict(), image[row], words[row][valid[row]])
        wanted = wanted + sum((1 - alpha[:, place].sum()) ** 2 for place in range(alpha.shape[1])) / B
    assert_same(model(image, words, valid=valid).losses["doubly_stochastic"], 0.5 * torch.as_tensor(wanted))


def test_captions_are_written_with_a_cache_and_without() -> None:
    """Each of its own image."""
    model, prompts = moved("show_attend_tell", CAPTIONER), [[1]] * B
    request = Request(max_new_tokens=8, sampling=GREEDY)
    plain = generate(model, prompts, request, encoder_inputs={"image": images()})
    assert generate(model, prompts, request, encoder_inputs={"image": images()}, reading=cached) == plain


def test_a_captioner_has_the_vgg_of_its_paper() -> None:
    """All sixteen convolutions of VGG-19, which give 196 places of 512 channels."""
    program = composer.load("show_attend_tell").program
    assert next(iter(program.root["encoder"].outputs.values())).sizes[1:] == (196, 512)
    widths = [3, *[64] * 2, *[128] * 2, *[256] * 4, *[512] * 8]
    wanted = sum(9 * before * after + after for before, after in pairwise(widths))
    assert wanted == sum(math.prod(each.parameter.shape) for each in parameters(program) if not each.trainable)
