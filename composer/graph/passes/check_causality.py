"""A model that generates a text must not see ahead: what its task asks for depends on no later token.

What each value depends on is part of its type. Where an output of the task depends on the whole text, this goes back from the
output along the values that do, to the first nodes that look ahead: those that read nothing that depends on the whole text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import assert_never

from blocks.core import Part
from blocks.core.fields import AxisName, AxisOrAxes, MapOf, fields
from blocks.masks.mask import Mask
from blocks.masks.order import first_ahead, needs_end
from composer.diagnostics import Diagnostic, Span
from composer.graph.ir import Graph, PartValue, Program, Ref, Wire
from composer.graph.passes.error_report import text_of
from composer.graph.passes.infer.text_dependence import Cause, GeneratedText, causes, masks, optional_edges, read_by, sources
from composer.graph.passes.infer.type_errors import Surroundings
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedRepeat, TypedScan
from composer.graph.types import UNKNOWN, Depends, TensorType, Types, each_of
from composer.language.tasks import TASKS


def check_causality(root: TypedGraph, program: Program, text: GeneratedText, here: Surroundings) -> None:
    """Report the first nodes that look ahead on the way to what the task asks for.

    Args:
        root: the typed graph of the model.
        program: the graph without types, which names the positions of axes.
        text: the text that the model generates.
        here: what is around the whole model.
    """
    outputs = dict(root.graph.outputs)
    asked = [outputs[name] for name in TASKS[text.task].outputs if name in outputs]
    search = _Search(program, text)
    search.from_root(_Place(root, here.within(root)), asked)
    assert search.reports or not search.seen, "a value depends on later tokens, and no node looks ahead"
    first = [report for report in search.reports if report.is_first]
    for report in first or search.reports[-1:]:
        report.here.report(report.diagnostic)


def without_text(root: TypedGraph, text: GeneratedText) -> bool:
    """Return whether an output of the task has no value for each token, because a node looks ahead and gives other ones."""
    outputs = dict(root.graph.outputs)
    asked = [root.type_of(outputs[name]) for name in TASKS[text.task].outputs if name in outputs]
    return any(_is_ahead(type_) and not any(text.grows(size) for size in type_.sizes)
               for type_ in asked if isinstance(type_, TensorType))  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Place:
    """A graph, and how its inputs are given."""

    graph: TypedGraph
    here: Surroundings
    wires: Mapping[str, Wire] = field(default_factory=dict)
    """What each input is, in terms of the graph around."""
    around: _Place | None = None
    carried: Mapping[str, str] = field(default_factory=dict)
    """For a scan, each input that is what the step before returned, with that output."""
    path: tuple[str, ...] = ()

    @property
    def root(self) -> _Place:
        """The whole model's graph."""
        return self if self.around is None else self.around.root


@dataclass(frozen=True, slots=True)
class _Report:
    diagnostic: Diagnostic
    here: Surroundings
    is_first: bool
    """Whether nothing that the node reads depends on the whole text."""


