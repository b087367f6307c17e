"""Building the summary of a model: its tree with repeats folded, and its costs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from composer.cost.alike_passes import alike
from composer.cost.costs import costs
from composer.cost.lengths import assumed, axes, unknown_axis
from composer.cost.summary import Rows, Summary, SummaryRow
from composer.cost.units import ranges
from composer.diagnostics import RecipeError, Span
from composer.graph.anatomy import TYPED
from composer.graph.describe import kind_of, phrases
from composer.graph.ir import RepeatNode
from composer.graph.parameters import NamedParameter, in_file_order, owned
from composer.graph.passes.roll_layers.roll_layers import folded
from composer.graph.scans.forms import scan_forms
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedProgram, TypedRepeat, TypedScan, is_renewal
from composer.graph.visit import Fold, Inside, every_pass, walk


def summarize(typed: TypedProgram, lengths: Mapping[str, int] | None = None) -> Summary:
    """Return the summary of a model at given lengths of its axes.

    Raises:
        RecipeError: The model has no axis of one of these names.
    """
    known = axes(typed)
    if strange := [name for name in lengths or () if name not in known]:
        raise RecipeError([unknown_axis(name, known) for name in strange])
    recipe = typed.untyped.recipe
    model = folded(typed)  # layers written one by one are one row, as in a drawing
    written = {visit.node.node for visit in walk(typed.root, every_pass, once=True) if isinstance(visit.node, TypedRepeat)}
    rows = _Rows(model.parameters, written, scan_forms(typed)).graph(model.program.root)
    return Summary(recipe.name, recipe.doc, recipe.paper, costs(typed, lengths), rows, assumed(typed, lengths or {}))


class _Rows:
    """Builds the rows of nodes; a row stands for all places (prefixes of names) of its graph."""

    def __init__(self, table: Sequence[NamedParameter], written: Collection[RepeatNode], forms: Mapping[Span, str]) -> None:
        self.written, self.forms = written, forms
        """The repeats that the recipe itself contains, and how its scans run."""
        self.owned = owned(table)
        self.ties = {entry.name: entry.tied_to for entry in table if entry.tied_to}
        self.frozen = {entry.name for entry in table if not (entry.tied_to or entry.trainable)}

    def graph(self, graph: TypedGraph) -> tuple[SummaryRow, ...]:
        """Return the rows of a graph's nodes."""
        return Fold(TYPED, self._row, lambda graph, rows: tuple(rows), _listed).graph(graph, ("",))

    def _row(self, node: TypedNode, inside: Inside[TypedGraph, SummaryRow, Rows]) -> SummaryRow:
        """Return the row of a node, with its children."""
        counts = [self.owned.get(place, 0) for place in inside.places]
        output = str(next(iter(node.outputs.values()), ""))
        block, detail, children = kind_of(node), "", tuple[SummaryRow, ...]()
        match node:
            case TypedBlock(slots=slots):
                detail = ", ".join([*phrases(node), *self._notes(node, inside.places[0])])
                filled = ((slots[name], row) for name, row in inside.slots)
                children = tuple(replace(row, output="") for held, row in filled if self._has_weights(held))
            case TypedGroup() | TypedScan():
                detail = self.forms.get(node.node.name_span, "") if isinstance(node, TypedScan) else ""
                children = tuple(row for _, rows in inside.regions for row in rows)
            case TypedRepeat(passes=passes):
                block = f"× {len(passes)}"
                says = {"written one by one": node.node not in self.written, "one set of weights": node.node.share is not None}
                detail = ", ".join(words for words, apply in says.items() if apply)
                children = tuple(self._passes(len(passes), inside, shared=node.node.share is not None))
            case _:
                assert_never(node)
        return SummaryRow(inside.name, block, detail, output, counts[0], sum(counts), children)

    def _passes(self, count: int, inside: Inside[TypedGraph, SummaryRow, Rows], *, shared: bool) -> Iterator[SummaryRow]:
        """Yield the rows of one pass, or a row for each kind of pass, where those that differ by a number are one kind."""
        kinds = [([one.number for one in passes if one.number is not None], passes, rows) for passes, rows in inside.regions]
        single = [kind for kind in kinds if len(kind[0]) == 1]
        together = [
            ([single[place][0][0] for place in places], single[places[0]][1], rows)
            for places, rows in alike([rows for _, _, rows in single], shared=shared)
        ]
        kinds = sorted([*(kind for kind in kinds if len(kind[0]) > 1), *together], key=lambda kind: kind[0])
        for indices, passes, rows in kinds:
            if len(kinds) == 1:
                yield from rows
                continue
            output = str(next(iter(passes[0].graph.outputs.values()), ""))
            each, total = sum(row.parameters for row in rows), sum(row.total for row in rows)
            which = f"{'pass' if len(indices) == 1 else 'passes'} {ranges(indices)}"
            yield SummaryRow(f"{len(indices)} of {count}", "", which, output, each, total, rows)

    def _notes(self, node: TypedBlock, place: str) -> Iterator[str]:
        names = [f"{place}.{parameter.name}" for parameter in node.parameters]
        for name in names:
            if name in self.ties:
                yield f"{name.removeprefix(place)[1:]} is {self.ties[name]}"
        if names and all(name in self.frozen for name in names):
            yield "not trained"

    def _has_weights(self, node: TypedNode | None) -> bool:
        return not isinstance(node, TypedBlock) or bool(node.parameters)


def _listed(graph: TypedGraph) -> list[TypedNode]:
    """Return the nodes that have a row, in the order of the file."""
    return [node for node in in_file_order(graph) if not is_renewal(node)]
