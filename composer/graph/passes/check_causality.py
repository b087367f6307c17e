"""What a model that generates text cannot have, since later tokens are not known while it generates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from blocks.core import Part
from blocks.masks.mask import Mask
from composer.diagnostics import Diagnostic, Span
from composer.graph.anatomy import wires_of
from composer.graph.dims import Symbolic, names
from composer.graph.ir import BlockNode, Graph, PartValue, Ref
from composer.graph.passes.error_report import StopExpansion
from composer.graph.passes.infer.type_errors import Surroundings
from composer.graph.type_patterns import Mismatch, match, pattern
from composer.graph.typed import TypedGraph, TypedScan
from composer.graph.types import InputTypes, PortTypes, TensorType


class CausalityCheck:
    """Reports what is not causal along the axis of the generated tokens."""

    def __init__(self, task: str) -> None:
        self.task = task
        self.grows: Symbolic | None = None
        """That axis; None where nothing depends on generated tokens."""

    def block(self, node: BlockNode, part: Part, outputs: PortTypes, sizes: Mapping[str, Any], here: Surroundings) -> None:
        """Report a block that needs later tokens, or returns more or fewer values than there are tokens."""
        grows = self.grows
        if grows is None:
            return
        kind, axis = here.kind(node), str(grows)
        if grows in part.mixed_axes(sizes):
            message = f"{kind} mixes the positions of `{axis}`, but {self.task} generates token by token"
            hint = "use another axis, or a causal form where there is one"
            here.report(Diagnostic("not-causal", message, node.name_span, hint=hint))
        for size in (size for type_ in outputs.values() if isinstance(type_, TensorType) for size in type_.sizes):
            if size != grows and names(size) & names(grows):
                message = f"{kind} gives {size} values for `{axis}` tokens, but {self.task} generates token by token"
                here.report(Diagnostic("not-causal", message, node.name_span, hint="every token needs one value"))

    def last_step(self, ref: Ref, around: TypedGraph, here: Surroundings, span: Span | None = None) -> None:
        """Report the use of the result of the last step of a scan, where more steps will follow."""
        scan, grows = around.by_name.get(ref.node), self.grows
        if not isinstance(scan, TypedScan) or grows is None or scan.axis.size != grows:
            return
        if ref.port and ref.port != next(iter(scan.outputs)):
            message = (
                f"`{ref}` is the result of the last step along `{grows}`, which {self.task} has not reached while it generates"
            )
            hint = f"the first output of `{scan.name}` has a value for each step"
            here.report(Diagnostic("not-causal", message, span or scan.node.name_span, hint=hint))

    def masks(self, node: BlockNode, part: Part, given: InputTypes, sizes: Mapping[str, Any], here: Surroundings) -> None:
        """Check the block's masks, and what they read, against the positions of its queries and keys.

        Raises:
            StopExpansion: where they do not fit, which is reported.
        """
        for prepared in part.per_call(frozenset(given)).values():
            mask = dict(node.fields).get(prepared.slot)
            if not isinstance(mask, PartValue) or len(prepared.ports) < 2:
                continue
            query, key = (part.position_inputs[port] for port in prepared.ports[:2])
            self._predicates(mask, sizes[query], sizes[key], here)
            axes = {"batch": sizes.get("batch"), "query": sizes.get(query), "key": sizes.get(key)}
            known = {name: size for name, size in axes.items() if size is not None}
            for port, text in mask.wires():
                if not isinstance(type_ := given.get(port), TensorType):
                    continue
                try:
                    match(pattern(text), type_, dict(known), {})
                except Mismatch as wrong:
                    message = f"the mask {port.partition('_')[0]} {wrong.message}"
                    here.at_port(node, port, "type-mismatch", message)
                    raise StopExpansion from None

    def _predicates(self, mask: PartValue, query: Any, key: Any, here: Surroundings) -> None:
        grows = self.grows
        growing = names(grows) if grows is not None else frozenset()
        for one in mask.parts():
            if not issubclass(one.part, Mask):
                continue
            if one.part.needs_ends and growing & (names(query) | names(key)):
                message = f"`{one.part.kind}` needs to know which positions are last, which is unknown during generation"
                hint = f"the axis {grows} of a {self.task} grows with each token; use `global_first` or `global_tokens`"
                here.report(Diagnostic("unknown-end", message, one.span, hint=hint))
                raise StopExpansion
            if one.part.one_sequence and query != key:
                message = f"`{one.part.kind}` compares positions of one sequence; here queries are {query} and keys are {key}"
                here.report(Diagnostic("two-sequences", message, one.span, hint="`valid` and `pairs` can be used with a memory"))
                raise StopExpansion


def output_dependencies(graph: Graph, others: Iterator[Ref]) -> frozenset[str]:
    """Return the nodes that the outputs of a graph, and `others`, depend on: no token is made of what only a loss reads."""
    waiting = [ref.node for _, ref in graph.outputs] + [ref.node for ref in others]
    reads = {node.name: {ref.node for wire in wires_of(node) for ref in wire.refs} for node in graph.nodes}
    found: set[str] = set()
    while waiting:
        if (name := waiting.pop()) not in found:
            found.add(name)
            waiting.extend(reads.get(name, ()))
    return frozenset(found)
