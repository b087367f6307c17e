"""How a figure departs from what its level shows, and what cannot be drawn so."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from composer.draw.diagram import Group, Item, Leaf


class Unarrangeable(Exception):
    """What a figure is asked for and cannot show: the option, what stands in it, why, and what to do."""

    def __init__(self, option: str, entry: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.option, self.entry, self.message, self.hint = option, entry, message, hint


@dataclass(frozen=True, slots=True)
class Arrangement:
    """What is left out of a diagram, drawn as one box, or called otherwise; nodes and inputs by their paths."""

    hidden: tuple[str, ...] = ()
    """Nodes, and all that is in them; what reads them reads what they read."""
    merged: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """By the words in each box, the nodes that it stands for."""
    labels: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Words in place of the title of a block, of the header of a frame or of an input."""
    inputs: tuple[str, ...] = ()
    """Inputs of the model that are not named beside what reads them."""
    names: bool = True
    """Whether boxes have the names of their nodes."""
    dropout: bool = True
    """Whether dropout is told."""


def titled(leaf: Leaf, label: str) -> Leaf:
    """Return a box with a label for a title, behind how many passes it stands for."""
    passes = re.match(r"× [^ ]+(?:(?:(?<=,)| [-+*/]) [^ ]+)* ", leaf.look.title)
    return replace(leaf, look=replace(leaf.look, title=f"{passes[0] if passes else ''}{label}"), by_name=False)


def held_parameters(item: Item) -> int:
    """Return how many parameters an item has, with all that is in it."""
    if isinstance(item, Group):
        return item.about.parameters + sum(held_parameters(one) for flow in item.flows for one in flow.items)
    extra = 0
    if (shared := getattr(item, "shared", None)) is not None:
        extra += shared.about.parameters
    if (router := getattr(item, "router", None)) is not None:
        extra += router.about.parameters
    return item.about.parameters + extra


def listed(paths: Iterable[str]) -> str:
    """Return paths as a message writes them."""
    return " and ".join(f"`{path}`" for path in paths)
