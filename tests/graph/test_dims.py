"""Sizes of axes: exact for every length, and one form for equal sizes where there is one."""

from __future__ import annotations

import operator
import random

import pytest

from composer.graph.dims import Dim, substitute, symbol

T, S = symbol("time"), symbol("source")
LENGTHS = [{"time": time, "source": source} for time in (1, 2, 3, 5, 8, 13, 64, 97) for source in (1, 4, 6, 31)]
SIGNS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod}


def drawn(seed: int) -> tuple[Dim, str]:
    """Return a random size, and the same for Python to compute."""
    draw = random.Random(seed)
    size, text = draw.choice([(T, "time"), (S, "source")])
    for _ in range(draw.randint(1, 7)):
        sign = draw.choice(list(SIGNS))
        if sign in ("//", "%"):
            other, written = (n := draw.randint(1, 6)), str(n)
        else:
            other, written = draw.choice([(T, "time"), (S, "source"), *((n, str(n)) for n in (-3, 1, 2, 4, 7))])
        size, text = SIGNS[sign](size, other), f"({text}) {sign} {written}"
        if isinstance(size, int):
            break
    return size, text


@pytest.mark.parametrize("chunk", range(10))
def test_a_size_is_what_python_computes(chunk: int) -> None:
    """For every length, whatever it was simplified to."""
    for seed in range(100 * chunk, 100 * chunk + 100):
        size, text = drawn(seed)
        assert [substitute(size, lengths) for lengths in LENGTHS] == [eval(text, {}, dict(lengths)) for lengths in LENGTHS], text


@pytest.mark.parametrize(
    ("size", "written"),
    [
        (((T + 1) // 2 + 1) // 2, "(time + 3) // 4"),
        (T // 2 // 2, "time // 4"),
        ((2 * T + 3) // 2, "time + 1"),
        (4 * T // 6, "(2·time) // 3"),
        ((4 * T + 1) % 4, "1"),
        (((T - 3) // 2 + 1 - 3) // 2 + 1, "(time - 3) // 4"),
        ((T * S) // S, "(source·time) // source"),
        (T // 4 * S, "source·(time // 4)"),
        (T // 4 + S, "(time // 4) + source"),
        (T // (S // 2), "time // (source // 2)"),
        ((T - 3) // 2 // S, "((time - 3) // 2) // source"),
    ],
)  # fmt: skip
def test_a_quotient_stands_in_its_lowest_terms(size: Dim, written: str) -> None:
    """Strides after one another divide once."""
    assert str(size) == written
