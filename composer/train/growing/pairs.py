"""Two models side by side: each block of the smaller one with the block in its place, and the passes that are new."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

from blocks.core import Part, Slot
from blocks.positions.positions import Positions
from composer.diagnostics import Span
from composer.graph.anatomy import regions
from composer.graph.typed import TypedBlock, TypedGraph, TypedNode, TypedProgram, TypedRepeat
from composer.train.errors import TrainingError
from composer.train.growing.axes import AxisGrowth, BlockPair, NotEqual, declared_weights
from composer.train.techniques.names import none_called


@dataclass(frozen=True)
class NewPass:
    """A pass of a repeat that the smaller model lacks."""

    path: str
    graph: TypedGraph
    stream: frozenset[str]
    """The inputs of its graph that are what the pass before returns, or would be, of the first."""


@dataclass(frozen=True)
class OldPass:
    """A pass of a repeat that the smaller model has, perhaps as another one."""

    path: str
    before: str
    """Its path in the smaller model."""


def refused(wrong: NotEqual, span: Span) -> TrainingError:
    """Return the error of what cannot grow with equal outputs, with its place in the larger recipe."""
    return TrainingError(f"{span.source.name}:{span.line}: {wrong.message}", hint=wrong.hint)


Sides: TypeAlias = "Iterator[BlockPair | NewPass | OldPass]"


def side_by_side(small: TypedProgram, large: TypedProgram, new_layers: Sequence[str] = ()) -> Sides:
    """Yield every block of two models that has weights of its own, in pairs, and the passes of repeats.

    Args:
        small: The smaller model.
        large: The larger model.
        new_layers: Patterns for the passes that only the larger one has, such as `layers.0`; by default, the last ones.

    Raises:
        TrainingError: Something besides sizes differs, or a pattern matches no pass.
    """
    returned = frozenset(ref.node for _, ref in large.root.graph.outputs)
    sides = _Sides(new_layers)
    yield from sides.graphs(small.root, large.root, "", "", returned)
    for pattern in new_layers:
        if pattern not in sides.used:
            raise none_called("new_layers", "layer", pattern, sides.passes)


class _Sides:
    def __init__(self, new_layers: Sequence[str]) -> None:
        self.new_layers = new_layers
        self.passes: list[str] = []
        """The paths of all passes of the larger model so far."""
        self.used: set[str] = set()
        """The patterns that match one."""

    def graphs(
        self, small: TypedGraph, large: TypedGraph, prefix: str, before: str, returned: frozenset[str] = frozenset()
    ) -> Sides:
        """Yield what is in two graphs, whose paths begin with `prefix`, and in the smaller model with `before`."""
        for node in large.nodes:
            if node.name not in small.by_name:
                message = f"the smaller model has no `{before}{node.name}`"
                raise refused(NotEqual(message, "grow in sizes alone"), node.node.name_span)
            paths = (prefix + node.name, before + node.name)
            yield from self._nodes(small.by_name[node.name], node, *paths, is_output=node.name in returned)
        for node in small.nodes:
            if node.name not in large.by_name:
                raise TrainingError(
                    f"the smaller model has `{before}{node.name}`, and the larger one lacks it", hint="grow in sizes alone"
                )

    def _nodes(self, small: TypedNode, large: TypedNode, path: str, before: str, *, is_output: bool) -> Sides:
        if isinstance(large, TypedBlock) and isinstance(small, TypedBlock):
            yield from self._blocks(BlockPair(path, small, large, is_output=is_output), before, large.node.name_span)
        elif type(small) is not type(large):
            raise refused(NotEqual(f"`{path}` is another kind of node in the smaller model"), large.node.name_span)
        elif isinstance(large, TypedRepeat) and isinstance(small, TypedRepeat):
            yield from self._repeats(small, large, path, before)
        else:
            for one, other in zip(regions(small), regions(large), strict=True):
                yield from self.graphs(one.graph, other.graph, f"{path}.{other.name}", f"{before}.{one.name}")

    def _repeats(self, small: TypedRepeat, large: TypedRepeat, path: str, before: str) -> Sides:
        had, has = len(small.passes), len(large.passes)
        span = large.node.name_span
        if had > has:
            raise refused(NotEqual(f"`{path}` has {has} passes, and had {had}"), span)
        if (small.node.share is None) != (large.node.share is None) or (large.node.share is not None and had != has):
            raise refused(
                NotEqual(f"the passes of `{path}` share their weights, so that further ones would change the outputs"), span
            )
        new = self._new(path, had, has, span)
        old = iter(regions(small))
        for number, region in enumerate(regions(large)):
            if number in new:
                yield NewPass(f"{path}.{number}", region.graph, _stream(large, number))
                continue
            one = next(old)
            if region.owner:
                yield OldPass(f"{path}.{region.name}".rstrip("."), f"{before}.{one.name}".rstrip("."))
                yield from self.graphs(one.graph, region.graph, f"{path}.{region.name}", f"{before}.{one.name}")

    def _new(self, path: str, had: int, has: int, span: Span) -> set[int]:
        """Return which passes of a repeat are new: those that patterns match, else the last ones."""
        new = set()
        for number in range(has):
            self.passes.append(f"{path}.{number}")
            for pattern in self.new_layers:
                if fnmatchcase(f"{path}.{number}", pattern):
                    self.used.add(pattern)
                    new.add(number)
        if new and len(new) != has - had:
            named = ", ".join(f"{path}.{number}" for number in sorted(new))
            raise refused(
                NotEqual(f"{has - had} of the {has} passes of `{path}` are new, and {len(new)} are named: {named}"), span
            )
        return new or {*range(had, has)}

    def _blocks(self, pair: BlockPair, before: str, span: Span) -> Sides:
        one, other = pair.small.part, pair.large.part
        if type(one) is not type(other):
            raise refused(NotEqual(f"`{pair.path}` is {other.kind}, and {one.kind} in the smaller model"), span)
        may_differ = pair.may_differ()
        for field in type(other).model_fields:
            was, now = (_settled(getattr(part, field)) for part in (one, other))
            if field not in may_differ and was != now:
                shown = f"{field} {_shown(now)}, and {_shown(was)} in the smaller model"
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
            paths = (f"{pair.path}.{name}", f"{before}.{name}")
            if copies is not None:
                assert isinstance(slot, TypedBlock) and isinstance(before_slot, TypedBlock)
                yield from self._blocks(BlockPair(paths[0], before_slot, slot, copies), paths[1], span)
            else:
                yield from self._nodes(before_slot, slot, *paths, is_output=False)


def _stream(repeat: TypedRepeat, number: int) -> frozenset[str]:
    """Return the inputs of a pass that are what the pass before returns; of the first, those that are so in the second."""
    number = max(number, 1)
    wires = repeat.node.passes[number].wires if number < len(repeat.passes) else ()
    return frozenset(
        wire.port for wire in wires for ref in wire.refs if ref.node == repeat.name and ref.index == number - 1 and not ref.port
    )


def _settled(value: Any) -> Any:
    return value.settled() if isinstance(value, Positions) else value


def _shown(value: Any) -> str:
    return value.kind if isinstance(value, Part) else str(value)
