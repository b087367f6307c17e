"""Axes that the fields of a block name, as they are called outside of a block that the recipe defines."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from blocks.core import axis_places, ports
from blocks.core.axis_places import FIRST, LAST, LENGTH_OF
from blocks.core.fields import AxisFormula, AxisLength, AxisName, Field, FieldForm, ListOf, MapOf, fields
from composer.graph.typed import TypedBlock
from composer.graph.types import UNKNOWN, Axis, TensorType, first_of
from composer.language.recipe.free_names import IDENTIFIER


def axes_outside(node: TypedBlock, field: Field, value: Any, names: Mapping[str, str]) -> Any:
    """Return the value of a field in which an axis is called by its place, which is the same everywhere; where a name is needed,
    for a length that is known only when the model runs, by the name that the axis has outside.

    Args:
        node: The block.
        field: The field.
        value: Its value.
        names: The names in the block around it, each with the one outside.
    """
    given = first_of(node.inputs.get(next(iter(ports(type(node.part))), ""), UNKNOWN))
    if not isinstance(given, TensorType):
        return value
    if field.name == LENGTH_OF and value is not None:
        return str(node.sizes["of"])
    if field.name == node.part.new_axis_field:
        return _new_name(names.get(value) or value, {names.get(axis.name, axis.name) for axis in given.axes})
    return _outside(node, given.axes, field.form, value, names)


def _outside(node: TypedBlock, axes: Sequence[Axis], form: FieldForm, value: Any, names: Mapping[str, str]) -> Any:
    match form, value:
        case AxisName(), str() if value not in (FIRST, LAST):
            return axis_places(axes, value)[0]
        case ListOf(item=item), tuple() | list():
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


def _new_name(name: str, taken: Collection[str]) -> str:
    """Return a name for a new axis: its own, or another one where the input has an axis of that name outside."""
    return next(other for count in range(1, len(taken) + 2) if (other := f"{name}_{count}" * (count > 1) or name) not in taken)


def _length(axes: Sequence[Axis], value: Any, names: Mapping[str, str]) -> Any:
    """Return a length: a number, where it is known, or the name outside of the axis that it is taken from."""
    if not isinstance(value, str):
        return value
    axis = axes[axis_places(axes, value)[0]]
    return axis.size if isinstance(axis.size, int) else names.get(axis.name, axis.name) or str(axis.size)


def _lengths(node: TypedBlock) -> set[str]:
    """Return the names of axes of the input whose lengths a block has, without those that are names of its own."""
    return {length for each in _maps(node) for length in each.values() if isinstance(length, str)} - _own(node)


def _own(node: TypedBlock) -> set[str]:
    """Return the names that a block gives the axes of its result."""
    return {key for each in _maps(node) for key in each}


def _maps(node: TypedBlock) -> list[dict[str, Any]]:
    return [
        getattr(node.part, name)
        for name, field in fields(type(node.part)).items()
        if isinstance(field.form, MapOf) and isinstance(field.form.item, AxisLength)
    ]
