"""The settings of a typed block, in the words of a recipe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, assert_never

from blocks.core import Builtin, Formula, Part, fields
from blocks.core.fields import SlotOf
from blocks.masks.mask import Mask
from composer.graph.formula_text import formula_text
from composer.graph.ir import Adapter
from composer.graph.typed import TypedBlock, TypedGroup, TypedNode, TypedRepeat, TypedScan


def edge_names(block: TypedBlock) -> dict[str, str]:
    """Return what is read at each of the ports that a mask's arguments name."""
    return {wire.port: ", ".join(map(str, wire.refs)) for wire in block.node.wires}


def mask(value: Mask, edges: Mapping[str, str]) -> str:
    """Return a mask's expression, its edges under the names of what they read."""
    return value.with_edges(edges).expression()


def phrases(block: TypedBlock) -> Iterator[str]:
    """Yield the fields that are written for a block and differ from their defaults: `heads 12`, `mask causal`, `no bias`."""
    edges = edge_names(block)
    written = {name for name, _ in block.node.fields}
    for name, field in fields(type(block.part)).items():
        if isinstance(field.form, SlotOf) and (slot := _slot_node(block, name)) is not None:
            if not _learns(slot):
                yield f"{name} {kind_of(slot)}"
        elif name in written and (value := getattr(block.part, name)) != field.default:
            yield phrase(name, value, edges)
    yield from adapters(block)


def adapters(block: TypedBlock) -> Iterator[str]:
    """Yield what is added to its linear maps, equal adapters together: `LoRA of rank 8 on q, v`."""
    alike: dict[Adapter, list[str]] = {}
    for name, adapter in block.adapters.items():
        alike.setdefault(adapter, []).append(name)
    for adapter, names in alike.items():
        yield f"LoRA of rank {adapter.rank}" + (f" on {', '.join(names)}" if names != [""] else "")


def phrase(name: str, value: Any, edges: Mapping[str, str]) -> str:
    """Return a field in words."""
    match value:
        case bool():
            return name if value else f"no {name}"
        case int() | float():
            return f"{name} {value if isinstance(value, int) else f'{value:.6g}'}"
        case Mask():
            return f"{name} {mask(value, edges)}"
        case Builtin() | None:
            return f"no {name}"
        case Part():
            inner = ", ".join(phrase(key, held, edges) for key, held in _settings(value))
            return f"{name} {value.kind} ({inner})" if inner else f"{name} {value.kind}"
        case dict() if not all(isinstance(flag, bool) for flag in value.values()):
            return f"{name} {', '.join(f'{key} {held}' for key, held in value.items())}"
        case dict():
            return f"{name} of {', '.join(key for key, flag in value.items() if flag) or 'none'}"
        case Formula():
            return f"{name} {formula_text(value, value.names)}"
        case tuple():
            return f"{name} {', '.join(map(str, value)) or '[]'}"
    return f"{name} {value}"


def _settings(part: Part) -> Iterator[tuple[str, Any]]:
    for name, field in fields(type(part)).items():
        if (value := getattr(part, name)) != field.default:
            yield name, value


def kind_of(node: TypedNode) -> str:
    """Return the block of a node, by name; `graph` for a group that is no block."""
    match node:
        case TypedBlock(part=part):
            return part.kind
        case TypedGroup():
            return node.node.part.kind if node.node.part is not None else "graph"
        case TypedScan():
            return f"scan {node.node.axis}"
        case TypedRepeat():
            return "repeat"
        case _:
            assert_never(node)


def _slot_node(block: TypedBlock, field: str) -> TypedNode | None:
    """Return the node that fills a slot, if one does."""
    return next((slot for slot in block.slots.values() if slot is not None and slot.name == field), None)


def _learns(node: TypedNode) -> bool:
    return not isinstance(node, TypedBlock) or bool(node.parameters)
