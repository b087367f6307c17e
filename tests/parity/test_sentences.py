"""The sentence encoder of the zoo, against BERT of transformers and the mean that its model card writes out."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import BertConfig, BertModel

import composer
from composer.weights import load_published, mapping
from composer.weights.mapping import WeightMap, shapes_of
from tests.parity.families import BERT, WIDE, Given, texts
from tests.parity.reference import perturbed, published
from tests.parity.test_initial import assert_same_spread
from tests.parity.test_sizes import assert_same_parameters
from tests.zoo import PARAMETERS

CALLS = texts(kinds=2)()
PUBLISHED: dict[str, Any] = {
    "architectures": ["BertModel"], "attention_probs_dropout_prob": 0.1, "gradient_checkpointing": False, "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1, "hidden_size": 384, "initializer_range": 0.02, "intermediate_size": 1536,
    "layer_norm_eps": 1e-12, "max_position_embeddings": 512, "model_type": "bert", "num_attention_heads": 12,
    "num_hidden_layers": 6, "pad_token_id": 0, "position_embedding_type": "absolute", "transformers_version": "4.8.2",
    "type_vocab_size": 2, "use_cache": True, "vocab_size": 30522,
}  # fmt: skip
"""In the form of the file that was published."""


def body(**changes: Any) -> BertModel:
    """Return a tiny BERT with a pooler, which nothing reads, and without a head."""
    return BertModel(BertConfig(**{**BERT, **changes}))


def pair() -> tuple[composer.Model, BertModel]:
    """Return the recipe's model, as transformers' configuration sets it, and transformers', with the same weights."""
    torch.manual_seed(0)
    reference = body()
    perturbed(reference)
    model = composer.load("minilm").with_config(reference.config.to_dict()).compile(seed=0).eval()
    load_published(model, published(reference))
    return model, reference


def sentences(reference: BertModel, given: Given) -> Tensor:
    """Return for each text the mean of its tokens' last states, divided by its length."""
    states = reference(**given.theirs).last_hidden_state
    real = given.theirs.get("attention_mask", torch.ones(states.shape[:2])).unsqueeze(-1).expand(states.shape).float()
    mean = (states * real).sum(1) / real.sum(1).clamp(min=1e-9)
    return mean / mean.square().sum(1, keepdim=True).sqrt()


def weight_map(model: composer.Model, ours: dict[str, Tensor]) -> WeightMap:
    """Return how published weights are read and written."""
    untyped = model.program.untyped
    assert untyped.recipe.checkpoints is not None
    return mapping(untyped.recipe.checkpoints, "bert", shapes_of(ours), untyped.params)


@torch.no_grad()
@pytest.mark.parametrize("case", CALLS)
def test_vectors_are_those_of_transformers(case: str) -> None:
    model, reference = pair()
    torch.testing.assert_close(model(**CALLS[case].ours).sentence, sentences(reference, CALLS[case]), rtol=0, atol=1e-5)


def test_gradients_are_those_of_transformers() -> None:
    """Of every parameter but the pooler's, by its published name."""
    model, reference = pair()
    both = model(**CALLS["right"].ours).sentence, sentences(reference, CALLS["right"])
    direction = torch.randn(both[0].shape, generator=torch.Generator().manual_seed(3))
    for vectors in both:
        (vectors * direction).sum().backward()
    ours = {key: each.grad for key, each in model.named_parameters()}
    made = weight_map(model, ours)
    found = made.found(published(reference))
    theirs = {key: each.grad for key, each in reference.named_parameters() if each.grad is not None}
    saved = made.save(ours)
    assert {found[key] for key in saved} == theirs.keys()
    largest = max(each.abs().max().item() for each in theirs.values())
    for key, gradient in saved.items():
        torch.testing.assert_close(
            gradient, theirs[found[key]], rtol=1e-4, atol=1e-5 * largest, msg=lambda m, key=key: f"{key}: {m}"
        )


def test_weights_come_back_bit_for_bit() -> None:
    """All but those of the pooler."""
    model, reference = pair()
    made, theirs = weight_map(model, model.state_dict()), published(reference)
    saved, found = made.save(model.state_dict()), made.found(theirs)
    assert {name for name in theirs if name not in {found[key] for key in saved}} == {"pooler.dense.weight", "pooler.dense.bias"}
    assert all(torch.equal(saved[key], theirs[found[key]]) for key in saved)


def test_initial_weights_spread_as_in_transformers() -> None:
    """Of a model wide enough to tell."""
    torch.manual_seed(0)
    reference = BertModel(BertConfig(**{**BERT, **WIDE, "type_vocab_size": 32}), add_pooling_layer=False)
    assert_same_spread(composer.load("minilm").with_config(reference.config.to_dict()).compile(seed=0), reference)


def test_default_sizes_are_the_published_ones() -> None:
    recipe = composer.load("minilm")
    configured = recipe.with_config(PUBLISHED)
    assert configured.program.untyped.params == recipe.program.untyped.params
    with torch.device("meta"):
        theirs = BertModel(BertConfig(**PUBLISHED), add_pooling_layer=False)
    assert_same_parameters(configured, theirs, PARAMETERS["minilm"])
