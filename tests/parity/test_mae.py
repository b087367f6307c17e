"""MAE: the loss of transformers, what the noise decides, and the positions that it keeps."""

from __future__ import annotations

import pytest
import torch
from transformers.models.vit_mae.modeling_vit_mae import build_2d_sinusoidal_position_embedding

import composer
from tests.parity.families import FAMILIES
from tests.parity.reference import loaded, perturbed


@torch.no_grad()
@pytest.mark.parametrize("changes", [{}, {"norm_pix_loss": True}, {"mask_ratio": 0.25, "norm_pix_loss": True}])
def test_the_loss_is_that_of_transformers(changes: dict[str, object]) -> None:
    """Of the pixels as they are, and of those of each patch with mean 0 and variance 1."""
    torch.manual_seed(0)
    reference = perturbed(FAMILIES["mae"].small(**changes))
    model = loaded("mae", reference)
    given = FAMILIES["mae"].given()["images"]
    ours, theirs = model(**given.ours), reference(**given.theirs)
    torch.testing.assert_close(ours.losses["pixels"], theirs.loss, rtol=1e-5, atol=0)
    torch.testing.assert_close(composer.loss(model, dict(given.ours)).total, theirs.loss, rtol=1e-5, atol=0)


def test_hidden_patches_change_nothing_that_is_painted() -> None:
    """Neither do the seen ones where they are shuffled otherwise: only which are seen matters."""
    model = loaded("mae", perturbed(FAMILIES["mae"].small()))
    given = FAMILIES["mae"].given()["images"].ours
    masked = given["noise"].argsort(1).argsort(1) >= 6
    painted = model(**given).logits
    blocks = masked.reshape(2, 1, 4, 1, 4, 1).expand(2, 2, 4, 3, 4, 3).reshape(2, 2, 12, 12)
    torch.testing.assert_close(model(given["image"].masked_fill(blocks, 7.0), given["noise"]).logits, painted)
    torch.testing.assert_close(model(given["image"], given["noise"].where(masked, 0.0)).logits, painted)


def test_published_sizes_start_at_the_positions_of_the_authors() -> None:
    """Sines and cosines of columns and then of rows, behind zeros for the classification token, frozen."""
    model = composer.load("mae", {"n_layers": 1, "n_decoder_layers": 1}).compile(seed=0)
    for name, dim in {"see": 768, "decoder.fill": 512}.items():
        rows, columns = build_2d_sinusoidal_position_embedding(14, 14, dim, cls_token=True).chunk(2, -1)
        table = model.get_parameter(f"{name}.positions.weight")
        assert not table.requires_grad
        torch.testing.assert_close(table.detach(), torch.cat([columns, rows], -1), rtol=0, atol=1e-6)
