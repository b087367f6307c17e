"""Blocks that only drawings have: each stands for several primitives that every reader of the field knows by one name."""

from __future__ import annotations

from blocks.core import Block, BlockView, Look
from blocks.primitives.axes import axes_in_words


class NamedBlock(Block):
    """What several primitives compute together."""

    names: tuple[str, ...]
    """What it calls the values that it reads, in their order."""

    is_primitive = True
    inputs = {"xs*": "any[...]"}
    outputs = {"y": "any[...]"}


class NearestRow(NamedBlock):
    """The index of the row of a table, or of its column, that is nearest to a vector."""

    column: bool = False
    """Whether the vectors of the table are its columns."""

    inputs = {"x": "any[...]"}

    def look(self, view: BlockView) -> Look:
        which = "column" if self.column else "row"
        vector, table = self.names
        return Look(f"Nearest {which}", (f"argmin over k of |{vector} − {table}ₖ|²",), "merge", operation=(f"nearest {which}",))


class CosineSimilarity(NamedBlock):
    """Inner products of vectors of unit length."""

    pattern: str
    """The axes of both, and of the result."""

    def look(self, view: BlockView) -> Look:
        return Look("Cosine similarity", (self.pattern.replace("->", "→"),), "merge", operation=("cosine similarity",))


class DividedBySum(NamedBlock):
    """Values divided by their sum along axes, to which a number may be added."""

    over: tuple[str, ...]
    """The axes, as a recipe names them."""
    added: str = ""
    """The number, as it is written."""

    def look(self, view: BlockView) -> Look:
        (name,) = self.names
        whole = f"(Σ {name} + {self.added})" if self.added else f"Σ {name}"
        return Look(f"{name} / {whole}", (f"summed over {axes_in_words(self.over, view.axes)}",), "merge")


class WrittenSoftmax(NamedBlock):
    """Exponentials divided by their sum along axes."""

    over: tuple[str, ...]
    """The axes, as a recipe names them."""

    def look(self, view: BlockView) -> Look:
        return Look("Softmax", (f"over {axes_in_words(self.over, view.axes)}",), operation=("softmax",))
