"""Random inputs for a model, drawn from the types of its inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch

from composer.graph.alignments import alignments
from composer.graph.dims import Dim, names, substitute
from composer.graph.task_signature import growing
from composer.graph.typed import TypedBlock, TypedProgram
from composer.graph.types import TensorType
from composer.graph.visit import walk

LENGTHS: tuple[Mapping[str, int], ...] = (
    {"batch": 2, "time": 5, "source": 4, "source_time": 6},
    {"batch": 3, "time": 7, "source": 6, "source_time": 8},
)
"""Two draws of the lengths of axes; within each, all are different."""
OTHER_LENGTHS = (3, 4)
"""Length of the first of the other axes in each draw; each further one is longer by one."""
MOST_LENGTHENINGS = 4
"""How often lengths are doubled for a model whose axes would have no positions, or one, which broadcasts to any number."""
DEFAULT_IDS = 5
"""Number of ids of a model without a table."""


@dataclass(frozen=True, slots=True)
class Draw:
    """What inputs are drawn for: the lengths of the axes, a seed, and whether optional inputs are given."""

    lengths: Mapping[str, int]
    seed: int = 0
    optional: bool = True


def blocks(program: TypedProgram) -> Iterator[TypedBlock]:
    """Yield every block of a model once, at any depth."""
    return (visit.node for visit in walk(program.root, once=True) if isinstance(visit.node, TypedBlock))


def text_axis(program: TypedProgram) -> Dim | None:
    """Return the axis along which a model generates; None for one that generates nothing."""
    return growing(program.untyped.recipe.task, program.inputs)


def draws(program: TypedProgram) -> tuple[Draw, Draw]:
    """Return two draws: with all inputs, and with other lengths and without the optional ones."""
    first, second = (lengths(program, number) for number in range(len(LENGTHS)))
    return Draw(first, 0, optional=True), Draw(second, 1, optional=False)


def lengths(program: TypedProgram, number: int) -> Mapping[str, int]:
    """Return lengths for the axes of a model: short, different from each other, and within what its tables of positions hold."""
    symbols = sorted({name for type_ in program.inputs.values() for size in type_.sizes for name in names(size)})
    others = [name for name in symbols if name not in LENGTHS[number]]
    first = {**LENGTHS[number], **{name: length for length, name in enumerate(others, OTHER_LENGTHS[number])}}
    tried = [
        {name: first[name] * (1 if name == "batch" else 2**times) for name in symbols} for times in range(MOST_LENGTHENINGS + 1)
    ]
    sizes = _open_sizes(program)
    shortest = [min((substitute(size, each) for size in sizes), default=2) for each in tried]
    found = next((each for least in (2, 1) for each, length in zip(tried, shortest, strict=True) if length >= least), tried[-1])
    for block in blocks(program):
        for axis in block.part.position_inputs.values() if block.part.length_field else ():
            most: int = getattr(block.part, block.part.length_field)
            if substitute(block.sizes[axis], found) > most:
                found |= {name: min(found[name], most) for name in names(block.sizes[axis])}
    return found


def _open_sizes(program: TypedProgram) -> set[Dim]:
    """Return the different sizes in a model that depend on lengths of its inputs."""
    types = (type_ for visit in walk(program.root, once=True) for type_ in visit.node.outputs.values())
    return {size for type_ in types if isinstance(type_, TensorType) for size in type_.sizes if names(size)}


def shape_of(type_: TensorType, known: Mapping[str, int]) -> tuple[int, ...]:
    """Return the shape that an inferred type promises."""
    return tuple(substitute(size, known) for size in type_.sizes)


def draw(program: TypedProgram, how: Draw, dtype: torch.dtype = torch.float64) -> dict[str, torch.Tensor]:
    """Return a value for every input, by name.

    Ids are below the number of rows of every table; flags of padding hide no row entirely; positions and ids of documents are in
    order; a number of each row, such as the length of a prefix, is 0 or 1. What is aligned with frames has one token in each row,
    for which any number of frames is enough.
    """
    generator = torch.Generator().manual_seed(how.seed)
    ids = _ids(program)
    ordered = {ref.node for _, ref in program.untyped.positions} | {"documents"}
    given: dict[str, torch.Tensor] = {}
    aligned = {each.target for each in alignments(program)}
    for name, type_ in program.inputs.items():
        if type_.optional and not how.optional:
            continue
        shape = shape_of(type_, how.lengths)
        if type_.dtype == "float":
            given[name] = torch.randn(shape, generator=generator, dtype=dtype)
        elif type_.dtype == "bool":
            given[name] = torch.rand(shape, generator=generator) < 0.7
            if shape:
                given[name][..., 0] = True
        elif name in ordered and shape:
            given[name] = torch.randint(2, shape, generator=generator).cumsum(-1).clamp(max=ids - 1)
        else:
            given[name] = torch.randint(min(ids, 2) if len(shape) < 2 else ids, shape, generator=generator)
            if name in aligned:
                given[name][:, 1:] = -100
    return given


def _ids(program: TypedProgram) -> int:
    """Return the smallest number of ids that a table, a loss, an axis of positions or one that is indexed has a place for."""
    found: list[int] = []
    for block in blocks(program):
        part = block.part
        found += [getattr(part, name) for name in (part.vocab_field, part.length_field) if name]
        found += [block.sizes[name] for name in (part.indexed,) if name]
        scores, target = block.inputs.get("input"), block.inputs.get("target")
        scores = scores[0] if isinstance(scores, tuple) else scores
        if isinstance(target, TensorType) and target.dtype == "int" and isinstance(scores, TensorType) and scores.sizes:
            found += [size for size in scores.sizes[-1:] if isinstance(size, int)]
    return min((number for number in found if isinstance(number, int) and number > 0), default=DEFAULT_IDS)
