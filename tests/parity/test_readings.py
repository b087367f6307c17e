"""Recipes against a reading of their papers and lectures in plain matrix products."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import composer
from composer.decode import session
from tests.parity import readings

LECTURES: dict[str, dict[str, int]] = {
    "lecture_block": {"vocab": 11, "d_model": 8, "hidden": 12},
    "rnn_lm": {"vocab": 11, "d_model": 2, "hidden": 3},
    "mlp_lm": {"vocab": 11, "d_model": 6, "reach": 3, "hidden": 7},
    "conv_lm": {"vocab": 11, "d_model": 6, "n_layers": 3, "kernel": 2},
}
TRANSFORMER = {"vocab": 13, "d_model": 16, "n_layers": 2, "n_heads": 4, "hidden": 24}
UNIVERSAL = {"vocab": 13, "d_model": 16, "n_layers": 3, "n_heads": 2, "hidden": 24}
PALM = {"vocab": 11, "d_model": 10, "n_layers": 2, "n_heads": 3, "head_dim": 4, "hidden": 7}
DENSEFORMER = {"vocab": 11, "d_model": 8, "n_layers": 3, "n_heads": 2}
RNNSEARCH = {"vocab": 11, "d_embed": 5, "hidden": 6, "align": 7, "maxout": 4}


def moved(name: str, sizes: dict[str, int]) -> nn.Module:
    """Return the recipe's model in float64 with every parameter moved at random, also gains and biases that start at 1 or 0."""
    model = composer.load(name, overrides=sizes).compile(seed=0).double().eval()
    generator = torch.Generator().manual_seed(1)
    for parameter in model.parameters():
        parameter.data += 0.5 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    return model


def tokens(vocab: int, *shape: int) -> Tensor:
    """Return seeded tokens."""
    return torch.randint(vocab, shape, generator=torch.Generator().manual_seed(2))


def assert_same(ours: Tensor, read: Tensor, within: float = 1e-10) -> None:
    """Assert equality within rounding, by default in float64."""
    torch.testing.assert_close(ours, read, rtol=0, atol=within)


@torch.no_grad()
@pytest.mark.parametrize("name", LECTURES)
def test_models_of_the_lectures_compute_their_formulas(name: str) -> None:
    """At every position, also those that have less behind them than the model reaches back."""
    model, given = moved(name, LECTURES[name]), tokens(11, 3, 9)
    assert_same(model(given).logits, getattr(readings, name)(model.state_dict(), given))


@torch.no_grad()
@pytest.mark.parametrize("name", ["transformer", "universal_transformer"])
@pytest.mark.parametrize("padding", ["none", "of the source", "of both", "of both on the left"])
def test_transformers_compute_the_equations_of_their_papers(name: str, padding: str) -> None:
    """A padded position is seen by none, and keeps its place."""
    model = moved(name, TRANSFORMER if name == "transformer" else UNIVERSAL)
    given: dict[str, Any] = {"source": tokens(13, 3, 6), "target": tokens(13, 3, 7)}
    valid = torch.ones(3, 7, dtype=torch.bool)
    if padding != "none":
        given["source_valid"] = torch.arange(6) < torch.tensor([[6], [4], [2]])
    if padding.startswith("of both"):
        given["valid"] = valid = torch.arange(7) < torch.tensor([[3], [7], [5]])
    if padding == "of both on the left":
        given["source_valid"], given["valid"] = given["source_valid"].flip(1), valid.flip(1)
        valid = given["valid"]
    read = getattr(readings, name)(model.state_dict(), **given)
    assert_same(model(**given).logits[valid], read[valid])
    given.setdefault("valid", valid)
    with session(model):
        parts = [given | {"target": some, "valid": real} for some, real in split_in_steps(given["target"], given["valid"])]
        assert_same(torch.cat([model(**part).logits for part in parts], dim=1)[valid], read[valid])


