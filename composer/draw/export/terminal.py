"""Curves as lines of text: dots of Braille, two wide and four high in each character."""

from __future__ import annotations

import math
from collections.abc import Sequence

WIDE, HIGH = 2, 4
"""Dots in a character."""
DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""The bit of each dot in U+2800 to U+28FF, by row and column."""
BLANK = 0x2800


def terminal_chart(
    points: Sequence[tuple[float, float]], *, width: int = 60, height: int = 8, marks: Sequence[tuple[float, float]] = ()
) -> list[str]:
    """Return a curve as lines of text, with its range on the left and that of its axis below.

    Args:
        points: The curve, ordered by their first number; those that are not finite are left out.
        width: Columns of all.
        height: Lines of the curve; one more shows the axis.
        marks: Single points, each a small cross.

    >>> for line in terminal_chart([(0, 4.0), (5, 2.0), (10, 1.0)], width=24, height=3): print(line)
    4.000 ┤⠉⠒⠤⣀
          │    ⠉⠒⠤⢄⡀
    1.000 ┤         ⠉⠉⠑⠒⠢⠤⢄⣀
           0              10
    """
    points = [each for each in points if math.isfinite(each[1])]
    marks = [each for each in marks if math.isfinite(each[1])]
    if not points and not marks:
        return []
    every = [*points, *marks]
    low, high = min(y for _, y in every), max(y for _, y in every)
    left, right = min(x for x, _ in every), max(x for x, _ in every)
    names = [_number(high), _number(low)]
    margin = max(map(len, names))
    columns = max(8, width - margin - 2)
    grid = [[0] * columns for _ in range(height)]

    def place(x: float, y: float) -> tuple[float, float]:
        across = (x - left) / (right - left) if right > left else 0.0
        up = (y - low) / (high - low) if high > low else 0.5
        return across * (columns * WIDE - 1), (1 - up) * (height * HIGH - 1)

    def dot(column: int, row: int) -> None:
        grid[row // HIGH][column // WIDE] |= DOTS[row % HIGH][column % WIDE]

    placed = [place(x, y) for x, y in points]
    for (x0, y0), (x1, y1) in zip(placed, placed[1:] or placed, strict=False):
        steps = max(1, round(max(abs(x1 - x0), abs(y1 - y0))))
        for step in range(steps + 1):
            share = step / steps
            dot(round(x0 + share * (x1 - x0)), round(y0 + share * (y1 - y0)))
    lines = [[chr(BLANK + bits) if bits else " " for bits in row] for row in grid]
    for x, y in marks:
        column, row = place(x, y)
        lines[round(row) // HIGH][round(column) // WIDE] = "×"
    labels = {0: names[0], height - 1: names[1]} if high > low else {height // 2: names[0]}
    found = [
        f"{labels.get(row, ''):>{margin}} {'┤' if row in labels else '│'}{''.join(line)}".rstrip()
        for row, line in enumerate(lines)
    ]
    first, last = f"{left:,.10g}", f"{right:,.10g}"
    return [*found, f"{' ' * (margin + 2)}{first}{last:>{max(columns - len(first), len(last) + 1)}}"]


def _number(value: float) -> str:
    return f"{value:.3f}" if 0.01 <= abs(value) < 10_000 or value == 0 else f"{value:.2e}"
