"""References resolved: every edge becomes a wire, through the borders of as many regions as it crosses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from blocks.core import ports
from composer.diagnostics import Label, Span
from composer.graph.builders import GraphBuilder, NodeBuilder, PendingEdge, PendingTie
from composer.graph.ir import GraphInput, Items, Known, Ref, Tie, Wire
from composer.graph.report import Stop, TooMuch
from composer.graph.scope import Declaration, Scope
from composer.language.evaluate import as_int
from composer.language.express import names
from composer.language.expression import Expression, Path, Slice, Step
from composer.language.near import near
from composer.language.unknown import unknown

if TYPE_CHECKING:
    from composer.graph.expand import Expander

REFERENCES = 100_000
"""Edges of the nodes that are expanded one by one."""


class Wiring:
    """One run over everything that `expand` has built."""

    def __init__(self, expander: Expander) -> None:
        self.expander, self.report = expander, expander.report
        self.references_read = 0
        self.everywhere: dict[str, Span] | None = None

    def connect(self, root: GraphBuilder, positions: Sequence[tuple[str, Span, Expression, Scope]]) -> list[tuple[str, Ref]]:
        """Resolves every edge, output and tie; returns the nodes that give axes their positions."""
        for node in list(self.expander.all_nodes):
            if node.elided:
                continue
            self.report.inside = node.home
            for edge in node.edges.values():
                wire = self.report.attempt(partial(self._wire, edge, node))
                if wire is None:
                    node.broken = True
                elif wire.refs:
                    node.wires[edge.port] = wire
            for tie in node.ties_pending:
                found = self.report.attempt(partial(self._tie, tie, node))
                if found is not None:
                    node.ties.append(found)
        for graph in list(self.expander.all_graphs):
            self.report.inside = graph
            for name, span, reference, scope in graph.outputs_pending:
                ref = self.report.attempt(partial(self._output, reference, scope, graph, span))
                if ref is not None:
                    graph.outputs = {**{name: ref}, **graph.outputs} if name == "" else self._ordered(graph, name, ref)
        found_positions = []
        for axis, span, reference, scope in positions:
            ref = self.report.attempt(partial(self._output, reference, scope, root, span))
            if ref is not None:
                found_positions.append((axis, ref))
        self._dead()
        return found_positions

    def _ordered(self, graph: GraphBuilder, name: str, ref: Ref) -> dict[str, Ref]:
        """Written outputs stand before what is only read from outside."""
        written = [key for key, *_ in graph.outputs_pending]
        outputs = {**graph.outputs, name: ref}
        return dict(sorted(outputs.items(), key=lambda item: written.index(item[0]) if item[0] in written else len(written)))

    def _output(self, reference: Expression | str, scope: Scope, graph: GraphBuilder, span: Span) -> Ref:
        """The one value that an output, or the positions of an axis, are."""
        if isinstance(reference, str):
            if reference not in graph.nodes:
                raise Stop
            refs = self._node(graph, graph.nodes[reference], (), scope, graph.nodes[reference].name_span)
        else:
            refs = self.references(reference, scope, graph)
            span = reference.span
        if len(refs) != 1:
            self.report.error("one-value", span, f"one value is wanted here, not {len(refs)}")
            raise Stop
        return refs[0]

    # -- edges

    def _wire(self, edge: PendingEdge, node: NodeBuilder) -> Wire:
        """What a port reads; an optional port may read nothing."""
        if edge.failed:
            raise Stop
        found = self.edge(edge, node.home)
        refs, spans = tuple(ref for ref, _ in found), tuple(span for _, span in found)
        mark = (ports(node.part) if node.part is not None else {}).get(edge.port, "" if node.part is None else "?")
        if not refs and mark != "?":
            self.report.error("missing-port", edge.references[0].span if edge.references else edge.span,
                                f"port {edge.port} of {node.part.kind if node.part else node.name} cannot be empty")  # fmt: skip
            raise Stop
        if mark != "*" and (len(refs) > 1 or (refs and self._is_list(refs[0], node.home))):
            self.report.error("one-value", spans[0], f"port {edge.port} takes one value, and this is a range of passes",
                                hint="merge them first: {type: add, in: …} or {type: concat, in: …}")  # fmt: skip
            raise Stop
        return Wire(edge.port, refs, edge.span, implied=bool(edge.source), spans=spans)

    def _is_list(self, ref: Ref, home: GraphBuilder) -> bool:
        return ref.node in home.inputs and ref.node not in home.nodes and home.inputs[ref.node].many

    def edge(self, edge: PendingEdge, home: GraphBuilder) -> list[tuple[Ref, Span]]:
        """What a port reads, as references in the graph `home`, each with the place where it is written."""
        if edge.source:
            return [(ref, edge.span) for ref in self._implied(edge, home)]
        return [(ref, reference.span) for reference in edge.references for ref in self.references(reference, edge.scope, home)]

    def _implied(self, edge: PendingEdge, home: GraphBuilder) -> tuple[Ref, ...]:
        if edge.source == "input":
            if not home.inputs and home.failed:
                raise Stop
            if not home.inputs:
                self.report.error("no-input", edge.span, "there is nothing above this node to read", hint="write `in: …`")
                raise Stop
            return (Ref(next(iter(home.inputs))),)
        if edge.source not in home.nodes:
            raise Stop  # the node above has a mistake of its own, reported there
        return self._node(home, home.nodes[edge.source], (), edge.scope, edge.span)

    def references(self, expression: Expression, scope: Scope, home: GraphBuilder) -> tuple[Ref, ...]:
        """What a written reference names, as references in the graph `home`; none for `none`."""
        expression = self.expander.values.branch(expression, scope)
        if not isinstance(expression, Path):
            self.report.error("bad-reference", expression.span, "an edge names a node or an input")
            raise Stop
        first = expression.steps[0]
        if expression.text == "none":
            return ()
        if scope.lacks(first.name):
            return ()
        owner, _ = self._owner(first, scope)
        if first.name == "input" or (first.name in owner.inputs and first.name not in owner.nodes):
            name = next(iter(owner.inputs)) if first.name == "input" else first.name
            if len(expression.steps) > 1:
                self.report.error("unknown-port", expression.steps[1].span, f"the input {name} has no ports")
                raise Stop
            if first.arguments is not None:
                self.report.error("not-a-repeat", first.span, f"{name} is an input, which has no passes")
                raise Stop
            refs: tuple[Ref, ...] = (Ref(name),)
        else:
            target = owner.nodes[first.name]
            earlier = self._pass_around(home, target)
            if earlier is not None and first.arguments is None:
                hint = f"an earlier pass is {first.name}(index), with an index below this one"
                if target.passes is None:
                    hint = f"what `{first.name}` is given is `input`"
                self.report.error("inside-itself", first.span, f"`{first.name}` is what this node is a part of", hint=hint)
                raise Stop
            refs = self._node(owner, target, expression.steps[1:], scope, expression.span, first=first, before=earlier)
        self.references_read += len(refs)
        if self.references_read > REFERENCES:
            self.report.error("too-many-nodes", expression.span, f"the model has more than {REFERENCES:,} edges")
            raise TooMuch
        many = len(refs) != 1 or self._is_range(first)
        return self.fetch(home, owner, refs, many, "_".join(step.name for step in expression.steps), expression.span)

    def _is_range(self, step: Step) -> bool:
        return bool(step.arguments) and isinstance(step.arguments[0], Slice)  # type: ignore[index]  # not None where it is true

    def _owner(self, step: Step, scope: Scope) -> tuple[GraphBuilder, Scope]:
        """The nearest graph around the place where the reference is written that has the name."""
        place: Scope | None = scope
        while place is not None:
            graph = place.graph
            if step.name == "input" and graph.inputs:
                return graph, place
            if step.name in graph.inputs or step.name in graph.nodes:
                return graph, place
            if step.name in graph.failed:
                raise Stop
            place = place.outer
        known = [name for graph in _graphs(scope) for name in [*graph.nodes, *graph.inputs] if "." not in name]
        diagnostic = unknown("unknown-node", step.name_span, "node", step.name, [name for name in known if name != scope.inside])
        if not near(step.name, known) and (elsewhere := self._elsewhere(step.name)):
            diagnostic = type(diagnostic)(
                diagnostic.code, f"`{step.name}` is not in sight from here", step.name_span,
                labels=(Label(elsewhere, "it stands inside another graph"),), hint="name the graph first, such as `group.node`",
            )  # fmt: skip
        self.report.diagnostics.append(diagnostic)
        raise Stop

    def _elsewhere(self, name: str) -> Span | None:
        if self.everywhere is None:
            self.everywhere = {
                node.name: node.name_span
                for node in self.expander.all_nodes
                if not isinstance(node.name_span.source, Declaration)
            }
        return self.everywhere.get(name)

    def _pass_around(self, home: GraphBuilder, node: NodeBuilder) -> int | None:
        """The pass of `node` in which the graph lies, if it lies in one."""
        graph: GraphBuilder | None = home
        while graph is not None and graph.holder is not None:
            if graph.holder is node:
                return graph.pass_index if node.passes is not None else -1
            graph = graph.parent
        return None

    def _node(
        self,
        owner: GraphBuilder,
        node: NodeBuilder,
        steps: Sequence[Step],
        scope: Scope,
        span: Span,
        *,
        first: Step | None = None,
        before: int | None = None,
    ) -> tuple[Ref, ...]:
        """A node's value, or what stands below it, as references in the graph that owns the node."""
        if node.elided:
            return self._through(owner, node, steps, span)
        node.read = True
        if node.passes is not None:
            return self._passes(owner, node, steps, scope, span, first, before)
        if first is not None and first.arguments is not None:
            self.report.error("not-a-repeat", first.span, f"`{node.name}` has no passes", hint=f"write {node.name} alone")
            raise Stop
        if node.graph is not None:
            return (Ref(node.name, self._port(node.graph, steps, scope, node) if steps else ""),)
        if not steps:
            return (Ref(node.name),)
        return (Ref(node.name, self._block_port(node, steps)),)

    def _through(self, owner: GraphBuilder, node: NodeBuilder, steps: Sequence[Step], span: Span) -> tuple[Ref, ...]:
        """What a node that came to nothing passes on."""
        if steps:
            self.report.error("dropped-node", steps[0].span, f"`{node.name}` is empty here, so it has no `{steps[0].name}`")
            raise Stop
        while node.elided:
            edge = next(iter(node.edges.values()))
            if edge.source in ("", "input"):
                return tuple(ref for ref, _ in self.edge(edge, owner))
            if edge.source not in owner.nodes:
                raise Stop  # the node above has a mistake of its own
            node = owner.nodes[edge.source]
        return self._node(owner, node, (), Scope(owner, {}), span)

    def _outputs(self, node: NodeBuilder) -> Mapping[str, str]:
        """A block's outputs by name, as they are declared."""
        assert node.part is not None
        match node.fields.get(node.part.named_by):
            case Items(items=items):
                return {item.value: item.value for item in items if isinstance(item, Known)}
        return {name.rstrip("?"): name for name in node.part.outputs}

    def _block_port(self, node: NodeBuilder, steps: Sequence[Step]) -> str:
        assert node.part is not None
        step = steps[0]
        known = self._outputs(node)
        if len(steps) > 1 or step.name not in known:
            bad = steps[1] if step.name in known else step
            self.report.diagnostics.append(unknown("unknown-port", bad.span, f"output of {node.part.kind}", bad.name, known))
            raise Stop
        if node.dropped and next(iter(known), "") != step.name:
            self.report.error("dropped-node", step.span, f"`{node.name}` is dropped here, so it has no `{step.name}`")
            raise Stop
        if known.get(step.name, "").endswith("?"):
            node.wanted.add(step.name)
        return "" if step.name == next(iter(known), None) else step.name

    def _port(self, graph: GraphBuilder, steps: Sequence[Step], scope: Scope, holder: NodeBuilder) -> str:
        """The output port of a graph that carries what the steps name, made where there is none."""
        step = steps[0]
        outputs = [name for name, *_ in graph.outputs_pending if name]
        inner = graph.nodes.get(step.name)
        if step.name in outputs and inner is not None and not self._same_output(graph, step.name):
            self.report.error(
                "ambiguous",
                step.span,
                f"`{step.name}` is an output of `{holder.name}` and a node in it",
                hint="rename one of them",
            )
            raise Stop
        if step.name in outputs and (inner is None or len(steps) == 1):
            return step.name
        if inner is None and step.name in graph.failed:
            raise Stop
        if inner is None:
            known = [*graph.nodes, *outputs]
            self.report.diagnostics.append(
                unknown("unknown-node", step.name_span, f"node or output in {holder.name}", step.name, known)
            )
            raise Stop
        inside = Scope(graph, scope.values, scope)
        refs = self._node(graph, inner, steps[1:], inside, step.span, first=step if step.arguments is not None else None)
        if len(refs) != 1:
            self.report.error("one-value", step.span, "a range of passes inside another graph cannot be read from outside")
            raise Stop
        name = ".".join(part.name if part.arguments is None else f"{part.name}({self._shown(part, inside)})" for part in steps)
        graph.outputs[name] = refs[0]
        return name

    def _shown(self, step: Step, scope: Scope) -> str:
        return ", ".join(
            "…" if isinstance(a, Slice) else str(self.expander.values.evaluate(a, scope)) for a in step.arguments or ()
        )

    def _same_output(self, graph: GraphBuilder, name: str) -> bool:
        written = next(reference for key, _, reference, _ in graph.outputs_pending if key == name)
        return isinstance(written, Path) and written.text == name

    # -- passes

    def _passes(
        self,
        owner: GraphBuilder,
        node: NodeBuilder,
        steps: Sequence[Step],
        scope: Scope,
        span: Span,
        first: Step | None,
        before: int | None,
    ) -> tuple[Ref, ...]:
        assert node.passes is not None
        chosen, several = self._chosen(node, first, scope, before)
        found = []
        for index in chosen:
            graph = node.passes[index].graph
            if several and steps and not self._has(graph, steps):
                continue
            port = self._port(graph, steps, scope, node) if steps else ""
            found.append(Ref(node.name, port, index))
        if steps and several and not found and (chosen or before is None):
            partly = next((one.graph for one in node.passes if self._has(one.graph, steps[:1])), None)
            if chosen and partly is not None:
                self._port(partly, steps, scope, node)  # it says where the name ends that no pass has
            self.report.error(
                "unknown-node",
                steps[0].span,
                f"no pass of `{node.name}` has `{steps[0].name}`"
                if chosen
                else f"there is no pass of `{node.name}` in this range",
            )
            raise Stop
        if several and not found and before is None:
            self.report.error("empty-range", first.span if first else span, f"no pass of `{node.name}` lies in this range")
            raise Stop
        return tuple(found)

    def _has(self, graph: GraphBuilder, steps: Sequence[Step]) -> bool:
        """Whether a graph has what the steps name, as far as that differs from pass to pass."""
        name, rest = steps[0].name, steps[1:]
        inner = graph.nodes.get(name)
        if inner is None or inner.elided:
            return any(name == key for key, *_ in graph.outputs_pending)
        if inner.graph is not None and rest:
            return self._has(inner.graph, rest)
        return inner.part is None or not rest or rest[0].name in self._outputs(inner)

    def _chosen(self, node: NodeBuilder, first: Step | None, scope: Scope, before: int | None) -> tuple[Sequence[int], bool]:
        assert node.passes is not None
        count = len(node.passes)
        if first is None or first.arguments is None:
            return [count - 1], False
        if len(first.arguments) != 1:
            self.report.error(
                "pass-index",
                first.span,
                "one pass or one range stands in the brackets",
                hint=f"{node.name}(0), {node.name}(2:5) or {node.name}(:)",
            )
            raise Stop
        argument = first.arguments[0]
        end = count if before is None else before
        if isinstance(argument, Slice):
            bounds = [None if b is None else self._index(b, scope) for b in (argument.start, argument.stop)]
            return range(*slice(*bounds).indices(end)), True
        index = self._index(argument, scope)
        if before is not None:
            if not 0 <= index < before:
                there = f"pass {before} sees the passes 0 to {before - 1}" if before else "the first pass has none before it"
                counted = sorted(names(argument) & scope.values.keys())
                message = f"there is no earlier pass {index} of `{node.name}`: {there}"
                hint = f"read it where it exists: … if {counted[0]} > 0 else none" if index < 0 and counted else ""
                self.report.error("pass-index", argument.span, message, hint=hint)
                raise Stop
            return [index], False
        if not -count <= index < count:
            self.report.error(
                "pass-index",
                argument.span,
                f"`{node.name}` has {count} passes, so there is no pass {index}",
                hint=f"0 to {count - 1}, or -1 for the last",
            )
            raise Stop
        return [index % count], False

    def _index(self, expression: Expression, scope: Scope) -> int:
        return as_int(self.expander.values.evaluate(expression, scope), expression.span)

    # -- borders

    def fetch(
        self, home: GraphBuilder, owner: GraphBuilder, refs: tuple[Ref, ...], many: bool, label: str, span: Span
    ) -> tuple[Ref, ...]:
        """Values of the graph `owner` as references in the graph `home` inside it: each border on the way gets an input."""
        if home is owner:
            return refs
        if home.holder is None:
            raise AssertionError("a reference leads to a graph that is not around it")
        if home.sealed:
            self.report.error("slot-edge", span, "what fills this slot sees only what its holder gives it",
                                hint="its holder computes by itself; write the parts as nodes to wire them freely")  # fmt: skip
            raise Stop
        outer = self.fetch(home.holder.home, owner, refs, many, label, span)
        key = (outer, many)
        if key not in home.captures:
            name = home.fresh(label)
            home.captures[key] = name
            home.inputs[name] = GraphInput(name, many=many, captured=True)
            home.capture_wires[name] = Wire(name, outer, span)
        return (Ref(home.captures[key]),)

    # -- ties

    def _tie(self, tie: PendingTie, node: NodeBuilder) -> Tie | None:
        expression = self.expander.values.branch(tie.reference, tie.scope)
        if not isinstance(expression, Path) or expression.text == "none":
            return None
        first = expression.steps[0]
        place: Scope | None = tie.scope
        while place is not None and (
            first.name not in place.graph.nodes or (first.name == node.name and place.graph is node.home)
        ):
            place = place.outer
        if place is None:
            if any(first.name in graph.failed for graph in _graphs(tie.scope)):
                raise Stop
            known = [name for graph in _graphs(tie.scope) for name in graph.nodes if graph.nodes[name] is not node]
            self.report.diagnostics.append(unknown("unknown-node", first.name_span, "node", first.name, known))
            raise Stop
        up, graph = 0, node.home
        while graph is not place.graph:
            assert graph.holder is not None
            up, graph = up + 1, graph.holder.home
        path: list[str | int] = []
        for step in expression.steps:
            path.append(step.name)
            if step.arguments is not None:
                target = place.graph.nodes[first.name]
                if step is not first or target.passes is None:
                    self.report.error("not-a-repeat", step.span, f"`{step.name}` has no passes")
                    raise Stop
                chosen, several = self._chosen(target, step, tie.scope, self._pass_around(node.home, target))
                if several:
                    self.report.error("one-value", step.span, "a tie names one node or one parameter, not a range of passes")
                    raise Stop
                path.extend(chosen)
            elif step is first and (target := place.graph.nodes[first.name]).passes is not None and len(expression.steps) > 1:
                path.append(len(target.passes or ()) - 1)
        return Tie(tie.parameter, up, tuple(path), expression.span, tie.span)

    # -- what nothing reads

    def _dead(self) -> None:
        """Reports nodes that nothing reads in any pass; beside another mistake, which may hide a reader, it cannot be told."""
        if any(found.severity == "error" for found in [*self.expander.recipe.diagnostics, *self.report.diagnostics]):
            return
        by_place: dict[tuple[str, int, int], list[NodeBuilder]] = {}
        for node in self.expander.all_nodes:
            if node.name in node.home.nodes and node.home.nodes[node.name] is node and not node.home.lent:
                by_place.setdefault((node.name_span.source.name, node.name_span.line, node.name_span.column), []).append(node)
        for nodes in by_place.values():
            if not any(node.read or node.elided or node.dropped for node in nodes):
                node = nodes[0]
                self.report.error(
                    "dead-node",
                    node.name_span,
                    f"nothing reads `{node.name}`",
                    hint="wire it with `in`, name it under `outputs`, or remove it",
                )


def _graphs(scope: Scope) -> Iterable[GraphBuilder]:
    place: Scope | None = scope
    while place is not None:
        yield place.graph
        place = place.outer
