"""Inputs for any compiled recipe, drawn from its types."""

from __future__ import annotations

import copy
from collections.abc import Mapping

import torch

from composer.graph.dims import names, substitute
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedProgram, TypedRepeat, TypedScan
from composer.graph.types import TensorType
from composer.lower import Model

DRAWS = (
    {"batch": 2, "time": 5, "source": 4, "source_time": 6, "height": 24, "width": 20},
    {"batch": 3, "time": 7, "source": 6, "source_time": 8, "height": 16, "width": 32},
)
"""Two draws of the axes' lengths, all different from one another within a draw."""

POSITIONS = ("positions_given", "columns")
"""Inputs that say where each token stands: in order, not from 0 on."""


def draw(
    typed: TypedProgram, lengths: Mapping[str, int], *, seed: int = 0, optional: bool = True, dtype: torch.dtype = torch.float32
) -> dict[str, torch.Tensor]:
    """Return a value for every input, by name; without the optional ones where `optional` is false."""
    generator = torch.Generator().manual_seed(seed)
    given: dict[str, torch.Tensor] = {}
    aligned = any(block.part.kind == "ctc" for block in blocks(typed.root))
    for name, type_ in typed.inputs.items():
        if type_.optional and not optional:
            continue
        shape = [length(size, lengths) for size in type_.sizes]
        if type_.dtype == "float":
            given[name] = torch.randn(shape, generator=generator, dtype=dtype)
        elif type_.dtype == "bool":
            given[name] = torch.rand(shape, generator=generator) < 0.7
            if given[name].dim():
                given[name][..., 0] = True
        elif name == "documents":
            given[name] = torch.randint(2, shape, generator=generator).cumsum(-1)
        elif name in POSITIONS:
            given[name] = torch.arange(shape[-1]).expand(shape) + torch.randint(3, (shape[0], 1), generator=generator)
        else:
            given[name] = torch.randint(largest(typed), shape, generator=generator)
            if aligned and name in ("target", "letters"):
                given[name][:, 1:] = -100  # one token can be aligned with any number of frames
    return given


def length(size: object, lengths: Mapping[str, int]) -> int:
    """Return the length of an axis; one that has none drawn is 3 long."""
    assert isinstance(size, int) or hasattr(size, "terms")
    known = {**dict.fromkeys(names(size), 3), **lengths}  # type: ignore[arg-type]  # a size
    return substitute(size, known)  # type: ignore[arg-type]  # a size


def largest(typed: TypedProgram) -> int:
    """Return the smallest number for which each table of the model has a row, each indexed axis a place, each loss a class."""
    rows = [block.part.vocab for block in blocks(typed.root) if block.part.kind == "embedding"]  # type: ignore[attr-defined]  # embedding's field
    classes = [block.inputs["input"][0].sizes[-1] for block in blocks(typed.root) if block.part.kind in ("cross_entropy", "ctc")]  # type: ignore[index, union-attr]  # scores
    places = [block.sizes[block.part.indexed] for block in blocks(typed.root) if block.part.indexed]
    places = [place for place in places if isinstance(place, int)]
    return min([*rows, *classes, *places], default=5)


def blocks(graph: TypedGraph) -> list[TypedBlock]:
    """Return every block of a graph, at any depth."""
    found: list[TypedBlock] = []
    for node in graph.nodes:
        found += _below(node)
    return found


def _below(node: TypedNode) -> list[TypedBlock]:
    match node:
        case TypedBlock(slots=slots):
            return [node, *(block for slot in slots.values() if slot is not None for block in _below(slot))]
        case TypedGroup(graph=graph) | TypedScan(graph=graph):
            return blocks(graph)
        case TypedRepeat(passes=passes):
            return [block for one in passes for block in blocks(one)]


def shape_of(type_: TensorType, lengths: Mapping[str, int]) -> tuple[int, ...]:
    """Return the shape that an inferred type promises."""
    return tuple(length(size, lengths) for size in type_.sizes)


def placed(model: Model, device: str) -> Model:
    """Return the model on a device: a copy, unless it is there already."""
    return model if device == "cpu" else copy.deepcopy(model).to(device)


def on(device: str, given: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return the inputs on a device."""
    return {name: value.to(device) for name, value in given.items()}
