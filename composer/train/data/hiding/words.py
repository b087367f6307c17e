"""Where words and sentences begin and end among tokens."""

from __future__ import annotations

from torch import Tensor

from composer.train.data.tokenizers import BPETokenizer, MarkedTokenizer, PiecesTokenizer, Tokenizer

SPACES = ("\N{LATIN CAPITAL LETTER G WITH DOT ABOVE}", "\N{LOWER ONE EIGHTH BLOCK}")
"""How a piece begins that stands after a space: in a byte-level BPE, and in SentencePiece."""
INSIDE = "##"
"""How a piece begins that goes on a word: in WordPiece."""
STOPS = (".", "!", "?")


def words_in(tokens: Tensor, tokenizer: Tokenizer) -> list[list[list[int]]]:
    """Return for each row of `tokens` [B, T] the places of its words: a list for each, without spaces that are tokens.

    Words are what spaces divide, or the pieces that the tokenizer marks as belonging together.
    """
    text = tokenizer.text if isinstance(tokenizer, MarkedTokenizer) else tokenizer
    used = {*tokens.flatten().tolist()}
    blank = {token for token in used if token < text.size and text.decode([token]).isspace()}
    begins = beginnings(text, used) | blank
    found: list[list[list[int]]] = []
    for row in tokens.tolist():
        words: list[list[int]] = []
        for place, token in enumerate(row):
            if token in blank:
                continue
            if words and words[-1][-1] == place - 1 and token not in begins and row[place - 1] < text.size:
                words[-1].append(place)
            else:
                words.append([place])
        found.append(words)
    return found


def beginnings(text: Tokenizer, used: set[int]) -> set[int]:
    """Return the tokens with which words begin wherever they stand; in a text of characters or bytes, only spaces tell."""
    if not isinstance(text, BPETokenizer | PiecesTokenizer):
        return {token for token in used if token >= text.size}
    pieces = {token: text.pieces.id_to_token(token) or "" for token in used}
    spaced = any(piece.startswith(SPACES) for piece in pieces.values())
    first = {token for token, piece in pieces.items() if (piece.startswith(SPACES) if spaced else not piece.startswith(INSIDE))}
    return first | {token for token in used if token >= text.size}


def sentences_in(tokens: Tensor, tokenizer: Tokenizer) -> list[list[int]]:
    """Return the sentences of a text [T] as lists of tokens: each ends with a full stop, and the last with the text."""
    text = tokenizer.text if isinstance(tokenizer, MarkedTokenizer) else tokenizer
    used = (token for token in {*tokens.tolist()} if token < text.size)
    ends = {token for token in used if text.decode([token]).rstrip().endswith(STOPS)}
    found: list[list[int]] = [[]]
    for token in tokens.tolist():
        found[-1].append(token)
        if token in ends:
            found.append([])
    return [sentence for sentence in found if sentence]
