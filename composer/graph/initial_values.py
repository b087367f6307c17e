"""The initial values of parameters that a recipe sets."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from blocks.core import Init, number
from composer.graph.ir import Program
from composer.graph.parameters import NamedParameter, holders
from composer.language.patterns import matches


def start_of(program: Program, entry: NamedParameter) -> Init | None:
    """Return the initializer that a recipe sets for a parameter: that of the last pattern that matches; None if none does. Those
    of adapters start as they are, so that they change nothing at first.
    """
    if entry.parameter.role == "adapter":
        return None
    for rule in reversed(program.init):
        if matches(rule.pattern, entry.name):
            return Init(rule.how, rule.value)  # type: ignore[arg-type]  # one of three words
    return None


class InitDescriptions:
    """The initial values that a recipe sets, in the words of drawings, by node; computed once for all rules and names."""

    def __init__(self, program: Program, table: Sequence[NamedParameter], written: Sequence[NamedParameter]) -> None:
        self.ruled: dict[str, dict[str, str]] = {}
        """Path of a node to its parameters, by their names below it, each with how it starts."""
        for entry, in_recipe in zip(table, written, strict=True) if program.init else ():
            start = start_of(program, in_recipe)
            if start and not entry.tied_to:
                for path in holders(entry.name):
                    said = f"{start.how} {number(float(start.value))}"
                    self.ruled.setdefault(path, {})[entry.name.removeprefix(f"{path}.")] = said

    def at(self, places: Sequence[str]) -> str:
        """Return the initial values of the nodes at some places; where these differ, of each in turn."""
        said = [(len(list(same)), text) for text, same in groupby(map(self._at, places))]
        return " | ".join(f"{count} × {text}" if len(said) > 1 else text for count, text in said)

    def _at(self, place: str) -> str:
        """Return the initial values below a node; parameters with one last name and one initializer are listed once."""
        alike: dict[str, dict[str, list[str]]] = {}
        for name, how in self.ruled.get(place, {}).items():
            alike.setdefault(name.rpartition(".")[2], {}).setdefault(how, []).append(name)
        return ", ".join(
            f"{last if len(starts) == 1 else ', '.join(names)} from {how}"
            for last, starts in alike.items()
            for how, names in starts.items()
        )
