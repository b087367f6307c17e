"""The options of every node: its edges, its condition, whether it is trained, its ties."""

from __future__ import annotations

from blocks.core import ports
from composer.graph.passes.error_report import text_of
from composer.graph.passes.expand.builders import NodeBuilder, PendingEdge, PendingTie, Scope, Site
from composer.graph.passes.expand.evaluation import Evaluator
from composer.language.recipe.ast import EdgeDecl, NodeOptions

GRAPH_INPUT = "input"
"""The first port of a node with a graph of its own."""


def apply_options(node: NodeBuilder, options: NodeOptions, scope: Scope, site: Site, values: Evaluator) -> None:
    """Record in the node the options that are written in `scope`, and the edges that are implied."""
    if node.part is None:
        _edges_of_graph(node, options, scope, site, values)
    else:
        _edges_of_block(node, options, scope, site, values)
    if options.when is not None:
        node.dropped = not values.boolean(options.when, scope, options.when.span)
        node.when = text_of(options.when.span)
    if options.trainable is not None:
        node.trainable = values.boolean(options.trainable, scope, options.trainable.span)
    if isinstance(options.tie, tuple):
        node.ties_pending = [PendingTie(name, reference, scope, span) for name, span, reference in options.tie]
    elif options.tie is not None:
        node.ties_pending = [PendingTie("", options.tie, scope, options.tie.span)]


def _edges_of_graph(node: NodeBuilder, options: NodeOptions, scope: Scope, site: Site, values: Evaluator) -> None:
    for edge in options.edges:
        port = edge.port or GRAPH_INPUT
        if site.fed and port == GRAPH_INPUT:
            _already_fed(edge, site, values)
        else:
            _edge(node, port, edge, scope, values, several=False)
    if GRAPH_INPUT not in node.edges and (site.fed or not node.edges):
        node.edges = {GRAPH_INPUT: site.implied(GRAPH_INPUT), **node.edges}


def _edges_of_block(node: NodeBuilder, options: NodeOptions, scope: Scope, site: Site, values: Evaluator) -> None:
    assert node.part is not None
    known = ports(node.part)
    first = next(iter(known), "")
    for edge in options.edges:
        port = edge.port or first
        if site.fed and port in (GRAPH_INPUT, first):
            _already_fed(edge, site, values)
        elif not port:
            values.report.error("no-input", site.home, edge.key, f"{node.part.kind} takes no input", hint="remove this edge")
        else:
            _edge(node, port, edge, scope, values, several=known.get(port) == "*")
    for port, mark in known.items():
        if port in node.edges or mark == "?":
            continue
        if port == first and mark == "":
            node.edges[port] = site.implied(port)
            continue
        node.broken = True
        if not options.misread:
            hint = f"in: {{{port}: …}}" if mark == "" else "in: [first, second]"
            message = f"port {port} of {node.part.kind} is not connected"
            values.report.error("missing-port", site.home, node.name_span, message, hint=hint)


def _edge(node: NodeBuilder, port: str, edge: EdgeDecl, scope: Scope, values: Evaluator, *, several: bool) -> None:
    if edge.references is None:
        node.edges[port] = PendingEdge(port, (), scope, edge.key, failed=True)
    elif len(edge.references) != 1 and not several:
        message = f"port {port} takes one value, not {len(edge.references)}"
        hint = "merge them first: {type: add, in: […]} or {type: concat, in: […]}"
        values.report.error("one-value", node.home, edge.key, message, hint=hint)
    else:
        node.edges[port] = PendingEdge(port, edge.references, scope, edge.key)


def _already_fed(edge: EdgeDecl, site: Site, values: Evaluator) -> None:
    values.report.error(
        "fed-port", site.home, edge.key, "the input of a block in a slot comes from the block around it", hint="remove this edge"
    )
