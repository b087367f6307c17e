"""DeBERTa's buckets of distances at the published size."""

from __future__ import annotations

import pytest
import torch
from transformers.models.deberta_v2.modeling_deberta_v2 import make_log_bucket_position

import composer

BUCKETS = """
recipe: buckets
extends: deberta_v2
params: {vocab: 11, d_model: 8, n_layers: 1, n_heads: 2, hidden: 12}
outputs: {bucket: bucket}
checkpoints: null
"""
CONFIG = {
    "model_type": "deberta-v2", "attention_probs_dropout_prob": 0.1, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
    "hidden_size": 768, "initializer_range": 0.02, "intermediate_size": 3072, "max_position_embeddings": 512,
    "relative_attention": True, "position_buckets": 256, "norm_rel_ebd": "layer_norm", "share_att_key": True,
    "pos_att_type": "p2c|c2p", "layer_norm_eps": 1e-7, "max_relative_positions": -1, "position_biased_input": False,
    "num_attention_heads": 12, "num_hidden_layers": 12, "type_vocab_size": 0, "vocab_size": 128100, "pad_token_id": 0,
}  # fmt: skip
"""As in the `config.json` of microsoft/deberta-v3-base."""


@torch.no_grad()
@pytest.mark.parametrize(("buckets", "reach"), [(256, 512), (32, 512), (7, 20)])
def test_distances_fall_into_the_buckets_of_transformers(buckets: int, reach: int) -> None:
    """Also those beyond the longest of training, which share the last one of either side."""
    model = composer.load(BUCKETS, overrides={"buckets": buckets, "reach": reach}).compile(seed=0).eval()
    places = torch.arange(reach + 90)
    ours = model(torch.zeros(1, len(places), dtype=torch.long)).bucket
    theirs = make_log_bucket_position(places[:, None] - places, buckets, reach).long() + buckets
    assert ours.dtype == torch.int64
    assert torch.equal(ours, theirs.clamp(0, 2 * buckets - 1))


def test_the_first_configurations_name_the_comparisons_in_one_word() -> None:
    """In newer ones it is a list."""
    recipe = composer.load("deberta_v2")
    listed = {**CONFIG, "pos_att_type": ["p2c", "c2p"]}
    assert recipe.with_config(CONFIG).program.untyped.params == recipe.program.untyped.params
    assert recipe.with_config(listed).program.untyped.params == recipe.program.untyped.params
