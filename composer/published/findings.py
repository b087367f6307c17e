"""What an import found, in plain lines."""

from __future__ import annotations

from dataclasses import dataclass

from composer.language.name_patterns import folded
from composer.language.wording import counted
from composer.published.heads import Cut
from composer.weights.mapping import Match


@dataclass(frozen=True)
class Findings:
    """What an import found."""

    title: str
    base: str
    """The recipe that is extended."""
    parameters: int | None
    """How many there are; None while they are not counted."""
    differences: tuple[str, ...]
    """What differs from the base: `vocab 591`."""
    passed_over: tuple[str, ...]
    """Keys of the configuration that only older files have, and that change nothing."""
    match: Match | None
    cut: Cut | None
    beside: tuple[str, ...]
    """Tensors of heads that the recipe does not have."""

    @property
    def lines(self) -> list[str]:
        """The findings, a line for each kind."""
        count = "" if self.parameters is None else f", {self.parameters:,} parameters"
        found = [f"{self.title}: {self.base}{count}."]
        what = ", ".join(self.differences)
        found.append(f"Differs from {self.base}: {what}." if what else f"Does not differ from the zoo's {self.base}.")
        if self.passed_over:
            keys = f"{counted(len(self.passed_over), 'old key')} of config.json"
            found.append(f"Passed over {keys}, which change nothing: {', '.join(self.passed_over)}.")
        if self.match is None:
            return [*found, "There are no weights beside the configuration."]
        if self.match.difference is not None:
            message = self.match.difference.message
            found.append(f"{message[0].upper()}{message[1:]}, which is all that is different.")
        if left := [*self.match.passed_over, *self.beside]:
            found.append(f"Left out {counted(len(left), 'tensor')} that the model does not read: {folded(left)}.")
        if self.cut is not None:
            head = self.cut.tensors[0].partition(".")[0]
            found.append(
                f"There is no head, `{head}` ({counted(len(self.cut.tensors), 'tensor')}): the model ends at `{self.cut.output}`."
            )
        read = len(self.match.found) - len(self.match.passed_over) - len(self.match.strange)
        return [*found, f"All of the other {counted(read, 'tensor')} fit." if left else f"All {counted(read, 'tensor')} fit."]
