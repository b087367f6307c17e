"""The names of the axes of outputs: an axis keeps its name through a block, also where its length is computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from blocks.core import Part
from composer.graph.ir import GroupNode
from composer.graph.passes.infer.axis_lengths import declared_type
from composer.graph.type_patterns import TypePattern, is_name, pattern
from composer.graph.typed import TypedGraph
from composer.graph.types import Axis, InputTypes, PortTypes, TensorType, Type, each_given, each_of
from composer.graph.visit import every_pass, walk
from composer.language.expressions.ast import Expression, Number, RefPath
from composer.language.expressions.parser import names
from composer.language.recipe.free_names import fresh


def named_as_given(part: type[Part], given: InputTypes, outputs: Mapping[str, TypePattern], types: PortTypes) -> dict[str, Type]:
    """Return the outputs of a block with the names of the axes that they come from.

    An axis whose length is computed from one axis of the inputs, `time + 1`, has the name of that one; and so has, in the first
    output, the axis that takes its place, `out` in `float[..., dim] → float[..., out]`. Others are new: the block names them.
    """
    bound = _bound(part, given)
    found = dict(types)
    for index, (port, declared) in enumerate(outputs.items()):
        type_ = types[port]
        if isinstance(type_, TensorType):
            found[port] = _named(type_, declared, bound, _replaced(part, declared) if index == 0 else {})
    return found


def _bound(part: type[Part], given: InputTypes) -> dict[str, str]:
    """Return the name of the axis of the inputs that each axis symbol of a block stands for."""
    bound: dict[str, str] = {}
    for port, types in given.items():
        text = declared_type(part, port)
        for one in each_of(types) if text else ():
            if isinstance(one, TensorType):
                expressions = pattern(text).axes
                own = one.axes[len(one.axes) - len(expressions) :]
                for expression, axis in zip(expressions, own, strict=True):
                    if isinstance(expression, RefPath):
                        bound.setdefault(expression.text, axis.name)
    return bound


def _replaced(part: type[Part], declared: TypePattern) -> dict[int, str]:
    """Return, by their places in an output, the axis symbols of the first input that another length takes the place of."""
    first = next((pattern(text) for name, text in part.inputs.items() if not name.endswith(("?", "*"))), None)
    if first is None or len(first.axes) != len(declared.axes) or first.leading != declared.leading:
        return {}
    kept = frozenset[str]().union(*map(names, declared.axes))
    pairs = enumerate(zip(first.axes, declared.axes, strict=True))
    return {
        place: before.text
        for place, (before, now) in pairs
        if isinstance(before, RefPath) and before.text not in kept and not isinstance(now, Number)
    }


def _named(type_: TensorType, declared: TypePattern, bound: Mapping[str, str], replaced: Mapping[int, str]) -> TensorType:
    split = len(type_.axes) - len(declared.axes)
    axes = list(type_.axes[:split])
    for place, (expression, axis) in enumerate(zip(declared.axes, type_.axes[split:], strict=True)):
        symbols = names(expression) & bound.keys()
        name = bound[next(iter(symbols))] if len(symbols) == 1 else "" if symbols else bound.get(replaced.get(place, ""), "")
        own = axis.name if axis.name.isidentifier() else ""
        axes.append(Axis(name if name and all(name != other.name for other in axes) else own, axis.size))
    return TensorType(type_.dtype, tuple(axes), type_.optional, type_.depends, type_.within)


def named_as_declared(node: GroupNode, given: InputTypes) -> tuple[InputTypes, dict[str, str]]:
    """Return the inputs of a block that a recipe defines with the names that it gives their axes, and those that these had."""
    declared = {port.port: (port.type.axes, dict(port.fixed)) for port in node.ports}
    types, before = dict(given), dict[str, str]()
    for port, (expressions, fixed) in declared.items():
        type_ = given.get(port)
        if isinstance(type_, TensorType):
            inside = _own_names(type_, expressions, fixed)
            types[port] = inside
            for outer, inner in zip(type_.axes, inside.axes, strict=True):
                before.setdefault(inner.name, outer.name)
    return types, {inner: outer for inner, outer in before.items() if inner != outer}


def made_inside(graph: TypedGraph, given: InputTypes, outside: Mapping[str, str]) -> dict[str, str]:
    """Return other names for axes that are made in a block that a recipe defines, where an axis outside has the name.

    Args:
        graph: The graph of the block.
        given: The types of its inputs, with the names that it gives their axes.
        outside: These names, each with the one outside.
    """
    if not outside:
        return {}
    own = {axis.name for type_ in each_given(given) if isinstance(type_, TensorType) for axis in type_.axes}
    types = (type_ for visit in walk(graph, every_pass, once=True) for type_ in visit.node.outputs.values())
    made = {axis.name for type_ in types if isinstance(type_, TensorType) for axis in type_.axes} - own
    taken = {*made, *own, *outside.values()}
    found: dict[str, str] = {}
    for name in sorted(made & {*outside.values()} - {""}):
        found[name] = fresh(name, taken)
        taken.add(found[name])
    return found


def _own_names(type_: TensorType, declared: Sequence[Expression], fixed: Mapping[str, object]) -> TensorType:
    split = len(type_.axes) - len(declared)
    axes = (
        replace(axis, name=known.text) if is_name(known) and known.text not in fixed else axis
        for axis, known in zip(type_.axes[split:], declared, strict=True)
    )
    return replace(type_, axes=(*type_.axes[:split], *axes))
