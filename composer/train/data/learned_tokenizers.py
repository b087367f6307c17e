"""Tokenizers that are made from a text, by name: characters, bytes, words, and pieces of words that are learned."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from composer.train.data.objectives import END, MASK, START
from composer.train.data.prepared.text_stream import SAFE, stretches_in
from composer.train.data.tokenizer_files import WORDS_PATTERN
from composer.train.data.tokenizer_kinds import TOKENIZER_KINDS
from composer.train.data.tokenizers import ByteTokenizer, CharacterTokenizer, PiecesTokenizer, Tokenizer, bpe_of, stretches
from composer.train.errors import TrainingError

if TYPE_CHECKING:
    import tokenizers

TextPieces: TypeAlias = Callable[[], Iterable[str]]
"""Returns the pieces of a text, from the beginning each time."""

UNKNOWN, PADDING = "[UNK]", "[PAD]"
SPECIAL = {"pad_token": PADDING, "unk_token": UNKNOWN, "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
"""The special tokens of learned words and pieces, by what they are for: those of BERT."""
LEAST = 16
"""The smallest vocabulary of words or pieces."""


def train_wordpiece(text: str, *, size: int) -> PiecesTokenizer:
    """Return a WordPiece tokenizer learned from a text, as that of BERT (Schuster and Nakajima 2012): words in pieces, of which
    those inside of a word begin with `##`. It keeps upper and lower case; white space is not kept.

    Args:
        text: The text to learn from.
        size: The maximum number of tokens, with the characters of the text and five special tokens.

    Raises:
        TrainingError: The size is too small.

    Examples:
        >>> from composer.train import train_wordpiece
        >>> tokenizer = train_wordpiece("play playing played sing singing\\n" * 20, size=30)
        >>> [tokenizer.pieces.id_to_token(token) for token in tokenizer.encode("played playing")]
        ['play', '##ed', 'play', '##ing']
    """
    return wordpiece_of(lambda: stretches(text), size=size)


def wordpiece_of(texts: TextPieces, *, size: int) -> PiecesTokenizer:
    """Return a WordPiece tokenizer learned from a text, given piece by piece.

    Raises:
        TrainingError: The size is too small.
    """
    from tokenizers import Tokenizer as Pieces
    from tokenizers import decoders, models, pre_tokenizers, trainers

    pieces = Pieces(models.WordPiece(unk_token=UNKNOWN))
    pieces.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    pieces.decoder = decoders.WordPiece()
    cut = pieces.pre_tokenizer.pre_tokenize_str
    words = (word for piece in stretches_in(texts(), safe=SAFE) for word in {word for word, _ in cut(piece)})
    inside = sorted({f"##{character}" for word in words for character in word[1:]})
    # The library numbers these in an order that differs from process to process, and pairs that are equally frequent are joined
    # in the order of their numbers; as special tokens, they have the same numbers each time.
    first = [*SPECIAL.values(), *inside]
    trainer = trainers.WordPieceTrainer(vocab_size=checked(size), special_tokens=first, show_progress=False)
    pieces.train_from_iterator(stretches_in(texts(), safe=SAFE), trainer)
    made = Pieces(models.WordPiece(pieces.get_vocab(), unk_token=UNKNOWN))
    made.pre_tokenizer, made.decoder = pieces.pre_tokenizer, pieces.decoder
    return with_special(made, size)


def train_words(text: str, *, size: int) -> PiecesTokenizer:
    """Return a tokenizer whose tokens are the most frequent words and punctuation marks of a text; all others are unknown.

    Args:
        text: The text to learn from.
        size: The maximum number of tokens, with five special tokens.

    Raises:
        TrainingError: The size is too small.

    Examples:
        >>> from composer.train import train_words
        >>> tokenizer = train_words("I don't like this, you don't like that.", size=30)
        >>> [tokenizer.pieces.id_to_token(token) for token in tokenizer.encode("I don't like cats.")]
        ['I', "don't", 'like', '[UNK]', '.']
    """
    return words_of(lambda: stretches(text), size=size)


def words_of(texts: TextPieces, *, size: int) -> PiecesTokenizer:
    """Return a tokenizer of the most frequent words of a text, given piece by piece.

    Raises:
        TrainingError: The size is too small.
    """
    from tokenizers import Regex, decoders, models, pre_tokenizers, trainers
    from tokenizers import Tokenizer as Pieces

    pieces = Pieces(models.WordLevel(unk_token=UNKNOWN))
    pieces.pre_tokenizer = pre_tokenizers.Split(Regex(WORDS_PATTERN), "removed", invert=True)
    pieces.decoder = decoders.WordPiece()  # spaces between words, but not before a full stop
    trainer = trainers.WordLevelTrainer(vocab_size=checked(size), special_tokens=[*SPECIAL.values()], show_progress=False)
    pieces.train_from_iterator(stretches_in(texts(), safe=SAFE), trainer)
    return with_special(pieces, size)


def checked(size: int) -> int:
    """Return a size of a vocabulary.

    Raises:
        TrainingError: It is too small.
    """
    if size < LEAST:
        raise TrainingError(f"a vocabulary of {size} is too small", hint=f"use {LEAST} or more")
    return size


def with_special(pieces: tokenizers.Tokenizer, size: int) -> PiecesTokenizer:
    """Return a tokenizer with the special tokens of BERT, and those of a whole text around one.

    Raises:
        TrainingError: The vocabulary is larger than its size.
    """
    from tokenizers.processors import TemplateProcessing

    if (least := pieces.get_vocab_size()) > size:
        message = f"a vocabulary of {size} cannot hold the characters of the text and the special tokens"
        raise TrainingError(message, hint=f"use {least} or more")
    pieces.add_special_tokens([*SPECIAL.values()])
    ids = {word: place for place, word in enumerate(SPECIAL.values())}  # the trainers put them first
    start, end, mask = SPECIAL["cls_token"], SPECIAL["sep_token"], SPECIAL["mask_token"]
    pieces.post_processor = TemplateProcessing(
        single=f"{start} $A {end}",
        pair=f"{start} $A {end} $B:1 {end}:1",
        special_tokens=[(word, ids[word]) for word in (start, end)],
    )
    return PiecesTokenizer(pieces, {START: ids[start], END: ids[end], MASK: ids[mask]}, SPECIAL)


def _characters(texts: TextPieces, size: int) -> Tokenizer:
    met: set[str] = set()
    for text in texts():
        met.update(text)
    return CharacterTokenizer(tuple(sorted(met)))


MAKERS: Mapping[str, Callable[[TextPieces, int], Tokenizer]] = {
    "characters": _characters,
    "bytes": lambda texts, size: ByteTokenizer(),
    "bpe": lambda texts, size: bpe_of(texts(), size=size),
    "wordpiece": lambda texts, size: wordpiece_of(texts, size=size),
    "words": lambda texts, size: words_of(texts, size=size),
}
"""What makes each of `TOKENIZER_KINDS`, given the pieces of the text and the size of the vocabulary."""


def make_tokenizer(name: str, text: str, *, size: int | None = None) -> Tokenizer:
    """Return a tokenizer made from a text.

    Args:
        name: characters, bytes, bpe, wordpiece or words.
        text: The text.
        size: The size of the vocabulary, for those that can have several.

    Raises:
        TrainingError: There is no such tokenizer, or the size does not fit.

    Examples:
        >>> from composer.train import make_tokenizer
        >>> make_tokenizer("words", "a rose is a rose is a rose", size=20).size
        8
    """
    return tokenizer_of(name, lambda: stretches(text), size=size)


def tokenizer_of(name: str, texts: TextPieces, *, size: int | None = None) -> Tokenizer:
    """Return a tokenizer made from a text, given piece by piece.

    Args:
        name: characters, bytes, bpe, wordpiece or words.
        texts: Returns the pieces of the text, from the beginning each time.
        size: The size of the vocabulary, for those that can have several.

    Raises:
        TrainingError: There is no such tokenizer, or the size does not fit.
    """
    chosen = checked_size(name, size) or 0
    return MAKERS[name](texts, chosen)


def checked_size(name: str, size: int | None) -> int | None:
    """Return the size of the vocabulary of a tokenizer that is made from a text; None if it follows from the text.

    Raises:
        TrainingError: There is no such tokenizer, or the size does not fit.
    """
    if name not in TOKENIZER_KINDS:
        raise TrainingError(f"there is no tokenizer {name}", hint=f"one of {', '.join(TOKENIZER_KINDS)}")
    kind = TOKENIZER_KINDS[name]
    if size is not None and kind.size is None:
        raise TrainingError(f"the vocabulary of {name} follows from the text and has no size that is chosen")
    return kind.size if size is None else size
