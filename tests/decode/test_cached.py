"""Generation with a compiled model's cache."""

from __future__ import annotations

import pytest

import composer
from composer.decode import Refuse, Request, Sampling, Slide, cached, generate


@pytest.mark.parametrize("limit", [None, Refuse(40), Slide(16)])
def test_what_a_cache_writes_is_what_reading_everything_again_writes(limit):
    """Prompts of unequal length, sampled, across the places where the context slides."""
    model = composer.load("gpt_mini", {"d_model": 24, "n_layers": 2}).compile(seed=3)
    request = Request(max_new_tokens=30, sampling=Sampling(temperature=0.7, top_k=9), limit=limit)
    prompts = [[1, 2, 3], [4], [5, 9, 2]]
    assert generate(model, prompts, request, seed=1, reading=cached) == generate(model, prompts, request, seed=1)
