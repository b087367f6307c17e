"""What commands that measure make of their results, before they print it."""

from __future__ import annotations

from composer.cli.measures.tokens import merges_of, pieces_of
from composer.train import make_tokenizer


def test_tokens_are_told_by_what_they_stand_for() -> None:
    """A space can be seen; half of a character is told as bytes, all of it as the character."""
    characters = make_tokenizer("characters", "a b")
    assert [piece["token"] for piece in pieces_of(characters, "b a")] == ["b", "\N{OPEN BOX}", "a"]
    halves = make_tokenizer("bpe", "é", size=256)
    joined = make_tokenizer("bpe", "é é é", size=258)
    assert len(pieces_of(halves, "é")) == 2
    assert [piece["token"] for piece in pieces_of(joined, "é")] == ["é"]


def test_merges_are_told_in_their_order() -> None:
    """The most frequent pair first, and no more than are asked for."""
    tokenizer = make_tokenizer("bpe", "ababab ababcd", size=262)
    first = merges_of(tokenizer, 2)
    assert first[0] == ("a", "b")
    assert len(first) == 2
