"""Copies of matrices in another layout: the same texts, and nothing left behind."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import composer
from composer.decode import GREEDY, Request, cached, generate, prepack, prepacked
from composer.decode.prepack import copies

TINY = {"n_layers": 2, "d_model": 32, "n_heads": 4, "vocab": 61, "context": 16}


@pytest.fixture
def all_faster(monkeypatch):
    """A machine on which each copy is faster."""
    monkeypatch.setattr(prepack, "WORTH", float("inf"))


@pytest.mark.parametrize("recipe", ["gpt2", "llama3"])
def test_a_text_is_the_same(recipe, all_faster):
    """In float64, and with a head that is tied to the embedding; nothing is left behind."""
    sizes = TINY if recipe == "gpt2" else {**TINY, "n_kv_heads": 2, "hidden": 48}
    model = composer.load(recipe, sizes).compile(seed=0)
    model = model.double().eval()
    request = Request(max_new_tokens=6, sampling=GREEDY)
    plain = generate(model, [[1, 2, 3], [4, 5, 6]], request, reading=cached)
    before = model.state_dict()
    with prepacked(model, rows=2) as size:
        assert size == sum(each.weight.nbytes for each in model.modules() if isinstance(each, nn.Linear))
        assert generate(model, [[1, 2, 3], [4, 5, 6]], request, reading=cached) == plain
        assert list(model.state_dict()) == list(before)
    assert not any("forward" in vars(each) for each in model.modules())


@torch.no_grad()
def test_only_few_rows_take_the_copy(all_faster):
    """Longer calls, calls of another type, and calls with gradients take the matrix itself."""
    model = nn.Sequential(nn.Linear(6, 5))
    x, many = torch.randn(2, 1, 6), torch.randn(3, 1, 6)
    expected = model(x), model(many)
    with prepacked(model, rows=2):
        (copy,) = (module.forward.args[1] for module in model)
        assert copy.T.is_contiguous() and copy.equal(model[0].weight)
        copy.zero_()  # so that it can be told apart
        assert model(x).equal(model[0].bias.expand(2, 1, 5))
        assert model(many).equal(expected[1])
        with torch.enable_grad():
            assert model(x).equal(expected[0])
    assert model(x).equal(expected[0])


def test_a_copy_is_kept_only_where_it_is_faster(monkeypatch):
    """Of two shapes, one is slower."""
    wide, narrow = nn.Linear(4, 9), nn.Linear(9, 4)

    def seconds(function):
        weight = function.args[1]
        transposed = not weight.is_contiguous()
        return 2.0 - transposed if weight.shape == (9, 4) else 1.0 + transposed

    monkeypatch.setattr(prepack, "seconds", seconds)
    assert [*copies([wide, narrow], 1)] == [wide]


def test_a_model_without_linear_maps_and_one_inside_another(all_faster):
    """There is nothing to copy."""
    with prepacked(nn.LayerNorm(3)) as size:
        assert size == 0
    model = nn.Linear(3, 4)
    with prepacked(model) as outer, prepacked(model) as inner:
        assert (outer, inner) == (48, 0)
        assert "forward" in vars(model)
    assert "forward" not in vars(model)
