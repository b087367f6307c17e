"""What a task requires of a model: its inputs and outputs, and the axis along which it generates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from composer.diagnostics import Diagnostic, Span
from composer.graph.dims import Dim, Symbolic, names
from composer.graph.type_patterns import pattern
from composer.graph.typed import TypedGraph
from composer.graph.types import TensorType, Type, Unknown
from composer.language.expressions.ast import RefPath
from composer.language.suggestions import suggest
from composer.language.tasks import TASKS


def growing(task: str, inputs: Mapping[str, Type | tuple[Type, ...]]) -> Symbolic | None:
    """Return the axis that grows by one with every token that a model generates; None for a task that generates nothing."""
    text = inputs.get(TASKS[task].text) if task else None
    if not isinstance(text, TensorType) or len(text.axes) != 2:
        return None
    time = text.sizes[1]
    return time if isinstance(time, Symbolic) else None


def input_mistakes(root: TypedGraph, task: str, span: Span, inputs: Mapping[str, Span]) -> Iterator[Diagnostic]:
    """Yield what is wrong with the inputs: the first that is missing or of another type, or what they have in common.

    Args:
        root: the typed graph of the model.
        task: the task.
        span: where the task is written, to which what is missing is reported.
        inputs: where the type of each input is written.
    """
    known: dict[str, Dim] = {}
    required = TASKS[task]
    for name, text in required.inputs.items():
        given = root.inputs.get(name)
        if isinstance(given, Unknown):
            return
        if not isinstance(given, TensorType) or not _fits(given, text, known):
            near = [] if given is not None else suggest(name, root.inputs, limit=1)
            hint = f"rename `{near[0]}`" if near else ""
            message = f"{task} needs an input `{name}` of type {_filled(text, known)}"
            yield Diagnostic("task", message, inputs.get(name, span), hint=hint)
            return
    if len(root.inputs) < required.streams:
        yield Diagnostic("task", f"{task} needs {required.streams} inputs, but there is one", span)
        return
    axis = growing(task, root.inputs)
    made = root.inputs.get(required.text)
    if isinstance(made, TensorType) and made.sizes[0] == made.sizes[1]:
        message = f"`{made.axes[1]}` is the number of texts and the length of each in {required.text}, which {task} generates"
        other = "texts" if str(made.axes[1]) == "batch" else "batch"
        yield Diagnostic("task", message, inputs[required.text], hint=f"{required.text}: int[{other}, {made.axes[1]}]")
        return
    for name in required.inputs:
        given = root.inputs[name]
        if axis is not None and name != required.text and isinstance(given, TensorType) and _reaches(axis, given):
            message = (
                f"`{axis}` is an axis of both {name}, which {task} reads as a whole, and {required.text}, which it generates"
            )
            yield Diagnostic("task", message, inputs[name], hint=f"use another axis name in {name}")
            return


def output_mistakes(root: TypedGraph, task: str, span: Span, outputs: Mapping[str, Span]) -> Iterator[Diagnostic]:
    """Yield the outputs that are missing or of another type, given inputs that are right.

    Args:
        root: the typed graph of the model.
        task: the task.
        span: where the task is written, to which what is missing is reported.
        outputs: where each output is written, if it is.
    """
    known: dict[str, Dim] = {}
    required = TASKS[task]
    for name, text in required.inputs.items():
        given = root.inputs[name]
        assert isinstance(given, TensorType), "the inputs are right"
        _fits(given, text, known)
    for name, text in required.outputs.items():
        made, axes = root.outputs.get(name), dict(known)
        if made is None:
            yield Diagnostic("task", f"{task} needs an output `{name}`", span, hint=f"outputs: {{{name}: head}}")
        elif isinstance(made, TensorType) and not _fits(made, text, axes):
            message = f"{task} needs {name} of type {_filled(text, known)}, not {made}"
            yield Diagnostic("task", message, outputs.get(name, span))
        else:
            known = axes


def _reaches(axis: Symbolic, type_: TensorType) -> bool:
    """Return whether the length of one of a type's axes depends on that of another axis."""
    return any(names(axis) & names(size) for size in type_.sizes)


def _fits(given: Type, text: str, known: dict[str, Dim]) -> bool:
    """Return whether a type is the required one, its axes equal to those of the same names; those that are new become known.

    Of several required types, it may be any, and they differ in their number of axes.
    """
    for required in map(pattern, text.split(" | ")):
        if isinstance(given, TensorType) and given.dtype == required.dtype and len(given.sizes) == len(required.axes):
            pairs = zip(required.axes, given.sizes, strict=True)
            return all(known.setdefault(axis.text, size) == size for axis, size in pairs if isinstance(axis, RefPath))
    return False


def _filled(text: str, known: Mapping[str, Dim]) -> str:
    """Return the required type, or types, with the model's own axes."""
    written = []
    for required in map(pattern, text.split(" | ")):
        axes = (axis.text for axis in required.axes if isinstance(axis, RefPath))
        written.append(f"{required.dtype}[{', '.join(str(known.get(axis, axis)) for axis in axes)}]")
    return " or ".join(written)
