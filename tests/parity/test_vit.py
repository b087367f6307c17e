"""ViT: the logits, the loss and the weights of transformers' implementation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

import composer
from composer.weights import load_published, mapping
from composer.weights.mapping import shapes_of
from tests.parity.reference import REFERENCE, perturbed, published

TINY: dict[str, Any] = {
    "size": 20, "n_channels": 2, "patch": 6, "n_classes": 7, "d_model": 48, "n_layers": 2, "n_heads": 6, "hidden": 40,
}  # fmt: skip
"""Three patches a side, and two pixels that fill none."""


def images() -> torch.Tensor:
    return torch.randn(3, 2, 20, 20, generator=torch.Generator().manual_seed(2))  # [B, channels, height, width]


@torch.no_grad()
def test_logits_and_loss_are_those_of_transformers(tmp_path: Path) -> None:
    """From the folder that transformers wrote, whose `config.json` sets every size."""
    reference = perturbed(REFERENCE["vit"](TINY))
    reference.save_pretrained(tmp_path)
    model = composer.load("vit").with_config(tmp_path).compile(seed=0).eval()
    load_published(model, tmp_path)
    label = torch.tensor([6, 0, 3])
    theirs = reference(images(), labels=label)
    torch.testing.assert_close(model(images()).logits, theirs.logits, rtol=0, atol=1e-5 * theirs.logits.abs().max().item())
    torch.testing.assert_close(composer.loss(model, {"image": images(), "label": label}).total, theirs.loss, rtol=1e-5, atol=0)


def test_weights_come_back_bit_for_bit() -> None:
    """With the axes of length one that the published token and positions have."""
    reference = perturbed(REFERENCE["vit"](TINY))
    model = composer.load("vit", overrides=TINY).compile(seed=0)
    load_published(model, published(reference))
    rules = model.program.untyped.recipe.checkpoints
    assert rules is not None
    ours, theirs = model.state_dict(), published(reference)
    saved = mapping(rules, "vit", shapes_of(ours), model.program.untyped.params).save(ours)
    assert {f"vit.{name}" if not name.startswith("classifier") else name for name in saved} == theirs.keys()
    assert all(torch.equal(theirs.get(name, theirs.get(f"vit.{name}")), tensor) for name, tensor in saved.items())
