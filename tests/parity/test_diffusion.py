"""Transformers for diffusion against a reading of their papers and of the authors' code, with weights by the names of the
authors' files.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest
import torch
from torch import Tensor

import composer
from composer.graph.parameters import buffers, parameters
from composer.lower import Model
from composer.weights import load_published, mapping
from composer.weights.mapping import shapes_of
from tests.parity import readings_of_diffusion as readings
from tests.parity.test_readings import assert_same, moved
from tests.zoo import PARAMETERS

DIT = {
    "size": 6,
    "n_channels": 3,
    "patch": 2,
    "n_classes": 5,
    "n_frequencies": 7,
    "d_model": 12,
    "n_layers": 2,
    "n_heads": 3,
    "mlp_ratio": 1.5,
}
T = [0, 999, 37, 500]
"""Timesteps, from the first to the last of a thousand."""


def saved(model: Model, kind: str) -> dict[str, Tensor]:
    """Return the weights by the names of the authors' files."""
    rules = model.program.untyped.recipe.checkpoints
    assert rules is not None
    return mapping(rules, kind, shapes_of(model.state_dict()), model.program.untyped.params).save(model.state_dict())


def images(channels: int, size: int) -> Tensor:
    """Return a noisy image for each timestep."""
    return torch.randn(len(T), channels, size, size, generator=torch.Generator().manual_seed(2), dtype=torch.float64)


@torch.no_grad()
def test_dit_computes_what_its_paper_says() -> None:
    """Of classes, and of no class."""
    model, latent = moved("dit", DIT), images(3, 6)
    timestep, label = torch.tensor(T), torch.tensor([0, 4, 5, 2])
    read = readings.dit(saved(model, "dit"), latent, timestep, label, heads=3, patch=2)
    assert_same(model(latent, timestep, label).prediction, read)


def test_dit_has_the_tensors_of_the_authors_file() -> None:
    """Of DiT-XL-2-256x256.pt, whose 675 129 632 numbers include the table of positions, which is not trained."""
    d, layers = 1152, 28
    shapes: dict[str, tuple[int, ...]] = {
        "pos_embed": (1, 256, d),
        "x_embedder.proj.weight": (d, 4, 2, 2),
        "y_embedder.embedding_table.weight": (1001, d),
        **maps({"x_embedder.proj": (d,), "t_embedder.mlp.0": (d, 256), "t_embedder.mlp.2": (d, d)}),
        **maps({"final_layer.adaLN_modulation.1": (2 * d, d), "final_layer.linear": (32, d)}),
    }
    widths = {
        "attn.qkv": (3 * d, d),
        "attn.proj": (d, d),
        "mlp.fc1": (4 * d, d),
        "mlp.fc2": (d, 4 * d),
        "adaLN_modulation.1": (6 * d, d),
    }
    for layer in range(layers):
        shapes |= maps({f"blocks.{layer}.{name}": shape for name, shape in widths.items()})
    assert sum(math.prod(shape) for shape in shapes.values()) == 675_129_632 == PARAMETERS["dit"] + 256 * d
    assert_fits("dit", shapes)


