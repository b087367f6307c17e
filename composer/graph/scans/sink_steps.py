"""What only reads what is carried, and is not carried itself, computed after the loop for all steps at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from composer.graph.anatomy import wires_of
from composer.graph.ir import Ref
from composer.graph.scans.lifted import Outside, lifted, may_be_lifted, with_axis
from composer.graph.typed import TypedBlock, TypedNode, TypedScan, output
from composer.graph.types import TensorType
from composer.language.recipe.free_names import fresh


@dataclass(frozen=True, slots=True)
class Sunk:
    """The nodes that stand after the loop."""

    blocks: Sequence[TypedBlock]
    value: Ref
    """What they give in place of the scan's first output."""
    stacked: Mapping[str, Ref] = field(default_factory=dict)
    """What they read of every step of the loop: the names of new outputs, with the values in the loop."""


def sink(scan: TypedScan, kept: Sequence[TypedNode], known: Mapping[str, Outside], *, widening: bool) -> Sunk | None:
    """Return the nodes that can be computed after the loop; None if there are none.

    Args:
        scan: The scan.
        kept: What is left in the loop by what is computed before.
        known: What is known before the loop.
        widening: Whether values may be kept of all steps that have more axes than the scan's output.
    """
    (first, wanted), *others = scan.graph.graph.outputs
    core = needed([ref for _, ref in others], kept)
    if first in scan.carried.values() or wanted.port or wanted.node in core:
        return None
    after = _after(wanted.node, [node for node in kept if node.name not in core])
    if not after:
        return None
    stacked: dict[str, Ref] = {}
    values = dict(known)
    blocks: list[TypedBlock] = []
    taken = {name for name, _ in scan.graph.graph.outputs}
    for node in after:
        for ref in read_by(node):
            if ref.port or ref.index is not None:
                return None
            if ref.node in values:
                continue
            value = value_of(scan, kept, ref, fresh(ref.node, taken))
            if value is None or (not widening and len(value.type.axes) > _rank(scan)):
                return None
            taken.add(value.ref.port)
            stacked[value.ref.port], values[ref.node] = ref, value
        found = lifted(scan, node, [values[ref.node] for ref in read_by(node)])
        if found is None or (node.name == wanted.node and found[1].place != scan.place):
            return None
        blocks.append(found[0])
        values[node.name] = found[1]
    return Sunk(blocks, values[wanted.node].ref, stacked) if stacked else None


def _rank(scan: TypedScan) -> int:
    first = next(iter(scan.outputs.values()))
    return len(first.axes) if isinstance(first, TensorType) else 0


def _after(last: str, nodes: Sequence[TypedNode]) -> list[TypedBlock]:
    """Return the nodes, in order, that can be computed for all steps at once, up to the last of them."""
    found: dict[str, TypedBlock] = {}
    for node in reversed(nodes):
        if isinstance(node, TypedBlock) and may_be_lifted(node):
            readers = [one.name for one in nodes if any(ref.node == node.name for ref in read_by(one))]
            if all(name in found for name in readers) and (readers or node.name == last):
                found[node.name] = node
    return list(reversed(found.values())) if last in found else []


def read_by(node: TypedNode) -> list[Ref]:
    """Return all that a node reads, in the order of its wires."""
    return [ref for wire in wires_of(node) for ref in wire.refs]


def needed(values: Iterable[Ref], nodes: Sequence[TypedNode]) -> set[str]:
    """Return the names of the nodes that some values need."""
    found = {ref.node for ref in values}
    for node in reversed(nodes):
        if node.name in found:
            found.update(ref.node for ref in read_by(node))
    return found & {node.name for node in nodes}


def value_of(scan: TypedScan, kept: Sequence[TypedNode], ref: Ref, port: str) -> Outside | None:
    """Return a value in the loop as an output of the scan that has every step of it."""
    node = next((one for one in kept if one.name == ref.node), None)
    type_ = scan.graph.inputs[ref.node] if node is None else output(node.outputs, ref.port)
    if not isinstance(type_, TensorType):
        return None
    place = min(next(iter(scan.steps.values())), len(type_.axes))
    return Outside(Ref(scan.name, port), with_axis(type_, scan.axis, place), place)
