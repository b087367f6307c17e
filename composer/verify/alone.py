"""A block taken out of a model: a recipe of nothing else, and a small language model around it."""

from __future__ import annotations

from collections.abc import Iterator

from composer.diagnostics import Source
from composer.graph.dims import Dim
from composer.graph.typed import TypedBlock
from composer.graph.types import TensorType, each_of
from composer.graph.unparse.expanded_recipe import block_on_inputs
from composer.language.recipe.writer import YamlData, write
from composer.verify.recipes import VerifiableRecipe

NODE = "block"
"""The name of the block in its recipe."""
VOCAB = 11
"""Ids of the language model around a block."""


def alone(block: TypedBlock, recipe: VerifiableRecipe) -> VerifiableRecipe | None:
    """Return a recipe of the block alone, with an input for each of its wired ports and all of its outputs; None where such a
    recipe has errors.
    """
    axes = AxisNames()
    inputs = {name: axes.written(type_) for name, type_ in _inputs(block)}
    names = [name.rstrip("?") for name in type(block.part).outputs] or list(block.outputs)
    outputs = {name: f"{NODE}.{name}" for name in names}
    outputs |= {names[0]: NODE} if names else {}
    return _sound(
        {"recipe": "alone", "inputs": inputs, "graph": {NODE: block_on_inputs(block, _ports(block))}, "outputs": outputs}, recipe
    )


def in_language_model(block: TypedBlock, recipe: VerifiableRecipe) -> VerifiableRecipe | None:
    """Return a language model of an embedding, the block and a linear map; None where the block takes no stream of vectors along
    one axis, or gives none, or where the recipe has errors.
    """
    axes = AxisNames()
    inputs = [*_inputs(block)]
    given = next(iter(block.outputs.values()), None)
    if not inputs:
        return None
    (stream, type_), *others = inputs
    if not (_is_stream(type_) and isinstance(given, TensorType) and _is_stream(given)):
        return None
    if given.sizes[:2] != type_.sizes[:2]:
        return None
    axes.names[type_.sizes[0]], axes.names[type_.sizes[1]] = "batch", "time"
    node = block_on_inputs(
        block, {port: ["embed" if name == stream else name for name in names] for port, names in _ports(block).items()}
    )
    embed = {"type": "embedding", "vocab": str(VOCAB), "dim": str(type_.sizes[2]), "in": "tokens"}
    graph: dict[str, YamlData] = {"embed": embed, NODE: node, "head": {"type": "linear", "out": str(VOCAB), "in": NODE}}
    given_inputs = {"tokens": "int[batch, time]", **{name: axes.written(other) for name, other in others}}
    outputs = {"logits": "head"}
    return _sound({"recipe": "alone", "task": "causal_lm", "inputs": given_inputs, "graph": graph, "outputs": outputs}, recipe)


def _is_stream(type_: TensorType) -> bool:
    """Return whether a type is that of vectors along an axis whose length is known only when the model runs."""
    return type_.dtype == "float" and [isinstance(size, int) for size in type_.sizes] == [False, False, True]


def _sound(data: dict[str, YamlData], recipe: VerifiableRecipe) -> VerifiableRecipe | None:
    made = type(recipe)(Source("<text>", write(data)), (), recipe.blocks)
    return None if any(found.severity == "error" for found in made.check()) else made


def _inputs(block: TypedBlock) -> Iterator[tuple[str, TensorType]]:
    """Yield an input for each value that a port reads."""
    for port, names in _ports(block).items():
        for name, type_ in zip(names, each_of(block.inputs[port]), strict=True):
            if isinstance(type_, TensorType):
                yield name, type_


def _ports(block: TypedBlock) -> dict[str, list[str]]:
    """Return the names of the inputs that each wired port reads."""
    found = {}
    for port, types in block.inputs.items():
        several = each_of(types)
        found[port] = [f"{port}_{number}" for number in range(len(several))] if isinstance(types, tuple) else [port]
    return found


class AxisNames:
    """Names for the axes of a block's inputs: equal sizes have equal names."""

    def __init__(self) -> None:
        self.names: dict[Dim, str] = {}

    def written(self, type_: TensorType) -> str:
        """Return a type as an input declares it."""
        return f"{type_.dtype}[{', '.join(map(self._axis, type_.sizes))}]{'?' if type_.optional else ''}"

    def _axis(self, size: Dim) -> str:
        if isinstance(size, int):
            return str(size)
        plain = str(size) if str(size).isidentifier() and str(size) not in self.names.values() else ""
        return self.names.setdefault(size, plain or f"length_{len(self.names)}")
