"""A recipe with small sizes that still passes all checks, so that its model runs in no time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from blocks.masks.mask import Mask
from composer.diagnostics import Source
from composer.graph.typed import TypedBlock
from composer.graph.visit import walk
from composer.language.recipe.writer import YamlValue, data_of, write

if TYPE_CHECKING:
    from composer.recipe import Recipe

SIZED = ("params", "blocks", "inputs", "graph", "losses", "outputs")
"""Top-level keys with numbers that are sizes."""
LEFT_OUT = ("checkpoints", "doc", "paper")
"""Top-level keys without an influence on the model."""
SMALL = 4
"""Numbers up to here stay as they are."""
SIZES = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128, 256)
"""What a larger number may become, the smallest first."""
WIDE = 64
"""Numbers from here on are usually widths."""
WIDTHS = (8, 12, 16, 10, 20, 14, 24, 9, 11, 32, 48, 64, 96, 128, 256)
"""What a width may become: none so small that every number counts alike, and different ones for different widths."""
_WHOLE = re.compile(r"(?<![\w.])\d+(?![\w.])")


def shrunk(recipe: Recipe) -> Recipe:
    """Return the recipe with every number as small as the checks allow; equal numbers stay equal, and others differ if they can.

    Numbers are made smaller one after the other, the largest first, until none can be made smaller alone.
    """
    root = recipe.document.root
    data = data_of(root) if root is not None else {}
    assert isinstance(data, dict)
    data = {key: value for key, value in data.items() if key not in LEFT_OUT}
    found = {number for key in SIZED if key in data for number in _numbers(data[key])}
    narrow = set(_numbers_of_masks(recipe))
    sizes: dict[int, int] = {}
    for _ in range(2):
        before = dict(sizes)
        for value in sorted(number for number in found if number > SMALL):
            taken = {size for other, size in sizes.items() if other != value}
            known = WIDTHS if value >= WIDE and value not in narrow else SIZES
            fitting = [size for size in known if size < sizes.get(value, value)]
            for size in sorted(fitting, key=lambda size: size in taken) if known is WIDTHS else fitting:
                if _is_sound(_with(recipe, data, {**sizes, value: size})):
                    sizes[value] = size
                    break
        if sizes == before:
            break
    return _with(recipe, data, sizes)


def _is_sound(recipe: Recipe) -> bool:
    return not any(found.severity == "error" for found in recipe.check())


def _numbers_of_masks(recipe: Recipe) -> Iterator[int]:
    """Yield the numbers in masks, such as windows, which must stay below the lengths of inputs."""
    for visit in walk(recipe.program.root, once=True):
        if isinstance(visit.node, TypedBlock):
            values = [getattr(visit.node.part, name) for name in type(visit.node.part).model_fields]
            yield from (number for mask in values if isinstance(mask, Mask) for number in _numbers(str(mask)))


def _numbers(value: YamlValue) -> Iterator[int]:
    """Yield every whole number in a piece of a recipe."""
    if isinstance(value, str):
        yield from map(int, _WHOLE.findall(value))
    else:
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _numbers(inner)  # type: ignore[arg-type]  # data that was read has no remarks


def _with(recipe: Recipe, data: Mapping[str, YamlValue], sizes: Mapping[int, int]) -> Recipe:
    """Return the recipe of the data with some of its numbers replaced."""
    changed = {key: _replaced(value, sizes) if key in SIZED else value for key, value in data.items()}
    return type(recipe)(Source(recipe.source.name, write(changed)), (), recipe.blocks)


def _replaced(value: YamlValue, sizes: Mapping[int, int]) -> YamlValue:
    if isinstance(value, str):
        return _WHOLE.sub(lambda match: str(sizes.get(int(match[0]), match[0])), value)
    if isinstance(value, Mapping):
        return {key: _replaced(inner, sizes) for key, inner in value.items()}  # type: ignore[arg-type]  # no remarks
    return [_replaced(inner, sizes) for inner in value]  # type: ignore[arg-type]  # no remarks