def split_in_steps(*tensors: Tensor) -> list[tuple[Tensor, ...]]:
    """Return the first four places of each, and then one at a time."""
    return list(zip(*(tensor.split([4, 1, 1, 1], dim=1) for tensor in tensors), strict=True))


@torch.no_grad()
@pytest.mark.parametrize(("name", "sizes", "within"), [("palm", PALM, 1e-6), ("denseformer", DENSEFORMER, 5e-6)])
@pytest.mark.parametrize("padding", [[0, 0, 0], [0, 3, 6], [0, -3, -6]], ids=["none", "right", "left"])
def test_decoders_compute_what_their_papers_say(name: str, sizes: dict[str, int], within: float, padding: list[int]) -> None:
    """At once, and with a cache; to the rounding of float32, in which rotations are computed."""
    model, given = moved(name, sizes), tokens(11, 3, 9)
    valid = torch.stack([torch.arange(9) < 9 - n if n >= 0 else torch.arange(9) >= -n for n in padding])
    read = getattr(readings, name)(model.state_dict(), given, valid)[valid]
    assert_same(model(given, valid=valid).logits[valid], read, within=within)
    with session(model):
        parts = zip(given.split([7, 1, 1], dim=1), valid.split([7, 1, 1], dim=1), strict=True)
        assert_same(torch.cat([model(some, valid=real).logits for some, real in parts], dim=1)[valid], read, within=within)


def test_palm_has_the_parameters_of_its_paper() -> None:
    """540.35 billion; its weights start with the spread of table and text: by the width that is read, and 1 in the embedding."""
    assert composer.load("palm").summary().costs.parameters == 540_356_474_880
    model = composer.load("palm", {**PALM, "vocab": 64, "d_model": 64, "head_dim": 32, "hidden": 256}).compile(seed=0)
    spread = {"embed": 1, "attn.q": 1 / 8, "attn.v": 1 / 8, "attn.out": 96**-0.5, "ffn.up": 1 / 8, "ffn.down": 1 / 16}
    for name, parameter in model.named_parameters():
        for kind, deviation in spread.items():
            if kind in name:
                assert parameter.std().item() == pytest.approx(deviation, rel=0.06), name


@torch.no_grad()
def test_denseformer_starts_as_the_transformer_without_averages() -> None:
    """Section 3: α_ii is 1 and every other α_ij is 0; d (d + 3) / 2 numbers are new."""
    model, given = composer.load("denseformer", DENSEFORMER).compile(seed=0).eval(), tokens(11, 3, 9)
    weights = model.state_dict()
    plain = (
        composer.load(
            "denseformer",
            {
                **DENSEFORMER,
                "graph.layers.graph.average": "{compute: 1 * ffn}",
                "graph.layers.graph.past": "null",
                "graph.layers.graph.own": "null",
            },
        )
        .compile(seed=1)
        .eval()
    )
    new = weights.keys() - plain.state_dict().keys()
    assert sum(weights[name].numel() for name in new) == 3 * (3 + 3) // 2
    plain.load_state_dict({name: tensor for name, tensor in weights.items() if name not in new})
    assert_same(model(given).logits, plain(given).logits, within=0)


@torch.no_grad()
def test_rnnsearch_computes_the_equations_of_its_paper_where_the_reset_gate_may_stand_on_either_side_of_its_map() -> None:
    """U(r · h), as in the paper, is r · (U h + b), as in torch, for a diagonal U and b = 0."""
    model = moved("seq2seq_rnn", RNNSEARCH)
    for name, parameter in model.named_parameters():
        proposal = parameter.data[-RNNSEARCH["hidden"] :]
        if "weight_hh" in name:
            proposal.copy_(proposal.diag().diag())
        if "bias_hh" in name:
            proposal.zero_()
    given = {"source": tokens(11, 3, 6), "target": tokens(11, 3, 7)}
    assert_same(model(**given).logits, readings.seq2seq_rnn(model.state_dict(), **given))
