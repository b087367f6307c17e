"""Whether the cache of a model can be allocated once: where nothing but a mask meets the places of tokens to come."""

from __future__ import annotations

from collections.abc import Iterator

from blocks.masks.mask import Mask
from composer.graph.cache_slots import grown_slots, slot_axes
from composer.graph.dims import Symbolic, so_far
from composer.graph.typed import TypedBlock, TypedProgram, TypedScan
from composer.graph.types import TensorType, Type, each_given
from composer.graph.visit import every_pass, walk
from composer.lower.passes.cache_layout import CacheLayout, growing_axis
from composer.lower.passes.fixed_nodes import outputs_left_out


def obstacles(program: TypedProgram, layout: CacheLayout) -> Iterator[str]:
    """Yield why a model cannot have a session with a maximum length, in words; nothing if it can.

    In such a session, a value with a row for each token so far has one for each token to come too. Masks hide these; what adds
    the rows up, sorts or counts them would be wrong.

    Args:
        program: The model.
        layout: What it caches.
    """
    axis = growing_axis(program)
    assert axis is not None
    for name, item in layout.inputs.items():
        if item.all_rows is not None:
            yield f"the input `{name}` has a column for each token so far"
    left_out = outputs_left_out(program.root)
    for name, type_ in program.root.outputs.items():
        if name not in left_out and _has(type_, so_far(axis)):
            yield f"the output `{name}` has a value for each token so far"
    for visit in walk(program.root, every_pass, once=True):
        match visit.node:
            case TypedBlock():
                yield from (f"`{visit.path}` {why}" for why in _of_block(visit.node, axis))
            case TypedScan() if visit.node.axis.size == so_far(axis):
                yield f"`{visit.path}` takes a step for each token so far"


def _of_block(block: TypedBlock, axis: Symbolic) -> Iterator[str]:
    part, every = type(block.part), so_far(axis)
    masked = {slot for slot, field in part.masked_slots.items() if isinstance(getattr(block.part, field), Mask)}
    read = [block.outputs[name] for name in block.node.requested_outputs if name in block.outputs]
    row_by_row = all(_has(type_, every) for type_ in (*list(block.outputs.values())[:1], *read))
    for name in grown_slots(block, axis):
        if name not in masked and not row_by_row:
            yield f"reads `{name}` of all tokens so far, and not behind a mask"
    if axis in block.part.past_axes(block.sizes):
        for name, declared in part.carry.items():
            if any(block.sizes.get(one) == axis for one in slot_axes(declared) if one):
                yield f"keeps `{name}`, which is shorter in the first calls than later"
    so_far_ports = [name for name, given in block.inputs.items() if any(_has(one, every) for one in each_given({name: given}))]
    hidden = masked or not part.masked_slots.keys()
    for name in so_far_ports:
        behind_a_mask = bool(masked) and (name in masked or name in part.so_far_inputs)
        if not behind_a_mask and (not hidden or every in block.part.mixed_axes(block.sizes)):
            yield f"reads `{name}` of all tokens so far, and not behind a mask"


def _has(type_: Type, size: Symbolic) -> bool:
    return isinstance(type_, TensorType) and size in type_.sizes
