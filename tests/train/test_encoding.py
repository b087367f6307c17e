"""Texts as tokens piece by piece: against the `tokenizers` library, and against tokenizers that read whole texts."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
import tokenizers

from composer.train import ByteTokenizer, TrainingError, characters_of, make_tokenizer, marked
from composer.train.data.prepared import text_stream
from composer.train.data.prepared.encoding import encoded
from composer.train.data.prepared.gpt2_words import ByteSpelling, library_words, patterns, words_of
from composer.train.data.prepared.text_stream import characters_from, stretches_in
from composer.train.data.tokenizers import stretches, train_bpe

PIECES = (
    "né ",
    "the ",
    "\n",
    "\n\n",
    " ",
    "😀 ",
    "a",
    "中文",
    "1 ",
    ". ",
    "\r\n",
    " \n ",
    "don't ",
    "\u0301",
    "\x1c",
    "²",
    "\xa0b",
)


def odd_text(length, seed=2):
    """Return a text of words, white space of all kinds, and characters that no pattern of Python is trusted with."""
    return "".join(random.Random(seed).choices(PIECES, k=length))


def test_words_are_those_of_the_library():
    """For characters of every category, before and after others, and each word by itself."""
    drawn = random.Random(1)
    known = [chr(point) for point in range(0, 1 << 16, 11) if not patterns().other.search(chr(point))]
    for start in range(0, len(known), 64):
        text = "".join(
            one + drawn.choice(["", "a", " ", "1", "."]) + one + drawn.choice([" ", "\n", "'s", "9 "])
            for one in known[start:][:64]
        )
        assert patterns().word.findall(text) == library_words(text)
    for seed in range(300):
        text = odd_text(9, seed)
        assert words_of(text) == library_words(text)
        assert all(library_words(word) == [word] for word in words_of(text))


def test_words_are_spelled_as_by_the_library():
    """A visible character for each byte."""
    text, spelled = "né \x00\x7f\xad中\n ÿ", ByteSpelling()
    cut = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False).pre_tokenize_str(text)
    assert [spelled[word] for word in words_of(text)] == [word for word, _ in cut]


def test_a_byte_pair_encoding_is_what_the_library_learns():
    """From the text itself, cut by the library."""
    text = odd_text(4000)
    pieces = tokenizers.Tokenizer(tokenizers.models.BPE())
    pieces.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    pieces.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False)
    pieces.train_from_iterator([text], trainer)
    assert train_bpe(text, size=400).to_json() == json.loads(pieces.to_str())


@pytest.mark.parametrize("stretch", [7, 60, 1 << 20])
@pytest.mark.parametrize("kind", ["characters", "bytes", "bpe", "wordpiece", "words", "published"])
def test_pieces_give_the_tokens_of_the_whole_text(kind, stretch, monkeypatch):
    """However the text is cut: those of its stretches, each encoded by itself."""
    text = odd_text(1500)
    if kind == "published":  # a byte-level BPE that is not one of ours: it puts a space before each stretch
        tokenizer = train_bpe(text, size=300)
        tokenizer.pieces.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=True)
    else:
        tokenizer = make_tokenizer(kind, text, size=None if kind in ("characters", "bytes") else 300)
    expected = [token for part in stretches(text, stretch) for token in tokenizer.encode(part)]
    monkeypatch.setattr(text_stream, "STRETCH", stretch)
    monkeypatch.setattr(text_stream, "PIECE", 5)
    for size in (1, 3, 997, len(text)):
        cut = [text[start : start + size] for start in range(0, len(text), size)]
        found = np.concatenate(list(encoded(cut, tokenizer)))
        assert found.tolist() == expected
    assert found.dtype == (np.uint8 if tokenizer.size <= 256 else np.uint16)


def test_stretches_are_those_of_the_whole_text(monkeypatch):
    """Without safe places, and joined with them."""
    text = odd_text(3000)
    monkeypatch.setattr(text_stream, "STRETCH", 50)
    cut = [text[start : start + 17] for start in range(0, len(text), 17)]
    assert [*stretches_in(cut)] == [*stretches(text, 50)]
    assert "".join(stretches_in(cut, safe=text_stream.SAFE)) == text
    assert "".join(characters_from(cut, 23, 801)) == text[23:801]
    assert "".join(characters_from(cut, 40, None)) == text[40:]


def test_a_character_without_a_token_is_told():
    """As the tokenizer itself tells it; marks change nothing."""
    with pytest.raises(TrainingError, match="the character 'c'"):
        list(encoded(["ab", "abc"], marked(characters_of("ab"), "masked_lm")))
    assert [ids.tolist() for ids in encoded(["né"], marked(ByteTokenizer(), "masked_lm"))] == [[110, 195, 169]]
