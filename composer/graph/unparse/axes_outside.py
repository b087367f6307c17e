"""Axes that the fields of a block name, as they are called outside of a block that the recipe defines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from blocks.core import axis_places
from blocks.core.axis_places import FIRST, LAST, LENGTH_OF
from blocks.core.fields import AxisFormula, AxisLength, AxisName, AxisOrAxes, Field, FieldForm, ListOf, MapOf, length_maps
from composer.graph.typed import TypedBlock
from composer.graph.types import Axis, TensorType
from composer.language.recipe.free_names import IDENTIFIER, fresh


def axes_outside(node: TypedBlock, field: Field, value: Any, names: Mapping[str, str]) -> Any:
    """Return the value of a field in which an axis is called by its place, which is the same everywhere; where a name is needed,
    for a length that is known only when the model runs, by the name that the axis has outside.

    Args:
        node: The block.
        field: The field.
        value: Its value.
        names: The names in the block around it, each with the one outside.
    """
    given = node.first_input
    if not isinstance(given, TensorType):
        return value
    if field.name == LENGTH_OF and value is not None:
        return str(node.sizes["of"])
    if field.name == node.part.new_axis_field:
        return fresh(names.get(value) or value, {names.get(axis.name, axis.name) for axis in given.axes})
    return _outside(node, given.axes, field.form, value, names)


def _outside(node: TypedBlock, axes: Sequence[Axis], form: FieldForm, value: Any, names: Mapping[str, str]) -> Any:
    match form, value:
        case AxisName() | AxisOrAxes(), str() if value not in (FIRST, LAST):
            return axis_places(axes, value)[0]
        case ListOf(item=item) | AxisOrAxes(item=item), tuple() | list():
            return tuple(_outside(node, axes, item, each, names) for each in value)
        case MapOf(of_axes=True), dict():
            return {str(_outside(node, axes, AxisName(), key, names)): each for key, each in value.items()}
        case MapOf(item=AxisLength()), dict():
            return {names.get(key) or key: _length(axes, each, names) for key, each in value.items()}
        case AxisFormula(), str():
            lengths = {each: _length(axes, each, names) for each in _lengths(node)}
            called = {key: names.get(key) or key for key in _own(node)} | {key: str(each) for key, each in lengths.items()}
            return IDENTIFIER.sub(lambda word: called.get(word[0], word[0]), value)
    return value


def _length(axes: Sequence[Axis], value: Any, names: Mapping[str, str]) -> Any:
    """Return a length: a number, where it is known, or the name outside of the axis that it is taken from."""
    if not isinstance(value, str):
        return value
    axis = axes[axis_places(axes, value)[0]]
    return axis.size if isinstance(axis.size, int) else names.get(axis.name, axis.name) or str(axis.size)


def _lengths(node: TypedBlock) -> set[str]:
    """Return the names of axes of the input whose lengths a block has, without those that are names of its own."""
    return {length for each in length_maps(node.part) for length in each.values() if isinstance(length, str)} - _own(node)


def _own(node: TypedBlock) -> set[str]:
    """Return the names that a block gives the axes of its result."""
    return {key for each in length_maps(node.part) for key in each}
