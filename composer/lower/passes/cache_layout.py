"""Cache layout: which modules cache which values while a text is generated, found in the typed graph and not in the modules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import assert_never

from blocks.core import Part, is_node
from blocks.masks.kept_keys import KeptKeys
from blocks.masks.order import first_ahead
from blocks.masks.plans import Plan, kept
from blocks.positions.positions import Positions
from composer.graph.cache_slots import grown_slots, kept_rows, slot_axes
from composer.graph.dims import Dim, Symbolic, so_far
from composer.graph.flatten import flatten
from composer.graph.ir import Ref
from composer.graph.task_signature import growing
from composer.graph.type_patterns import pattern
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedProgram, TypedRepeat, TypedScan
from composer.graph.types import Depends, TensorType, each_given
from composer.language.tasks import TASKS
from composer.lower.passes.batch_axis import BatchAxis, batch_axis, each_size
from composer.lower.passes.fixed_nodes import FixedNode, fixed_nodes, is_fixed, outputs_left_out
from composer.lower.passes.hoist import Hoisted, Hoisting, Preparation, pass_names
from composer.lower.passes.shared_weights import modules_of
from composer.lower.passes.tail import LastRows, last_rows


@dataclass(frozen=True, slots=True)
class CacheSlot:
    """One value that is cached."""

    axis: int | None
    """The axis that grows, counted from the last, such as -2; None where none does."""
    batch: BatchAxis | None
    """Where the rows of the batch stand in it; None where it has none."""
    kept: KeptKeys | None = None
    """Which rows of earlier calls later ones need; None for all of them."""
    whole: bool = False
    """Whether it is computed in the first call, from what does not depend on the text, and stays as it is."""


@dataclass(frozen=True, slots=True)
class CachedNode:
    """What has a cache: a module, or a part among its attributes."""

    module: str
    attribute: tuple[str, ...]
    slots: Mapping[str, CacheSlot]


@dataclass(frozen=True, slots=True)
class GrowingInput:
    """An input of a model that has rows for the tokens of a call."""

    rows: int
    """The axis of these rows."""
    all_rows: int | None
    """An axis that has all rows so far, or more; None where there is none."""


@dataclass(frozen=True, slots=True)
class ByLength:
    """Positions of the text that are encoded by its length, so that a longer one may have to be encoded anew."""

    positions: Positions
    """The part that says which lengths are encoded alike."""
    counted: bool
    """Whether the positions are counted, so that the length is the number of tokens."""


@dataclass(frozen=True, slots=True)
class CacheLayout:
    """What a model caches while it generates a text."""

    nodes: tuple[CachedNode, ...]
    """Everything that a session gives a cache."""
    fixed: tuple[FixedNode, ...]
    """What it computes once per session."""
    inputs: Mapping[str, GrowingInput]
    """The inputs that grow with the text, by name."""
    prefixes: tuple[int | str | None, ...]
    """The lengths of prefixes whose tokens see each other: numbers, inputs that give one for each row, and None for one that the
    model computes.
    """
    by_length: tuple[ByLength, ...]
    """What is encoded by the length of the text."""
    random: tuple[str, ...]
    """The modules that draw random numbers unless a session is open."""
    last: tuple[LastRows, ...]
    """The nodes at the end that need the last position alone, if only its logits are read, from the first on."""


def growing_axis(typed: TypedProgram) -> Symbolic | None:
    """Return the axis along which a model generates; None for one that generates no text."""
    return growing(typed.untyped.recipe.task, typed.inputs)


def cache_layout(typed: TypedProgram) -> CacheLayout | None:
    """Return what a model caches; None for one that generates no text."""
    axis = growing_axis(typed)
    if axis is None:
        return None
    fixed = fixed_nodes(typed, TASKS[typed.untyped.recipe.task].text)
    inputs = {name: _growing_input(type_, axis) for name, type_ in typed.inputs.items() if axis in type_.sizes}
    typed = flatten(typed)
    hoisting = Hoisting(typed)
    found = _CachedNodes(hoisting, axis, TASKS[typed.untyped.recipe.task].text)
    nodes = [*found.graph(typed.root, hoisting.root(), "")]
    if typed.untyped.losses or outputs_left_out(typed.root):
        nodes.insert(0, CachedNode("", (), {}))  # by its cache a model knows that a session is open
    prefixes = tuple(dict.fromkeys(found.prefixes))
    last = last_rows(typed, axis)
    return CacheLayout(tuple(nodes), fixed, inputs, prefixes, tuple(found.by_length), tuple(found.random), last)


def _growing_input(type_: TensorType, axis: Symbolic) -> GrowingInput:
    every = so_far(axis)
    return GrowingInput(type_.sizes.index(axis), type_.sizes.index(every) if every in type_.sizes else None)


class _CachedNodes:
    def __init__(self, hoisting: Hoisting, axis: Symbolic, text: str) -> None:
        self.hoisting, self.axis = hoisting, axis
        self.rows: Dim = hoisting.program.inputs[text].sizes[0]
        """The number of rows of the batch."""
        self.prefixes: list[int | str | None] = []
        self.by_length: list[ByLength] = []
        self.random: list[str] = []

    def graph(self, graph: TypedGraph, hoisted: Hoisted, path: str) -> Iterator[CachedNode]:
        for name, preparation in hoisted.local.items():
            if preparation.axis == self.axis:
                yield from self._cached_part(preparation.part, path, (name,), preparation)
            if preparation.axis in (self.axis, so_far(self.axis)):
                self.prefixes += self._prefixes(preparation, graph)
        for node in graph.nodes:
            below = f"{path}.{node.name}" if path else node.name
            match node:
                case TypedGroup():
                    yield from self.graph(node.graph, hoisted.inner[node.name], below)
                case TypedScan():
                    if carry_is_cached(node, self.axis):
                        yield CachedNode(below, (), {name: CacheSlot(None, self._of_value(node, name)) for name in node.carried})
                    yield from self.graph(node.graph, hoisted.inner[node.name], below)
                case TypedRepeat():
                    modules = modules_of(node)
                    for index, (name, inner) in enumerate(zip(pass_names(node), node.passes, strict=True)):
                        if modules.index(modules[index]) == index:
                            place = below.removesuffix(node.name) + modules[index]
                            yield from self.graph(inner, hoisted.inner[name], place)
                case TypedBlock():
                    yield from self.block(node, below)
                case _:
                    assert_never(node)

    def _prefixes(self, preparation: Preparation, graph: TypedGraph) -> Iterator[int | str | None]:
        """Yield the lengths of the prefixes of a mask whose tokens see each other."""
        plan, edges = preparation.part, dict(preparation.keywords)
        if not isinstance(plan, Plan) or first_ahead(plan.mask, prefixes=True) is None:
            return
        for length in plan.mask.prefixes():
            source = edges.get(str(length))
            given = isinstance(source, Ref) and graph is self.hoisting.program.root and source.node in graph.inputs
            yield length if isinstance(length, int) else source.node if isinstance(source, Ref) and given else None

    def _of_value(self, scan: TypedScan, name: str) -> BatchAxis | None:
        """Return where the rows stand in what a scan carries."""
        type_ = scan.graph.inputs[name]
        return batch_axis(each_size(type_.axes), self.rows) if isinstance(type_, TensorType) else None

    def _of_slot(self, block: TypedBlock, declared: str) -> BatchAxis | None:
        """Return where the rows stand in what a block keeps; `[...]` has the axes of its first input."""
        names = slot_axes(declared)
        if pattern(declared).leading:
            first = next(iter(block.inputs.values()))
            return batch_axis(each_size(first.axes), self.rows) if isinstance(first, TensorType) else None
        folded = [axis.size for axis in block.leading] or [block.sizes["batch"]]
        own = [folded if name == "batch" else [block.sizes[name]] if name in block.sizes else [] for name in names]
        return batch_axis(own, self.rows)

    def block(self, block: TypedBlock, path: str) -> Iterator[CachedNode]:
        part, grown = type(block.part), grown_slots(block, self.axis)
        held = {
            name: CacheSlot(axis, self._of_slot(block, part.cache_slots[name]), kept_rows(block, name, self.axis))
            for name, axis in grown.items()
        }
        for name, declared in part.cache_slots.items():
            if name not in held and not is_fixed(block.outputs) and _comes_from_outside(block, declared):
                held[name] = CacheSlot(None, self._of_slot(block, declared), whole=True)
        past = self.axis in block.part.past_axes(block.sizes) and self.axis not in block.part.mixed_axes(block.sizes)
        if past and block.sizes.get("batch") != self.axis:  # otherwise each token is a text of its own
            held |= {name: CacheSlot(None, self._of_slot(block, declared)) for name, declared in part.carry.items()}
            held |= {name: CacheSlot(None, None) for name, declared in part.cache_slots.items() if declared.endswith("[]")}
        along = any(self.axis in one.sizes for one in each_given(block.inputs) if isinstance(one, TensorType))
        along = along and block.sizes.get("batch") != self.axis  # otherwise each token is a text of its own
        self.by_length += (one for one in self._by_length(block) if one not in self.by_length)
        if block.part.is_random:
            self.random.append(path)
        if held or block.part.renewed_by or block.part.is_random:
            yield CachedNode(path, (), held)
        for name in part.model_fields:
            inner = getattr(block.part, name)
            if along and isinstance(inner, Part) and not is_node(type(inner)) and type(inner).carry:
                carried = {state: CacheSlot(None, self._of_slot(block, text)) for state, text in type(inner).carry.items()}
                yield CachedNode(path, (name,), carried)
        for name, slot in block.slots.items():
            match slot:
                case TypedBlock():
                    yield from self.block(slot, f"{path}.{name}")
                case TypedGroup():
                    yield from self.graph(slot.graph, self.hoisting.graph(slot.graph, frozenset()), f"{path}.{name}")
                case TypedScan() | TypedRepeat() | None:  # in a slot, the first two stand in a group of their own
                    pass
                case _:
                    assert_never(slot)

    def _by_length(self, block: TypedBlock) -> Iterator[ByLength]:
        """Yield the positions of the text that a block encodes by its length."""
        wired = {wire.port for wire in block.node.wires}
        for prepared in block.part.per_call(frozenset(wired)).values():
            held = getattr(block.part, prepared.slot)
            if not isinstance(held, Positions) or held.length_class(1) is None:
                continue
            port, *coordinates = prepared.ports
            axis = block.sizes[type(block.part).position_inputs[port]]
            if axis in (self.axis, so_far(self.axis)):
                named = str(self.hoisting.as_of_call(axis)) in self.hoisting.declared_positions
                yield ByLength(held, not (port in wired or named or coordinates))

    def _cached_part(self, part: Part, path: str, attribute: tuple[str, ...], preparation: Preparation) -> Iterator[CachedNode]:
        if isinstance(part, Plan) and dict(preparation.attributes).get("grows"):
            rows = batch_axis([preparation.batch], self.rows)
            edges = dict(preparation.keywords)
            names = {name: CacheSlot(-1, rows if name in edges else None, preparation.kept) for name in kept(part)}
            if names:
                yield CachedNode(path, attribute, names)
        elif type(part).cache_slots and not isinstance(part, Plan):
            yield CachedNode(path, attribute, {"length": CacheSlot(None, None)})
        for name in type(part).model_fields:
            inner = getattr(part, name)
            if isinstance(inner, Plan):
                yield from self._cached_part(inner, path, (*attribute, name), preparation)


def _comes_from_outside(block: TypedBlock, declared: str) -> bool:
    """Return whether what a block caches in a slot comes from a port that does not depend on the text, as from an encoder."""
    axes = set(slot_axes(declared)) - {"batch", ""}
    ports = {port.rstrip("?*"): text for port, text in type(block.part).inputs.items()}
    fixed = {port for port, type_ in block.inputs.items() if isinstance(type_, TensorType) and type_.depends is Depends.NONE}
    return any(axes & set(slot_axes(ports[port])) for port in fixed & ports.keys())


def carry_is_cached(scan: TypedScan, axis: Dim | None) -> bool:
    """Return whether what a scan carries is cached from call to call: where its steps are along the axis that grows."""
    return bool(scan.carried) and scan.axis.size == axis
