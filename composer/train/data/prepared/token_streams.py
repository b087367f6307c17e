"""The tokens of a scanned text as two streams: those to train on, and those held out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from composer.train.data.prepared.encoding import Ids, encoded
from composer.train.data.prepared.text_stream import ScannedText, characters_from, texts_of
from composer.train.data.text import held_out_from
from composer.train.data.tokenizers import MarkedTokenizer, Tokenizer


class TokenStreams:
    """The tokens of documents, each split as `tokenize` splits it; lengths are known once both streams have been read."""

    def __init__(self, documents: Sequence[ScannedText], tokenizer: Tokenizer, advance: Callable[[int], None]) -> None:
        self.documents, self.advance = documents, advance
        self.tokenizer = tokenizer.text if isinstance(tokenizer, MarkedTokenizer) else tokenizer
        self.train_ends: list[int] = []
        """Where each document ends in the stream to train on."""
        self.validation_ends: list[int] = []
        """Where each document ends in the stream that is held out."""
        self.characters = 0
        """Length of the held-out text in characters."""
        self.bytes = 0
        """Length of the held-out text in UTF-8 bytes."""

    def train(self) -> Iterator[Ids]:
        """Yield the tokens to train on, piece by piece.

        Raises:
            TrainingError: A file has changed, or a character has no token.
        """
        count = 0
        for document in self.documents:
            texts = characters_from(texts_of(document), 0, held_out_from(document.characters))
            for ids in encoded(self._counted(texts), self.tokenizer):
                count += len(ids)
                yield ids
            self.train_ends.append(count)

    def validation(self) -> Iterator[Ids]:
        """Yield the held-out tokens, piece by piece.

        Raises:
            TrainingError: A file has changed, or a character has no token.
        """
        count = 0
        for document in self.documents:
            texts = characters_from(texts_of(document), held_out_from(document.characters), None)
            for ids in encoded(self._measured(self._counted(texts)), self.tokenizer):
                count += len(ids)
                yield ids
            self.validation_ends.append(count)

    def _counted(self, texts: Iterator[str]) -> Iterator[str]:
        for text in texts:
            yield text
            self.advance(len(text))

    def _measured(self, texts: Iterator[str]) -> Iterator[str]:
        for text in texts:
            self.characters += len(text)
            self.bytes += len(text.encode("utf-8"))
            yield text
