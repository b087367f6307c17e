"""Shapes beside wires in frames of passes that differ in size: these are told where they reach no further than the boxes."""

from __future__ import annotations

from collections.abc import Iterable

from composer.draw.series import is_series, shortened, squared
from composer.draw.style.typography import Typography

BESIDE = 8.0
"""From a wire to what is written beside it."""


def shape_in(shape: str, room: float, typography: Typography) -> str:
    """Return a shape as it stands beside a wire; one of several passes in as many letters as have room from the wire to the side
    of the box below, so that no frame is wider for it, and nothing where it has none.
    """
    if not is_series(shape):
        return shape
    forms = (shape, squared(shape), shortened(shape), shortened(squared(shape)))
    return next((said for said in forms if BESIDE + typography.width(said, "shape") <= room), "")


def room_for_shapes(shapes: Iterable[str], most: float, typography: Typography) -> float:
    """Return how wide boxes of passes that differ in size are, so that all shapes of these have room that need no more than most;
    nothing where there are none.
    """
    wide = (2 * (BESIDE + typography.width(shortened(squared(shape)), "shape")) for shape in shapes if is_series(shape))
    return max((one for one in wide if one <= most), default=0.0)
