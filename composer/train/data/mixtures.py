"""Data of several sources, of which training draws by weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from composer.atomic_files import StrPath
from composer.train.data.documents import TextDocument, counts_by_source
from composer.train.data.examples import ExampleData
from composer.train.data.text import TextData
from composer.train.errors import TrainingError

D = TypeVar("D", TextData, ExampleData)


def mixed(data: D, weights: Sequence[float], *, documents: Sequence[int] | None = None) -> D:
    """Return data of which training draws by weights, whatever the size of each source; what is held out stays the same.

    Args:
        data: The texts, or the examples from several tables that are one below the other.
        weights: A positive number for each source, which counts relative to the others.
        documents: Of texts, the number of documents of each source; by default, each is one.

    Raises:
        TrainingError: A weight is not positive, there are not as many as sources, or a source has nothing to train on.

    Examples:
        >>> from composer.train import ByteTokenizer, TextDocument, mixed, tokenize
        >>> texts = [TextDocument("prose.txt", "to be or not " * 9), TextDocument("code.txt", "x = 1; " * 9)]
        >>> mixed(tokenize(texts, ByteTokenizer(), path=["prose.txt", "code.txt"]), [0.7, 0.3]).mixture
        ((1, 0.7), (1, 0.3))
    """
    sources = [data.path, *data.more_paths]
    if isinstance(data, ExampleData):
        if len(data.sources) != len(sources):
            raise TrainingError(
                f"the tables of {data.name} are side by side: each row is of all of them, so that none has a weight of its own",
                hint="leave out the weights",
            )
        counts, has_nothing = data.sources, "has no row to train on"
    else:
        counts = tuple(documents or [1] * len(sources))
        has_nothing = "has only files that sources before it have"
    if not len(weights) == len(counts) == len(sources):
        message = f"there are {len(weights)} weights for {len(sources)} sources"
        raise TrainingError(message, hint="give one weight for each source, and name each once")
    for source, count, weight in zip(sources, counts, weights, strict=True):
        if not 0 < weight < float("inf"):
            raise TrainingError(f"the weight of {source} is {weight}; it must be a number above 0")
        if not count:
            raise TrainingError(f"{source} {has_nothing}", hint="leave it out, and give each file one weight")
    if isinstance(data, TextData) and sum(counts) != max(len(data.train_ends), 1):
        message = f"the sources have {sum(counts)} documents, and {data.name} {max(len(data.train_ends), 1)}"
        raise TrainingError(message, hint="say how many documents each source has")
    return replace(data, mixture=tuple(zip(counts, map(float, weights), strict=True)))


def weighed(data: TextData, weights: Sequence[float], documents: Sequence[TextDocument], sources: Sequence[StrPath]) -> TextData:
    """Return documents as `mixed` does, counted by the sources that they were read from; as they are without weights.

    Args:
        data: The texts.
        weights: The weight of each source; none if all are equally likely.
        documents: The documents, in their order.
        sources: The paths and patterns that they were read from.

    Raises:
        TrainingError: As `mixed`.
    """
    if not weights:
        return data
    return mixed(data, weights, documents=counts_by_source(sources, [document.path for document in documents]))
