"""How parameters start, where the recipe says it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from composer.graph.describe import number
from composer.graph.ir import Program
from composer.graph.parameters import NamedParameter
from composer.language.patterns import matches


class Starts:
    """The rules that parameters start by; each is matched against all of them, so this is found once for a model."""

    def __init__(self, program: Program, table: Sequence[NamedParameter], written: Sequence[NamedParameter]) -> None:
        self.ruled: dict[str, dict[str, str]] = {}
        """Path of a node to its parameters, by their names below it, each with how it starts."""
        said = [(glob, f"{how} {number(value)}") for glob, how, value, _ in reversed(program.init)]
        for entry, in_recipe in zip(table, written, strict=True) if said else ():
            how = next((how for glob, how in said if matches(glob, in_recipe.name)), "")
            if how and not entry.tied_to:
                steps = entry.name.split(".")
                for end in range(1, len(steps)):
                    self.ruled.setdefault(".".join(steps[:end]), {})[".".join(steps[end:])] = how

    def at(self, places: Sequence[str]) -> str:
        """Those of a thing that stands for some places; where these differ, of each in turn."""
        said = [(len(list(same)), text) for text, same in groupby(map(self._at, places))]
        return " | ".join(f"{count} × {text}" if len(said) > 1 else text for count, text in said)

    def _at(self, place: str) -> str:
        """`weight` for all that are called so, where these start alike."""
        alike: dict[str, dict[str, list[str]]] = {}
        for name, how in self.ruled.get(place, {}).items():
            alike.setdefault(name.rpartition(".")[2], {}).setdefault(how, []).append(name)
        return ", ".join(
            f"{last if len(starts) == 1 else ', '.join(names)} from {how}"
            for last, starts in alike.items()
            for how, names in starts.items()
        )
