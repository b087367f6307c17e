"""The options of every node: its edges, its condition, whether it is trained, its ties."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from blocks.core import ports
from blocks.core.fields import formula_field
from composer.graph.passes.error_report import StopExpansion, text_of
from composer.graph.passes.expand.builders import NodeBuilder, PendingEdge, PendingTie, Scope, Site
from composer.graph.passes.expand.evaluation import MAX_DEPTH, Evaluator
from composer.language.expressions.ast import Expression, If, RefPath
from composer.language.expressions.parser import ExpressionError
from composer.language.recipe.ast import EdgeDecl, NodeOptions
from composer.language.recipe.defined_block import is_defined
from composer.language.unknown_names import unknown

Written: TypeAlias = Sequence[tuple[NodeOptions, Scope, bool]]
"""Options, each with the place where they are written, and whether the node fills a slot there."""
GRAPH_INPUT = "input"
"""The first port of a node with a graph of its own."""


def apply_options(node: NodeBuilder, options: NodeOptions, scope: Scope, site: Site, values: Evaluator) -> None:
    """Record in the node the options that are written in `scope`, those at a name that stands for it, and the edges that are
    implied.
    """
    written = ((options, scope, site.fed), *site.given)
    if node.part is not None and formula_field(node.part):
        pass  # its edges are the names in the formula
    elif node.part is None:
        _edges_of_graph(node, written, site, values)
    else:
        _edges_of_block(node, written, site, values)
    for each, place, _ in written:
        if each.when is not None and not node.dropped:
            node.dropped = not values.boolean(each.when, place, each.when.span)
            node.when = text_of(each.when.span)
        if each.trainable is not None:
            node.trainable = node.trainable and values.boolean(each.trainable, place, each.trainable.span)
        if isinstance(each.tie, tuple):
            node.ties_pending += [PendingTie(name, reference, place, span) for name, span, reference in each.tie]
        elif each.tie is not None:
            node.ties_pending.append(PendingTie("", each.tie, place, each.tie.span))


def edges_of_nothing(node: NodeBuilder, site: Site) -> None:
    """Record what an empty node reads, which takes its place: what is written at its name, or else the node above."""
    written = [(edge, place) for options, place, fed in site.given if not fed for edge in options.edges[:1]]
    node.edges["x"] = site.implied("x")
    for edge, place in written:
        node.edges["x"] = PendingEdge("x", edge.references or (), place, edge.key, failed=edge.references is None)


def _edges_of_graph(node: NodeBuilder, written: Written, site: Site, values: Evaluator) -> None:
    for edge, place, fed in _edges(written):
        port = edge.port or GRAPH_INPUT
        if fed and port == GRAPH_INPUT:
            _already_fed(edge, site, values)
        else:
            _edge(node, port, edge, place, values, several=False)
    if GRAPH_INPUT not in node.edges and (site.fed or not node.edges):
        node.edges = {GRAPH_INPUT: site.implied(GRAPH_INPUT), **node.edges}
    node.unfed = {port for port, edge in node.edges.items() if _reads_nothing(edge, values)}


def _edges_of_block(node: NodeBuilder, written: Written, site: Site, values: Evaluator) -> None:
    assert node.part is not None
    known = ports(node.part)
    first = next(iter(known), "")
    for edge, place, fed in _edges(written):
        port = edge.port or first
        if fed and port in (GRAPH_INPUT, first):
            _already_fed(edge, site, values)
        elif not port:
            values.report.error("no-input", site.home, edge.key, f"{node.part.kind} takes no input", hint="remove this edge")
        elif port not in known and not _empty(edge, place, values):  # at a name, whose block is known only here
            values.report.add(unknown("unknown-port", edge.key, "port", port, known, of=node.part.kind))
        elif port in known:
            _edge(node, port, edge, place, values, several=known[port] == "*")
    if is_defined(node.part) or node.part.graph:
        optional = (port for port in node.edges if known[port] == "?")
        node.unfed = {port for port in optional if _reads_nothing(node.edges[port], values)}
    for port, mark in known.items():
        if port in node.edges or mark == "?":
            continue
        if port == first and mark == "":
            node.edges[port] = site.implied(port)
            continue
        node.broken = True
        if not any(options.misread for options, _, _ in written):
            hint = f"in: {{{port}: …}}" if mark == "" else "in: [first, second]"
            message = f"port {port} of {node.part.kind} is not connected"
            values.report.error("missing-port", site.home, node.name_span, message, hint=hint)


def _edges(written: Written) -> Iterator[tuple[EdgeDecl, Scope, bool]]:
    for options, scope, fed in written:
        yield from ((edge, scope, fed) for edge in options.edges)


def _empty(edge: EdgeDecl, scope: Scope, values: Evaluator) -> bool:
    """Return whether a condition decides that nothing is wired, so that the port need not exist: another block may have it."""
    written = edge.references or ()
    if not written or not all(isinstance(each, If) for each in written):
        return False
    chosen = [values.branch(each, scope) for each in written]
    return all(isinstance(each, RefPath) and each.text == "none" for each in chosen)


def _reads_nothing(edge: PendingEdge, values: Evaluator) -> bool:
    """Return whether an edge is known to come to nothing here, so that a graph has no such input: `none`, an optional input that
    the block around it is not given, or what is left out and would pass that on.
    """
    for _ in range(MAX_DEPTH):
        name = edge.source
        if not name:
            chosen = _chosen(edge, values)
            if not isinstance(chosen, RefPath):
                return False
            if chosen.text == "none" or edge.scope.lacks(chosen.steps[0].name):
                return True
            name = chosen.text
        above = next((place.graph.nodes.get(name) for place in edge.scope.around() if place.graph.names(name)), None)
        if above is None or not above.elided or len(above.edges) != 1:
            return False
        (edge,) = above.edges.values()
    return False


def _chosen(edge: PendingEdge, values: Evaluator) -> Expression | None:
    """Return the one reference of an edge with its conditions decided; None where there are several, or a mistake, which is
    reported when the edge is wired.
    """
    try:
        return values.branch(edge.references[0], edge.scope) if len(edge.references) == 1 else None
    except (ExpressionError, StopExpansion):
        return None


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
