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
from composer.train.data.tokenizer_files import PATTERNS
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


WRONG = {
    "number": "3",
    "nothing": "",
    "no JSON": '["a"',
    "nested": "[" * 100_000,
    "empty list": "[]",
    "pairs of characters": '["a", "bc"]',
    "one twice": '["a", "a"]',
    "half a character": '["\\udc00"]',
    "numbers": "[1, 2]",
    "no marks": '{"text": "bytes", "marks": []}',
    "an empty mark": '{"text": "bytes", "marks": [""]}',
    "marks twice": '{"text": "bytes", "marks": ["<a>", "<a>"]}',
    "marks in marks": '{"text": {"text": "bytes", "marks": ["<a>"]}, "marks": ["<b>"]}',
    "no model": "{}",
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_file_that_is_no_tokenizer_is_refused(tmp_path, kind):
    """Whatever else it is, in a line that names it."""
    (tmp_path / "tokenizer.json").write_text(WRONG[kind], encoding="utf-8")
    with pytest.raises(TrainingError, match=r"tokenizer.json is (not|empty)"):
        load_tokenizer(tmp_path / "tokenizer.json")


def changed(**parts: object) -> dict[str, object]:
    """Return the file of a small BPE tokenizer with other parts."""
    return {**train_bpe("to be or not to be", size=260).to_json(), **parts}


def splitting(pattern: str) -> dict[str, object]:
    """Return a pre-tokenizer with a pattern of its own."""
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    levels = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    return {"type": "Sequence", "pretokenizers": [split, levels]}


LOSSY = {
    "truncation": {"truncation": {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}},
    "normalizer": {"normalizer": {"type": "Lowercase"}},
    "no decoder": {"decoder": None},
    "another rule": {"pre_tokenizer": {"type": "Whitespace"}},
    "a slow pattern": {"pre_tokenizer": splitting("(a+)+$")},
    "a hidden pattern": {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [splitting("(a|aa)+$")]}},
    "dropout": {"model": {**changed()["model"], "dropout": 0.5}},
    "words": {"model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}},
    "no bytes": {"model": {**changed()["model"], "vocab": {"a": 0}, "merges": []}},
    "a gap in the ids": {"model": {**changed()["model"], "vocab": {**changed()["model"]["vocab"], "zz": 99_999}}},
}


@pytest.mark.parametrize("kind", LOSSY)
def test_a_tokenizer_that_changes_cuts_or_hangs_is_refused(tmp_path, kind):
    """Other tokenizers of the library would give other text, or ids that no model has, or would take for ever."""
    (tmp_path / "tokenizer.json").write_text(json.dumps(changed(**LOSSY[kind])), encoding="utf-8")
    with pytest.raises(
        TrainingError, match=r"tokenizer.json is not a (byte-level BPE )?tokenizer: |is not a byte-level BPE tokenizer"
    ):
        load_tokenizer(tmp_path / "tokenizer.json")


@pytest.mark.parametrize("pattern", PATTERNS)
def test_published_patterns_are_taken(tmp_path, pattern):
    """With their sequences of rules, and a token that is put before each text, which is not text."""
    template = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "Ġt", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
        "special_tokens": {"Ġt": {"id": "Ġt", "ids": [0], "tokens": ["Ġt"]}},
    }
    content = changed(pre_tokenizer=splitting(pattern), post_processor=template)
    (tmp_path / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    tokenizer = load_tokenizer(tmp_path / "tokenizer.json")
    assert tokenizer.decode(tokenizer.encode(AWKWARD)) == AWKWARD


def test_stretches_are_whole_lines_that_make_up_the_text():
    """Also where a line is longer than a stretch, or the last has no end."""
    text = "a\n" * 50 + "b" * 100 + "\nlast"
    pieces = list(stretches(text, 20))
    assert "".join(pieces) == text
    assert len(pieces) > 3
    assert all(piece.endswith("\n") for piece in pieces[:-1])
