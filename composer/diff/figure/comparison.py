"""The figure of a difference: two models drawn side by side, with what differs marked in both and noted between them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from composer.atomic_files import StrPath
from composer.diff.changes import DifferenceData
from composer.diff.figure.html import html
from composer.diff.figure.layout import annotated_scene
from composer.draw.build.levels import LEVELS, Level
from composer.draw.export.formats import figure_formats, write
from composer.draw.export.svg import svg
from composer.draw.figure import check_choice, check_width
from composer.draw.scene import Scene
from composer.draw.style.themes import THEMES, ThemeName


@dataclass(frozen=True, slots=True)
class Comparison:
    """A drawing of two models, and its style."""

    scene: Scene
    difference: DifferenceData
    """The difference that it shows."""
    level: Level
    theme: ThemeName = "light"
    width: str = ""
    highlight: ClassVar[tuple[str, ...]] = ()
    """Always empty: what is the same in both models is faint anyway."""

    @property
    def formats(self) -> tuple[str, ...]:
        """The formats that it can be saved in."""
        return figure_formats()

    def svg(self) -> str:
        """Return the two drawings as the text of an SVG file."""
        return svg(self.scene, self.theme, width=self.width)

    def html(self) -> str:
        """Return the text of a web page that shows the two drawings at every level, and both recipes."""
        return html(self.difference, self.level, self.theme)

    def save(self, path: StrPath, format: str | None = None) -> None:
        """Write the two drawings to a file.

        Args:
            path: Where to write.
            format: The format: SVG, HTML, PNG or PDF; that of the name's ending by default.

        Raises:
            Missing: A program or a package is needed that is not installed; an SVG is then written beside the name.
            NotDrawn: The ending is that of no format that holds two models.
        """
        write(self, Path(path), format)

    def _repr_svg_(self) -> str:
        return self.svg()


def draw(difference: DifferenceData, level: Level = "block", *, theme: ThemeName = "light", width: str = "") -> Comparison:
    """Return the figure of a difference."""
    check_choice("level", level, LEVELS)
    check_choice("theme", theme, tuple(THEMES))
    check_width(width)
    return Comparison(annotated_scene(difference, level), difference, level, theme, width)
