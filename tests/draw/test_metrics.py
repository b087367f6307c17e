"""How wide texts are, and how they are broken into lines."""

from __future__ import annotations

import pytest

from composer.draw.style.text_metrics import fitted, larger, letters_width, text_width, wrapped

HELVETICA = {"i": 222, "W": 944, " ": 278, "5": 556}
"""Widths in thousandths of the size, from Adobe's metrics of Helvetica."""


def test_width_of_a_text_is_the_sum_of_its_letters() -> None:
    """As Adobe's metrics have them."""
    assert text_width("Wi 5", 20) == pytest.approx(20 * sum(HELVETICA.values()) / 1000)


def test_bold_letters_are_wider() -> None:
    """Where Helvetica has them so."""
    assert text_width("block", 10, bold=True) > text_width("block", 10)


def test_larger_letters_change_layouts_but_not_a_text_of_a_given_size() -> None:
    """By the factor, and only inside."""
    with larger(1.5):
        assert text_width("norm", 10) == pytest.approx(1.5 * letters_width("norm", 10))
    assert text_width("norm", 10) == letters_width("norm", 10)


def test_text_that_does_not_fit_ends_in_an_ellipsis_and_fits() -> None:
    """No separator is left before it."""
    cut = fitted("heads 12 · window 128", 10, text_width("heads 12 · wi", 10))
    assert cut.endswith("…")
    assert "heads 12 · window 128".startswith(cut[:-1])
    assert text_width(cut, 10) <= text_width("heads 12 · wi", 10)
    assert fitted("heads 12 · window", 10, text_width("heads 12 · …", 10)) == "heads 12…"


def test_parts_are_wrapped_greedily() -> None:
    """As many in a line as fit, and one that is too long by itself."""
    assert wrapped(["aa", "b", "cccccc", "d"], " ", lambda line: len(line) <= 4) == ["aa b", "cccccc", "d"]
