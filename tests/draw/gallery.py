"""Writes docs/gallery.md and its pictures as they are now: `python -m tests.draw.gallery`, after a look at them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import composer
from composer.draw.figure import Figure
from composer.recipe import zoo_names

PAGE = Path(__file__).parents[2] / "docs" / "gallery.md"
PICTURES = PAGE.with_suffix("")
COMPARED = PAGE.with_name("diff.svg")
HEAD = """# Gallery

Every recipe that comes with the package, as `arco draw NAME --theme auto` draws it. `--level overview` shows a model at a
glance, `--level full` every linear map; `-o NAME.html` makes an interactive page in which blocks open and data flow can be
traced, with the recipe beside the drawing. This page is generated: `python -m tests.draw.gallery`.
"""


def page() -> str:
    """Return the text of the page."""
    return "\n".join([HEAD, *entries()])


def entries() -> Iterator[str]:
    """Yield a heading, a sentence, its source and a picture for each recipe."""
    for name in zoo_names():
        recipe = composer.load(name)
        source = recipe.program.untyped.recipe.paper
        yield f"## {name}\n\n{recipe.doc}{f' From {source}.' if source else ''}\n\n![{name}](gallery/{name}.svg)\n"


def drawing(name: str) -> Figure:
    """Return the drawing of a recipe; it follows the reader's dark mode."""
    return composer.load(name).draw(theme="auto")


def compared() -> str:
    """Return the picture of docs/diff.md."""
    return composer.load("llama3").diff(composer.load("mixtral")).draw(theme="auto").svg()


def write() -> None:
    """Write the page and the pictures, and take away those of recipes that are gone."""
    COMPARED.write_text(compared(), encoding="utf-8", newline="\n")
    PICTURES.mkdir(exist_ok=True)
    for old in PICTURES.glob("*.svg"):
        old.unlink()
    for name in zoo_names():
        (PICTURES / f"{name}.svg").write_text(drawing(name).svg(), encoding="utf-8", newline="\n")
    PAGE.write_text(page(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    write()
