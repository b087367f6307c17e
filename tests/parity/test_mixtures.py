"""Recipes whose experts are chosen in two steps, or by the task of a row, against a reading of their papers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import composer
from composer.decode import session
from tests.parity import readings_of_mixtures as readings
from tests.parity.test_depth import assert_same_gradients, mixed, padded
from tests.parity.test_readings import assert_same, moved, tokens

HIERARCHICAL = {"vocab": 11, "d_model": 6, "n_groups": 3, "n_experts": 12, "hidden": 5}
TASKS: dict[str, Any] = {"vocab": 13, "d_model": 8, "n_layers": 2, "n_heads": 4, "hidden": 6, "n_tasks": 3, "n_experts": 5}


@pytest.mark.parametrize("padding", ["none", "right", "left"])
def test_a_mixture_of_mixtures_is_that_of_its_paper(padding: str) -> None:
    """Logits and gradients at once, and logits with the states of a session."""
    model, given, valid = moved("hierarchical_moe", HIERARCHICAL), tokens(11, 3, 9), padded(padding)
    read = readings.hierarchical_moe(dict(model.named_parameters()), given, valid)[valid]
    ours = model(given, valid=valid).logits[valid]
    assert_same(ours, read)
    assert_same_gradients(model, mixed(ours), mixed(read))
    with session(model), torch.no_grad():
        parts = zip(given.split([7, 1, 1], dim=1), valid.split([7, 1, 1], dim=1), strict=True)
        assert_same(torch.cat([model(some, valid=real).logits for some, real in parts], dim=1)[valid], read)


@torch.no_grad()
def test_importance_is_the_variation_of_the_weights_of_the_experts() -> None:
    """Equations 6 and 7: w · CV(Σ_x G(x))², over all tokens of a batch."""
    model, given = moved("hierarchical_moe", HIERARCHICAL), tokens(11, 3, 9)
    seen: list[Tensor] = []
    model.experts.body.moe.register_forward_hook(lambda *call: seen.append(call[2][1]))
    loss = model(given).losses["importance"]
    importance = seen[0].sum((0, 1))
    assert_same(importance.sum(), torch.tensor(27.0, dtype=torch.float64))
    assert_same(loss, 0.1 * importance.var(unbiased=False) / importance.mean() ** 2)


def test_hierarchical_noise_is_there_in_training_alone() -> None:
    """With noise from trained maps; without them there is none, and fewer parameters."""
    model, given = moved("hierarchical_moe", {**HIERARCHICAL, "dropout": 0}), tokens(11, 3, 9)
    torch.manual_seed(0)
    assert not torch.allclose(model.train()(given).logits, model.eval()(given).logits)
    plain = {**HIERARCHICAL, "dropout": 0, "graph.experts.body.graph.moe.router.noisy": False}
    quiet = moved("hierarchical_moe", {**plain, "init": "null"})
    assert_same(quiet.train()(given).logits, quiet.eval()(given).logits)
    assert not any("noise" in name for name, _ in quiet.named_parameters())


def test_mixtures_have_the_parameters_of_their_papers() -> None:
    """272.9 million without embedding and softmax, table 7 of the first; 533 million of the other."""
    first = composer.load("hierarchical_moe").summary().costs.parameters
    assert round((first - 2 * 793_472 * 512) / 1e6, 1) == 272.9
    assert round(composer.load("task_moe").summary().costs.parameters / 1e6) == 533


@pytest.mark.parametrize("tokens_too", [False, True])
def test_a_task_chooses_the_experts_of_its_row(tokens_too: bool) -> None:
    """Logits and gradients with padding on both sides, and logits with a cache."""
    model = moved("task_moe", {**TASKS, "tokens_too": tokens_too})
    given = {
        "source": tokens(13, 3, 6),
        "target": tokens(13, 3, 7),
        "source_valid": torch.arange(6) < torch.tensor([[6], [4], [2]]),
        "valid": torch.arange(7) >= torch.tensor([[3], [0], [1]]),
        "task": torch.tensor([2, 0, 1]),
    }
    valid = given["valid"]
    read, ours = readings.task_moe(dict(model.named_parameters()), **given)[valid], model(**given).logits[valid]
    assert_same(ours, read)
    assert_same_gradients(model, mixed(ours), mixed(read))
    with session(model), torch.no_grad():
        split = zip(given["target"].split([4, 1, 2], dim=1), valid.split([4, 1, 2], dim=1), strict=True)
        parts = [model(**given | {"target": some, "valid": real}).logits for some, real in split]
        assert_same(torch.cat(parts, dim=1)[valid], read)
