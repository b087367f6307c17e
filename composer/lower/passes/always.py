"""What holds for all blocks of a kind in a model: arguments that no call passes, fields that are on or off, parts that are not
there. The source of the blocks is copied without what is for other cases.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import reduce
from operator import and_

from blocks.core import Part
from blocks.core.per_class import per_class
from composer.graph.typed import TypedBlock, TypedProgram
from composer.graph.visit import Visit, every_pass, walk
from composer.lower.passes.node_queries import tensor_names


@dataclass(frozen=True, slots=True)
class Always:
    """What holds for all blocks of a kind in a model."""

    absent: frozenset[str] = frozenset()
    """Optional arguments of `forward` that no call passes."""
    attributes: tuple[tuple[str, bool | None], ...] = ()
    """Attributes that are the same in all of them: fields that are on or off, and parts and parameters that are not there."""


def always(program: TypedProgram) -> Mapping[type[Part], Always]:
    """Return what holds for all blocks of each kind. A part that a block has as a field, such as a mask, is not a block, and of
    a kind with such parts nothing is known.
    """
    blocks: dict[type[Part], list[Visit]] = {}
    fields: set[type[Part]] = set()
    for visit in walk(program.root, every_pass, once=True):
        if isinstance(node := visit.node, TypedBlock):
            blocks.setdefault(type(node.part), []).append(visit)
            fields.update(type(value) for key in _fields(node) if isinstance(value := getattr(node.part, key), Part))
    return {part: _in_common(visits) for part, visits in blocks.items() if part not in fields}


def _in_common(visits: list[Visit]) -> Always:
    absent = [_absent(visit) for visit in visits]
    attributes = [_attributes(visit.node) for visit in visits if isinstance(visit.node, TypedBlock)]
    return Always(frozenset(reduce(and_, absent)), tuple(sorted(reduce(and_, attributes))))


def _absent(visit: Visit) -> Set[str]:
    """Return the optional arguments that a block is called without; what fills a slot is called by code that is not looked at."""
    node = visit.node
    assert isinstance(node, TypedBlock)
    if visit.graph is None:
        return frozenset()
    wired = frozenset(wire.port for wire in node.node.wires)
    return _optional(type(node.part)) - wired - {*node.inputs, *node.part.position_inputs, *node.part.per_call(wired)}


@per_class
def _optional(part: type[Part]) -> frozenset[str]:
    """Return the arguments of `forward` that are None unless they are passed."""
    parameters = inspect.signature(part.forward).parameters.values() if part.forward is not None else ()
    return frozenset(each.name for each in parameters if each.default is None)


def _attributes(block: TypedBlock) -> Set[tuple[str, bool | None]]:
    """Return the attributes of a block's module that are on, off or not there."""
    fields = {key: getattr(block.part, key) for key in _fields(block)}
    found = {**block.sizes, **fields, **dict.fromkeys(tensor_names(block.part, block))}
    held = {each.name for each in (*block.parameters, *block.buffers)} | {*block.modules}
    plain = {key: value for key, value in {**found, **block.slots}.items() if key not in held}
    return {(key, value) for key, value in plain.items() if value is None or isinstance(value, bool)}


def _fields(block: TypedBlock) -> Iterator[str]:
    yield from (key for key in type(block.part).model_fields if key not in block.slots)
