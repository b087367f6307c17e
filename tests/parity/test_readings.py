"""Recipes against a reading of their papers and lectures in plain matrix products."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import composer
from tests.parity import readings

LECTURES: dict[str, dict[str, int]] = {
    "lecture_block": {"vocab": 11, "d_model": 8, "hidden": 12},
    "rnn_lm": {"vocab": 11, "d_model": 2, "hidden": 3},
    "mlp_lm": {"vocab": 11, "d_model": 6, "reach": 3, "hidden": 7},
    "conv_lm": {"vocab": 11, "d_model": 6, "n_layers": 3, "kernel": 2},
}
TRANSFORMER = {"vocab": 13, "d_model": 16, "n_layers": 2, "n_heads": 4, "hidden": 24}
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


def assert_same(ours: Tensor, read: Tensor) -> None:
    """Assert equality within rounding in float64."""
    torch.testing.assert_close(ours, read, rtol=0, atol=1e-10)


@torch.no_grad()
@pytest.mark.parametrize("name", LECTURES)
def test_models_of_the_lectures_compute_their_formulas(name: str) -> None:
    """At every position, also those that have less behind them than the model reaches back."""
    model, given = moved(name, LECTURES[name]), tokens(11, 3, 9)
    assert_same(model(given).logits, getattr(readings, name)(model.state_dict(), given))


@torch.no_grad()
@pytest.mark.parametrize("padding", ["none", "of the source", "of both", "of both on the left"])
def test_the_transformer_computes_the_equations_of_its_paper(padding: str) -> None:
    """A padded position is seen by none, and keeps its place."""
    model = moved("transformer", TRANSFORMER)
    given: dict[str, Any] = {"source": tokens(13, 3, 6), "target": tokens(13, 3, 7)}
    valid = torch.ones(3, 7, dtype=torch.bool)
    if padding != "none":
        given["source_valid"] = torch.arange(6) < torch.tensor([[6], [4], [2]])
    if padding.startswith("of both"):
        given["valid"] = valid = torch.arange(7) < torch.tensor([[3], [7], [5]])
    if padding == "of both on the left":
        given["source_valid"], given["valid"] = given["source_valid"].flip(1), valid.flip(1)
        valid = given["valid"]
    assert_same(model(**given).logits[valid], readings.transformer(model.state_dict(), **given)[valid])


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
