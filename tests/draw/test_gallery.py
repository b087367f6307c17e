"""docs/gallery.md is current, and holds the whole zoo."""

from __future__ import annotations

import pytest

from composer.recipe import zoo_names
from tests.draw.gallery import COMPARED, PAGE, PICTURES, compared, page, picture


@pytest.mark.parametrize("name", zoo_names())
def test_drawings_of_the_zoo_stay_as_they_were_seen(name: str) -> None:
    """Byte by byte. After a change that is meant, look at the new pictures and keep them: `python -m tests.draw.gallery`."""
    assert picture(name) == (PICTURES / f"{name}.svg").read_text(encoding="utf-8")


def test_the_drawn_comparison_stays_as_it_was_seen() -> None:
    """Byte by byte, as above."""
    assert compared() == COMPARED.read_text(encoding="utf-8")


def test_the_page_is_current() -> None:
    """After a change of a recipe's text: `python -m tests.draw.gallery`."""
    assert page() == PAGE.read_text(encoding="utf-8")


def test_no_picture_is_left_of_a_recipe_that_is_gone() -> None:
    """The folder holds the zoo and nothing else."""
    assert sorted(path.name for path in PICTURES.iterdir()) == [f"{name}.svg" for name in zoo_names()]
