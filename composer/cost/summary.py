"""A model at a glance: its tree with repeats folded, and what it costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import Any

from composer.cost.costs import Costs, costs, numbers
from composer.graph.describe import kind_of, phrases
from composer.graph.parameters import NamedParameter, in_file_order, parameters
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedProgram, TypedRepeat, TypedScan, is_renewal


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """One node."""

    name: str
    block: str
    """Its type; for a repeat, how many passes."""
    detail: str
    """What is written for it, in a few words."""
    output: str
    """The type of its first output; nothing for what fills a slot."""
    parameters: int
    """Those it owns; inside a repeat, of one pass."""
    total: int
    """Those of all passes that the row stands for."""
    children: tuple[SummaryRow, ...] = ()


@dataclass(frozen=True, slots=True)
class Summary:
    """What `summary` tells; as text with `str`."""

    name: str
    doc: str
    paper: str
    costs: Costs
    rows: tuple[SummaryRow, ...]

    def __str__(self) -> str:
        from composer.cost.render import render

        return render(self)

    def to_json(self) -> dict[str, Any]:
        """The same as JSON's own types, with the figures that the text shows."""
        model = self.costs
        return {
            "name": self.name,
            "doc": self.doc,
            "paper": self.paper,
            "parameters": model.parameters,
            "trainable": model.trainable,
            "bytes": {"fp32": model.weights("fp32"), "bf16": model.weights("bf16"), "adamw": model.optimizer},
            "lengths": dict(model.lengths),
            "flops": asdict(model.flops),
            "flops_per_token": None if model.flops_per_token is None else asdict(model.flops_per_token),
            "cache_bytes_per_token": {"fp32": model.cache_per_token("fp32"), "bf16": model.cache_per_token("bf16")},
            "nodes": [asdict(row) for row in self.rows],
        }


def summarize(typed: TypedProgram, lengths: Mapping[str, int] | None = None) -> Summary:
    """The summary of a model at given lengths of its axes."""
    recipe = typed.program.recipe
    rows = _Rows(parameters(typed)).graph(typed.root, ("",))
    return Summary(recipe.name, recipe.doc, recipe.paper, costs(typed, lengths), rows)


class _Rows:
    """Makes rows of nodes; each stands for all places (prefixes of names) at which its graph is found."""

    def __init__(self, table: Sequence[NamedParameter]) -> None:
        self.owned: dict[str, int] = {}
        self.ties: dict[str, str] = {}
        self.frozen: set[str] = set()
        for entry in table:
            steps = entry.name.split(".")
            if entry.tied_to:
                self.ties[entry.name] = entry.tied_to
            elif not entry.trainable:
                self.frozen.add(entry.name)
            for end in range(1, len(steps) * (not entry.tied_to)):
                above = ".".join(steps[:end])
                self.owned[above] = self.owned.get(above, 0) + numbers(entry)

    def graph(self, graph: TypedGraph, prefixes: Sequence[str]) -> tuple[SummaryRow, ...]:
        """The rows of a graph's nodes."""
        nodes = (node for node in in_file_order(graph) if not (node.node.dropped or is_renewal(node)))
        return tuple(self.node(node, node.name, prefixes) for node in nodes)

    def node(self, node: TypedNode, name: str, prefixes: Sequence[str]) -> SummaryRow:
        """The row of a node, with those below it."""
        places = [prefix + name for prefix in prefixes]
        below = [f"{place}." for place in places]
        counts = [self.owned.get(place, 0) for place in places]
        output = str(next(iter(node.outputs.values()), ""))
        block, detail, children = kind_of(node), "", tuple[SummaryRow, ...]()
        match node:
            case TypedBlock(slots=slots):
                detail = ", ".join([*phrases(node), *self._notes(node, places[0])])
                filled = [(slot, held) for slot, held in slots.items() if held is not None]
                children = tuple(
                    replace(self.node(held, slot, below), output="") for slot, held in filled if self._has_weights(held)
                )
            case TypedGroup(graph=graph) | TypedScan(graph=graph):
                children = self.graph(graph, below)
            case TypedRepeat(passes=passes):
                block = f"× {len(passes)}"
                detail = "" if node.node.share is None else "one set of weights"
                children = tuple(self._passes(node, below))
        return SummaryRow(name, block, detail, output, counts[0], sum(counts), children)

    def _passes(self, repeat: TypedRepeat, below: Sequence[str]) -> Iterator[SummaryRow]:
        """What one pass holds; where passes differ, a row for each kind of pass."""
        kinds: dict[TypedGraph, list[int]] = {}
        for index, graph in enumerate(repeat.passes):
            kinds.setdefault(graph, []).append(index)
        for indices in kinds.values():
            graph = repeat.passes[indices[0]]
            prefixes = (prefix + repeat.prefix(index) for prefix in below for index in indices)
            rows = self.graph(graph, list(dict.fromkeys(prefixes)))
            if len(kinds) == 1:
                yield from rows
                continue
            output = str(next(iter(graph.outputs.values()), ""))
            each, total = sum(row.parameters for row in rows), sum(row.total for row in rows)
            label = f"{len(indices)} of {len(repeat.passes)}"
            yield SummaryRow(
                label, "", f"{'pass' if len(indices) == 1 else 'passes'} {ranges(indices)}", output, each, total, rows
            )

    def _notes(self, node: TypedBlock, place: str) -> Iterator[str]:
        names = [f"{place}.{parameter.name}" for parameter in node.parameters]
        for name in names:
            if name in self.ties:
                yield f"{name.removeprefix(place)[1:]} is {self.ties[name]}"
        if names and all(name in self.frozen for name in names):
            yield "not trained"

    def _has_weights(self, node: TypedNode) -> bool:
        return not isinstance(node, TypedBlock) or bool(node.parameters)


def ranges(indices: Sequence[int]) -> str:
    """Numbers in ascending order, in short: `0-4, 6-10, 12`."""
    runs = ([pair[1] for pair in run] for _, run in groupby(enumerate(indices), key=lambda pair: pair[1] - pair[0]))
    shown = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    return ", ".join(shown if len(shown) <= 6 else [*shown[:3], "…", shown[-1]])
