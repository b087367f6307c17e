"""What BERT has beside its logits: kinds of token, and the losses of its tasks."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification

import composer
from composer.weights import load_published
from tests.parity.reference import REFERENCE, perturbed, published

TINY: dict[str, Any] = {"vocab": 53, "context": 16, "d_model": 48, "n_layers": 2, "n_heads": 6, "hidden": 40, "n_token_types": 3}
CLASSIFIER = """
recipe: bert_classifier
extends: bert
doc: BERT with a class for each text, read at its first token, as it is tuned on GLUE.
task: sequence_classification
params: {n_classes: 3}
graph:
  layers: {}
  pool: {type: pool, mode: first}
  pooler: {graph: {dense: {type: linear, out: d_model}, tanh: tanh}}
  transform: null
  head: {out: n_classes, tie: null}
checkpoints:
  bert:
    rules:
      transform.(dense|norm).*: null
      head.bias: null
      pooler.dense.*: pooler.dense.*
      head.*: classifier.*
    copies: null
    ignore: []
"""


def batch() -> dict[str, torch.Tensor]:
    """Return two kinds of token, and padding at the end of the second row."""
    tokens = torch.randint(53, (3, 11), generator=torch.Generator().manual_seed(2))
    kinds = (torch.arange(11) > torch.tensor([[4], [6], [2]])).long() * 2
    valid = torch.arange(11) < torch.tensor([[11], [8], [10]])
    return {"tokens": tokens, "token_types": kinds, "valid": valid}


@torch.no_grad()
def test_kinds_of_token_and_the_loss_at_masked_words_are_those_of_transformers() -> None:
    """Where `labels` is -100, nothing is asked."""
    reference = perturbed(REFERENCE["bert"](TINY))
    model = composer.load("bert", overrides=TINY).compile(seed=0).eval()
    load_published(model, published(reference))
    given = batch()
    labels = given["tokens"].masked_fill(torch.rand(3, 11, generator=torch.Generator().manual_seed(3)) < 0.7, -100)
    theirs = reference(given["tokens"], attention_mask=given["valid"].long(), token_type_ids=given["token_types"], labels=labels)
    valid = given["valid"]
    torch.testing.assert_close(model(**given).logits[valid], theirs.logits[valid], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(composer.loss(model, {**given, "labels": labels}).total, theirs.loss, rtol=1e-5, atol=0)
    plain = model(given["tokens"], valid=valid).logits
    of_kind_0 = model(given["tokens"], valid=valid, token_types=torch.zeros_like(given["tokens"])).logits
    assert torch.equal(plain, of_kind_0) and not torch.allclose(plain, model(**given).logits)


@torch.no_grad()
def test_the_first_published_files_load() -> None:
    """Gains and biases of norms are called gamma and beta, the tied matrix is left out, and the other task has its head."""
    reference = perturbed(REFERENCE["bert"](TINY))
    names = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    old = {
        name.replace(new, names[new]) if (new := ".".join(name.split(".")[-2:])) in names else name: tensor
        for name, tensor in published(reference).items()
        if "decoder" not in name
    }
    extra = {"bert.pooler.dense.weight": torch.ones(48, 48), "bert.pooler.dense.bias": torch.ones(48)}
    extra |= {"cls.seq_relationship.weight": torch.ones(2, 48), "cls.seq_relationship.bias": torch.ones(2)}
    model = composer.load("bert", overrides=TINY).compile(seed=0).eval()
    load_published(model, {**old, **extra})
    given = batch()["tokens"]
    torch.testing.assert_close(model(given).logits, reference(given).logits, rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_bert_over_bert_classifies_as_in_transformers() -> None:
    """With a pooler and a classifier in place of the masked words; the loss is theirs too."""
    config = BertConfig(
        vocab_size=53, max_position_embeddings=16, type_vocab_size=3, hidden_size=48, num_hidden_layers=2, num_attention_heads=6,
        intermediate_size=40, num_labels=3,
    )  # fmt: skip
    reference = perturbed(BertForSequenceClassification(config))
    recipe = composer.load(CLASSIFIER, overrides={**TINY, "n_classes": 3})
    assert [str(wrong) for wrong in recipe.check() if wrong.severity == "error"] == []
    model = recipe.compile(seed=0).eval()
    load_published(model, published(reference))
    given, label = batch(), torch.tensor([2, 0, 1])
    theirs = reference(given["tokens"], attention_mask=given["valid"].long(), token_type_ids=given["token_types"], labels=label)
    torch.testing.assert_close(model(**given).logits, theirs.logits, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(composer.loss(model, {**given, "label": label}).total, theirs.loss, rtol=1e-5, atol=0)


@pytest.mark.parametrize("padding", ["none", "right"])
def test_gradients_at_masked_words_reach_every_parameter_but_the_vectors_of_what_is_absent(padding: str) -> None:
    """One step of training on masked words changes what it should."""
    model = composer.load("bert", overrides={**TINY, "dropout": 0}).compile(seed=0)
    given = batch() if padding == "right" else {"tokens": batch()["tokens"]}
    composer.loss(model, {**given, "labels": given["tokens"]}).total.backward()
    absent = {name for name, parameter in model.named_parameters() if parameter.grad is None or not parameter.grad.any()}
    assert {name for name in absent if not name.endswith("k.bias")} == set()  # the softmax cancels a bias of the keys
