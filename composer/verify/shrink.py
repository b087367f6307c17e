"""A recipe with small sizes that still passes all checks, so that its model runs in no time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from blocks.masks.mask import Mask
from composer.diagnostics import Source
from composer.graph.typed import TypedBlock
from composer.graph.types import TensorType
from composer.graph.visit import walk
from composer.language.recipe.writer import YamlData, data_of, write
from composer.verify.recipes import VerifiableRecipe

SIZED = ("params", "blocks", "inputs", "graph", "losses", "outputs")
"""Top-level keys with numbers that are sizes."""
LEFT_OUT = ("checkpoints", "doc", "paper")
"""Top-level keys without an influence on the model."""
SMALL = 4
"""Numbers up to here stay as they are."""
SIZES = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128, 256)
"""What a larger number may become, the smallest first."""
LENGTH = 64
"""Numbers from here on are widths, or lengths of what is read, such as images."""
WIDTHS = (8, 12, 16, 10, 20, 14, 24, 9, 11, 32, 48, 64, 96, 128, 256)
"""What a width may become: none so small that every number counts alike, and different ones for different widths."""
_WHOLE = re.compile(r"(?<![\w.])\d+(?![\w.])")


def shrunk(recipe: VerifiableRecipe) -> VerifiableRecipe:
    """Return the recipe with every number as small as the checks allow; equal numbers stay equal, and others differ if they can.

    Numbers are made smaller one after the other, the largest first, until none can be made smaller alone.
    """
    root = recipe.document.root
    data = data_of(root) if root is not None else {}
    assert isinstance(data, dict)
    data = {key: value for key, value in data.items() if key not in LEFT_OUT}
    found = {number for key in SIZED if key in data for number in _numbers(data[key])}
    widths = {number for number in found if number >= LENGTH} | set(_widths(recipe))
    widths -= set(_numbers_of_masks(recipe))
    sizes: dict[int, int] = {}
    for _ in range(2):
        before = dict(sizes)
        for value in sorted(number for number in found if number > SMALL):
            taken = {size for other, size in sizes.items() if other != value}
            known = sorted(WIDTHS, key=taken.__contains__) if value in widths else SIZES
            now = sizes.get(value, value)
            for size in (size for size in known if size < now and (known is SIZES or size not in taken or now > WIDTHS[4])):
                if _is_sound(_with(recipe, data, {**sizes, value: size})):
                    sizes[value] = size
                    break
        if sizes == before:
            break
    return _with(recipe, data, sizes)


def _is_sound(recipe: VerifiableRecipe) -> bool:
    return not any(found.severity == "error" for found in recipe.check())


def _widths(recipe: VerifiableRecipe) -> Iterator[int]:
    """Yield the lengths of last axes, as far as they are known."""
    for visit in walk(recipe.program.root, once=True):
        types = [type_ for type_ in visit.node.outputs.values() if isinstance(type_, TensorType)]
        yield from (size for type_ in types for size in type_.sizes[-1:] if isinstance(size, int))


def _numbers_of_masks(recipe: VerifiableRecipe) -> Iterator[int]:
    """Yield the numbers in masks, such as windows, which must stay below the lengths of inputs."""
    for visit in walk(recipe.program.root, once=True):
        if isinstance(visit.node, TypedBlock):
            values = [getattr(visit.node.part, name) for name in type(visit.node.part).model_fields]
            yield from (number for mask in values if isinstance(mask, Mask) for number in _numbers(str(mask)))


def _numbers(value: YamlData) -> Iterator[int]:
    """Yield every whole number in a piece of a recipe."""
    match value:
        case str():
            yield from map(int, _WHOLE.findall(value))
        case Mapping():
            yield from (number for inner in value.values() for number in _numbers(inner))
        case Sequence():
            yield from (number for inner in value for number in _numbers(inner))


def _with(recipe: VerifiableRecipe, data: Mapping[str, YamlData], sizes: Mapping[int, int]) -> VerifiableRecipe:
    """Return the recipe of the data with some of its numbers replaced."""
    changed = {key: _replaced(value, sizes) if key in SIZED else value for key, value in data.items()}
    return type(recipe)(Source(recipe.source.name, write(changed)), (), recipe.blocks)


def _replaced(value: YamlData, sizes: Mapping[int, int]) -> YamlData:
    match value:
        case str():
            return _WHOLE.sub(lambda match: str(sizes.get(int(match[0]), match[0])), value)
        case Mapping():
            return {key: _replaced(inner, sizes) for key, inner in value.items()}
        case Sequence():
            return [_replaced(inner, sizes) for inner in value]
    return value  # a remark, of which a document that was read has none
