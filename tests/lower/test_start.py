"""What it takes until a model is there: its weights, and what is new about its recipe."""

from __future__ import annotations

import subprocess
import sys

import torch
from torch import nn

import composer
from composer.lower.build import _Undrawn
from tests.operations import at_most

TINY = {"n_layers": 2, "d_model": 32, "n_heads": 4, "vocab": 61, "context": 16, "dropout": 0}
FIRST = """
import sys, torch
before = set(sys.modules)
import composer
composer.load("gpt2", {"n_layers": 1, "d_model": 32, "n_heads": 4, "vocab": 61}).compile(seed=0)
print(sorted({"sympy", "torch._dynamo", "torch._inductor"} & (set(sys.modules) - before)))
"""


def test_a_recipe_that_is_compiled_again_is_not_lowered_again() -> None:
    """Only modules and weights are new; the recipe, its source and what is cached are those of the first model."""
    recipe = composer.load("gpt2", TINY)
    first = recipe.compile(seed=0)
    with at_most(6_000):
        second = recipe.compile(seed=1)
    assert second.module is first.module and second.cache_layout is first.cache_layout
    assert not torch.equal(first.embed.weight, second.embed.weight)  # type: ignore[union-attr]  # a module of torch


def test_a_recipe_of_other_sizes_does_not_have_blocks_read_again() -> None:
    """The source of the package's blocks is parsed for the first model of a process."""
    composer.load("gpt2", TINY).compile(seed=0)
    other = composer.load("gpt2", {**TINY, "d_model": 40})
    other.check()
    with at_most(21_000):
        other.compile(seed=0)


def test_the_first_model_of_a_process_loads_no_compiler_of_torch() -> None:
    """On the meta device, torch draws initial values and copies strides through code that imports its compiler and SymPy."""
    ran = subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_a_model_of_a_billion_parameters_takes_no_longer_than_a_small_one() -> None:
    """On the meta device, whatever the sizes."""
    sizes = {"n_layers": 16, "d_model": 2048, "n_heads": 32, "hidden": 8192}
    large = composer.load("llama3", sizes)
    large.compile(device="meta")
    with at_most(16_000):
        model = large.compile(device="meta")
    assert sum(each.numel() for each in model.parameters()) > 10**9


def test_modules_on_the_meta_device_are_the_same_without_what_they_would_draw() -> None:
    """Each module of torch that draws initial values has the same parameters, and the generator is left alone."""
    makers = (
        lambda: nn.Linear(5, 3),
        lambda: nn.Embedding(7, 3, padding_idx=1),
        lambda: nn.Conv1d(4, 6, 3),
        lambda: nn.LSTM(4, 3),
        lambda: nn.LayerNorm(4),
        lambda: nn.MultiheadAttention(4, 2),
    )
    state = torch.get_rng_state()
    for make in makers:
        with torch.device("meta"):
            drawn = make()
            with _Undrawn():
                bare = make()
        shapes = [[(name, each.shape, each.device) for name, each in one.named_parameters()] for one in (drawn, bare)]
        assert shapes[0] == shapes[1]
    assert torch.equal(state, torch.get_rng_state())
