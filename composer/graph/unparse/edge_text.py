"""Edges as a recipe writes them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from composer.graph.anatomy import regions
from composer.graph.ir import Ref, Wire
from composer.graph.typed import TypedGraph, TypedRepeat
from composer.language.recipe.writer import Remark, YamlData, YamlValue

IMPLIED = "implied"
EdgeNames = Mapping[str, str]
"""The names of a graph's inputs in its text, by their names in the graph."""


def edges(
    wires: Sequence[Wire], first: str, around: TypedGraph, names: EdgeNames, variadic: Collection[str] = ()
) -> dict[str, YamlData]:
    """Return what stands under `in`: a reference alone for the first port, else port by port."""
    texts: dict[str, YamlValue] = {}
    implied = {wire.port for wire in wires if wire.implied}
    for wire in wires:
        refs: list[YamlData] = list(references(wire.refs, around, names))
        texts[wire.port] = refs if wire.port in variadic or len(refs) != 1 else reference(wire.refs[0], around, names)
    if not texts:
        return {}
    if list(texts) == [first]:
        return {"in": Remark(texts[first], IMPLIED) if implied else texts[first]}
    return {"in": {port: Remark(text, f"{port} {IMPLIED}") if port in implied else text for port, text in texts.items()}}


def references(refs: Sequence[Ref], graph: TypedGraph, names: EdgeNames) -> Iterator[str]:
    """Yield several references, those to passes that follow one another as a range."""
    runs: list[list[Ref]] = []
    for ref in refs:
        before = runs[-1][-1] if runs else None
        follows = before is not None and before.index is not None and Ref(before.node, before.port, before.index + 1) == ref
        runs[-1:] = [[*runs[-1], ref]] if follows else [*runs[-1:], [ref]]
    for run in runs:
        first, last = run[0], run[-1]
        node = graph.by_name.get(first.node)
        if len(run) == 1 or not isinstance(node, TypedRepeat) or not _in_all(node, run):
            yield from (text for ref in run for text in reference(ref, graph, names).split(", "))
        else:
            start, stop = first.index or "", "" if last.index == len(node.passes) - 1 else (last.index or 0) + 1
            yield f"{first.node}({start}:{stop}){'.' * bool(first.port)}{first.port}"


def _in_all(repeat: TypedRepeat, refs: Sequence[Ref]) -> bool:
    """Return whether a range means all of these passes: those are not in it whose node is left out and passes another on."""
    port = refs[0].port
    if port.isidentifier() and all(port in graph.outputs and port not in graph.by_name for graph in repeat.passes):
        return True  # an output
    return not port or all(_is_inside(repeat.passes[ref.index or 0], port) for ref in refs)


def _is_inside(graph: TypedGraph, path: str) -> bool:
    """Return whether a path in a graph leads to a node, or to an output of a block."""
    for step in path.split("."):
        if step not in graph.by_name:
            return False
        inside = regions(graph.by_name[step])
        if not inside:
            return True
        graph = inside[-1].graph
    return True


def reference(ref: Ref, graph: TypedGraph, names: EdgeNames) -> str:
    """Return what a reference in a graph is called in its text."""
    if ref.node in names and ref.node not in graph.by_name:
        return names[ref.node]
    node = graph.by_name.get(ref.node)
    index = ref.index
    if isinstance(node, TypedRepeat) and index == len(node.passes) - 1:
        index = None
    return str(Ref(ref.node, ref.port, index))


def earlier(refs: Sequence[Ref], repeat: str, index: str, here: int) -> str:
    """Return the references to earlier passes of a repeat, counted back by its `index`, which is `here`."""
    return ", ".join(str(Ref(f"{repeat}({_back(ref.index or 0, index, here)})", ref.port)) for ref in refs)


def earlier_range(refs: Sequence[Ref], repeat: str, index: str, here: int) -> str:
    """Return a list of earlier passes of a repeat, which may be empty, as it is in the first pass; where some of them lack the
    port, the others.
    """
    places = [ref.index or 0 for ref in refs] or [here]
    start, stop = places[0], places[-1] + bool(refs)
    if places[-1] - start != len(places) - 1:
        return earlier(refs, repeat, index, here)
    first = _back(start, index, here) if start else ""
    return str(Ref(f"{repeat}({first}:{_back(stop, index, here)})", refs[0].port if refs else ""))


def _back(place: int, index: str, here: int) -> str:
    """Return a pass, counted back from another."""
    return f"{index} - {here - place}" if place < here else index
