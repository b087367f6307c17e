"""The initial values of parameters that a recipe sets."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from blocks.core import Init
from composer.graph.ir import InitPattern, Program
from composer.graph.parameters import NamedParameter, holders
from composer.language.patterns import matches

PLACES = ("i", "j", "k", "l")
"""The place along each axis of a parameter, in a formula of initial values."""
DRAWN, LAYER = "x", "layer"
MEANINGS = {
    "places": "`i`, `j`, `k` and `l` are the place along each axis, counted from 0",
    DRAWN: f"`{DRAWN}` is what is drawn",
    LAYER: f"`{LAYER}` is the index of the innermost pass",
}
"""What the names in such a formula mean."""


def start_of(program: Program, entry: NamedParameter) -> Init | None:
    """Return the initializer that a recipe sets for a parameter; None if it sets none."""
    rule = rule_of(program, entry)
    return None if rule is None else rule.init


def rule_of(program: Program, entry: NamedParameter) -> InitPattern | None:
    """Return the last pattern of a recipe that matches a parameter; None if none does. Adapters start as they are, so that they
    change nothing at first.
    """
    if entry.parameter.role == "adapter":
        return None
    return next((rule for rule in reversed(program.init) if matches(rule.pattern, entry.name)), None)


def layer_of(name: str) -> int | None:
    """Return the index of the innermost pass around a parameter; None if there is none.

    Examples:
        >>> layer_of("layers.3.attn.k.weight"), layer_of("head.weight")
        (3, None)
    """
    return next((int(step) for step in reversed(name.split(".")[:-1]) if step.isdigit()), None)


class InitDescriptions:
    """The initial values that a recipe sets, in the words of drawings, by node; computed once for all rules and names."""

    def __init__(self, program: Program, table: Sequence[NamedParameter], written: Sequence[NamedParameter]) -> None:
        self.ruled: dict[str, dict[str, Init]] = {}
        """Path of a node to its parameters, by their names below it, each with how it starts."""
        for entry, in_recipe in zip(table, written, strict=True) if program.init else ():
            start = start_of(program, in_recipe)
            if start and not entry.tied_to:
                for path in holders(entry.name):
                    self.ruled.setdefault(path, {})[entry.name.removeprefix(f"{path}.")] = start

    def at(self, places: Sequence[str]) -> str:
        """Return the initial values of the nodes at some places; where these differ, of each in turn."""
        said = [(len(list(same)), text) for text, same in groupby(map(self._at, places))]
        return " | ".join(f"{count} × {text}" if len(said) > 1 else text for count, text in said)

    def _at(self, place: str) -> str:
        """Return the initial values below a node; parameters with one last name and one initializer are listed once."""
        alike: dict[str, dict[str, list[str]]] = {}
        for name, how in self.ruled.get(place, {}).items():
            alike.setdefault(name.rpartition(".")[2], {}).setdefault(how.text(), []).append(name)
        return ", ".join(
            f"{last if len(starts) == 1 else ', '.join(names)} from {how}"
            for last, starts in alike.items()
            for how, names in starts.items()
        )
