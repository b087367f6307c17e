"""What a drawing says about the whole model, and how it calls inputs and outputs."""

from __future__ import annotations

from collections.abc import Iterator

from blocks.core import grouped, spoken
from composer.cost.costs import CacheCounter
from composer.cost.lengths import lengths_of
from composer.cost.units import in_bytes
from composer.draw.build.descriptions import described
from composer.draw.build.parameter_counts import ParameterCounts
from composer.draw.build.repeats import unvisited
from composer.draw.diagram import Flow, Titles
from composer.draw.wording import counted, printable
from composer.graph.anatomy import regions, slots
from composer.graph.passes.roll_layers.roll_layers import RolledProgram
from composer.graph.task_signature import growing
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedProgram, TypedRepeat, TypedScan
from composer.graph.visit import present

MAX_NAME_WORDS = 3
"""Words of a name."""
BF16_BYTES = 2
"""Bytes of a number."""


def titles(model: RolledProgram, flow: Flow, title: str = "") -> Titles:
    """Return the head of a drawing."""
    typed = model.program
    recipe = typed.program.recipe
    first = recipe.doc.split(",")[0].strip()
    named = first if first[:1].isupper() and len(first.split()) <= MAX_NAME_WORDS else spoken(recipe.name)
    inputs = {one.name: input_title(one.name, one.type.dtype) for one in typed.program.inputs}
    outputs = {name: spoken(name) for name, _ in typed.root.graph.outputs}
    return Titles(printable(title or named), facts(model, flow), inputs, outputs, described(typed))


def input_title(name: str, dtype: str) -> str:
    """Return an input by the words of the field."""
    words = {"tokens": "Token ids", "source": "Source tokens", "target": "Target tokens"}
    return words[name] if dtype == "int" and name in words else spoken(name)


def facts(model: RolledProgram, flow: Flow) -> tuple[str, ...]:
    """Return the parameters, layers and widths, and what a token leaves behind."""
    typed = model.program
    params = typed.program.params
    counts = ParameterCounts(model.parameters)
    total = counts.owned.get("", 0)
    said = [f"{counted(total)} parameters"] if total else []
    if frozen := counts.frozen.get("", 0):
        said.append(f"{counted(total - frozen)} trained")
    if idle := unvisited(flow):
        said.append(f"{counted(total - idle)} active")
    if layers := list(passes(typed.root)):
        said.append(f"{' + '.join(map(str, layers))} layer{'s' * (layers != [1])}")
    for name in ("d_model", "context", "vocab"):
        if isinstance(value := params.get(name), int) and not isinstance(value, bool):
            said.append(f"{name} {grouped(value)}")
    if (kept := cached(typed)) > 0:
        attends = any(isinstance(node, TypedBlock) and {"k", "v"} <= node.part.cache_slots.keys() for node in nodes(typed.root))
        said.append(f"{'KV cache' if attends else 'state'} {in_bytes(BF16_BYTES * kept)} per token (bf16)")
    return tuple(said)


def passes(graph: TypedGraph) -> Iterator[int]:
    """Yield how many layers each stack has; what is repeated inside of a layer does not count."""
    for node in graph.nodes:
        if isinstance(node, TypedRepeat):
            yield len(node.passes)
        elif isinstance(node, TypedGroup | TypedScan) and not node.node.dropped:
            yield from passes(node.graph)


def nodes(graph: TypedGraph) -> Iterator[TypedNode]:
    """Yield every node, those of the first pass of repeats."""
    stack = list(graph.nodes)
    while stack:
        node = stack.pop()
        yield node
        stack += [child for region in regions(node)[:1] for child in present(region.graph)] + [slot for _, slot in slots(node)]


def cached(typed: TypedProgram) -> int:
    """Return how many numbers are cached for each token while a text is written."""
    axis = growing(typed.program.recipe.task, typed.inputs)
    return 0 if axis is None else CacheCounter(axis, lengths_of(typed, {})).graph(typed.root)
