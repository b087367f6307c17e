"""What graphs inside of others are handed in their text, what they read from where it is, and the names of both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from composer.graph.ir import Ref, Wire
from composer.graph.typed import TypedGraph
from composer.graph.unparse.definitions import Definitions
from composer.graph.unparse.edge_text import EdgeNames, reference, references
from composer.graph.unparse.node_text import INPUT, words
from composer.graph.unparse.slot_uses import SlotUses
from composer.language.recipe.free_names import fresh
from composer.language.recipe.writer import YamlData
from composer.memo import Memo

INDEX = "layer"


@dataclass(frozen=True, slots=True)
class GraphForm:
    """How a graph inside of others is written."""

    in_place: bool = False
    """Whether it names what it reads from outside, instead of being handed it."""
    by_port: bool = False
    """Whether edges are written port by port, also where there is the first alone."""
    indices: frozenset[str] = frozenset()
    """The indices that the repeats around it read."""
    written: Memo[Any, dict[str, YamlData]] = field(default_factory=Memo, compare=False)
    """The texts of repeats: those around them may be written in several ways before one will do."""
    read: Memo[TypedGraph, dict[str, set[str]]] = field(default_factory=Memo, compare=False)
    """The nodes that are read in graphs, each with the ports."""
    axis_names: Mapping[str, str] | None = field(default=None, hash=False)
    """In a block that the recipe defines, the names that it gives axes, each with the one outside, which holds in the group that
    is written.
    """

    params: frozenset[str] = frozenset()
    """The params of the recipe, which no other name may hide."""
    uses: SlotUses = field(default_factory=dict, hash=False)
    """In a slot that is used at several widths, each node with those at its place in all uses."""
    defines: bool = False
    """Whether blocks that the recipe defines are written as definitions."""
    defined: bool = False
    """Whether it is written in such a definition, in which the axes have the names that it gives them."""
    definitions: Definitions = field(default_factory=Definitions, compare=False)
    """All that are written so."""

    def within(self, axis_names: Mapping[str, str]) -> GraphForm:
        """Return how a graph inside of such a block is written."""
        around = self.axis_names or {}
        outside = {inner: around.get(outer, outer) for inner, outer in axis_names.items()}
        return replace(self, axis_names={**around, **outside})


def given(
    wires: Sequence[Wire], graph: TypedGraph, around: TypedGraph, names: EdgeNames, *, way: GraphForm, own: str = ""
) -> tuple[list[Wire], dict[str, str], dict[str, str]]:
    """Return what a graph inside is handed, what its inputs are called there, and how it names what it reads from where it is:
    lists, and with `in_place` all that is read from outside. A first input that nothing returns is called `input`. `own` is the
    repeat around it whose earlier passes it reads.
    """
    lists = {item.name for item in graph.graph.inputs if item.many}
    read = {item.name for item in graph.graph.inputs if item.captured}
    returned = dict(graph.graph.outputs)
    hidden = {*graph.by_name, *(wire.port for wire in wires if wire.port not in lists)}
    wires = [*wires]
    apart = {wire.port: ", ".join(references(wire.refs, around, names)) for wire in wires if wire.port in lists}
    for wire in [wire for wire in wires if wire.port in lists]:
        refs = [one for ref in wire.refs for one in _one_by_one(ref, around, names)]
        if len(refs) > len(wire.refs) or hidden.intersection(map(_named, apart[wire.port].split(", "))):
            # inside, its name means something else: each of them is handed under a name of its own
            own_names = [fresh(f"{wire.port}_{place}", hidden) for place in range(len(refs))]
            wires += [replace(wire, port=port, refs=(ref,)) for port, ref in zip(own_names, refs, strict=True)]
            apart[wire.port] = ", ".join(own_names)
    for wire in wires:
        if way.in_place and wire.port in read - lists and _named(text := reference(wire.refs[0], around, names)) not in {
            INPUT, *graph.by_name, *(other.port for other in wires if other.port not in read)
        }:  # fmt: skip
            apart[wire.port] = text
    handed = [wire for wire in wires if wire.port not in apart]
    inside = {wire.port: wire.port for wire in handed}
    named = {own, *(word for text in apart.values() for word in words(text))}
    if handed and handed[0].port not in returned:
        named.add(INPUT)
    for place, wire in enumerate(handed):
        if wire.port not in returned and place == 0:
            inside[wire.port] = INPUT
        elif wire.port in read and wire.port in {*returned, *named}:
            # what is only read must not be taken for what is returned, nor hide the first input or what is read from where it is
            inside[wire.port] = fresh(wire.port, {*returned, *named, *graph.by_name, *inside, *inside.values()})
    handed = [replace(wire, port=inside[wire.port]) for wire in handed]
    return handed, inside, apart


def _one_by_one(ref: Ref, around: TypedGraph, names: EdgeNames) -> list[Ref]:
    """Return a reference to an input, which is a list whose values were handed one by one, as references to these."""
    texts = reference(ref, around, names).split(", ")
    return [ref] if len(texts) == 1 else [Ref(text) for text in texts]


def _named(text: str) -> str:
    """Return the node or the input that a reference names."""
    return text.partition("(")[0].partition(".")[0]


def output_name(graphs: Iterable[TypedGraph], inputs: Iterable[str]) -> str:
    """Return a name for what graphs return: one that names nothing in them, and none of their inputs, which would be carried."""
    inside = {name for graph in graphs for name in [*graph.by_name, *(name for name, _ in graph.graph.outputs)]}
    return fresh("y", inside | {word for text in inputs for word in words(text)})
