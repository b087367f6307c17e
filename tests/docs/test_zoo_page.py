"""docs/zoo.md is current."""

from __future__ import annotations

from tests.docs.zoo_page import PAGE, page


def test_the_page_is_current() -> None:
    """After a change of a recipe, or of what it is held against: `python -m tests.docs.zoo_page`."""
    assert page() == PAGE.read_text(encoding="utf-8")
