"""What a model says that was trained with connectionist temporal classification: the tokens of its frames."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from torch import Tensor


def collapsed(classes: Iterable[int], blank: int) -> list[int]:
    """Return the tokens that an alignment stands for: neighbors that are equal are one, and blanks are none.

    Args:
        classes: The class of each frame.
        blank: The class of the blank.

    Examples:
        >>> from composer.decode import collapsed
        >>> collapsed([0, 3, 3, 0, 3, 5, 5], blank=0)
        [3, 3, 5]
    """
    return [token for token, _ in groupby(classes) if token != blank]


def likeliest_tokens(scores: Tensor, frames: Sequence[int], blank: int) -> list[list[int]]:
    """Return the tokens of the most probable alignment of each row (greedy, or best-path, decoding).

    Args:
        scores: The logits, [B, T, classes].
        frames: The number of frames of each row; those behind are padding.
        blank: The class of the blank.
    """
    best = scores.argmax(-1).tolist()
    return [collapsed(row[:count], blank) for row, count in zip(best, frames, strict=True)]
