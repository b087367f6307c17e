"""What a task wants of a model: its inputs and outputs, and the axis along which it writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from composer.diagnostics import Diagnostic, Span
from composer.graph.dims import Dim, Symbolic, names
from composer.graph.type_patterns import pattern
from composer.graph.typed import TypedGraph
from composer.graph.types import TensorType, Type, Unknown
from composer.language.expressions.ast import RefPath
from composer.language.tasks import TASKS


def growing(task: str, inputs: Mapping[str, Type | tuple[Type, ...]]) -> Symbolic | None:
    """Return the axis that grows by one with every token that a model writes; None for a task that writes nothing."""
    text = inputs.get(TASKS[task].text) if task else None
    if not isinstance(text, TensorType) or len(text.axes) != 2:
        return None
    time = text.sizes[1]
    return time if isinstance(time, Symbolic) else None


def purpose_mistakes(root: TypedGraph, task: str, span: Span) -> Iterator[Diagnostic]:
    """Yield what is missing or of another type; nothing about outputs where an input is wrong already."""
    known: dict[str, Dim] = {}
    wanted = TASKS[task]
    for name, text in wanted.inputs.items():
        given = root.inputs.get(name)
        if isinstance(given, Unknown):
            return
        if not isinstance(given, TensorType) or not _fits(given, text, known):
            yield Diagnostic("task", f"{task} needs an input `{name}` of type {_filled(text, known)}", span)
            return
    if len(root.inputs) < wanted.streams:
        yield Diagnostic("task", f"{task} needs {wanted.streams} inputs, but there is one", span)
        return
    axis = growing(task, root.inputs)
    for name in wanted.inputs:
        given = root.inputs[name]
        if axis is not None and name != wanted.text and isinstance(given, TensorType) and _reaches(axis, given):
            message = f"`{axis}` is an axis of both {name}, which {task} reads as a whole, and {wanted.text}, which it generates"
            yield Diagnostic("task", message, span, hint=f"use another axis name in {name}")
            return
    for name, text in wanted.outputs.items():
        made, axes = root.outputs.get(name), dict(known)
        if made is None:
            yield Diagnostic("task", f"{task} needs an output `{name}`", span, hint=f"outputs: {{{name}: head}}")
        elif isinstance(made, TensorType) and not _fits(made, text, axes):
            yield Diagnostic("task", f"{task} needs {name} of type {_filled(text, known)}, not {made}", span)
        else:
            known = axes


def _reaches(axis: Symbolic, type_: TensorType) -> bool:
    """Return whether the length of one of a type's axes depends on that of another axis."""
    return any(names(axis) & names(size) for size in type_.sizes)


def _fits(given: Type, text: str, known: dict[str, Dim]) -> bool:
    """Return whether a type is as wanted, its axes equal to those of the same names; those that are new become known."""
    wanted = pattern(text)
    if not isinstance(given, TensorType) or given.dtype != wanted.dtype or len(given.sizes) != len(wanted.axes):
        return False
    pairs = zip(wanted.axes, given.sizes, strict=True)
    return all(known.setdefault(axis.text, size) == size for axis, size in pairs if isinstance(axis, RefPath))


def _filled(text: str, known: Mapping[str, Dim]) -> str:
    """Return the wanted type in the model's own axes."""
    wanted = pattern(text)
    axes = (axis.text for axis in wanted.axes if isinstance(axis, RefPath))
    return f"{wanted.dtype}[{', '.join(str(known.get(axis, axis)) for axis in axes)}]"