class _Search:
    """Goes back along what depends on the whole text."""

    def __init__(self, program: Program, text: GeneratedText) -> None:
        self.program, self.text = program, text
        self.reports: list[_Report] = []
        self.seen: set[tuple[tuple[str, ...], str, str, int | None]] = set()
        self.waiting: list[tuple[_Place, Ref, Span | None]] = []

    def from_root(self, root: _Place, refs: list[Ref]) -> None:
        """Look for what looks ahead on the way to values of the whole model's graph."""
        self.waiting += [(root, ref, None) for ref in reversed(refs) if _is_ahead(root.graph.type_of(ref))]
        while self.waiting:
            place, ref, span = self.waiting.pop()
            if (key := (place.path, ref.node, ref.port, ref.index)) not in self.seen:
                self.seen.add(key)
                self._value(place, ref, span)

    def _value(self, place: _Place, ref: Ref, span: Span | None) -> None:
        node = place.graph.by_name.get(ref.node)
        if node is None:
            self._input(place, ref.node)
        else:
            self._node(place, node, ref, span)

    def _input(self, place: _Place, name: str) -> None:
        """Go on from an input of a graph to what it is around it, or in the step before."""
        if place.around is None:
            item = next(item for item in self.program.inputs if item.name == name)
            message = f"`{name}` is {place.graph.inputs[name]}, which is not one value for each of {self.text.length} tokens"
            hint = f"the axis {self.text.length} of a {self.text.task} grows with each token; use another axis name"
            self.reports.append(_Report(Diagnostic("not-causal", message, item.type.span, hint=hint), place.here, True))
            return
        if name in place.wires:
            self._follow(place.around, [place.wires[name]])
        if name in place.carried:
            self._follow_output(place, place.carried[name], None)

    def _follow(self, place: _Place, wires: Iterator[Wire] | list[Wire]) -> bool:
        """Go on to what some wires carry, and return whether any of it depends on the whole text."""
        found = []
        for wire in wires:
            for index, ref in enumerate(wire.refs):
                if _is_ahead(place.graph.type_of(ref)):
                    found.append((place, ref, wire.spans[index] if len(wire.spans) > index else wire.span))
        self.waiting += reversed(found)
        return bool(found)

    def _follow_output(self, inner: _Place, port: str, span: Span | None) -> None:
        outputs = inner.graph.graph.outputs
        ref = dict(outputs).get(port, outputs[0][1])
        if _is_ahead(inner.graph.type_of(ref)):
            self.waiting.append((inner, ref, span))

    def _node(self, place: _Place, node: TypedNode, ref: Ref, span: Span | None) -> None:
        match node:
            case TypedBlock():
                self._block(place, node, ref, span)
            case TypedGroup(graph=graph):
                inner = self._inside(place, node, graph, node.node.wires, holder=place.here.inside(node.node))
                self._follow_output(inner, ref.port, None)
            case TypedRepeat(passes=passes):
                index = len(passes) - 1 if ref.index is None else ref.index
                inner = self._inside(place, node, passes[index], node.node.passes[index].wires, number=index)
                self._follow_output(inner, ref.port, None)
            case TypedScan(graph=graph):
                inner = self._inside(place, node, graph, node.node.wires, carried=node.carried)
                port = ref.port or next(iter(node.outputs))
                if _is_ahead(graph.outputs[port]):
                    self._follow_output(inner, port, None)
                else:
                    self.reports.append(_Report(self._last_step(node, ref, span), place.here, True))
            case _:
                assert_never(node)

    def _inside(
        self,
        place: _Place,
        node: TypedNode,
        graph: TypedGraph,
        wires: tuple[Wire, ...],
        *,
        holder: Surroundings | None = None,
        carried: Mapping[str, str] | None = None,
        number: int = 0,
    ) -> _Place:
        here = (holder or place.here).within(graph)
        given = {wire.port: wire for wire in wires}
        return _Place(graph, here, given, place, carried or {}, (*place.path, f"{node.name}.{number}"))

    def _block(self, place: _Place, block: TypedBlock, ref: Ref, span: Span | None) -> None:
        port = ref.port or next(iter(block.outputs))
        read, only = read_by(block.part, block.inputs, port), sources(block.part, block.inputs, port)
        wires = [wire for wire in block.node.wires if wire.port in read]
        is_first = not self._follow(place, wires) and not self._follow_positions(place, block, only)
        for name, slot in block.slots.items():
            if slot is not None and (only is None or name in only) and any(_is_ahead(type_) for type_ in slot.outputs.values()):
                alone = TypedGraph(Graph((), (slot.node,), ()), {"input": UNKNOWN}, (slot,), slot.outputs, {slot.name: slot})
                inner = _Place(alone, place.here, {}, place, {}, (*place.path, block.name, name))
                self.waiting.append((inner, Ref(slot.name), None))
                is_first = False
        found = [
            _Report(self._diagnostic(block, cause, place, span), place.here, is_first)
            for cause in causes(block.part, block.inputs, block.outputs, block.sizes, self.text)
            if cause.port in ("", port)
        ]
        self.reports += found
        if is_first and not found:  # it has the number of rows of what it reads for its shape alone
            self._follow(place, list(block.node.wires))

    def _follow_positions(self, place: _Place, block: TypedBlock, only: Collection[str] | None) -> bool:
        """Go on to the node that gives the positions of an axis, where the block reads no others; `only` are the ports that count
        where not all do.
        """
        root = place.root
        named = dict(self.program.positions)
        ports = type(block.part).position_inputs.items()
        axes = {str(block.sizes.get(axis)) for port, axis in ports if only is None or port in only}
        found = [(root, named[axis], None) for axis in sorted(axes & named.keys()) if _is_ahead(root.graph.type_of(named[axis]))]
        self.waiting += found
        return bool(found)

    # -- what is said

    def _last_step(self, scan: TypedScan, ref: Ref, span: Span | None) -> Diagnostic:
        message = (
            f"`{ref}` is the result of the last step along `{scan.axis.size}`, "
            f"which {self.text.task} has not reached while it generates"
        )
        hint = f"the first output of `{scan.name}` has a value for each step"
        return Diagnostic("not-causal", message, span or scan.node.name_span, hint=hint)

    def _diagnostic(self, block: TypedBlock, cause: Cause, place: _Place, span: Span | None) -> Diagnostic:
        kind, axis, task = place.here.kind(block.node), self.text.length, self.text.task
        while_generating = f"but {task} generates token by token"
        at = block.node.name_span
        match cause.what:
            case "mixed" if self.text.so_far in block.part.mixed_axes(block.sizes):
                message = f"{kind} mixes the keys of each query, and in a call of several tokens later ones are among them"
                hint = f"also where a mask makes their weights 0; return it beside the outputs of {task}"
                return Diagnostic("not-causal", message, at, hint=hint)
            case "mixed":
                what = "mixes the positions" if read_by(block.part, block.inputs) else "depends on the length"
                message = f"{kind} {what} of `{axis}`, {while_generating}"
                return Diagnostic("not-causal", message, at, hint=_in_place_of(block.part))
            case "disordered":
                message = f"{kind} reads positions in the order of the text, and an expert gets those that are routed to it"
                return Diagnostic("not-causal", message, at, hint=f"move `{block.name}` out of the expert")
            case "mask" | "end":
                return self._mask(block, cause.slot, place)
            case "count":
                output = block.outputs[cause.port]
                assert isinstance(output, TensorType)
                size = next(size for size in output.sizes if self.text.touches(size))
                message = f"{kind} gives {size} values for `{axis}` tokens, {while_generating}"
                return Diagnostic("not-causal", message, at, hint="every token needs one value")
            case "one":
                if cause.port == next(iter(block.outputs)):
                    message = f"{kind} gives one value for all `{axis}` tokens, {while_generating}"
                    return Diagnostic("not-causal", message, at, hint="every token needs one value")
                message = f"`{block.name}.{cause.port}` depends on all `{axis}` tokens, {while_generating}"
                return Diagnostic(
                    "not-causal", message, span or at, hint=f"use it in a loss, or as an output beside those of {task}"
                )
            case "pairs":
                message = f"{kind} gives a value for each pair of the tokens of a call, {while_generating}"
                return Diagnostic("not-causal", message, at, hint="attention keeps what it needs of earlier tokens")
            case _:
                assert_never(cause.what)

    def _mask(self, block: TypedBlock, slot: str, place: _Place) -> Diagnostic:
        value = dict(block.node.fields).get(slot)
        span = value.span if isinstance(value, PartValue) else block.node.name_span
        mask = next(mask for name, mask, _, _ in masks(block.part, block.inputs, block.sizes) if name == slot)
        if needs_end(mask):
            one = _last(value) if isinstance(value, PartValue) else None
            kind = one.part.kind if one is not None else mask.kind
            message = f"`{kind}` needs to know which positions are last, which is unknown during generation"
            known = "which positions are first is known: `causal and (window(4) or global_first(1))`"
            hint = f"the axis {self.text.length} of a {self.text.task} grows with each token; {known}"
            return Diagnostic("unknown-end", message, one.span if one is not None else span, hint=hint)
        absent = optional_edges(mask, block.inputs)
        pair = first_ahead(mask, absent)
        assert pair is not None
        names = {wire.port: _written(wire) for wire in block.node.wires}
        written = mask.with_edges(names)
        pair_seen = f"query {pair[0]} {'may see' if mask.edge_types() else 'sees'} key {pair[1]}"
        message = f"with the mask `{written.expression()}`, {pair_seen}, but {self.text.task} generates token by token"
        rest = f"({written.expression()})" if written.precedence < 1 else written.expression()
        hint = "mask: causal" if mask.hides_nothing or mask.hides_later() else f"mask: causal and {rest}"
        if absent and first_ahead(mask) is None:  # so all that is missing is that they are given
            guilty = [edge for edge in sorted(absent) if first_ahead(mask, frozenset({edge})) is not None]
            inputs = dict.fromkeys(_input_of(place, wire.refs[0].node) for wire in block.node.wires if wire.port in guilty)
            hint = " and ".join(f"`{name}: {place.root.graph.inputs[name]}`" for name in inputs)
            hint = f"where `{' or '.join(inputs)}` is not given, the mask hides nothing; make the input required: {hint}"
        return Diagnostic("not-causal", message, span, hint=hint)


