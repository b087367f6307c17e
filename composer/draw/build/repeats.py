"""Passes of a repeat: which are alike, what each kind is given, and what is said of all."""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from blocks.core import spoken
from composer.cost.units import short
from composer.draw.build.parallel_passes import in_order, read_inside
from composer.draw.build.parameter_counts import ParameterCounts
from composer.draw.build.pass_references import consecutive_passes, earlier_pass_source
from composer.draw.build.value_sources import NO_STREAM, NodeSources, Sources, edge_into, sources
from composer.draw.build.walks import outside_repeats
from composer.draw.diagram import Flow, Leaf, OpenMixture
from composer.draw.edges import DiagramEdge, DiagramSource, Origin
from composer.draw.series import OF
from composer.draw.wording import places_in_words, shape
from composer.graph.anatomy import wires_of
from composer.graph.ir import Ref
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedRepeat
from composer.graph.visit import every_node, walk

LAYERS = re.compile(r"(layers?|blocks?|encoder|decoder)(_\d+)?")
"""What a repeat is called whose passes are the layers of a model."""

PASS = re.compile(r"(\w+)\((\d+)\)(.*)")
"""A pass of another repeat, as it is called."""
MAX_NAMED_PASSES = 3
"""How many of them a port of a block reads by their names."""

SHARED = " shared"
"""What stands behind how many parameters all passes of a repeat have together."""
SERIES = ("stages", "levels", "groups", "steps", "columns")
"""What else a repeat may be called after what its passes are."""


def passes_by_kind(node: TypedRepeat) -> list[list[int]]:
    """Return the passes of each kind, the most frequent kind first."""
    kinds: dict[object, list[int]] = {}
    for index, graph in enumerate(node.passes):
        kinds.setdefault(consists_of(graph), []).append(index)
    return sorted(kinds.values(), key=lambda passes: (-len(passes), passes[0]))


def consists_of(graph: TypedGraph) -> object:
    """Return what tells a pass from others: its graph; or what is in its nodes, where an input is never read, whose type does not
    count then.
    """
    read = {ref.node for node in graph.nodes for wire in wires_of(node.node) for ref in wire.refs}
    read |= {ref.node for _, ref in graph.graph.outputs}
    blocks = [node for node in graph.nodes if isinstance(node, TypedBlock) and not node.slots]
    if graph.inputs.keys() <= read or len(blocks) < len(graph.nodes):
        return graph
    typed = tuple((one.node, *one.inputs.items(), *one.outputs.items(), one.parameters) for one in blocks)
    return typed, graph.graph.outputs, tuple((name, type_) for name, type_ in graph.inputs.items() if name in read)


