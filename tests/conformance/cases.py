"""What the suite runs over: the zoo at tiny sizes, every block by itself, and hundreds of generated recipes.

A new block, and a new recipe of the zoo, is in here without a test being written for it; what the generator cannot yet write
fails in `test_coverage.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import pytest
import torch

import composer
from blocks.core import standard
from composer.lower import Model
from composer.recipe import zoo_names
from tests.conformance.declared import alone, blocks, draws
from tests.conformance.further_scenarios import FURTHER_COUNT, further_recipe
from tests.conformance.generator import COUNT, FIRST, generated

TINY: Mapping[str, dict[str, Any]] = {
    "albert": {"vocab": 11, "context": 16, "d_embed": 6, "d_model": 16, "n_layers": 3, "n_heads": 2, "hidden": 12},
    "gpt2": {"vocab": 11, "context": 16, "d_model": 24, "n_layers": 3, "n_heads": 3},
    "llama3": {"vocab": 11, "d_model": 16, "n_layers": 3, "n_heads": 4, "n_kv_heads": 2, "hidden": 20, "context": 16},
    "gemma3": {
        "vocab": 11,
        "d_model": 12,
        "n_layers": 7,
        "n_heads": 2,
        "head_dim": 8,
        "hidden": 20,
        "sliding_window": 3,
        "period": 3,
    },
    "gpt_mini": {"vocab": 11, "d_model": 16, "n_layers": 2, "n_heads": 2},
    "lstm_lm": {"vocab": 11, "d_model": 6, "hidden": 7, "n_layers": 2, "dropout": 0.1},
    "mixtral": {
        "vocab": 11,
        "d_model": 16,
        "n_layers": 2,
        "n_heads": 4,
        "n_kv_heads": 2,
        "hidden": 10,
        "n_experts": 3,
    },
    "captioner": {
        "vocab": 11, "context": 16, "d_model": 16, "n_layers": 2, "n_heads": 2, "size": 11, "patch": 4, "d_image": 16,
        "n_image_layers": 2, "n_image_heads": 2,
    },
    "bert": {"vocab": 11, "context": 16, "d_model": 16, "n_layers": 2, "n_heads": 2, "hidden": 20},
    "vit": {"size": 11, "patch": 4, "n_classes": 5, "d_model": 16, "n_layers": 2, "n_heads": 2, "hidden": 20},
    "mlp_lm": {"vocab": 11, "d_model": 6, "reach": 3, "hidden": 7},
    "conv_lm": {"vocab": 11, "d_model": 6, "n_layers": 3, "kernel": 2},
    "lecture_block": {"vocab": 11, "d_model": 8, "hidden": 12},
    "switch": {
        "vocab": 11, "d_model": 16, "n_layers": 2, "n_heads": 2, "head_dim": 6, "hidden": 20, "buckets": 8, "max_distance": 5,
        "n_experts": 3, "capacity": 2,
    },
    "t5": {
        "vocab": 11, "d_model": 16, "n_layers": 2, "n_heads": 2, "head_dim": 6, "hidden": 20, "buckets": 8, "max_distance": 5,
    },
    "transformer": {"vocab": 11, "d_model": 16, "n_layers": 2, "n_heads": 2, "hidden": 20},
    "rnn_lm": {"vocab": 11, "d_model": 2, "hidden": 3},
    "seq2seq_rnn": {"vocab": 11, "d_embed": 5, "hidden": 6, "align": 7, "maxout": 4},
}  # fmt: skip
"""Sizes for every recipe of the zoo; one that is not here runs as it is."""
ZOO = zoo_names()
ALONE = sorted(blocks(standard()))
CHUNKS = 12
FURTHER_CHUNKS = 8
CASES = [
    *(f"zoo {name}" for name in ZOO),
    *(f"block {kind}" for kind in ALONE),
    *(f"chunk {n}" for n in range(CHUNKS)),
    *(f"further {n}" for n in range(FURTHER_CHUNKS)),
]
MORE = 2 * COUNT
"""Recipes that are generated beyond the first ones, for the exhaustive tests."""
MORE_CASES = [f"more {n}" for n in range(5 * CHUNKS)]


def each_of(cases: Sequence[str]) -> pytest.MarkDecorator:
    """Return a test for each of some cases, and in the exhaustive tests for each chunk of further generated recipes."""
    more = [pytest.param(case, marks=pytest.mark.exhaustive) for case in MORE_CASES]
    return pytest.mark.parametrize("case", [*cases, *more])


def recipes(case: str) -> list[composer.Recipe]:
    """Return the recipes of a case."""
    kind, _, name = case.partition(" ")
    match kind:
        case "zoo":
            return [composer.load(name, overrides=TINY.get(name, {}))]
        case "block":
            part = blocks(standard())[name]
            return [composer.load(alone(part, standard(), seed)) for seed in range(draws(part))]
        case "further":
            return [further_recipe(seed) for seed in range(int(name), FURTHER_COUNT, FURTHER_CHUNKS)]
        case "more":
            return [composer.load(generated(seed)) for seed in range(FIRST + int(name), COUNT + MORE, len(MORE_CASES))]
    return [composer.load(generated(seed)) for seed in range(int(name), FIRST, CHUNKS)]


@cache
def models(case: str) -> tuple[Model, ...]:
    """Return the compiled models of a case, every parameter moved from where it starts, so that none is zero or one. All tests
    are given the same ones, so none may change them.
    """
    made = []
    for recipe in recipes(case):
        model = recipe.compile(seed=1).eval()
        with torch.no_grad():
            for number, parameter in enumerate(model.parameters()):
                generator = torch.Generator().manual_seed(number)
                parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
        made.append(model)
    return tuple(made)


def language_models(case: str) -> list[Model]:
    """Return the models that continue a text."""
    return [model for model in models(case) if model.cache_layout is not None]
