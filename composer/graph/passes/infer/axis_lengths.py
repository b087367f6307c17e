"""The lengths of the axes that a block declares by name, from the types of its inputs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from blocks.core import Part, fields
from blocks.core.per_class import per_class
from composer.diagnostics import Label
from composer.graph.ir import BlockNode, GroupNode
from composer.graph.passes.error_report import StopExpansion
from composer.graph.passes.infer.text_dependence import GeneratedText
from composer.graph.passes.infer.type_errors import Surroundings
from composer.graph.type_patterns import Mismatch, TypePattern, agree, dtype_hint, match, pattern
from composer.graph.types import UNKNOWN, InputTypes, TensorType, Unknown, each_of
from composer.language.expressions.ast import RefPath
from composer.language.expressions.parser import names


def axis_lengths(node: BlockNode, given: InputTypes, here: Surroundings, text: GeneratedText | None) -> dict[str, Any]:
    """Return the lengths by the names of the axes. Along an axis whose rows a block keeps, that is the length of one call, also
    where an input has all rows so far.

    Raises:
        StopExpansion: where what is given does not fit.
    """
    part, known, fixed = node.part, dict[str, Any](), fields(node.part)
    for port, types in given.items():
        declared = declared_type(node.part, port)
        if types == ():
            hint = "add what is always there, such as `input`, or leave the node out of such a pass with `when`"
            here.at_port(node, port, "empty-range", f"port {port} of {part.kind} gets no value: nothing is in this range", hint)
            raise StopExpansion
        for index, one in enumerate(each_of(types) if declared else ()):
            assert isinstance(one, TensorType)
            if not part.broadcasts and port + "*" not in part.inputs:
                with here.fitting(node, port):
                    match(pattern(declared), as_of_call(part, port, one, text), known, fixed)
            elif one.dtype not in pattern(declared).dtypes:
                place = index if isinstance(types, tuple) else None
                hint = dtype_hint(pattern(declared), one)
                message = f"port {port} of {part.kind} takes {declared}, not {one}"
                here.at_port(node, port, "type-mismatch", message, hint, index=place)
    if "xs" in given:
        known["inputs"] = len(each_of(given["xs"]))
    for name, other in part.axis_defaults.items():
        if name not in known and other in known:
            known[name] = known[other]
    return known


def check_optional_inputs(node: BlockNode, given: InputTypes, here: Surroundings) -> None:
    """Report optional inputs of the model that are wired to required ports."""
    for port, types in given.items():
        if not declared_type(node.part, port) or port + "?" in node.part.inputs:
            continue
        for index, one in enumerate(each_of(types)):
            if isinstance(one, TensorType) and one.optional:
                message = f"port {port} of {node.part.kind} is required, but an optional input may be absent"
                hint = "wire it to a mask or an optional port, or give the input a default"
                place = index if isinstance(types, tuple) else None
                here.at_port(node, port, "optional-edge", message, hint, index=place)


def check_field_axes(
    node: BlockNode, given: InputTypes, sizes: dict[str, Any], here: Surroundings, text: GeneratedText | None
) -> None:
    """Check the axes that fields determine against the inputs.

    Raises:
        StopExpansion: where they differ.
    """
    for port, types in given.items():
        declared = declared_type(node.part, port)
        if declared and isinstance(types, TensorType):
            with here.fitting(node, port):
                agree(pattern(declared), as_of_call(node.part, port, types, text), sizes)


def as_of_call(part: type[Part], port: str, type_: TensorType, text: GeneratedText | None) -> TensorType:
    """Return the type of an input with the rows of one call along the axes whose other rows the block has itself."""
    if text is None or port not in part.so_far_inputs:
        return type_
    names = [expression.text if isinstance(expression, RefPath) else "" for expression in pattern(declared_type(part, port)).axes]
    first = len(type_.axes) - len(names)
    axes = tuple(
        replace(axis, size=text.length)
        if index >= first and names[index - first] in part.kept_axes and axis.size == text.so_far
        else axis
        for index, axis in enumerate(type_.axes)
    )
    return replace(type_, axes=axes)


def declared_type(part: type[Part], port: str) -> str:
    """Return the declared type of a port; an empty string for a port that a mask reads."""
    return _declared_types(part).get(port, "")


@per_class
def _declared_types(part: type[Part]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, text in part.inputs.items():
        found.setdefault(name.rstrip("?*"), text)
    return found


def defined_axis_lengths(node: GroupNode, given: InputTypes, here: Surroundings) -> dict[str, Any] | None:
    """Return the axis lengths of a block that a recipe defines; None where its inputs do not fit."""
    sizes: dict[str, Any] = {}
    fits = True
    for port in node.ports:
        type_ = given.get(port.port)
        if isinstance(type_, Unknown):
            fits = False
        if not isinstance(type_, TensorType):
            continue
        fixed = dict(port.fixed)
        wanted = TypePattern(port.type.dtype, port.type.leading, port.type.axes, port.type.text)
        try:
            if type_.optional and not port.optional:
                raise Mismatch(f"takes {port.type.text}, but an optional input may be absent")
            match(wanted, type_, sizes, fixed)
            agree(wanted, type_, {**fixed, **sizes})
        except (Mismatch, KeyError) as wrong:
            message = wrong.message if isinstance(wrong, Mismatch) else f"needs {wrong}, which is not known here"
            what = f"port {port.port} of {node.part.kind if node.part else node.name} {message}"
            hint, axis = (wrong.hint, wrong.axis) if isinstance(wrong, Mismatch) else ("", "")
            if axis in fixed:
                owner = node.part.kind if node.part and axis in (node.part.declared or {}) else "the recipe"
                hint = f"`{axis}` is a param of {owner}; an axis of any length needs another name"
            here.at_port(node, port.port, "type-mismatch", what, hint, more=(Label(port.type.span, "declared here"),))
            fits = False
    return sizes if fits else None


def unknown_lengths(node: GroupNode) -> dict[str, Any]:
    """Return the axes of a block that a recipe defines, where its inputs have a mistake."""
    return {name: UNKNOWN for port in node.ports for axis in port.type.axes for name in names(axis) - dict(port.fixed).keys()}
