"""Vectors of words from files of word2vec and GloVe."""

from __future__ import annotations

import gzip
import re

import pytest
import torch

import composer
from composer.train import TrainingError, load_vectors, train_words
from composer.train.vectors import LONGEST_LINE

TOKENIZER = train_words("The film, a good film. A book", size=20)
LINES = "the 1 2 3 4\nfilm 5 6 7 8.5\nzebra 9 9 9 9\n. . 0.1 0.2 0.3 0.4\na -1 -2e-1 0 1\n"


def model(width: int = 4):
    """Return a small model of these words."""
    return composer.load("gpt_mini", {"vocab": TOKENIZER.size, "d_model": width, "n_heads": 2, "n_layers": 1}).compile(seed=0)


@pytest.mark.parametrize("form", ["glove", "word2vec", "gzip"])
def test_words_get_their_vectors_and_others_stay(form, tmp_path):
    """By their own form, else in lower case; a word in the file may have spaces."""
    text = ("5 4\n" if form == "word2vec" else "") + LINES
    path = tmp_path / "vectors.txt"
    path.write_bytes(gzip.compress(text.encode()) if form == "gzip" else text.encode())
    made, before = model(), model().embed.weight
    found = load_vectors(made, TOKENIZER, path)
    known = {"The": [1, 2, 3, 4], "film": [5, 6, 7, 8.5], "A": [-1, -0.2, 0, 1], "a": [-1, -0.2, 0, 1]}
    assert (found.found, found.parameters) == (4, ("embed.weight",))
    for index in range(TOKENIZER.size):
        word = TOKENIZER.pieces.id_to_token(index)
        expected = torch.tensor(known[word]).float() if word in known else before[index]
        assert torch.equal(made.embed.weight[index], expected), word


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"film 1 2 3 4\ngood 1 2 3\n", "line 2 is not a word and 4 numbers: 'good 1 2 3'"),
        (b"film 1 2 3 x\n", "line 1: the vector of 'film' has something else than finite numbers"),
        (b"film 1 2 nan 4\n", "line 1: the vector of 'film' has something else than finite numbers"),
        (b"film 1 2 3\n", "have 3 numbers; of the embeddings, embed.weight has 4"),
        (b"zebra 1 2 3 4\n", "has no vector for any of the"),
        (b"", "has no vector for any of the"),
        (b"film\n", "line 1 is not a word and its numbers: 'film'"),
        (b"2 4\nfilm \x00\x80\xff", "line 2 is not UTF-8 text: byte 0x80"),
        (b"film " + b"1" * LONGEST_LINE, "in line 1"),
        (gzip.compress(LINES.encode())[:-9], "is damaged"),
        (gzip.compress(b"film " + b"1" * 50 * LONGEST_LINE), "in line 1"),
    ],
)
def test_a_file_of_another_form_is_refused_at_its_line(content, message, tmp_path):
    """A binary one too, one without end, and one that decompresses to more than its size."""
    path = tmp_path / "vectors.txt"
    path.write_bytes(content)
    with pytest.raises(TrainingError, match=re.escape(message)):
        load_vectors(model(), TOKENIZER, path)
