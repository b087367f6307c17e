"""What each block looks like, as its class declares it, at its place in a model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from blocks.core import BlockView, Look, Piece, Steps, grouped, look_with_icon, size
from composer.draw.wording import axis_words
from composer.graph.anatomy import TYPED, slots
from composer.graph.describe import edge_names, phrases
from composer.graph.typed import TypedBlock, TypedGraph, TypedNode
from composer.graph.types import TensorType
from composer.graph.visit import Fold, Inside

NO_INPUTS: Mapping[str, str] = MappingProxyType({})
LONG = re.compile(r"(?<![\w.])\d{5,}(?![\w.])")
"""A number whose thousands are separated."""


def look(block: TypedBlock, head: str = "", inputs: Mapping[str, str] = NO_INPUTS) -> Look:
    """Return the look of a block; `head` is its title where it gives the model's logits, and `inputs` are the ports that read an
    input of the model, with its name.
    """
    view = block_view(block, head)
    return _look(block, replace(view, edges={**view.edges, **inputs}) if inputs else view)


def inside(block: TypedBlock) -> Sequence[Piece]:
    """Return the pieces of a block in the order in which they compute; nothing for one that is not drawn from inside."""
    return block.part.inside(block_view(block))


def steps(block: TypedBlock) -> Sequence[Steps]:
    """Return the loops inside of a block, layer by layer; nothing for one that is not drawn so."""
    return block.part.steps(block_view(block))


def block_view(block: TypedBlock, head: str = "") -> BlockView:
    """Return what the look of a block may depend on."""
    fold = Fold(TYPED, _slot_look, lambda graph, looks: None)
    return _block_view(block, {name: fold.node(filled, name) for name, filled in slots(block)}, head)


def _slot_look(node: TypedNode, inside: Inside[TypedGraph, Look | None, None]) -> Look | None:
    """Return the look of what fills a slot; nothing for a graph."""
    return _look(node, _block_view(node, dict(inside.slots))) if isinstance(node, TypedBlock) else None


def _look(block: TypedBlock, view: BlockView) -> Look:
    return look_with_icon(block.part, view)


def _block_view(block: TypedBlock, filled: Mapping[str, Look | None], head: str = "") -> BlockView:
    return BlockView(
        name=block.name,
        sizes=block.sizes,
        settings=tuple(LONG.sub(lambda found: grouped(int(found[0])), said) for said in phrases(block)),
        edges=edge_names(block),
        optional=frozenset(port for port, given in block.inputs.items() if isinstance(given, TensorType) and given.optional),
        learns=bool(block.parameters),
        modules={name: (each.inputs, each.outputs, each.bias) for name, each in block.modules.items()},
        slots=filled,
        head=head,
        axes=axis_words(block.first_input),
        gives=_lengths(block) if [way for way in block.expansions if None in way] else (),
    )


def _lengths(block: TypedBlock) -> tuple[str, ...]:
    """Return how long the axes of the first value are that a block gives."""
    given = next(iter(block.outputs.values()))
    return tuple(map(size, given.sizes)) if isinstance(given, TensorType) else ()