def kind_of_each(kinds: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Return the number of each pass's kind; nothing where all are alike."""
    of = {index: number for number, passes in enumerate(kinds) for index in passes}
    return tuple(of[index] for index in range(len(of))) if len(kinds) > 1 else ()


def mixed(node: TypedRepeat, kinds: Sequence[Sequence[int]], path: str) -> set[str]:
    """Return the paths of blocks in whose place other passes have another block."""
    found: dict[str, list[str]] = {}
    for passes in kinds:
        for one, kind in blocks(node.passes[passes[0]], f"{path}.").items():
            found.setdefault(one, []).append(kind)
    return {one for one, known in found.items() if len(known) < len(kinds) or len(set(known)) > 1}


def blocks(graph: TypedGraph, prefix: str) -> dict[str, str]:
    """Return the kind of every block of a pass, by its path."""
    found = (visit for visit in walk(graph, outside_repeats, every_node, prefix=prefix) if not visit.in_slot)
    return {visit.path: visit.node.part.kind for visit in found if isinstance(visit.node, TypedBlock)}


def pass_suffix(repeat: TypedRepeat, index: int, *, first: bool) -> str:
    """Return what follows a repeat's place at a pass; one set of weights is counted where it is drawn first."""
    return f".{repeat.prefix(index)}".rstrip(".") if first else f".{index}"


# -- what is read


def inputs_from_outside(
    node: TypedRepeat, index: int, passes: Container[int], values: Mapping[str, NodeSources]
) -> dict[str, Sources]:
    """Return what a pass of a repeat reads but of some passes."""
    found, read = {}, read_inside(node.passes[index])
    for wire in node.node.passes[index].wires:
        refs = [ref for ref in wire.refs if ref.node != node.name or ref.index not in passes]
        if refs and wire.port in read:
            found[wire.port] = sources(refs, values)
    return found


@dataclass(frozen=True, slots=True)
class PassInputs:
    """Inputs of a repeat that read its earlier passes."""

    growing: frozenset[str]
    """Those for which each pass reads one value of all passes before it."""
    carried: frozenset[str]
    """Those for which the first pass reads a value from outside, and each other one what the one before gave."""


def pass_inputs(node: TypedRepeat) -> PassInputs:
    """Return which inputs of a repeat read its earlier passes, and how."""
    read = earlier_reads(node)
    return PassInputs(growing_inputs(read), carried_inputs(node, read))


def carries_several(node: TypedRepeat) -> bool:
    """Return whether a repeat is a recurrence with several states, of which none is its stream rather than another."""
    return len(pass_inputs(node).carried) > 1


def inputs_of_passes(
    node: TypedRepeat, passes: Sequence[int], values: Mapping[str, NodeSources], path: str, inputs: PassInputs
) -> dict[str, Sources]:
    """Return what some passes of a repeat are given, all that any of them is; of an earlier pass by its name."""
    found: dict[str, dict[DiagramSource, None]] = {}
    for index in passes:
        for wire in node.node.passes[index].wires:
            read = found.setdefault(wire.port, {})
            for same in consecutive_passes(wire.refs):
                if same[0].node == node.name and node.name not in values:
                    earlier = earlier_pass_source(same, index, path, growing=wire.port in inputs.growing)
                    read[replace(earlier, shape=shape_of_pass(same[0], node)) if len(same) == 1 else earlier] = None
                else:
                    given = (replace(one, at_first=wire.port in inputs.carried) for one in sources(same, values))
                    read.update(dict.fromkeys(given))
    return {port: tuple(read) for port, read in found.items()}


def shape_of_pass(ref: Ref, node: TypedRepeat) -> str:
    """Return the shape of what a pass of a repeat gives."""
    given = node.passes[len(node.passes) - 1 if ref.index is None else ref.index].outputs
    return shape(given[ref.port or next(iter(given))])


def growing_inputs(read: Mapping[str, Sequence[Sequence[int]]]) -> frozenset[str]:
    """Return the inputs for which each pass reads one value of all passes before it, given the earlier passes that each reads."""
    whole = {name: all(indices == [*range(len(indices))] for indices in each) for name, each in read.items()}
    return frozenset(
        name for name, each in read.items() if whole[name] and [*map(len, each)] == [*range(len(each))] and len(each) > 2
    )


def carried_inputs(node: TypedRepeat, read: Mapping[str, Sequence[Sequence[int]]]) -> frozenset[str]:
    """Return the inputs for which the first pass reads a value from outside, and each other one what the one before gave."""
    outside = {
        wire.port: sum(ref.node != node.name for ref in wire.refs) for one in reversed(node.node.passes) for wire in one.wires
    }
    before = [[index - 1] if index else [] for index in range(len(node.passes))]
    only = {name for name, each in read.items() if each == before}
    others = {wire.port for one in node.node.passes[1:] for wire in one.wires for ref in wire.refs if ref.node != node.name}
    return frozenset(name for name in only - others if outside.get(name) == 1 and len(node.passes) > 1)


def earlier_reads(node: TypedRepeat) -> dict[str, list[list[int]]]:
    """Return for each input which earlier passes every pass reads."""
    found: dict[str, list[list[int]]] = {}
    for index, one in enumerate(node.node.passes):
        for wire in one.wires:
            if wire.port not in found:
                found[wire.port] = [[] for _ in node.passes]
            found[wire.port][index] = [ref.index for ref in wire.refs if ref.node == node.name and ref.index is not None]
    return found


def one_of_each(flow: Flow, read: Sequence[str] = ()) -> Flow:
    """Return a flow in which what each pass reads of another pass of a repeat has one name, in the order in which passes `read`
    them: `layers(0) … layers(30)`, and `down(6) … down(0)` on the way up of a U.
    """
    alike: dict[object, list[DiagramEdge]] = {}
    for edge in flow.edges:
        name = PASS.fullmatch(edge.source.reference)
        said = f"{name[1]}(){name[3]}" if name else edge
        alike.setdefault((edge.source.origin, edge.target, edge.port, said), []).append(edge)
    edges: list[DiagramEdge] = []
    for same in alike.values():
        names = {edge.source.reference for edge in same}  # kinds of passes may read values of several shapes by one name
        if len(names) > MAX_NAMED_PASSES:
            same = [replace(same[0].reading(same[0].source.by_name(as_one_name(names, read))), partial=False, readers="")]
        edges += same
    return flow.with_edges(edges).map_groups(lambda inner: one_of_each(inner, read))


def as_one_name(names: Collection[str], read: Sequence[str]) -> str:
    """Return several names of passes as one: the first and the last in the order in which they are read, if it goes up or down;
    in another order, the second one too.

    >>> as_one_name({"down(0)", "down(1)", "down(2)"}, ["down(2)", "down(1)", "down(0)"])
    'down(2) … down(0)'
    """
    rising = sorted(names, key=lambda name: int(PASS.sub(r"\2", name)))
    order = [name for name in dict.fromkeys(read) if name in names]
    order = order if len(order) == len(names) else rising
    first, second, *_, last = order
    return f"{first} … {last}" if order in (rising, rising[::-1]) else f"{first}, {second}, … {last}"


def names_read(node: TypedRepeat) -> list[str]:
    """Return what passes of a repeat read from around it, by their names in the order of these."""
    return [str(ref) for each in node.node.passes for wire in each.wires for ref in wire.refs]


def outer_edges(
    node: TypedRepeat,
    values: Mapping[str, NodeSources],
    path: str,
    second_streams: Collection[Origin],
    stream: str,
    *,
    all_inputs: bool,
) -> Iterator[DiagramEdge]:
    """Yield the edges of a repeat from outside: of what is carried from pass to pass, or of all that it reads; of parallel
    passes, of the `stream` that they share; none of what has no stream.
    """
    inputs = {one.name: one for each in node.passes for one in each.graph.inputs}  # each pass may read something else
    main = stream if stream in inputs else next(iter(inputs), "")
    for one in inputs.values():
        if (one.name == main and stream != NO_STREAM and (stream or not one.captured)) or all_inputs:
            refs = [ref for each in node.node.passes for wire in each.wires if wire.port == one.name for ref in wire.refs]
            outside = tuple(dict.fromkeys(ref for ref in refs if ref.node != node.name))
            outside = in_order(outside) if stream == one.name else outside
            port = one.name if one.name != main else ""
            captured = {port} if one.captured else frozenset[str]()
            yield from (edge_into(path, port, source, second_streams, captured) for source in sources(outside, values))


# -- what is said


def pass_name(node: TypedRepeat) -> str:
    """Return the word for one pass of a repeat: what its author calls the number of a pass, or says by the name of the repeat."""
    if node.node.index not in ("", "layer"):
        return node.node.index
    if LAYERS.fullmatch(node.name):
        return "block" if node.name.startswith("block") else "layer"
    return node.name.removesuffix("s") if node.name in SERIES else node.name


def layer_title(node: TypedRepeat, flows: Sequence[Flow]) -> str:
    """Return what one pass of a repeat is called in a drawing: what its author calls it, or what kind of layer it is."""
    if not LAYERS.fullmatch(node.name) or node.node.index not in ("", "layer"):
        return spoken(pass_name(node))
    word = "block" if pass_name(node) == "block" else "layer"
    looks = [leaf.look for flow in flows for leaf in flow.leaves() if isinstance(leaf, Leaf)]
    masked = [seen for seen in looks if seen.mask and not seen.double]
    both = masked and any(seen.double for seen in looks)  # attention to another stream alone is no decoder's
    if node.name == "decoder" or both or any(seen.causal for seen in masked):
        return f"Decoder {word}"
    return f"Encoder {word}" if node.name == "encoder" or masked else word.capitalize()


def own_title(node: TypedRepeat, title: str) -> str:
    """Return how the title of a closed repeat begins, given what one pass is called: with the name of its node, where that says
    something else; nothing for others, and for a usual name of a stack.
    """
    usual = LAYERS.fullmatch(node.name) or node.name in SERIES or node.node.index in ("", "layer")
    name = spoken(node.name)
    said = {word.lower().removesuffix("s") for word in title.split()} & {word.lower().removesuffix("s") for word in name.split()}
    return "" if usual or said else f"{name}{OF}"


def single_title(node: TypedRepeat, flows: Sequence[Flow]) -> str:
    """Return what one pass is called that is drawn by itself: the block of the recipe that is all there is in each, if its author
    has no word for a pass.
    """
    parts = [inner.node.part for one in node.passes for inner in one.nodes if isinstance(inner, TypedGroup)]
    kinds = {part.kind for part in parts if part is not None}
    alone = len(kinds) == 1 and len(parts) == sum(len(one.nodes) for one in node.passes) == len(node.passes)
    return spoken(kinds.pop()) if alone and pass_name(node) == node.name else layer_title(node, flows)


def after_last(flow: Flow) -> str:
    """Return what happens in training to what a flow gives; nothing where nothing does."""
    last = flow.by_path.get(flow.outlet.path) if flow.outlet is not None else None
    return last.after if isinstance(last, Leaf) else ""


def numbered(title: str, index: int) -> str:
    """Return what one pass is called that is drawn by itself, given what each is called.

    >>> numbered("Stage", 2), numbered("MLP 1", 0)
    ('Stage 2', 'MLP 1, pass 0')
    """
    return f"{title}, pass {index}" if title[-1:].isdigit() else f"{title} {index}"


def parameters(node: TypedRepeat, counts: ParameterCounts, place: str) -> list[int]:
    """Return how many each pass has."""
    return [counts.owned.get(f"{place}.{node.prefix(index)}"[:-1], 0) for index in range(len(node.passes))]


def parameters_of_all(node: TypedRepeat, counts: ParameterCounts, place: str) -> str:
    """Return what a box around all passes says of their parameters, which may be the same ones in each."""
    said = counts.shown_whole(place)
    return f"{said}{SHARED}" if node.node.share is not None and said and counts.owned.get(place, 0) else said


def parameters_of_each(node: TypedRepeat, each: Sequence[int]) -> str:
    """Return how many parameters a pass has; nothing where there are none."""
    most = short(max(each))
    if node.node.share is not None:
        return f"{most}{SHARED}" if max(each) else ""
    return f"{most} each" if len(set(each)) == 1 and max(each) else f"up to {most}" if max(each) else ""


def shares(parts: Sequence[Sequence[Sequence[int]]], *, mapped: bool) -> tuple[tuple[str, ...], ...]:
    """Return the header of each of several frames for kinds of passes of a repeat, given the passes of each: how many of all, and
    which, if few words tell it and no map of layers does; nothing for one frame.
    """
    own = [sorted(index for passes in kinds for index in passes) for kinds in parts]
    whole = sum(map(len, own))
    which = ["" if mapped else places_in_words(passes, whole) for passes in own]
    said = ((f"{len(passes)} of {whole}{words and f': {words}'}",) for passes, words in zip(own, which, strict=True))
    return tuple(said) if len(own) > 1 else ()


def parameter_header(
    node: TypedRepeat, each: Sequence[int], kinds: Sequence[Sequence[int]], flows: Sequence[Flow], places: int
) -> Iterator[str]:
    """Yield how many parameters a pass has, and how many of them a token meets."""
    if not max(each):
        return
    yield parameters_of_each(node, each)
    if any(map(unvisited, flows)):
        pairs = zip(flows, kinds, strict=True)
        active = {each[passes[0]] - unvisited(flow) // (places * len(passes)) for flow, passes in pairs}
        yield f"{'up to ' if len(active) > 1 else ''}{short(max(active))} active"


def unvisited(flow: Flow) -> int:
    """Return how many parameters a token does not meet, in experts that it does not visit."""
    mixtures = [leaf for leaf in flow.leaves() if isinstance(leaf, OpenMixture)]
    return sum(mixture.pool * (mixture.experts - mixture.visited) // mixture.experts for mixture in mixtures)
