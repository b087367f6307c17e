"""The difference of two models, as `Recipe.diff` returns it: what differs, and how to print and draw it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from composer.cost.costs import costs
from composer.cost.lengths import axes, lengths_of
from composer.diff.changes import DifferenceData
from composer.diff.figure.comparison import Comparison, draw
from composer.diff.find_changes import find_changes
from composer.diff.render import as_json, render
from composer.draw.build.levels import Level
from composer.draw.style.themes import ThemeName
from composer.graph.typed import TypedProgram


@dataclass(frozen=True, slots=True)
class Difference(DifferenceData):
    """All that differs between two models; it has no changes if they are the same model."""

    def __str__(self) -> str:
        return render(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def draw(self, level: Level = "block", *, theme: ThemeName = "light", width: str = "") -> Comparison:
        """Return both models side by side, with every change marked in the drawings and described between them.

        Args:
            level: How much is shown: `"overview"`, `"block"` or `"full"`.
            theme: The colors, as for `Recipe.draw`.
            width: The width of the picture with its unit, `"240pt"`; the drawing's own by default.
        """
        return draw(self, level, theme=theme, width=width)

    def to_json(self) -> dict[str, Any]:
        """Return the difference as dicts, lists, strings and numbers."""
        return as_json(self)


def compare(before: TypedProgram, after: TypedProgram) -> Difference:
    """Return all that differs between two models; there are no changes exactly if they are the same model, whatever the names."""
    found = find_changes(before, after)
    same_axes = list(zip(axes(before), axes(after), strict=False))
    lengths = lengths_of(before, {mine: 1 for mine, other in same_axes if other == "batch"})
    lengths_after = {other: lengths[mine] for mine, other in same_axes}
    return Difference(
        before.name,
        after.name,
        found.changes,
        costs(before, lengths),
        costs(after, lengths_after),
        (before, after),
        found.renamed,
        found.params,
    )