def _in_place_of(part: Part) -> str:
    """Return what to use in place of a part that mixes the positions of the text."""
    forms = [field.form for field in fields(type(part)).values()]
    chosen = any(isinstance(form, AxisName | AxisOrAxes) or (isinstance(form, MapOf) and form.of_axes) for form in forms)
    ways = [*part.causal_forms, *["another axis"] * chosen]
    if not ways:
        return "compute each position from those up to it alone"
    *others, last = ways
    return f"use {', '.join(others)}{',' * (len(others) > 1)} or {last}" if others else f"use {last}"


def _input_of(place: _Place, name: str) -> str:
    """Return the model's input that an optional input of a graph is; nothing but an input may be absent."""
    if place.around is None:
        return name
    return _input_of(place.around, place.wires[name].refs[0].node)


def _written(wire: Wire) -> str:
    """Return a reference as it is written where the mask is, which may call otherwise what the graph is handed."""
    text = text_of(wire.spans[0] if wire.spans else wire.span)
    return text if re.fullmatch(r"\w+(\(-?\w+\))?(\.\w+)*", text) else str(wire.refs[0])


def _last(value: PartValue) -> PartValue:
    return next(one for one in value.parts() if issubclass(one.part, Mask) and one.part.needs_ends)


def _is_ahead(types: Types) -> bool:
    return any(isinstance(one, TensorType) and one.depends is Depends.ALL for one in each_of(types))
