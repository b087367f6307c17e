"""What is wrong with the types of a graph, each mistake at a place that its author wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from blocks.core import BlockError, Part, fields, standard
from composer.diagnostics import Declaration, Diagnostic, Label, Span
from composer.graph.ir import BlockNode, FieldValue, GroupNode, Items, Known, PartValue, Pending, Ref, Wire
from composer.graph.passes.error_report import StopExpansion, labels
from composer.graph.type_patterns import Mismatch, declared, pattern
from composer.graph.typed import TypedBlock, TypedGraph
from composer.graph.types import TensorType
from composer.language.expressions.parser import names
from composer.language.other_names import IMAGE_AXES, OF_IMAGES
from composer.language.recipe.defined_block import is_defined


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is around a node while it is typed; mistakes are reported from here, at a place that their author wrote."""

    found: list[Diagnostic]
    """What is wrong so far."""
    holders: tuple[GroupNode, ...] = ()
    """The blocks and groups, outermost first."""
    extents: tuple[tuple[type[Part], Mapping[str, Any]], ...] = ()
    """The blocks among them that the recipe defines, each with the lengths of its axes."""
    graph: TypedGraph | None = None
    """The graph that the node stands in, as far as it is typed."""
    root: TypedGraph | None = None
    """The whole model's graph, as far as it is typed."""

    def within(self, graph: TypedGraph) -> Surroundings:
        """Return what is around the nodes of a graph."""
        return replace(self, graph=graph, root=self.root or graph)

    def inside(self, holder: GroupNode) -> Surroundings:
        """Return what is around the graph of a group."""
        return replace(self, holders=(*self.holders, holder))

    def sized(self, part: type[Part], extents: Mapping[str, Any]) -> Surroundings:
        """Return what is around the graph of a block that the recipe defines, given the lengths of its axes."""
        return replace(self, extents=(*self.extents, (part, extents)))

    def report(self, diagnostic: Diagnostic) -> None:
        """Record a diagnostic, at a place in what the author wrote."""
        self.found.append(replace(diagnostic, span=self._own(diagnostic.span)))

    def at_port(
        self,
        node: BlockNode | GroupNode,
        port: str,
        code: str,
        message: str,
        hint: str = "",
        *,
        index: int | None = None,
        more: tuple[Label, ...] = (),
    ) -> None:
        """Report a mistake of an edge where it is written, with what each of its sources gives."""
        wire = next((wire for wire in node.wires if wire.port == port), None)
        span, given = node.name_span, []
        if wire is not None:
            place = index if index is not None and len(wire.spans) > index else 0 if len(wire.spans) == 1 else None
            span = wire.span if place is None or wire.implied else wire.spans[place]
            given = list(self._sources(wire)) if code == "type-mismatch" else []
            if isinstance(span.source, Declaration) and place is not None:
                span = self._written_before(wire.refs[place]) or span
        span = self._own(span)
        seconds = {label.span: label for label in reversed(given) if label.span != span}
        self.report(Diagnostic(code, message, span, labels=(*reversed(seconds.values()), *more), hint=hint))

    @contextmanager
    def fitting(self, node: BlockNode, port: str) -> Iterator[None]:
        """Report what does not fit a port.

        Raises:
            StopExpansion: where something does not.
        """
        try:
            yield
        except Mismatch as wrong:
            self.at_port(
                node,
                port,
                "type-mismatch",
                f"port {port} of {node.part.kind} {wrong.message}",
                wrong.hint or _other_block(node.part, wrong.count),
            )
            raise StopExpansion from None
        except KeyError as missing:
            message = f"port {port} of {node.part.kind} needs {missing}, which is not known here"
            self.at_port(node, port, "type-mismatch", message)
            raise StopExpansion from None

    def rejected(self, node: BlockNode, error: BlockError, severity: Any = "error") -> None:
        """Report the error of a block about its fields or its inputs."""
        code = error.code or "rejected"
        if error.port:
            self.at_port(node, error.port, code, f"{self.kind(node)} {error.message}", error.hint, index=error.index)
            return
        if isinstance(error.place, Span):
            self.report(Diagnostic(code, error.message, error.place, severity, hint=error.hint))
            return
        value = written(node, error.field or "")
        if isinstance(value, Items) and error.index is not None:
            value = value.items[error.index]
        span, note, seconds = node.name_span, "", tuple[Label, ...]()
        if value is not None:
            span = value.span
        if isinstance(value, Known | Pending):
            seconds = labels(value.origins, span)
        if isinstance(value, Known) and value.origins:
            note = str(value.value)
        self.report(Diagnostic(code, error.message, span, severity, note, seconds, error.hint))

    def place(self, node: BlockNode) -> Span:
        """Return where a node is in what the author wrote."""
        return self._own(node.name_span)

    def kind(self, node: BlockNode) -> str:
        """Return the block that a recipe names: for a node of a block's own expansion, that block."""
        holder = next((held.part for held in reversed(self.holders) if held.part is not None), None)
        return holder.kind if holder is not None and isinstance(node.name_span.source, Declaration) else node.part.kind

    # -- places

    @property
    def outside(self) -> Span | None:
        """Where mistakes are reported in the graph of a block's own expansion; None for a graph that the author wrote."""
        if not self.holders:
            return None
        holder = self.holders[-1]
        expanded = holder.part is not None and not is_defined(holder.part)
        return self._own(holder.name_span) if expanded or isinstance(holder.name_span.source, Declaration) else None

    def _own(self, span: Span) -> Span:
        """Return a span in what the author wrote: for a mistake inside a block's own expansion, that of the block."""
        for holder in reversed(self.holders):
            if not isinstance(span.source, Declaration):
                break
            span = holder.name_span
        return span

    def _written_before(self, ref: Ref) -> Span | None:
        """Return the author's own node that a value in a block's expansion comes from, through what the
        expansion puts behind it.
        """
        source = self.graph.by_name.get(ref.node) if self.graph is not None else None
        while source is not None and isinstance(source.node.name_span.source, Declaration):
            if not isinstance(source, TypedBlock) or [len(wire.refs) for wire in source.node.wires] != [1]:
                return None
            source = self.graph.by_name.get(source.node.wires[0].refs[0].node) if self.graph is not None else None
        return source.node.name_span if source is not None else None

    def _sources(self, wire: Wire) -> Iterator[Label]:
        """Yield a label at each node that a wire comes from: `gives float[batch, time, 8]`."""
        if self.graph is None:
            return
        for ref in wire.refs[:4]:
            source = self.graph.by_name.get(ref.node)
            type_ = self.graph.type_of(ref) if source is not None else None
            if source is not None and isinstance(type_, TensorType) and not isinstance(source.node.name_span.source, Declaration):
                yield Label(source.node.name_span, f"gives {type_}")


def written(node: BlockNode, field: str) -> FieldValue | None:
    """Return what is written for a field, `positions.scaling.factor` too, or else for the part that has it; for one that is
    derived, what it is derived from.
    """
    first, *inner = field.split(".")
    values = dict(node.fields)
    value = values.get(first)
    for name in inner:
        if isinstance(value, PartValue):
            value = dict(value.fields).get(name, value)
    if value is None and first in (known := fields(node.part)) and known[first].derived:
        return next((values[name] for name in sorted(names(declared(known[first].derived))) if name in values), None)
    return value


def _other_block(part: type[Part], count: int) -> str:
    """Return the hint at the block that does the same along as many axes as are given; empty where there is none."""
    if count == IMAGE_AXES and part.kind in OF_IMAGES:
        return OF_IMAGES[part.kind]
    stem = part.kind.removesuffix("1d").removesuffix("2d")
    for kind in (stem, f"{stem}1d", f"{stem}2d"):
        if count and kind != part.kind and kind in standard():
            form = pattern(next(iter(standard()[kind].inputs.values()), "any[]"))
            if len(form.axes) == count or (form.leading and len(form.axes) < count):
                return f"{kind} takes {form.text}"
    return ""
