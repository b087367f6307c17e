"""What is there while a recipe is expanded: its values, its choices, and every graph and node written so far."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from blocks.core import Library, Part, ports
from composer.diagnostics import Span
from composer.graph.ir import GraphInput, Known, Ref
from composer.graph.passes.error_report import ErrorReport
from composer.graph.passes.expand.block_choice import Choices
from composer.graph.passes.expand.builders import Binding, GraphBuilder, NodeBuilder, Scope, Site
from composer.graph.passes.expand.evaluation import Evaluator
from composer.language.recipe.ast import GraphBody, NodeContent, ParsedRecipe

MAX_EDGES = 100_000
"""Edges of the nodes that are expanded one by one."""
MAX_VALUES = 40_000
"""Params of the blocks that a recipe defines, in all of their uses, and items of lists in fields."""


class Expansion:
    """One run of `expand`: what is written out, and the mistakes in it."""

    def __init__(self, recipe: ParsedRecipe, library: Library, values: dict[str, Binding]) -> None:
        self.recipe, self.library = recipe, library
        self.report = ErrorReport()
        self.values = Evaluator(self.report)
        self.choices = Choices(recipe, self.values)
        self.all_nodes: list[NodeBuilder] = []
        self.all_graphs: list[GraphBuilder] = []
        self.root = self.graph(None)
        self.values_so_far = 0
        """Params of uses and items of lists so far."""
        self.params = values
        """What the params of the recipe are."""
        self.used: set[type[Part]] = set()
        """The blocks that the recipe defines and uses."""
        self.losses: dict[str, str] = {}
        """The recipe's own losses, each with its node."""
        self.positions: list[tuple[str, Ref]] = []
        """The nodes that give axes their positions, once references are resolved."""

    @property
    def scope(self) -> Scope:
        """The outermost place of the recipe."""
        return Scope(self.root, self.params)

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong so far."""
        return not any(found.severity == "error" for found in [*self.recipe.diagnostics, *self.report.diagnostics])

    def graph(self, holder: NodeBuilder | None, *, sealed: bool = False, passes: int = 0) -> GraphBuilder:
        """Return an empty graph in the node that holds it. A node and its graph are two levels of text, what fills a slot is one;
        what differs from pass to pass is in a list, or in choices that halve the passes.
        """
        levels = 1 if sealed else 2 + passes.bit_length()
        graph = GraphBuilder(holder, sealed, 0 if holder is None else holder.home.levels + levels)
        graph.differing = None if holder is None else holder.home.differing
        if sealed:
            graph.inputs["input"] = GraphInput("input")
        self.all_graphs.append(graph)
        return graph

    def inside(self, holder: NodeBuilder, ports: Iterable[str]) -> GraphBuilder:
        """Return the graph of a node, with an input for each of the ports that something is wired to."""
        holder.graph = self.graph(holder)
        holder.graph.inputs |= {port: GraphInput(port) for port in ports if port in holder.fed}
        holder.graph.absent |= holder.unfed
        return holder.graph

    def new(self, site: Site, span: Span) -> NodeBuilder:
        """Return a node that is nothing yet."""
        node = NodeBuilder(site.name, site.home, site.span, span)
        self.all_nodes.append(node)
        return node

    def default(self, part: Part, site: Site) -> NodeBuilder:
        """Return a node for a part that is the default of a slot."""
        node = self.new(site, site.span)
        node.part = type(part)
        node.fields = {key: Known(getattr(part, key), site.span) for key in type(part).model_fields}
        port = next(iter(ports(type(part))))
        node.edges[port] = site.implied(port)
        return node

    def count_values(self, more: int, graph: GraphBuilder, span: Span) -> None:
        """Count values before they are worked out.

        Raises:
            TooMuch: where there are too many, which is reported.
        """
        self.values_so_far += more
        if self.values_so_far > MAX_VALUES:
            message = f"lists and the params of blocks have more than {MAX_VALUES:,} values"
            self.report.too_much(graph, span, message)


class GraphWriter(Protocol):
    """Writes out what is inside of something else."""

    @property
    def written(self) -> int:
        """The number of nodes so far."""

    def node(self, what: NodeContent | None, scope: Scope, site: Site) -> NodeBuilder:
        """Return the node that is written, or raise `StopExpansion` where there is none, which is reported."""

    def body(self, body: GraphBody, graph: GraphBuilder, scope: Scope) -> None:
        """Write nodes into a graph."""
