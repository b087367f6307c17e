"""What the suite runs over: representatives of the zoo at tiny sizes, every block by itself, and hundreds of generated recipes.

A new block, and a recipe of the zoo with something new, is in here without a test being written for it; what the generator cannot
yet write fails in `test_coverage.py`.
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
from tests.conformance.declared import alone, blocks, draws
from tests.conformance.further_scenarios import FURTHER_COUNT, further_recipe
from tests.conformance.generator import COUNT, FIRST, generated
from tests.zoo import NAMED, REST, UNNAMED

TINY: Mapping[str, dict[str, Any]] = {
    "albert": {"vocab": 11, "context": 16, "d_embed": 6, "d_model": 16, "n_layers": 3, "n_heads": 2, "hidden": 12},
    "gpt1": {"vocab": 11, "context": 16, "d_model": 12, "n_layers": 2, "n_heads": 2},
    "gpt3": {"vocab": 11, "context": 16, "d_model": 12, "n_layers": 2, "n_heads": 2},
    "gpt_neo": {"vocab": 11, "context": 16, "d_model": 12, "n_layers": 3, "n_heads": 2, "hidden": 20, "window": 3},
    "gptj": {"vocab": 11, "d_model": 12, "n_layers": 2, "n_heads": 2, "rotary_dim": 4, "hidden": 20},
    "gpt_neox": {"vocab": 11, "d_model": 16, "n_layers": 2, "n_heads": 2, "hidden": 20},
    "pythia": {"vocab": 11, "d_model": 16, "n_layers": 2, "n_heads": 2, "hidden": 20},
    "opt": {"vocab": 11, "context": 16, "d_model": 12, "n_layers": 2, "n_heads": 2, "hidden": 20},
    "bloom": {"vocab": 11, "d_model": 12, "n_layers": 2, "n_heads": 3},
    "palm": {"vocab": 11, "d_model": 10, "n_layers": 2, "n_heads": 3, "head_dim": 4, "hidden": 14},
    "falcon": {"vocab": 11, "d_model": 12, "n_layers": 2, "n_heads": 3, "hidden": 20},
    "mpt": {"vocab": 11, "d_model": 12, "n_layers": 2, "n_heads": 2},
    "llama1": {"vocab": 11, "d_model": 16, "n_layers": 2, "n_heads": 4, "n_kv_heads": 4, "hidden": 20, "context": 16},
    "llama2": {"vocab": 11, "d_model": 16, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "hidden": 20, "context": 16},
    "mistral": {
        "vocab": 11, "d_model": 16, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "head_dim": 6, "hidden": 20,
        "sliding_window": 3,
    },
    "qwen2": {"vocab": 11, "d_model": 16, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "hidden": 20},
    "qwen2_vl_text": {
        "vocab": 11, "d_model": 16, "n_layers": 2, "n_heads": 2, "n_kv_heads": 1, "hidden": 20, "sections": [1, 1, 2],
    },
    "qwen3": {"vocab": 11, "d_model": 16, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "head_dim": 6, "hidden": 20},
    "qwen3_moe": {
        "vocab": 11, "d_model": 16, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "head_dim": 6, "hidden": 10, "n_experts": 4,
        "top_k": 2,
    },
    "gpt_oss": {
        "vocab": 11, "d_model": 16, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "head_dim": 6, "hidden": 10, "n_experts": 4,
        "top_k": 2, "sliding_window": 3,
    },
    "llama4": {
        "vocab": 11, "d_model": 16, "n_layers": 4, "n_heads": 4, "n_kv_heads": 2, "head_dim": 6, "expert_hidden": 10,
        "hidden": 20, "n_experts": 4, "top_k": 2, "step": 2, "period": 3, "chunk": 3, "floor_scale": 2,
    },
    "qwen3_next": {
        "vocab": 11, "d_model": 8, "n_layers": 3, "period": 3, "n_heads": 4, "n_kv_heads": 2, "head_dim": 8, "n_key_heads": 2,
        "n_value_heads": 4, "key_dim": 3, "value_dim": 5, "kernel": 3, "hidden": 10, "shared_hidden": 6, "n_experts": 4,
        "top_k": 2,
    },
    "jamba": {
        "vocab": 11, "d_model": 8, "n_layers": 4, "attn_period": 3, "attn_offset": 1, "n_heads": 4, "n_kv_heads": 2, "hidden": 10,
        "n_experts": 4, "top_k": 2, "inner": 6, "state": 3, "rank": 2, "kernel": 3,
    },
    "recurrent_gemma": {
        "vocab": 11, "d_model": 8, "n_layers": 4, "kinds": ["recurrent", "attention"], "n_heads": 2, "n_kv_heads": 1, "width": 6,
        "kernel": 3, "sliding_window": 3, "hidden": 10,
    },
    "rwkv": {"vocab": 11, "d_model": 6, "n_layers": 2, "width": 8, "hidden": 10},
    "deepseek_v2": {
        "vocab": 11, "d_model": 16, "n_layers": 3, "n_heads": 3, "q_rank": 10, "kv_rank": 9, "nope_dim": 6, "rope_dim": 4,
        "value_dim": 5, "hidden": 20, "expert_hidden": 10, "n_experts": 8, "top_k": 3, "n_groups": 4, "top_groups": 2,
    },
    "deepseek_v3": {
        "vocab": 11, "d_model": 16, "n_layers": 3, "n_dense": 1, "n_heads": 3, "q_rank": 10, "kv_rank": 9, "nope_dim": 6,
        "rope_dim": 4, "value_dim": 5, "hidden": 20, "expert_hidden": 10, "n_experts": 8, "top_k": 3, "n_groups": 4,
        "top_groups": 2,
    },
    "olmo2": {"vocab": 11, "d_model": 16, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "hidden": 20},
    "olmo3": {"vocab": 11, "d_model": 16, "n_layers": 5, "n_heads": 4, "n_kv_heads": 2, "hidden": 20, "sliding_window": 3},
    "olmoe": {
        "vocab": 11, "d_model": 16, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "hidden": 10, "n_experts": 5, "top_k": 3,
    },
    "granite": {"vocab": 11, "d_model": 16, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "hidden": 20},
    "smollm3": {"vocab": 11, "d_model": 16, "n_layers": 4, "n_heads": 4, "n_kv_heads": 2, "hidden": 20, "period": 3},
    "arcee": {"vocab": 11, "d_model": 16, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "hidden": 20},
    "helium": {"vocab": 11, "d_model": 16, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "head_dim": 6, "hidden": 20},
    "seed_oss": {"vocab": 11, "d_model": 16, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "head_dim": 6, "hidden": 20},
    "glm4": {"vocab": 11, "d_model": 16, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "head_dim": 8, "hidden": 20},
    "phi2": {
        "vocab": 11, "d_model": 16, "n_layers": 2, "n_heads": 2, "hidden": 20, "partial_rotary_factor": 0.5,
    },
    "phi3": {"vocab": 11, "d_model": 16, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "hidden": 20, "sliding_window": 3},
    "gemma": {"vocab": 11, "d_model": 12, "n_layers": 2, "n_heads": 2, "n_kv_heads": 1, "head_dim": 8, "hidden": 20},
    "gemma2": {
        "vocab": 11, "d_model": 12, "n_layers": 3, "n_heads": 2, "n_kv_heads": 1, "head_dim": 8, "hidden": 20,
        "sliding_window": 3,
    },
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
    "mamba": {"vocab": 11, "d_model": 6, "n_layers": 2, "inner": 8, "state": 3, "rank": 2, "kernel": 3},
    "mamba2": {
        "vocab": 11, "d_model": 6, "n_layers": 2, "n_heads": 4, "head_dim": 2, "n_groups": 2, "state": 3, "kernel": 3,
    },
    "swin": {
        "size": 16, "patch": 2, "n_classes": 5, "d_model": 8, "depths": [1, 2], "n_heads": [1, 2], "window": 2, "mlp_ratio": 1.5,
    },
    "roberta": {"vocab": 11, "context": 16, "d_model": 16, "n_layers": 2, "n_heads": 2, "hidden": 20},
    "minilm": {"vocab": 11, "context": 16, "d_model": 16, "n_layers": 2, "n_heads": 2, "hidden": 20},
    "spanbert": {
        "vocab": 11, "context": 16, "d_model": 16, "n_layers": 2, "n_heads": 2, "hidden": 20, "max_span": 3, "d_place": 6,
    },
    "distilbert": {"vocab": 11, "context": 16, "d_model": 16, "n_layers": 2, "n_heads": 2, "hidden": 20},
    "fnet": {"vocab": 11, "context": 16, "d_model": 16, "n_layers": 2, "hidden": 20},
    "bigbird": {
        "vocab": 11, "context": 16, "d_model": 16, "n_layers": 2, "n_heads": 2, "hidden": 20, "block": 2, "n_random": 1,
    },
    "longformer": {
        "vocab": 11, "context": 16, "d_model": 16, "n_layers": 2, "n_heads": 2, "hidden": 20, "windows": [2, 4],
    },
    "deberta_v2": {
        "vocab": 11, "reach": 16, "d_model": 16, "n_layers": 2, "n_heads": 2, "hidden": 20, "buckets": 6,
    },
    "xlnet": {"vocab": 11, "d_model": 16, "n_layers": 2, "n_heads": 2, "hidden": 20},
    "linformer": {
        "vocab": 11, "context": 16, "d_model": 16, "n_layers": 2, "n_heads": 2, "hidden": 20, "n_places": 3, "padding": 1,
    },
    "show_attend_tell": {
        "vocab": 11, "size": 12, "n_channels": 2, "depths": [1, 2], "widths": [3, 4], "d_embed": 5, "hidden": 6, "align": 7,
    },
    "perceiver": {
        "vocab": 11, "context": 16, "d_model": 8, "n_latents": 3, "d_latents": 12, "n_blocks": 2, "n_layers": 2, "n_heads": 2,
        "n_read_heads": 2, "n_write_heads": 4, "d_key": 6, "d_write_key": 12,
    },
    "modernbert": {
        "vocab": 11, "context": 16, "d_model": 16, "n_layers": 4, "n_heads": 2, "hidden": 20, "reach": 2, "padding": 1,
    },
    "deit": {"size": 11, "patch": 4, "n_classes": 5, "d_model": 16, "n_layers": 2, "n_heads": 2, "hidden": 20},
    "mae": {
        "size": 12, "patch": 4, "mask_ratio": 0.5, "d_model": 16, "n_layers": 2, "n_heads": 2, "hidden": 20, "d_decoder": 12,
        "n_decoder_layers": 2, "n_decoder_heads": 3, "decoder_hidden": 14,
    },
    "pixtral_vision": {"patch": 4, "d_model": 16, "n_layers": 2, "n_heads": 2, "hidden": 20},
    "convnext": {"patch": 4, "n_classes": 5, "depths": [1, 2], "widths": [4, 6]},
    "dit": {
        "size": 6, "n_channels": 3, "patch": 2, "n_classes": 5, "n_frequencies": 7, "d_model": 12, "n_layers": 2, "n_heads": 3,
        "mlp_ratio": 1.5,
    },
    "uvit": {
        "size": 6, "n_channels": 3, "patch": 2, "n_classes": 5, "d_model": 12, "half": 2, "n_heads": 3, "mlp_ratio": 1.5,
    },
    "resnet": {"n_classes": 5, "start": 4, "depths": [2, 1], "widths": [8, 12]},
    "bart": {
        "vocab": 11, "context": 16, "d_model": 16, "n_encoder_layers": 2, "n_layers": 2, "n_heads": 2, "hidden": 20, "padding": 1,
    },
    "mbart": {
        "vocab": 11, "context": 16, "d_model": 16, "n_encoder_layers": 2, "n_layers": 2, "n_heads": 2, "hidden": 20, "padding": 1,
    },
    "marian": {
        "vocab": 11, "context": 16, "d_model": 16, "n_encoder_layers": 2, "n_layers": 2, "n_heads": 2, "hidden": 20, "padding": 1,
    },
    "mt5": {
        "vocab": 11, "d_model": 16, "n_layers": 2, "n_heads": 2, "head_dim": 6, "hidden": 20, "buckets": 8, "max_distance": 16,
    },
    "clip": {
        "dim": 6, "vocab": 11, "context": 16, "d_model": 8, "n_layers": 2, "n_heads": 2, "hidden": 12, "size": 11, "patch": 4,
        "d_image": 12, "n_image_layers": 2, "n_image_heads": 3, "image_hidden": 10,
    },
    "whisper": {
        "vocab": 11, "context": 16, "n_mels": 3, "source_context": 4, "d_model": 8, "n_encoder_layers": 2, "n_layers": 2,
        "n_heads": 2, "hidden": 12,
    },
    "wav2vec2": {
        "vocab": 11, "widths": [4, 6], "kernels": [2, 2], "strides": [1, 2], "d_model": 8, "n_layers": 2, "n_heads": 2,
        "hidden": 12, "reach": 2, "position_groups": 2,
    },
    "mlp_lm": {"vocab": 11, "d_model": 6, "reach": 3, "hidden": 7},
    "mlp_table": {"n_numbers": 3, "sizes": [4, 2, 5], "d_embed": 6, "hidden": [8, 7]},
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
    "transformer_xl": {
        "vocab": 11, "d_model": 16, "n_layers": 2, "n_heads": 2, "hidden": 20, "n_memory": 3, "reach": 4,
    },
    "universal_transformer": {"vocab": 11, "d_model": 16, "n_layers": 3, "n_heads": 2, "hidden": 20},
    "denseformer": {"vocab": 11, "d_model": 16, "n_layers": 3, "n_heads": 2},
    "hyper_connections": {"vocab": 11, "d_model": 16, "n_layers": 2, "n_heads": 2, "hidden": 20, "n_streams": 3},
    "early_exit": {"vocab": 11, "d_model": 16, "n_layers": 3, "n_heads": 2, "n_kv_heads": 1, "hidden": 20},
    "hierarchical_moe": {"vocab": 11, "d_model": 8, "n_groups": 2, "n_experts": 4, "hidden": 6},
    "task_moe": {
        "vocab": 11, "d_model": 16, "n_layers": 2, "n_heads": 2, "hidden": 20, "n_tasks": 5, "n_experts": 3,
    },
    "mixture_of_depths": {"vocab": 11, "d_model": 16, "n_pairs": 2, "n_heads": 2, "hidden": 20, "d_guess": 5},
    "rnn_lm": {"vocab": 11, "d_model": 2, "hidden": 3},
    "seq2seq_rnn": {"vocab": 11, "d_embed": 5, "hidden": 6, "align": 7, "maxout": 4},
}  # fmt: skip
"""Sizes for every recipe of the zoo; one that is not here runs as it is."""
ALONE = sorted(blocks(standard()))
CHUNKS = 12
FURTHER_CHUNKS = 8
CASES = [
    *(f"zoo {name}" for name in NAMED),
    *(f"block {kind}" for kind in ALONE),
    *(f"chunk {n}" for n in range(CHUNKS)),
    *(f"further {n}" for n in range(FURTHER_CHUNKS)),
]
MORE = 2 * COUNT
"""Recipes that are generated beyond the first ones, for the exhaustive tests."""
MORE_CHUNKS = 5 * CHUNKS
MORE_CASES = [*(f"more {n}" for n in range(MORE_CHUNKS)), *(f"zoo {name}" for name in (*UNNAMED, *REST))]


def each_of(cases: Sequence[str], every: int = 1) -> pytest.MarkDecorator:
    """Return a test for each of some cases, and in the exhaustive tests for each chunk of further generated recipes
    and for the rest of the zoo.

    Args:
        cases: The cases.
        every: Of how many of them one is tested where tests are not exhaustive.
    """
    quick = cases[::every]
    more = [pytest.param(case, marks=pytest.mark.exhaustive) for case in (*cases, *MORE_CASES) if case not in quick]
    return pytest.mark.parametrize("case", [*quick, *more])


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
            return [composer.load(generated(seed)) for seed in range(FIRST + int(name), COUNT + MORE, MORE_CHUNKS)]
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
