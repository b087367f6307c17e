"""Two models side by side: each block of the smaller one with the block in its place, and the passes that are new."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from blocks.core import Part, Slot
from blocks.positions.positions import Positions
from composer.diagnostics import Span
from composer.graph.anatomy import regions
from composer.graph.ir import Wire
from composer.graph.typed import TypedBlock, TypedGraph, TypedNode, TypedProgram, TypedRepeat
from composer.train.errors import TrainingError
from composer.train.growing.axes import AxisGrowth, BlockPair, NotEqual, declared_weights


@dataclass(frozen=True)
class NewPass:
    """A pass of a repeat behind those that the smaller model has."""

    path: str
    repeat: str
    """The name of the repeat, in the graph around it."""
    index: int
    graph: TypedGraph
    wires: tuple[Wire, ...]
    span: Span


def refused(wrong: NotEqual, span: Span) -> TrainingError:
    """Return the error of what cannot grow with equal outputs, with its place in the larger recipe."""
    return TrainingError(f"{span.source.name}:{span.line}: {wrong.message}", hint=wrong.hint)


def side_by_side(small: TypedProgram, large: TypedProgram) -> Iterator[BlockPair | NewPass]:
    """Yield every block of two models that has weights of its own, in pairs, and the passes that only the larger one has.

    Raises:
        TrainingError: Something besides sizes differs.
    """
    returned = frozenset(ref.node for _, ref in large.root.graph.outputs)
    yield from _graphs(small.root, large.root, "", returned)


def _graphs(
    small: TypedGraph, large: TypedGraph, prefix: str, returned: frozenset[str] = frozenset()
) -> Iterator[BlockPair | NewPass]:
    for node in large.nodes:
        if node.name not in small.by_name:
            raise refused(NotEqual(f"the smaller model has no `{prefix}{node.name}`", "grow in sizes alone"), node.node.name_span)
        yield from _nodes(small.by_name[node.name], node, prefix + node.name, node.name in returned)
    for node in small.nodes:
        if node.name not in large.by_name:
            raise TrainingError(
                f"the smaller model has `{prefix}{node.name}`, and the larger one lacks it", hint="grow in sizes alone"
            )


def _nodes(small: TypedNode, large: TypedNode, path: str, is_output: bool) -> Iterator[BlockPair | NewPass]:
    if isinstance(large, TypedBlock) and isinstance(small, TypedBlock):
        yield from _blocks(BlockPair(path, small, large, is_output=is_output), large.node.name_span)
    elif type(small) is not type(large):
        raise refused(NotEqual(f"`{path}` is another kind of node in the smaller model"), large.node.name_span)
    elif isinstance(large, TypedRepeat) and isinstance(small, TypedRepeat):
        yield from _repeats(small, large, path)
    else:
        for one, other in zip(regions(small), regions(large), strict=True):
            yield from _graphs(one.graph, other.graph, f"{path}.{other.name}")


def _repeats(small: TypedRepeat, large: TypedRepeat, path: str) -> Iterator[BlockPair | NewPass]:
    before, now = len(small.passes), len(large.passes)
    span = large.node.name_span
    if before > now:
        raise refused(NotEqual(f"`{path}` has {now} passes, and had {before}"), span)
    if (small.node.share is None) != (large.node.share is None) or (large.node.share is not None and before != now):
        raise refused(
            NotEqual(f"the passes of `{path}` share their weights, so that further ones would change the outputs"), span
        )
    for one, other in zip(regions(small), regions(large)[:before], strict=True):
        if other.owner:
            yield from _graphs(one.graph, other.graph, f"{path}.{other.name}")
    for region in regions(large)[before:]:
        assert region.number is not None
        yield NewPass(f"{path}.{region.number}", large.name, region.number, region.graph, region.wires, span)


def _blocks(pair: BlockPair, span: Span) -> Iterator[BlockPair | NewPass]:
    one, other = pair.small.part, pair.large.part
    if type(one) is not type(other):
        raise refused(NotEqual(f"`{pair.path}` is {other.kind}, and {one.kind} in the smaller model"), span)
    may_differ = pair.may_differ()
    for field in type(other).model_fields:
        before, now = (_settled(getattr(part, field)) for part in (one, other))
        if field not in may_differ and before != now:
            shown = f"{field} {_shown(now)}, and {_shown(before)} in the smaller model"
            raise refused(NotEqual(f"`{pair.path}` has {shown}", "grow in sizes alone, with equal settings"), span)
    yield pair
    declared = declared_weights(pair.large)
    for name, slot in pair.large.slots.items():
        before_slot = pair.small.slots.get(name)
        if (slot is None) != (before_slot is None):
            raise refused(NotEqual(f"`{pair.path}.{name}` is there in one model alone"), span)
        if slot is None or before_slot is None:
            continue
        weight = declared.get(name)
        copies: AxisGrowth | None = pair.count_of(weight) if isinstance(weight, Slot) else None
        if copies is not None:
            assert isinstance(slot, TypedBlock) and isinstance(before_slot, TypedBlock)
            yield from _blocks(BlockPair(f"{pair.path}.{name}", before_slot, slot, copies), span)
        else:
            yield from _nodes(before_slot, slot, f"{pair.path}.{name}", is_output=False)


def _settled(value: Any) -> Any:
    return value.settled() if isinstance(value, Positions) else value


def _shown(value: Any) -> str:
    return value.kind if isinstance(value, Part) else str(value)