def maps(weights: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of linear maps with their biases; of one number, of the bias alone."""
    shapes = {f"{name}.weight": shape for name, shape in weights.items() if len(shape) > 1}
    return {**shapes, **{f"{name}.bias": shape[:1] for name, shape in weights.items()}}


def assert_fits(name: str, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Assert that the default model has the tensors of a file."""
    typed = composer.load(name).program
    ours = {entry.name: entry.parameter.shape for entry in parameters(typed) if not entry.tied_to}
    rules = typed.untyped.recipe.checkpoints
    assert rules is not None
    assert (
        mapping(rules, name, ours | {key: each.shape for key, each in buffers(typed).items()}, typed.untyped.params).check(shapes)
        == []
    )


def test_dit_comes_back_bit_for_bit() -> None:
    """What was loaded is what is saved, but for the table of positions."""
    model, other = (composer.load("dit", DIT).compile(seed=seed) for seed in (0, 1))
    theirs = {name: torch.randn(tensor.shape) for name, tensor in saved(other, "dit").items()}
    load_published(model, {**theirs, "pos_embed": torch.zeros(1, 9, 12)}, "dit")
    assert saved(model, "dit").keys() == theirs.keys()
    assert all(torch.equal(tensor, theirs[name]) for name, tensor in saved(model, "dit").items())


def test_dit_starts_as_in_the_authors_code() -> None:
    """All that is modulated is shut and the answer is 0; what is not has the spread of Glorot or of 0.02."""
    wide = {**DIT, "d_model": 96, "n_frequencies": 64, "n_classes": 63, "patch": 3, "n_channels": 8, "mlp_ratio": 4}
    model = composer.load("dit", wide).compile(seed=0)
    assert model(images(8, 6).float(), torch.tensor(T), torch.tensor([0, 1, 2, 3])).prediction.abs().max() == 0
    for name, tensor in saved(model, "dit").items():
        rows = tensor.flatten(1) if tensor.dim() > 1 else tensor
        if "adaLN" in name or "final" in name or tensor.dim() == 1:
            assert rows.abs().max() == 0, name
        elif name.startswith(("t_", "y_")):
            assert rows.std().item() == pytest.approx(0.02, rel=0.05), name
        else:
            bound = (6 / sum(rows.shape)) ** 0.5
            assert 0.98 * bound < rows.abs().max() <= bound, name
            assert rows.std().item() == pytest.approx(bound / 3**0.5, rel=0.03), name


@torch.no_grad()
def test_dit_leaves_classes_out_in_training() -> None:
    """As often as it is told; what is left out is the last row of the table, which a model that leaves out none has not."""
    model = composer.load("dit", {**DIT, "class_dropout": 0.5}).compile(seed=0)
    for parameter in model.parameters():
        parameter.normal_(std=0.3)
    given = images(3, 6).float()[:1].expand(400, -1, -1, -1), torch.full((400,), 37)
    torch.manual_seed(0)
    seen = model(*given, torch.full((400,), 2)).prediction[:, 0, 0, 0]
    model.eval()
    shown, hidden = (model(*given, torch.full((400,), label)).prediction[:, 0, 0, 0] for label in (2, 5))
    is_hidden = (seen - hidden).abs() < (seen - shown).abs()
    assert_same(seen, hidden.where(is_hidden, shown), within=1e-5)
    assert abs(is_hidden.float().mean() - 0.5) < 4 * 0.5 / 400**0.5
    assert composer.load("dit", {**DIT, "class_dropout": 0}).compile(seed=0).state_dict()["class.weight"].shape == (5, 12)


UVIT = {
    "size": 6,
    "n_channels": 3,
    "patch": 2,
    "n_classes": 5,
    "d_model": 12,
    "half": 3,
    "n_heads": 3,
    "mlp_ratio": 1.5,
}


@torch.no_grad()
@pytest.mark.parametrize("conv", [False, True])
def test_uvit_computes_what_its_paper_says(conv: bool) -> None:
    """Of classes, and of no class; with the convolution of the smaller models and without."""
    model, latent = moved("uvit", {**UVIT, "conv": conv}), images(3, 6)
    timestep, label = torch.tensor(T), torch.tensor([0, 4, 5, 2])
    read = readings.uvit(saved(model, "uvit"), latent, timestep, label, heads=3, patch=2)
    assert_same(model(latent, timestep, label).noise, read)


def test_uvit_has_the_tensors_of_the_authors_file() -> None:
    """Of imagenet256_uvit_huge.pth, by the sizes of the authors' configuration."""
    d, half = 1152, 14
    shapes: dict[str, tuple[int, ...]] = {
        "pos_embed": (1, 258, d),
        "label_emb.weight": (1001, d),
        "patch_embed.proj.weight": (d, 4, 2, 2),
        **maps({"patch_embed.proj": (d,), "decoder_pred": (16, d)}),
        **normed("norm", d),
    }
    widths = {"attn.proj": (d, d), "mlp.fc1": (4 * d, d), "mlp.fc2": (d, 4 * d)}
    names = [*(f"in_blocks.{n}" for n in range(half)), "mid_block", *(f"out_blocks.{n}" for n in range(half))]
    for block in names:
        deep = {"skip_linear": (d, 2 * d)} if block.startswith("out") else {}
        shapes |= maps({f"{block}.{name}": shape for name, shape in (widths | deep).items()})
        shapes |= {f"{block}.attn.qkv.weight": (3 * d, d), **normed(f"{block}.norm1", d), **normed(f"{block}.norm2", d)}
    assert sum(math.prod(shape) for shape in shapes.values()) == PARAMETERS["uvit"]
    assert_fits("uvit", shapes)


def normed(name: str, width: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a norm's gain and bias."""
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}


def test_uvit_comes_back_bit_for_bit() -> None:
    """What was loaded is what is saved."""
    model, other = (composer.load("uvit", {**UVIT, "conv": True}).compile(seed=seed) for seed in (0, 1))
    theirs = {name: torch.randn(tensor.shape) for name, tensor in saved(other, "uvit").items()}
    load_published(model, theirs, "uvit")
    assert saved(model, "uvit").keys() == theirs.keys()
    assert all(torch.equal(tensor, theirs[name]) for name, tensor in saved(model, "uvit").items())


def test_uvit_starts_as_in_the_authors_code() -> None:
    """Linear maps and positions with the spread of 0.02, classes with that of 1, convolutions as in torch."""
    wide = {**UVIT, "d_model": 96, "n_classes": 63, "n_channels": 8, "mlp_ratio": 4, "conv": True}
    model = composer.load("uvit", wide).compile(seed=0)
    torch.manual_seed(0)
    convolutions = {"patch_embed.proj": torch.nn.Conv2d(8, 96, 2, 2), "final_layer": torch.nn.Conv2d(8, 8, 3, padding=1)}
    for name, tensor in saved(model, "uvit").items():
        if (made := convolutions.get(name.rpartition(".")[0])) is not None:
            theirs = made.get_parameter(name.rpartition(".")[2])
            bound = 1 / made.weight[0].numel() ** 0.5
            assert 0.8 * bound < tensor.abs().max() <= bound and theirs.abs().max() <= bound, name
        elif name.endswith("bias"):
            assert not tensor.any(), name
        elif "norm" in name:
            assert (tensor == 1).all(), name
        else:
            spread = 1 if name == "label_emb.weight" else 0.02
            assert tensor.std().item() == pytest.approx(spread, rel=0.05), name
