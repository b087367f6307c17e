"""Text to tokens and back."""

from __future__ import annotations

import json

import pytest
import tokenizers
import torch

from composer.train import (
    ByteTokenizer,
    TrainingError,
    characters_of,
    load_tokenizer,
    save_tokenizer,
    text_as_it_comes,
    train_bpe,
)
from composer.train.data.tokenizers import stretches

AWKWARD = "  Two spaces, a tab\t, naïve café — “quotes” 🦉🦉\r\n\n\n日本語 <|endoftext|> \\u0041 \x00 end "


def every_tokenizer():
    """Return a tokenizer of each kind that knows the text."""
    return [ByteTokenizer(), characters_of(AWKWARD), train_bpe(AWKWARD * 5, size=300)]


@pytest.mark.parametrize("tokenizer", every_tokenizer(), ids=lambda t: type(t).__name__)
def test_text_survives_encoding_saving_and_loading(tokenizer, tmp_path):
    """The text comes back to the character, before and after a trip through the file."""
    save_tokenizer(tokenizer, tmp_path / "tokenizer.json")
    loaded = load_tokenizer(tmp_path / "tokenizer.json")
    ids = tokenizer.encode(AWKWARD)
    assert loaded.encode(AWKWARD) == ids
    assert loaded.decode(ids) == AWKWARD
    assert loaded.size == tokenizer.size > max(ids)


@pytest.mark.parametrize("tokenizer", every_tokenizer(), ids=lambda t: type(t).__name__)
def test_a_stream_of_tokens_shows_whole_characters_only(tokenizer):
    """What comes piece by piece is the text, and no piece holds half an owl."""
    pieces = list(text_as_it_comes(tokenizer, tokenizer.encode(AWKWARD)))
    assert "".join(pieces) == AWKWARD
    assert not any("\N{REPLACEMENT CHARACTER}" in piece for piece in pieces)


def test_a_stream_of_random_bytes_is_what_decoding_at_once_gives():
    """An untrained model writes bytes that are no UTF-8; none gets lost."""
    torch.manual_seed(3)
    for _ in range(50):
        ids = torch.randint(256, (40,)).tolist()
        assert "".join(text_as_it_comes(ByteTokenizer(), ids)) == bytes(ids).decode("utf-8", errors="replace")


def test_an_unknown_character_is_named():
    """It is neither dropped nor replaced."""
    with pytest.raises(TrainingError, match=r"'é' \(U\+00E9\)"):
        characters_of("cafe").encode("café")


def test_bpe_joins_what_is_frequent_and_still_knows_every_byte():
    """A word that fills the text is one token; a text never seen comes back whole."""
    tokenizer = train_bpe("banana " * 200, size=270)
    assert len(tokenizer.encode(" banana")) == 1
    assert tokenizer.size <= 270
    assert tokenizer.decode(tokenizer.encode("Ω≈ç√ never seen")) == "Ω≈ç√ never seen"


def test_the_bpe_file_is_one_of_the_tokenizers_library(tmp_path):
    """It can be read there without us."""
    tokenizer = train_bpe("to be or not to be", size=260)
    save_tokenizer(tokenizer, tmp_path / "tokenizer.json")
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert theirs.encode("not to be").ids == tokenizer.encode("not to be")


def test_a_vocabulary_too_small_for_the_bytes_is_refused():
    """256 is the least."""
    with pytest.raises(TrainingError, match="vocabulary of 255"):
        train_bpe("text", size=255)


def test_a_file_that_is_no_tokenizer_is_refused(tmp_path):
    """Such as a number."""
    (tmp_path / "tokenizer.json").write_text(json.dumps(3), encoding="utf-8")
    with pytest.raises(TrainingError, match="is not a tokenizer"):
        load_tokenizer(tmp_path / "tokenizer.json")


def test_stretches_are_whole_lines_that_make_up_the_text():
    """Also where a line is longer than a stretch, or the last has no end."""
    text = "a\n" * 50 + "b" * 100 + "\nlast"
    pieces = list(stretches(text, 20))
    assert "".join(pieces) == text
    assert len(pieces) > 3
    assert all(piece.endswith("\n") for piece in pieces[:-1])
