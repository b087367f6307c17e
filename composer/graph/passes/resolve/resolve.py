"""References resolved: every edge becomes a wire, through the borders of as many regions as it crosses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial

from blocks.core import ports
from composer.diagnostics import Label, Span
from composer.graph.ir import Ref, Wire
from composer.graph.passes.compilation import Compilation
from composer.graph.passes.error_report import StopExpansion, TextPlace, TooMuch, place, text_of
from composer.graph.passes.expand.builders import GraphBuilder, NodeBuilder, PendingEdge, Scope
from composer.graph.passes.expand.expansion import Expansion
from composer.graph.passes.expand.node_options import GRAPH_INPUT
from composer.graph.passes.resolve.captures import is_list
from composer.graph.passes.resolve.idle_states import idle_states
from composer.graph.passes.resolve.references import References
from composer.graph.passes.resolve.ties import tie
from composer.language.expressions.ast import Expression
from composer.language.recipe.defined_block import DefinedBlock


def resolve(state: Compilation) -> Compilation:
    """Find what every reference names, and hand values through the borders of the graphs between.

    Before:
        graph:
          up: {type: linear, out: 8}
          block: {in: x, graph: {sum: {type: add, in: [up, input]}}}
    After:
        up.x reads x
        block.input reads x
        block.up reads up
        block.sum.xs reads up, input
    """
    assert state.expansion is not None
    expansion = state.expansion
    try:
        expansion.positions = Wiring(expansion).connect(expansion.root, expansion.recipe.positions)
    except TooMuch:
        return state.reported(stopped=True)
    broken = any(node.broken and not node.absent for node in expansion.all_nodes)
    assert not (expansion.sound and broken), "a mistake that nobody was told of"
    return state.reported()


class Wiring:
    """One run over everything that `expand` has built."""

    def __init__(self, expansion: Expansion) -> None:
        self.expansion, self.report = expansion, expansion.report
        self.references = References(expansion)
        self.names = References(expansion, wiring=False)
        """Those of what is left out, of which nothing is wired."""
        self.unread: dict[GraphBuilder, PendingEdge] = {}
        """The implied inputs of graphs that nothing in them has read so far."""

    def connect(self, root: GraphBuilder, positions: Sequence[tuple[str, Span, Expression]]) -> list[tuple[str, Ref]]:
        """Resolve every edge, output and tie; return the nodes that give axes their positions."""
        for node in self.expansion.all_nodes:
            if node.absent:
                self.report.inside(node, partial(self._names, node))
            elif not node.elided:
                self._node(node)
        for graph in self.expansion.all_graphs:
            if graph.holder is None or not graph.holder.absent:
                self._outputs(graph)
        found = []
        for axis, span, reference in positions:
            ref = self.report.attempt(root, partial(self._value, reference, self.expansion.scope, root, span))
            if ref is not None:
                found.append((axis, ref))
        self._inputs()
        self._dead(root, [*self.expansion.losses.values(), *(ref.node for _, ref in found)])
        self._nothing_left(root)
        return found

    # -- what nodes read

    def _names(self, node: NodeBuilder) -> None:
        """Check the names that a node reads which is left out, and those that a graph in it returns."""
        for edge in node.edges.values():
            if not edge.source:
                self.report.attempt(node.home, partial(self.names.edge, edge, node.home))
        for pending in node.ties_pending:
            self.report.attempt(node.home, partial(tie, pending, node, self.expansion.values))
        for graph in [node.graph] if node.graph is not None else [one.graph for one in node.passes or ()]:
            for _, _, reference, scope in graph.outputs_pending:
                if not isinstance(reference, str):
                    self.report.attempt(graph, partial(self.names.named, reference, scope, graph))

    def _node(self, node: NodeBuilder) -> None:
        for edge in node.edges.values():
            if node.graph is not None and edge.source and edge.port == GRAPH_INPUT:
                self.unread[node.graph] = edge
            else:
                node.wires |= self._wired(edge, node)
        for pending in node.ties_pending:
            if (found := self.report.attempt(node.home, partial(tie, pending, node, self.expansion.values))) is not None:
                node.ties.append(found)
        self._tied_once(node)

    def _tied_once(self, node: NodeBuilder) -> None:
        """Report a parameter that is tied at a block's name and where the block is written, since it is but one other tensor."""
        for number, each in enumerate(node.ties):
            earlier = node.ties[:number]
            before = next((one for one in earlier if not each.parameter or one.parameter in ("", each.parameter)), None)
            if before is not None:
                labels = (Label(before.span, "tied here"),)
                message = f"`{node.name}` is tied twice"
                self.report.error("tie", node.home, each.span, message, hint="remove one of the ties", labels=labels)
                return

    def _inputs(self) -> None:
        """Wire the implied inputs that are read inside; of a graph that reads nothing of what stands above, none is left."""
        while self.references.entered:
            graph = self.references.entered.pop()
            if (edge := self.unread.pop(graph, None)) is not None and (node := graph.holder) is not None:
                node.wires = self._wired(edge, node) | node.wires
        for graph in self.unread:
            del graph.inputs[GRAPH_INPUT]

    def _wired(self, edge: PendingEdge, node: NodeBuilder) -> dict[str, Wire]:
        """Return the wire of a port by its name; none where nothing is read, or where there is a mistake."""
        wire = self.report.attempt(node.home, partial(self._wire, edge, node))
        node.broken = node.broken or wire is None
        return {edge.port: wire} if wire is not None and wire.refs else {}

    def _wire(self, edge: PendingEdge, node: NodeBuilder) -> Wire:
        """Return what a port reads; an optional port may read nothing."""
        if edge.failed:
            raise StopExpansion
        found = self.references.edge(edge, node.home)
        refs, spans = tuple(ref for ref, _ in found), tuple(span for _, span in found)
        if edge.each_one:
            self._check_each(edge, found, node)
        mark = "" if node.part is None else ports(node.part).get(edge.port, "?")
        # A graph has an input for each port of which it could not be told that it reads nothing.
        if not refs and edge.port not in node.unfed and (mark != "?" or node.graph is not None):
            whose = node.part.kind if node.part else node.name
            span = edge.references[0].span if edge.references else edge.span
            self.report.error("missing-port", node.home, span, f"port {edge.port} of {whose} cannot be empty")
            raise StopExpansion
        if mark != "*" and (len(refs) > 1 or (refs and is_list(refs[0], node.home))):
            message = f"port {edge.port} takes one value, but this is a range of passes"
            hint = "merge them first: {type: add, in: …} or {type: concat, in: …}"
            self.report.error("one-value", node.home, spans[0], message, hint=hint)
            raise StopExpansion
        return Wire(edge.port, refs, edge.span, implied=bool(edge.source), spans=spans)

    def _check_each(self, edge: PendingEdge, found: Sequence[tuple[Ref, Span]], node: NodeBuilder) -> None:
        """Check that each name in a formula has one value."""
        for reference in edge.references:
            refs = [ref for ref, span in found if span is reference.span]
            name = text_of(reference.span)
            if not refs:
                message = f"`{name}` is not given here, so that the formula has no value"
                self.report.error("missing-port", node.home, reference.span, message, hint="leave the node out: write its `when`")
                raise StopExpansion
            if len(refs) > 1 or is_list(refs[0], node.home):
                message = f"`{name}` is a range of passes, and a formula reads single values"
                self.report.error("one-value", node.home, reference.span, message, hint="read one of them, such as `layers(-1)`")
                raise StopExpansion

    # -- what graphs return

    def _outputs(self, graph: GraphBuilder) -> None:
        """Connect the written outputs, before what is only read from outside."""
        returned = {}
        for name, span, reference, scope in graph.outputs_pending:
            ref = self.report.attempt(graph, partial(self._value, reference, scope, graph, span))
            if ref is not None:
                returned[name] = ref
        graph.outputs = {**returned, **{name: ref for name, ref in graph.outputs.items() if name not in returned}}

    def _value(self, reference: Expression | str, scope: Scope, graph: GraphBuilder, span: Span) -> Ref:
        """Return the one value that an output, or the positions of an axis, are."""
        if isinstance(reference, str):
            if reference not in graph.nodes:
                raise StopExpansion
            node = graph.nodes[reference]
            refs = self.references.node(graph, node, (), scope, node.name_span)
        else:
            refs = self.references.named(reference, scope, graph)
            span = reference.span
        if len(refs) != 1 or is_list(refs[0], graph):
            found = f"not {len(refs)}" if len(refs) != 1 else "and this is a range of passes"
            self.report.error("one-value", graph, span, f"a single value is expected here, {found}")
            raise StopExpansion
        return refs[0]

    # -- what nothing reads

    def _dead(self, root: GraphBuilder, others: Sequence[str]) -> None:
        """Report nodes that nothing reads in any pass of one use; beside a mistake, which may hide a reader, nobody knows.
        `others` are nodes of the root that are read though no node and no output does.
        """
        if not self.expansion.sound:
            return
        idle = {state for graph in self.expansion.all_graphs for state in idle_states(graph, others if graph is root else ())}
        written = WrittenAt()
        by_place: dict[int, list[NodeBuilder]] = defaultdict(list)
        for node in self.expansion.all_nodes:
            there = node.home.nodes.get(node.name) is node and not node.elided and not node.absent
            if there and not node.home.in_used_recipe:
                by_place[written.of(node)].append(node)
        elsewhere = {place(node.name_span) for nodes in by_place.values() for node in nodes if node.read and node not in idle}
        for nodes in by_place.values():
            if not any(node.read and node not in idle for node in nodes):
                hint = "wire it to another node, list it under `outputs`, or remove it"
                if past := self._past(nodes):
                    hint = f"`{past}` below it reads nothing of it: read `input` there, or remove `{nodes[0].name}`"
                if self.names.read.intersection(nodes):
                    hint = "what reads it is left out here: give it the same `when`"
                uses = _uses(nodes[0]) if place(nodes[0].name_span) in elsewhere else ()
                labels = tuple(Label(use.name_span, "in this use") for use in uses)
                but = " but what it becomes next" if any(node.read for node in nodes) else ""
                message = f"nothing reads `{nodes[0].name}`{but}"
                self.report.error("dead-node", nodes[0].home, nodes[0].name_span, message, hint=hint, labels=labels)

    def _past(self, nodes: Sequence[NodeBuilder]) -> str:
        """Return the graph that stands below a node and does not read its input; nothing where there is none."""
        above = ((graph.holder, edge.source) for graph, edge in self.unread.items())
        return next((group.name for group, name in above if group is not None and group.home.nodes.get(name) in nodes), "")

    def _nothing_left(self, root: GraphBuilder) -> None:
        """Report a model of which no node is left."""
        written = [node for name, node in root.nodes.items() if name not in self.expansion.losses.values()]
        if self.expansion.sound and written and all(node.elided for node in written):
            first = written[0]
            hint = "a model needs a node that is always there"
            self.report.error("empty-graph", root, first.name_span, "nothing is left of this graph", hint=hint)


class WrittenAt:
    """Where nodes are written, which is equal for the passes of a repeat and differs from use to use of a definition."""

    def __init__(self) -> None:
        self.homes: dict[GraphBuilder, int] = {}
        self.numbers: dict[tuple[TextPlace, int], int] = {}

    def of(self, node: NodeBuilder) -> int:
        """Return a number for the place of a node in the text, with those of the nodes that hold it."""
        at = (place(node.name_span), self._home(node.home))
        return self.numbers.setdefault(at, len(self.numbers))

    def _home(self, home: GraphBuilder) -> int:
        if home not in self.homes:
            self.homes[home] = self.of(home.holder) if home.holder is not None else -1
        return self.homes[home]


def _uses(node: NodeBuilder) -> Iterator[NodeBuilder]:
    """Yield the nodes that use the definitions in which a node is written, the innermost first."""
    holder = node.home.holder
    while holder is not None:
        if issubclass(holder.part or object, DefinedBlock):
            yield holder
        holder = holder.home.holder
