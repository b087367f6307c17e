"""The graph of a model for networkx: a node for every input and block, an edge for every value that flows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, assert_never

from composer.graph.ir import Ref, Wire
from composer.graph.parameters import owned, parameters
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedProgram, TypedRepeat, TypedScan

if TYPE_CHECKING:
    import networkx as nx

EVERY = "*"


def view(typed: TypedProgram) -> nx.MultiDiGraph[str]:
    """Return the graph as a user of networkx has it, made anew.

    Passes of a repeat that are equal are one node: `layers.*.attn.norm` where all are, else `layers.0.attn.norm` for all that
    equal pass 0. Groups are dissolved, and what fills a slot belongs to its holder.

    A node has `type` (its block, or `input`), `path`, `parameters` (the numbers of all nodes that it stands for; of tied ones
    the first in the file owns them), `copies` (how many nodes it stands for) and `line`. An edge runs from what is read to who
    reads it; it has `port` (of the reader), `output` (of what is read), `type`, `shape_only`, true where only the shape of the
    value is read, `implied`, and `carried`, true where the value comes from an earlier pass: without carried edges there is no
    cycle. The graph has `name`, `task` and `outputs`: name to the nodes that it may come from.
    """
    import networkx as nx

    return _View(typed, nx.MultiDiGraph(name=typed.name, task=typed.untyped.recipe.task)).whole()


@dataclass(slots=True, eq=False)
class _Value:
    """What flows under a name: outputs of nodes, or whatever flows under other names, each with whether it is carried."""

    outputs: list[tuple[str, str]] = field(default_factory=list)
    others: list[tuple[_Value, bool]] = field(default_factory=list)

    def sources(self) -> Iterator[tuple[str, str, bool]]:
        """Yield every node that the value may come from, with its output."""
        seen: set[tuple[_Value, bool]] = set()
        waiting = [(self, False)]
        while waiting:
            value, carried = waiting.pop()
            if (value, carried) not in seen:
                seen.add((value, carried))
                yield from ((node, output, carried) for node, output in value.outputs)
                waiting += [(other, carried or more) for other, more in reversed(value.others)]


ViewValues = Mapping[str, _Value]


@dataclass(slots=True)
class _View:
    program: TypedProgram
    graph: nx.MultiDiGraph[str]
    reads: list[tuple[str, Wire, str, bool, _Value]] = field(default_factory=list)
    """Who reads what: the node, its wire, the type, whether only its shape, and the value."""
    owned: dict[str, int] = field(default_factory=dict)

    def whole(self) -> nx.MultiDiGraph[str]:
        self.owned = owned(parameters(self.program))
        given: dict[str, _Value] = {}
        for item in self.program.untyped.inputs:
            self.graph.add_node(item.name, type="input", path=item.name, parameters=0, copies=1, line=item.span.line)
            given[item.name] = _Value([(item.name, item.name)])
        outputs = self._graph(self.program.root, given, "", ("",))
        for reader, wire, type_, shape_only, value in self.reads:
            for source, output, carried in dict.fromkeys(value.sources()):
                told = {"port": wire.port, "output": output, "type": type_, "shape_only": shape_only}
                self.graph.add_edge(source, reader, **told, implied=wire.implied, carried=carried)
        self.graph.graph["outputs"] = {name: [source for source, _, _ in value.sources()] for name, value in outputs.items()}
        return self.graph

    def _graph(self, graph: TypedGraph, given: ViewValues, prefix: str, places: Sequence[str]) -> ViewValues:
        """Add the nodes of a graph, which stands at several places where passes are equal; return what it returns."""
        inside: dict[str, Sequence[ViewValues]] = {}
        for node in graph.nodes:
            inside[node.name] = self._node(node, given, inside, prefix, places)
        return {name: _resolved((ref,), given, inside) for name, ref in graph.graph.outputs}

    def _node(
        self, node: TypedNode, given: ViewValues, inside: dict[str, Sequence[ViewValues]], prefix: str, places: Sequence[str]
    ) -> Sequence[ViewValues]:
        below = [place + node.name for place in places]
        if isinstance(node, TypedRepeat):
            return self._repeat(node, given, inside, f"{prefix}{node.name}", below)
        wired = {wire.port: _resolved(wire.refs, given, inside) for wire in node.node.wires}
        path, within = f"{prefix}{node.name}", [f"{place}." for place in below]
        match node:
            case TypedBlock():
                return [self._block(node, wired, path, below)]
            case TypedGroup():
                return [self._graph(node.graph, wired, f"{path}.", within)]
            case TypedScan():
                handed = {port: _Value(others=[(value, False)]) for port, value in wired.items()}
                returned = self._graph(node.graph, handed, f"{path}.", within)
                for port, output in node.carried.items():
                    handed[port].others.append((returned[output], True))
                return [returned]
            case _:
                assert_never(node)

    def _block(self, node: TypedBlock, wired: ViewValues, name: str, places: Sequence[str]) -> ViewValues:
        count = sum(self.owned.pop(place, 0) for place in places)  # passes of one set of weights stand at one place
        line = node.node.name_span.line
        self.graph.add_node(name, type=node.part.kind, path=name, parameters=count, copies=len(places), line=line)
        for wire in node.node.wires:
            type_ = node.inputs[wire.port]
            text = ", ".join(map(str, type_)) if isinstance(type_, tuple) else str(type_)
            self.reads.append((name, wire, text, wire.port in type(node.part).shape_only_inputs, wired[wire.port]))
        return {output: _Value([(name, output)]) for output in node.outputs}

    def _repeat(
        self, node: TypedRepeat, given: ViewValues, inside: dict[str, Sequence[ViewValues]], name: str, places: Sequence[str]
    ) -> Sequence[ViewValues]:
        """Return each kind of pass once; what its inputs are is what they are in any of its passes."""
        kinds: dict[TypedGraph, list[int]] = {}
        for index, graph in enumerate(node.passes):
            kinds.setdefault(graph, []).append(index)
        returned: dict[TypedGraph, ViewValues] = {
            graph: {port: _Value() for port in dict(graph.graph.outputs)} for graph in kinds
        }
        passes = [returned[graph] for graph in node.passes]
        for graph, indices in kinds.items():
            handed = {item.name: _Value() for item in graph.graph.inputs}
            for index in indices:
                for wire in node.node.passes[index].wires:
                    value = _resolved(wire.refs, given, {**inside, node.name: passes}, node.name)
                    handed[wire.port].others.extend(value.others)
            step = EVERY if len(kinds) == 1 else str(indices[0])
            below = list(dict.fromkeys(f"{place}.{node.prefix(index)}" for place in places for index in indices))
            for port, value in self._graph(graph, handed, f"{name}.{step}.", below).items():
                returned[graph][port].others.append((value, False))
        return passes


def _resolved(refs: Iterable[Ref], given: ViewValues, inside: Mapping[str, Sequence[ViewValues]], repeat: str = "") -> _Value:
    """Return what references in a graph name; in a repeat, what is its own comes from an earlier pass."""
    return _Value(others=[(_named(ref, given, inside), ref.node == repeat) for ref in refs])


def _named(ref: Ref, given: ViewValues, inside: Mapping[str, Sequence[ViewValues]]) -> _Value:
    if ref.node not in inside:
        return given[ref.node]
    outputs = inside[ref.node][-1 if ref.index is None else ref.index]
    return outputs[ref.port] if ref.port else next(iter(outputs.values()))
