"""Blocks that a recipe defines, written as definitions again: where one text must do for several widths."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from composer.graph.ir import PortType
from composer.graph.unparse.node_text import leaves
from composer.language.recipe.free_names import IDENTIFIER, fresh
from composer.language.recipe.writer import YamlData


@dataclass(slots=True)
class Definitions:
    """The definitions that a text asks for, by their names."""

    known: dict[str, YamlData] = field(default_factory=dict)

    def name(self, kind: str, definition: YamlData) -> str:
        """Return the name of a definition: that of the block, or one that no other has.

        Args:
            kind: The name of the block.
            definition: What is written for it.
        """
        own = kind.rpartition(".")[2]
        same = (name for name, other in self.known.items() if other == definition and name.startswith(own))
        name = next(same, None) or fresh(own, self.known)
        self.known[name] = definition
        return name

    def of(self, texts: Iterable[YamlData | None]) -> dict[str, YamlData]:
        """Return the definitions that are used: nodes are tried in several ways before one will do."""
        used = {str(leaf) for text in texts if text is not None for leaf in leaves(text)}
        return {name: definition for name, definition in self.known.items() if name in used}


def declared_again(port: PortType) -> str:
    """Return the type of a port as its definition has it, with the values that params had."""
    fixed = dict(port.fixed)
    dtype, bracket, axes = port.type.text.partition("[")
    axes = IDENTIFIER.sub(lambda word: str(fixed.get(word[0], word[0])), axes)
    return f"{dtype}{bracket}{axes}{'?' if port.optional else ''}"
