"""Character n-grams, the baseline that a trained model has to beat."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def witten_bell(train: str, validation: str, *, longest: int = 5) -> list[float]:
    """Return the cross-entropy of the validation text, in nats per character, for n-grams of 1, 2, … `longest` characters
    counted in the training text.

    p(c | h) = (count(h c) + types(h) · p(c | h')) / (count(h) + types(h)), where h is the n - 1 characters before,
    h' is h without its first, and types(h) the number of different characters that followed h; the recursion ends with a uniform
    distribution over the characters of both texts. The validation text continues the training text.

    Witten and Bell 1991, The Zero-Frequency Problem; interpolated as in Chen and Goodman 1999.
    """
    characters = numbered(code_points(train + validation))
    boundary, size = len(train), int(characters.max()) + 1
    probability: Floats = np.full(len(characters), 1 / size)
    history: Integers = np.zeros(len(characters), dtype=np.int64)  # number of the characters before each position
    nats = []
    for n in range(1, longest + 1):
        gram = numbered(history * size + characters)  # the history and the character itself
        counted = slice(n - 1, boundary)  # the first n - 1 positions have no complete history
        gram_count = np.bincount(gram[counted], minlength=int(gram.max()) + 1)
        history_count = np.bincount(history[counted], minlength=int(history.max()) + 1)
        history_of: Integers = np.zeros_like(gram_count)
        history_of[gram] = history
        types = np.bincount(history_of[gram_count > 0], minlength=len(history_count))
        seen = history_count[history] > 0  # for an unseen history, back off to the shorter one
        mixed = gram_count[gram] + types[history] * probability
        probability = np.where(seen, mixed / np.maximum(history_count + types, 1)[history], probability)
        nats.append(float(-np.log(probability[boundary:]).mean()))
        history = np.roll(gram, 1)
    return nats


def code_points(text: str) -> Integers:
    """Return the code points of a text."""
    return np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32).astype(np.int64)


def numbered(values: Integers) -> Integers:
    """Return the values renumbered 0, 1, 2, … so that products of them stay small."""
    return np.unique(values, return_inverse=True)[1].astype(np.int64)
