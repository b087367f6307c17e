"""Recipes with other ways through the layers against a reading of their papers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import composer
from composer.decode import session
from tests.parity import readings_of_depth as readings
from tests.parity.test_readings import assert_same, moved, tokens

HYPER = {"vocab": 11, "d_model": 8, "n_layers": 2, "n_heads": 2, "hidden": 12, "n_streams": 3}
EXIT = {"vocab": 11, "d_model": 16, "n_layers": 3, "n_heads": 2, "n_kv_heads": 1, "hidden": 12}
DEPTHS = {"vocab": 11, "d_model": 8, "n_pairs": 2, "n_heads": 2, "hidden": 12, "d_guess": 5}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "hyper_connections": ("hyper_connections", HYPER),
    "hyper_connections static": ("hyper_connections", {**HYPER, "dynamic": False}),
    "early_exit": ("early_exit", EXIT),
    "mixture_of_depths": ("mixture_of_depths", DEPTHS),
}
PADDING = {"none": [0, 0, 0], "right": [0, 3, 6], "left": [0, -3, -6]}
WITHIN = 5e-6
"""Rotations are computed in float32."""


def padded(padding: str) -> Tensor:
    """Return which of nine tokens of three texts are real."""
    return torch.stack([torch.arange(9) < 9 - n if n >= 0 else torch.arange(9) >= -n for n in PADDING[padding]])


def assert_same_gradients(model: nn.Module, ours: Tensor, read: Tensor) -> None:
    """Assert that two numbers have the same gradient by every parameter."""
    parameters = list(model.parameters())
    for one, other in zip(*(torch.autograd.grad(each, parameters, allow_unused=True) for each in (ours, read)), strict=True):
        assert (one is None or not one.any()) == (other is None or not other.any())
        if one is not None and other is not None:
            torch.testing.assert_close(one, other, rtol=0, atol=1e-5 * max(1, other.abs().max().item()))


def mixed(logits: Tensor) -> Tensor:
    """Return a number that depends on all logits in another way each."""
    return (logits * torch.linspace(-1, 1, logits.numel(), dtype=logits.dtype).view_as(logits)).sum()


@pytest.mark.parametrize("padding", PADDING)
@pytest.mark.parametrize("case", CASES)
def test_ways_through_the_layers_are_those_of_their_papers(case: str, padding: str) -> None:
    """Logits and gradients at once, and logits with a cache."""
    name, sizes = CASES[case]
    model, given, valid = moved(name, sizes), tokens(11, 3, 9), padded(padding)
    weights = dict(model.named_parameters())
    read, ours = getattr(readings, name)(weights, given, valid)[valid], model(given, valid=valid).logits[valid]
    assert_same(ours, read, within=WITHIN)
    assert_same_gradients(model, mixed(ours), mixed(read))
    with session(model), torch.no_grad():
        parts = zip(given.split([7, 1, 1], dim=1), valid.split([7, 1, 1], dim=1), strict=True)
        assert_same(torch.cat([model(some, valid=real).logits for some, real in parts], dim=1)[valid], read, within=WITHIN)


@torch.no_grad()
@pytest.mark.parametrize("dynamic", [True, False])
def test_hyper_connections_start_as_a_transformer_with_pre_norm(dynamic: bool) -> None:
    """Equation 14: each body reads one stream, and all three are the same."""
    model, given = (
        composer.load("hyper_connections", {**HYPER, "dynamic": dynamic}).compile(seed=0).double().eval(),
        tokens(11, 9),
    )
    w, real = model.state_dict(), torch.ones(9, dtype=torch.bool)
    x = w["embed.weight"][given]
    for layer in range(2):
        x = x + readings.look_back(w, f"layers.{layer}.attn.written", readings.normalized(x), real, heads=2)
        x = x + readings.swiglu(w, f"layers.{layer}.ffn.written", readings.normalized(x))
    assert_same(model(given[None]).logits[0], readings.normalized(3 * x) @ w["embed.weight"].T, within=WITHIN)


def test_hyper_connections_are_as_many_parameters_more_as_the_paper_says() -> None:
    """Of OLMo 1B, 1 176 764 416: for each of 32 bodies n (n + 2), and where it depends on the token d (n + 2) + 2."""
    count = composer.load("hyper_connections").summary().costs.parameters
    assert count - 1_176_764_416 == 32 * (4 * 6 + 2048 * 6 + 2)
    static = composer.load("hyper_connections", {"dynamic": False}).summary().costs.parameters
    assert static - 1_176_764_416 == 32 * 4 * 6


def test_early_exits_are_weighed_as_layerskip_says() -> None:
    """The loss and its gradients, with padding."""
    model, given, valid = moved("early_exit", {**EXIT, "exit_scale": 0.3}), tokens(11, 3, 9), padded("right")
    ours = composer.loss(model, {"tokens": given, "valid": valid}).total
    read = readings.early_exit_loss(dict(model.named_parameters()), given, valid, 0.3)
    assert_same(ours, read, within=WITHIN)
    assert_same_gradients(model, ours, read)


@torch.no_grad()
def test_with_fewer_layers_the_model_exits_early() -> None:
    """The weights of the first layers are those of a model that ends there."""
    model, given = moved("early_exit", EXIT), tokens(11, 3, 9)
    shorter = composer.load("early_exit", {**EXIT, "n_layers": 2}).compile(seed=0).double().eval()
    assert not shorter.load_state_dict(model.state_dict(), strict=False).missing_keys
    read = readings.exits(model.state_dict(), given, padded("none"))
    assert_same(shorter(given).logits, read[1], within=WITHIN)


@torch.no_grad()
def test_deeper_layers_are_left_out_more_often() -> None:
    """For a whole text: the first never, the last in p_max of the texts, and the one between in (√2 - 1) p_max of them."""
    sizes = {**EXIT, "layer_dropout": 1, "n_layers": 3}
    model, given = moved("early_exit", sizes), tokens(11, 1, 4)
    first, second, _ = readings.exits(model.state_dict(), given, torch.ones_like(given, dtype=torch.bool))
    torch.manual_seed(0)
    found = model.train()(given.expand(4000, -1)).logits
    left_out = (found - first).abs().amax((1, 2)) < WITHIN
    assert (left_out | ((found - second).abs().amax((1, 2)) < WITHIN)).all()  # the last is left out of all
    assert left_out.double().mean().item() == pytest.approx(2**0.5 - 1, abs=0.03)


@pytest.mark.parametrize("padding", PADDING)
def test_in_training_the_best_tokens_of_a_text_are_routed(padding: str) -> None:
    """Logits and gradients, of which the router's comes through its weight; what guesses gets none from the logits."""
    model, given, valid = moved("mixture_of_depths", {**DEPTHS, "capacity": 0.4}).train(), tokens(11, 3, 9), padded(padding)
    weights = dict(model.named_parameters())
    read = readings.mixture_of_depths(weights, given, valid, training=True, capacity=0.4)[valid]
    ours = model(given, valid=valid).logits[valid]
    assert_same(ours, read, within=WITHIN)
    assert_same_gradients(model, mixed(ours), mixed(read))


def test_what_is_guessed_is_what_the_router_takes() -> None:
    """The loss of the guesses is the cross-entropy of the choice in training, and moves the guessing network alone."""
    model, given = moved("mixture_of_depths", {**DEPTHS, "capacity": 0.4}), tokens(11, 3, 9)
    model(given).losses["guesses"].backward()
    moving = {name for name, parameter in model.named_parameters() if parameter.grad is not None and parameter.grad.any()}
    assert moving == {name for name, _ in model.named_parameters() if "guess" in name}
