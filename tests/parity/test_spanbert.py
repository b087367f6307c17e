"""SpanBERT: its body and its masked words against BERT of transformers, and the words of a span against the paper's equations,
one word at a time.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import BertConfig, BertForMaskedLM

import composer
from composer.weights import load_published, mapping
from composer.weights.mapping import WeightMap, shapes_of
from tests.parity.families import BERT, RIGHT, VOCAB, WIDE, T
from tests.parity.reference import perturbed
from tests.parity.test_initial import assert_same_spread
from tests.parity.test_sizes import assert_same_parameters
from tests.zoo import PARAMETERS

PLACES, D_PLACE = 4, 10
SIZES = {"max_span": PLACES, "d_place": D_PLACE}
SPANS = [(0, 2, 5), (0, 7, 8), (1, 1, 4), (2, 3, 4)]
"""Row, first word and the first behind it: of one to three words, and one that ends where a row's padding begins."""


class SpanHead(nn.Module):
    """The head of section 3.2 of the paper, with the names that the authors published."""

    def __init__(self, dim: int, places: int, d_place: int, words: nn.Parameter) -> None:
        super().__init__()
        self.position_embeddings = nn.Embedding(places, d_place)
        self.mlp_layer_norm = nn.ModuleDict(
            {
                "linear1": nn.Linear(2 * dim + d_place, dim),
                "layer_norm1": nn.LayerNorm(dim, eps=1e-12),
                "linear2": nn.Linear(dim, dim),
                "layer_norm2": nn.LayerNorm(dim, eps=1e-12),
            }
        )
        self.decoder = nn.Linear(dim, len(words), bias=False)
        self.decoder.weight = words
        self.bias = nn.Parameter(torch.zeros(len(words)))

    def forward(self, before: Tensor, after: Tensor, place: int) -> Tensor:
        """Return the logits of one word, by the states of the words beside its span and its place in it."""
        layers = self.mlp_layer_norm
        h = torch.cat([before, after, self.position_embeddings.weight[place]])
        h = layers["layer_norm1"](F.gelu(layers["linear1"](h)))
        h = layers["layer_norm2"](F.gelu(layers["linear2"](h)))
        return self.decoder(h) + self.bias


def spanbert(config: BertConfig, places: int, d_place: int) -> BertForMaskedLM:
    """Return BERT of transformers with the further head, which starts as BERT does."""
    reference = BertForMaskedLM(config)
    words = reference.get_input_embeddings().weight
    head = SpanHead(config.hidden_size, places, d_place, words)
    for module in (head.position_embeddings, *head.mlp_layer_norm.values()):
        reference._init_weights(module)
    reference.cls.pair_target_predictions = head
    return reference


def pair() -> tuple[composer.Model, BertForMaskedLM]:
    """Return the recipe's model, as transformers' configuration sets it, and the reference, with the same weights."""
    torch.manual_seed(0)
    reference = spanbert(BertConfig(**BERT), PLACES, D_PLACE)
    perturbed(reference)
    model = composer.load("spanbert", overrides=SIZES).with_config(reference.config.to_dict()).compile(seed=0).eval()
    load_published(model, reference.state_dict())
    return model, reference


def given() -> tuple[dict[str, Tensor], Tensor]:
    """Return texts with padding on the right and the places of their spans, and the words of the spans."""
    generator = torch.Generator().manual_seed(2)
    tokens = torch.randint(VOCAB, (3, T), generator=generator)
    left, right, place = torch.zeros(3, 3, T, dtype=torch.long)
    labels = torch.full((3, T), -100)
    for row, start, end in SPANS:
        left[row, start:end], right[row, start:end], place[row, start:end] = start - 1, end, torch.arange(end - start)
        labels[row, start:end] = torch.randint(VOCAB, (end - start,), generator=generator)
    return {"tokens": tokens, "valid": RIGHT, "left": left, "right": right, "place": place}, labels


def by_word(reference: BertForMaskedLM, tokens: Tensor) -> dict[tuple[int, int], Tensor]:
    """Return the logits of every word in a span by its row and place in the text."""
    states = reference.bert(tokens, attention_mask=RIGHT.long()).last_hidden_state
    head: Any = reference.cls.pair_target_predictions
    return {
        (row, at): head(states[row, start - 1], states[row, end], at - start)
        for row, start, end in SPANS
        for at in range(start, end)
    }


