"""How wide texts are, and how they are broken into lines."""

from __future__ import annotations

import pytest

from composer.draw.style.text_metrics import text_width, wrapped
from composer.draw.style.typography import Typography

HELVETICA = {"i": 222, "W": 944, " ": 278, "5": 556}
"""Widths in thousandths of the size, from Adobe's metrics of Helvetica."""


def test_width_of_a_text_is_the_sum_of_its_letters() -> None:
    """As Adobe's metrics have them."""
    assert text_width("Wi 5", 20) == pytest.approx(20 * sum(HELVETICA.values()) / 1000)


def test_bold_letters_are_wider() -> None:
    """Where Helvetica has them so."""
    assert text_width("block", 10, bold=True) > text_width("block", 10)


def test_larger_letters_are_wider_by_their_factor() -> None:
    """In a layout for them alone."""
    assert Typography(1.5).width("norm", "params") == pytest.approx(1.5 * text_width("norm", 10))
    assert Typography().width("norm", "params") == text_width("norm", 10)


def test_text_that_does_not_fit_ends_in_an_ellipsis_and_fits() -> None:
    """No separator is left before it."""
    letters = Typography()
    cut = letters.fitted("heads 12 · window 128", "params", text_width("heads 12 · wi", 10))
    assert cut.endswith("…")
    assert "heads 12 · window 128".startswith(cut[:-1])
    assert text_width(cut, 10) <= text_width("heads 12 · wi", 10)
    assert letters.fitted("heads 12 · window", "params", text_width("heads 12 · …", 10)) == "heads 12…"


def test_parts_are_wrapped_greedily() -> None:
    """As many in a line as fit, and one that is too long by itself."""
    assert wrapped(["aa", "b", "cccccc", "d"], " ", lambda line: len(line) <= 4) == ["aa b", "cccccc", "d"]
