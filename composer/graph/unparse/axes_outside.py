"""Axes that the fields of a block name, as they are called outside of a block that the recipe defines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from blocks.core import axis_places, ports
from blocks.core.axis_places import FIRST, LAST
from blocks.core.fields import AxisFormula, AxisLength, AxisName, FieldForm, ListOf, MapOf, fields
from composer.graph.typed import TypedBlock
from composer.graph.types import UNKNOWN, Axis, TensorType, first_of
from composer.language.recipe.free_names import IDENTIFIER


def axes_outside(node: TypedBlock, form: FieldForm, value: Any, names: Mapping[str, str]) -> Any:
    """Return the value of a field in which an axis is called by its place, which is the same everywhere; where a name is needed,
    for a length that is known only when the model runs, by the name that the axis has outside.

    Args:
        node: The block.
        form: What the field takes.
        value: Its value.
        names: The names in the block around it, each with the one outside.
    """
    given = first_of(node.inputs.get(next(iter(ports(type(node.part))), ""), UNKNOWN))
    if not isinstance(given, TensorType):
        return value
    return _outside(node, given.axes, form, value, names)


def _outside(node: TypedBlock, axes: Sequence[Axis], form: FieldForm, value: Any, names: Mapping[str, str]) -> Any:
    match form, value:
        case AxisName(), str() if value not in (FIRST, LAST):
            return axis_places(axes, value)[0]
        case ListOf(item=item), tuple() | list():
            return tuple(_outside(node, axes, item, each, names) for each in value)
        case MapOf(of_axes=True), dict():
            return {str(_outside(node, axes, AxisName(), key, names)): each for key, each in value.items()}
        case MapOf(item=AxisLength()), dict():
            return {key: _length(axes, each, names) for key, each in value.items()}
        case AxisFormula(), str():
            lengths = {each: _length(axes, each, names) for each in _lengths(node)}
            return IDENTIFIER.sub(lambda word: lengths.get(word[0], word[0]), value)
    return value


def _length(axes: Sequence[Axis], value: Any, names: Mapping[str, str]) -> Any:
    """Return a length: a number, or the name outside of the axis that it is taken from."""
    if not isinstance(value, str):
        return value
    axis = axes[axis_places(axes, value)[0]]
    return names.get(axis.name, axis.name) or str(axis.size)


def _lengths(node: TypedBlock) -> set[str]:
    """Return the names of axes of the input whose lengths a block has, without those that are names of its own."""
    maps = [
        getattr(node.part, name)
        for name, field in fields(type(node.part)).items()
        if isinstance(field.form, MapOf) and isinstance(field.form.item, AxisLength)
    ]
    return {length for each in maps for length in each.values() if isinstance(length, str)} - {
        key for each in maps for key in each
    }