@torch.no_grad()
def test_masked_words_are_those_of_bert() -> None:
    """At the real words, also where nothing is said of spans."""
    model, reference = pair()
    ours, _ = given()
    theirs = reference(ours["tokens"], attention_mask=RIGHT.long()).logits[RIGHT]
    for call in (ours, {"tokens": ours["tokens"], "valid": RIGHT}):
        logits = model(**call).logits[RIGHT]
        torch.testing.assert_close(logits, theirs, rtol=0, atol=1e-5 * theirs.abs().max().item())


def test_words_of_a_span_and_gradients_are_those_of_the_paper() -> None:
    """The loss of both heads, and its gradient by every parameter."""
    model, reference = pair()
    ours, labels = given()
    batch = {**ours, "labels": labels, "span_labels": labels}
    expected = by_word(reference, ours["tokens"])
    span_logits = model(**ours).span_logits
    for (row, at), logits in expected.items():
        torch.testing.assert_close(span_logits[row, at], logits, rtol=0, atol=1e-5 * logits.abs().max().item())
    spans = torch.stack([F.cross_entropy(logits, labels[place]) for place, logits in expected.items()]).mean()
    words = reference(ours["tokens"], attention_mask=RIGHT.long(), labels=labels).loss
    losses = composer.loss(model, batch)
    torch.testing.assert_close(losses.by_name["boundary"], spans, rtol=1e-5, atol=0)
    torch.testing.assert_close(losses.total, words + spans, rtol=1e-5, atol=0)
    losses.total.backward()
    (words + spans).backward()
    gradients = {key: each.grad for key, each in model.named_parameters()}
    theirs = {key: each.grad for key, each in reference.named_parameters()}
    made = weight_map(model, gradients)
    saved, found = made.save(gradients), made.found(theirs)
    assert {found[key] for key in saved} == theirs.keys()
    largest = max(each.abs().max().item() for each in theirs.values())
    for key, gradient in saved.items():
        torch.testing.assert_close(
            gradient, theirs[found[key]], rtol=1e-4, atol=1e-5 * largest, msg=lambda m, key=key: f"{key}: {m}"
        )


def test_without_words_of_spans_there_is_no_loss_of_them() -> None:
    model, _ = pair()
    ours, labels = given()
    assert "boundary" in composer.loss(model, {**ours, "labels": labels, "span_labels": labels}).by_name
    assert "boundary" not in composer.loss(model, {**ours, "labels": labels}).by_name


def weight_map(model: composer.Model, ours: dict[str, Tensor]) -> WeightMap:
    """Return how published weights are read and written."""
    untyped = model.program.untyped
    assert untyped.recipe.checkpoints is not None
    return mapping(untyped.recipe.checkpoints, "bert", shapes_of(ours), untyped.params)


def test_weights_come_back_bit_for_bit() -> None:
    """All but the names that repeat another."""
    model, reference = pair()
    made, theirs = weight_map(model, model.state_dict()), reference.state_dict()
    saved, found = made.save(model.state_dict()), made.found(theirs)
    assert found.keys() - saved.keys() <= {copy.name for copy in made.rules.copies} and saved.keys() <= found.keys()
    assert all(torch.equal(saved[key], theirs[found[key]]) for key in saved)


def test_initial_weights_spread_as_in_bert() -> None:
    """Of a model wide enough to tell."""
    torch.manual_seed(0)
    reference = spanbert(BertConfig(**{**BERT, **WIDE, "type_vocab_size": 32}), 40, 80)
    recipe = composer.load("spanbert", overrides={"max_span": 40, "d_place": 80})
    assert_same_spread(recipe.with_config(reference.config.to_dict()).compile(seed=0), reference)


def test_default_sizes_are_the_published_ones() -> None:
    recipe = composer.load("spanbert")
    with torch.device("meta"):
        theirs = spanbert(BertConfig(vocab_size=28996), 20, 200)
    configured = recipe.with_config(theirs.config.to_dict())
    assert configured.program.untyped.params == recipe.program.untyped.params
    assert_same_parameters(configured, theirs, PARAMETERS["spanbert"])
