"""docs/gallery.md is current and holds the whole zoo, and nothing in its pictures lies on anything else."""

from __future__ import annotations

from composer.recipe import zoo_names
from tests.draw.checks import borders, ends, overlaps, starts
from tests.draw.gallery import COMPARED, PAGE, PICTURES, compared, drawing, page
from tests.zoo import each_graph


@each_graph
def test_drawings_of_the_zoo_stay_as_they_were_seen(name: str) -> None:
    """Byte by byte. After a change that is meant, look at the new pictures and keep them: `python -m tests.draw.gallery`."""
    drawn = drawing(name)
    assert drawn.svg() == (PICTURES / f"{name}.svg").read_text(encoding="utf-8")
    assert [*overlaps(drawn.scene), *borders(drawn.scene), *ends(drawn.scene), *starts(drawn.scene)] == []


def test_the_drawn_comparison_stays_as_it_was_seen() -> None:
    """Byte by byte, as above."""
    assert compared() == COMPARED.read_text(encoding="utf-8")


def test_the_page_is_current() -> None:
    """After a change of a recipe's text: `python -m tests.draw.gallery`."""
    assert page() == PAGE.read_text(encoding="utf-8")


def test_no_picture_is_left_of_a_recipe_that_is_gone() -> None:
    """The folder holds the zoo and nothing else."""
    assert sorted(path.name for path in PICTURES.iterdir()) == [f"{name}.svg" for name in zoo_names()]
