"""Skip-gram: which words stand near each other, and vectors that learn it."""

from __future__ import annotations

import random
from collections import Counter

import pytest
import torch

import composer
from composer.evaluate import evaluate
from composer.train import TextDocument, TrainingError, TrainSettings, objective_of, open_run, resume, train, train_words
from composer.train.run.reader import read_run
from tests.train.small import Quiet

RECIPE = """
recipe: word2vec
language: 1
params: {vocab: 1000, dim: 5}
inputs: {center: "int[batch]", context: "int[batch, words]", target: "float[batch, words]"}
graph:
  words: {type: embedding, vocab: vocab, dim: dim, in: center}
  contexts: {type: embedding, vocab: vocab, dim: dim, in: context}
  pairs: {type: multiply, in: [contexts, words], axes: [b w d, b d]}
  scores: {type: sum, axis: -1}
outputs: {scores: scores}
losses: {near: {type: binary_cross_entropy, in: scores, target: target}}
init: {"*": {normal: 0.1}}
"""
KINDS = (["cat", "dog", "cow"], ["red", "blue", "green"])


def text_of_kinds() -> str:
    """Return a text in which words of one kind stand together."""
    chance = random.Random(0)
    return " ".join(word for _ in range(300) for word in chance.sample(chance.choice(KINDS), 3)) + "\n"


def test_neighbors_are_near_and_negatives_are_drawn_by_counts():
    """Each distance of the window, in the same document; negatives by the counts to the power 0.75."""
    documents = [TextDocument("a", " ".join(f"w{index}" for index in range(40))), TextDocument("b", "one two " + "two " * 15)]
    tokenizer = train_words(" ".join(document.text for document in documents), size=60)
    settings = TrainSettings(objective="skip_gram", window=3, negatives=7)
    objective = objective_of(None, tokenizer, settings, program=composer.load(RECIPE).program)
    data = objective.tokenize(documents, path="folder")
    batch = objective.draw(data, batch_size=3000, seq_len=1, generator=torch.Generator().manual_seed(0))
    assert batch["context"].shape == (3000, 8) and batch["target"].sum(1).eq(1).all() and batch["target"][:, 0].all()
    place = {
        index: int(name[1:]) for index in range(tokenizer.size) if (name := tokenizer.pieces.id_to_token(index))[1:].isdecimal()
    }
    far = Counter()
    for center, near in zip(batch["center"].tolist(), batch["context"][:, 0].tolist(), strict=True):
        assert (center in place) == (near in place)
        if center in place:
            far[place[near] - place[center]] += 1
    assert {*far} == {-3, -2, -1, 1, 2, 3} and far[1] > far[2] > far[3]  # the closest are in every window
    counts = torch.bincount(torch.from_numpy(data.train.astype("int64")), minlength=tokenizer.size).double() ** 0.75
    share = torch.bincount(batch["context"][:, 1:].flatten(), minlength=tokenizer.size) / (3000 * 7)
    assert torch.allclose(share.double(), counts / counts.sum(), atol=0.02)


def test_words_of_one_kind_get_similar_vectors_and_a_run_goes_on(tmp_path):
    """Bit by bit, and is evaluated on what is held out."""
    path = tmp_path / "kinds.txt"
    path.write_text(text_of_kinds(), encoding="utf-8", newline="")
    tokenizer = train_words(text_of_kinds(), size=40)
    settings = TrainSettings(
        steps=100, batch_size=64, learning_rate=0.05, warmup_steps=1, weight_decay=0, save_every=60, validate_every=0,
        objective="skip_gram", window=2,
    )  # fmt: skip
    recipe = composer.load(RECIPE, {"vocab": tokenizer.size})
    data = objective_of(None, tokenizer, settings, program=recipe.program).tokenize(text_of_kinds(), path=path)
    result = train(recipe.compile(seed=0), tokenizer, data, settings, tmp_path / "run", recipe=recipe.text, show=Quiet())
    found = evaluate(tmp_path / "run")
    assert (found.loss, found.unit, found.held_out) == (result.validation.per_token, "example", True)
    assert found.loss < 0.5 and "the held-out part of" in str(found)
    saved = read_run(tmp_path / "run").weights("step-000100")
    resume(tmp_path / "run", checkpoint="step-000060", show=Quiet())
    again = read_run(tmp_path / "run").weights("step-000100")
    assert all(torch.equal(again[name], saved[name]) for name in saved)
    vectors = torch.nn.functional.normalize(open_run(tmp_path / "run").model.words.weight, dim=1)
    ids = [[tokenizer.encode(word)[0] for word in kind] for kind in KINDS]
    for one, other in (ids, ids[::-1]):
        alike, unlike = (vectors[one[0]] @ vectors[index] for index in (one[1], other[1]))
        assert alike > unlike + 0.1


def test_a_recipe_without_its_inputs_is_refused():
    """With what to write."""
    program = composer.load("mlp_table").program
    with pytest.raises(TrainingError, match="skip_gram needs a recipe with the inputs center, context and target") as error:
        objective_of(None, train_words("a b", size=20), TrainSettings(objective="skip_gram"), program=program)
    assert "binary_cross_entropy" in error.value.hint
