"""What references name: a node, an input, or what stands inside of a node, seen from the graph that reads it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from composer.diagnostics import Declaration, Label, Span
from composer.graph.ir import Ref
from composer.graph.passes.error_report import StopExpansion
from composer.graph.passes.expand.builders import GraphBuilder, NodeBuilder, PendingEdge, Scope
from composer.graph.passes.expand.evaluation import MAX_DEPTH
from composer.graph.passes.expand.expansion import MAX_EDGES, Expansion
from composer.graph.passes.expand.node_options import GRAPH_INPUT
from composer.graph.passes.resolve.captures import fetch, is_list
from composer.graph.passes.resolve.left_out import has, leaves_out, outputs_of, passed_on, refuse_range, where_present
from composer.graph.passes.resolve.pass_references import enclosing_pass, is_range, refuse_inside_itself, selected_passes
from composer.language.expressions.ast import Expression, If, PathStep, RefPath, Slice
from composer.language.suggestions import suggest
from composer.language.unknown_names import unknown


class References:
    """Resolves references once all nodes are there."""

    def __init__(self, expansion: Expansion, *, wiring: bool = True) -> None:
        self.expansion, self.values, self.report = expansion, expansion.values, expansion.report
        self.wiring = wiring
        """Whether what is named is wired; otherwise its names are looked up, and no graph changes."""
        self.read: set[NodeBuilder] = set()
        """The nodes that have been named."""
        self.passed_on: dict[NodeBuilder, tuple[Ref, ...]] = {}
        """What nodes that came to nothing pass on."""
        self.following: list[NodeBuilder] = []
        """Those through which a reference is being followed."""
        self.entered: list[GraphBuilder] = []
        """Graphs whose input has been read."""
        self.count = 0
        """References so far."""
        self.everywhere: dict[str, Span] | None = None
        """Where the nodes of all graphs are written, once that is asked."""

    def edge(self, edge: PendingEdge, home: GraphBuilder) -> list[tuple[Ref, Span]]:
        """Return what a port reads, as references in the graph `home`, each with the place where it is written."""
        if edge.source:
            return [(ref, edge.span) for ref in self._implied(edge, home)]
        return [(ref, reference.span) for reference in edge.references for ref in self.named(reference, edge.scope, home)]

    def _implied(self, edge: PendingEdge, home: GraphBuilder) -> tuple[Ref, ...]:
        if edge.source == "input":
            if not home.first_input and not home.failed:
                hint = "write `in: …`"
                if home.holder is not None and home.holder.part is not None:
                    hint = f'`{home.holder.part.kind}` declares no inputs: inputs: {{x: "float[..., dim]"}}'
                self.report.error("no-input", home, edge.span, "there is nothing above this node to read", hint=hint)
            return (self._handed(home, home.first_input),)
        if edge.source not in home.nodes:
            raise StopExpansion  # the node above has a mistake of its own, reported there
        return self.node(home, home.nodes[edge.source], (), edge.scope, edge.span)

    def named(self, expression: Expression, scope: Scope, home: GraphBuilder) -> tuple[Ref, ...]:
        """Return what a written reference names, as references in the graph `home`; none for `none`."""
        expression = self.values.branch(expression, scope, self._look_up)
        if not isinstance(expression, RefPath):
            self.report.error("bad-reference", scope.graph, expression.span, "an edge must name a node or an input")
            raise StopExpansion
        first, *steps = expression.steps
        if expression.text == "none" or scope.lacks(first.name):
            return ()
        owner = self._owner(first, scope)
        if first.name == "input" or (owner.is_handed(first.name) and first.name not in owner.nodes):
            refs: tuple[Ref, ...] = (self._input(owner, first, steps, scope),)
        else:
            target = owner.nodes[first.name]
            earlier = enclosing_pass(home, target)
            if earlier is not None and first.arguments is None:
                refuse_inside_itself(target, first, scope.graph, self.values)
            refs = self.node(owner, target, steps, scope, expression.span, first=first, before=earlier)
            if target.elided:
                self._outside(refs, owner, target, scope, home, expression.span)
        self.count += len(refs)
        if self.count > MAX_EDGES:
            self.report.too_much(scope.graph, expression.span, f"the model has more than {MAX_EDGES:,} edges")
        if not self.wiring:
            return refs
        many = len(refs) != 1 or is_range(first)
        return fetch(home, owner, refs, many, "_".join(step.name for step in expression.steps), expression.span, self.report)

    def _look_up(self, expression: Expression, scope: Scope) -> None:
        """Report a name that no node has, in the branch of a conditional that is not taken."""
        match expression:
            case If(condition=condition, then=then, otherwise=otherwise):
                self.values.lookup.values(condition, scope)
                self._look_up(then, scope)
                self._look_up(otherwise, scope)
            case RefPath(text=text, steps=(first, *_)) if self.wiring and text != "none" and not scope.lacks(first.name):
                self.report.attempt(scope.graph, lambda: self._owner(first, scope))

    def _input(self, owner: GraphBuilder, first: PathStep, steps: Sequence[PathStep], scope: Scope) -> Ref:
        name = owner.first_input if first.name == "input" else first.name
        if steps:
            self.report.error("unknown-port", scope.graph, steps[0].span, f"the input {name} has no ports")
            raise StopExpansion
        if first.arguments is not None:
            self.report.error("not-a-repeat", scope.graph, first.span, f"{name} is an input, which has no passes")
            raise StopExpansion
        return self._handed(owner, name)

    def _handed(self, owner: GraphBuilder, name: str) -> Ref:
        """Return an input of a graph, which is then read."""
        if not name:
            raise StopExpansion
        if self.wiring and name == GRAPH_INPUT:
            self.entered.append(owner)
        return Ref(name)

    def _owner(self, step: PathStep, scope: Scope) -> GraphBuilder:
        """Return the nearest graph around the place where the reference is written that has the name."""
        graphs = [place.graph for place in scope.around()]
        for graph in graphs:
            if (step.name == "input" and graph.first_input) or graph.names(step.name):
                return graph
            if step.name in graph.failed:
                raise StopExpansion
        known = [name for graph in graphs for name in [*graph.nodes, *filter(graph.is_handed, graph.inputs)] if "." not in name]
        elsewhere = None if suggest(step.name, known) else self._elsewhere(step.name)
        if elsewhere is None:
            others = [name for name in known if name != scope.inside]
            self.report.add(unknown("unknown-node", step.name_span, "node", step.name, others))
        else:
            labels = (Label(elsewhere, "it is inside another graph"),)
            hint = "name the graph first, such as `group.node`"
            self.report.error(
                "unknown-node", scope.graph, step.name_span, f"`{step.name}` is not in scope here", hint=hint, labels=labels
            )
        raise StopExpansion

    def _elsewhere(self, name: str) -> Span | None:
        if self.everywhere is None:
            written = (node for node in self.expansion.all_nodes if not isinstance(node.name_span.source, Declaration))
            self.everywhere = {node.name: node.name_span for node in written}
        return self.everywhere.get(name)

    # -- nodes, and what is inside of them

    def node(
        self,
        owner: GraphBuilder,
        node: NodeBuilder,
        steps: Sequence[PathStep],
        scope: Scope,
        span: Span,
        *,
        first: PathStep | None = None,
        before: int | None = None,
    ) -> tuple[Ref, ...]:
        """Return a node's value, or what `steps` name below it, as references in the graph that owns the node.

        `first` is the step that names the node, `before` the pass of it in which that is written.
        """
        if node.elided:
            return self._through(owner, node, steps, scope, span)
        self.read.add(node)
        node.read = node.read or self.wiring
        if node.passes is not None:
            return self._passes(node, steps, scope, span, first, before)
        if first is not None and first.arguments is not None:
            self.report.error(
                "not-a-repeat",
                scope.graph,
                first.span,
                f"`{node.name}` has no passes",
                hint=f"write {node.name} without an index",
            )
            raise StopExpansion
        if not steps:
            return (Ref(node.name),)
        port = self._output(node, steps, scope) if node.graph is None else self._inner(node.graph, steps, scope, node)
        return (Ref(node.name, port),)

    def _through(
        self, owner: GraphBuilder, node: NodeBuilder, steps: Sequence[PathStep], scope: Scope, span: Span
    ) -> tuple[Ref, ...]:
        """Return what a node that came to nothing passes on."""
        if steps:
            state, hint = ("left out", where_present(node, steps)) if node.dropped else ("empty", "")
            message = f"`{node.name}` is {state} here, so it has no `{'.'.join(step.name for step in steps)}`"
            self.report.error("dropped-node", scope.graph, steps[0].span, message, hint=hint)
            raise StopExpansion
        if node in self.following:
            self._in_circle(node, scope, span)
        if len(self.following) == MAX_DEPTH:
            message = f"more than {MAX_DEPTH} nodes that are left out read one another here"
            self.report.error("too-deep", scope.graph, span, message, hint="name what is read itself")
            raise StopExpansion
        if node not in self.passed_on:
            self.following.append(node)
            try:
                self.passed_on[node] = self._followed(owner, node, scope, span)
            finally:
                self.following.pop()
        return self.passed_on[node]

    def _outside(
        self, refs: Sequence[Ref], owner: GraphBuilder, target: NodeBuilder, scope: Scope, home: GraphBuilder, span: Span
    ) -> None:
        """Report what a node that came to nothing passes on to a graph inside of it, unless it is of an earlier pass."""
        for ref in refs:
            around = owner.nodes.get(ref.node)
            inside = enclosing_pass(home, around) if around is not None and around.passes is not None else None
            if inside is not None and (ref.index is None or ref.index >= inside):
                message = f"`{target.name}` is left out here, and `{ref.node}`, which it reads, contains this node"
                self.report.error("cycle", scope.graph, span, message, hint=f"read `input`, or an earlier pass of `{ref.node}`")
                raise StopExpansion

    def _in_circle(self, node: NodeBuilder, scope: Scope, span: Span) -> NoReturn:
        """Report a node that comes to itself."""
        hint = "remove one of the edges between what is left out"
        self.report.error("cycle", scope.graph, span, f"`{node.name}` is left out here, and reads itself", hint=hint)
        raise StopExpansion

    def _followed(self, owner: GraphBuilder, node: NodeBuilder, scope: Scope, span: Span) -> tuple[Ref, ...]:
        """Return what is above a chain of nodes that came to nothing."""
        entered: set[NodeBuilder] = set()
        while node.elided:
            if node in entered:
                self._in_circle(node, scope, span)
            entered.add(node)
            edge = passed_on(node, scope, span, self.report)
            above = edge.source if edge.source != "input" else ""
            if not edge.source and isinstance(only := edge.references[0], RefPath) and only.text in owner.nodes:
                above = only.text if edge.scope.graph is owner else ""
            if not above:
                return tuple(ref for ref, _ in self.edge(edge, owner))
            if above not in owner.nodes:
                raise StopExpansion  # the node above has a mistake of its own
            node = owner.nodes[above]
        return self.node(owner, node, (), Scope(owner, {}), span)

    def _output(self, node: NodeBuilder, steps: Sequence[PathStep], scope: Scope) -> str:
        """Return the output of a block that the one step names; nothing for the first."""
        assert node.part is not None
        step, known = steps[0], outputs_of(node)
        if len(steps) > 1 or step.name not in known:
            bad = steps[1] if step.name in known else step
            self.report.add(unknown("unknown-port", bad.span, "output", bad.name, known, of=node.part.kind))
            raise StopExpansion
        if step.name == next(iter(known)):
            return ""
        if self.wiring and known[step.name].endswith("?"):
            node.requested_outputs.add(step.name)
        return step.name

    def _inner(self, graph: GraphBuilder, steps: Sequence[PathStep], scope: Scope, holder: NodeBuilder) -> str:
        """Return the output of a graph that carries what the steps name, made where there is none."""
        step = steps[0]
        outputs = {name: reference for name, _, reference, _ in graph.outputs_pending if name}
        inner = graph.nodes.get(step.name)
        if inner is not None and step.name in outputs:
            written = outputs[step.name]
            if not (isinstance(written, RefPath) and written.text == step.name):
                message = f"`{step.name}` is an output of `{holder.name}` and a node in it"
                self.report.error("ambiguous", scope.graph, step.span, message, hint="rename one of them")
                raise StopExpansion
        if step.name in outputs and (inner is None or len(steps) == 1):
            return step.name
        if inner is None and step.name in graph.failed:
            raise StopExpansion
        if inner is None:
            what, known = f"node or output in {holder.name}", [*graph.nodes, *outputs]
            self.report.add(unknown("unknown-node", step.name_span, what, step.name, known))
            raise StopExpansion
        inside = Scope(graph, scope.values, scope)
        refs = self.node(graph, inner, steps[1:], inside, step.span, first=step if step.arguments is not None else None)
        if len(refs) != 1 or is_list(refs[0], graph):
            self.report.error(
                "one-value", scope.graph, step.span, "a range of passes inside another graph cannot be read from outside"
            )
            raise StopExpansion
        name = ".".join(self._shown(one, inside) for one in steps)
        if self.wiring:
            graph.outputs[name] = refs[0]
        return name

    def _shown(self, step: PathStep, scope: Scope) -> str:
        if step.arguments is None:
            return step.name
        values = ("…" if isinstance(one, Slice) else str(self.values.evaluate(one, scope)) for one in step.arguments)
        return f"{step.name}({', '.join(values)})"

    # -- passes

    def _passes(
        self, node: NodeBuilder, steps: Sequence[PathStep], scope: Scope, span: Span, first: PathStep | None, before: int | None
    ) -> tuple[Ref, ...]:
        assert node.passes is not None
        passes = selected_passes(node, first, scope, before, self.values)
        if is_range(first) and (without := [index for index in passes if leaves_out(node.passes[index].graph, steps)]):
            refuse_range(node, passes, without, steps, scope, self.report)
        if not is_range(first):
            return tuple(self._pass(node, index, steps, scope) for index in passes)
        found = tuple(
            self._pass(node, index, steps, scope) for index in passes if not steps or has(node.passes[index].graph, steps)
        )
        if found or (before is not None and not (steps and passes)):
            return found
        if not steps:
            self.report.error(
                "empty-range", scope.graph, first.span if first else span, f"no pass of `{node.name}` is in this range"
            )
            raise StopExpansion
        partly = next((one.graph for one in node.passes if has(one.graph, steps[:1])), None)
        if passes and partly is not None:
            self._inner(partly, steps, scope, node)  # it says where the name ends that no pass has
        lacking = f"no pass of `{node.name}` has `{steps[0].name}`"
        message = lacking if passes else f"there is no pass of `{node.name}` in this range"
        there = dict.fromkeys(name for one in node.passes for name in one.graph.nodes)
        hint = unknown("unknown-node", steps[0].span, "node", steps[0].name, there).hint
        self.report.error("unknown-node", scope.graph, steps[0].span, message, hint=hint)
        raise StopExpansion

    def _pass(self, node: NodeBuilder, index: int, steps: Sequence[PathStep], scope: Scope) -> Ref:
        assert node.passes is not None
        return Ref(node.name, self._inner(node.passes[index].graph, steps, scope, node) if steps else "", index)
