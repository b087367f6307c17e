"""Scans: their axis, what is carried from step to step, and the types of a step and of the outputs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from composer.diagnostics import Diagnostic, Span
from composer.graph.ir import ScanNode
from composer.graph.types import Axis, InputTypes, PortTypes, TensorType, Type, Types
from composer.language.suggestions import did_you_mean, suggest


class ScanMismatch(Exception):
    """The inputs of a scan do not fit its axis."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


def scanned_axis(node: ScanNode, given: InputTypes) -> tuple[Axis, dict[str, int]]:
    """Return the axis, and every input that has it with its place there; the first of these is always there.

    Raises:
        ScanMismatch: where no input has the axis, one has it twice, or all that have it may be absent.
    """
    single = {name: type_ for name, type_ in given.items() if isinstance(type_, TensorType)}
    axes = [axis for type_ in single.values() for axis in type_.axes]
    known = [axis for axis in axes if str(axis.size) == node.axis] or [axis for axis in axes if axis.name == node.axis]
    if not known:
        shown = sorted({str(axis) for axis in axes if not isinstance(axis.size, int)})
        near = suggest(node.axis, [*shown, *(axis.name for axis in axes)])
        hint = did_you_mean(near) if near else f"the axes here are {', '.join(shown)}" if shown else ""
        raise ScanMismatch(
            Diagnostic("scan-axis", f"no input of `{node.name}` has an axis `{node.axis}`", node.axis_span, hint=hint)
        )
    if len(lengths := dict.fromkeys(axis.size for axis in known)) > 1:
        message = f"several axes are called `{node.axis}`: {', '.join(map(str, lengths))}"
        raise ScanMismatch(Diagnostic("scan-axis", message, node.axis_span, hint="name the axis by its length"))
    axis = known[0]
    places = {name: [i for i, one in enumerate(type_.axes) if _is(one, axis)] for name, type_ in single.items()}
    for name, found in places.items():
        if len(found) > 1:
            message = f"`{name}` is {single[name]}, which has the axis `{node.axis}` twice"
            raise ScanMismatch(Diagnostic("scan-axis", message, _wire(node, name)))
    several = [name for name, types in given.items() if isinstance(types, tuple) and any(_has(one, axis) for one in types)]
    if several:
        message = f"a range of passes cannot be scanned, but this one has the axis `{node.axis}`"
        hint = "merge it before the scan: {type: add, in: …} or {type: concat, in: …}"
        raise ScanMismatch(Diagnostic("scan-axis", message, _wire(node, several[0]), hint=hint))
    steps = {name: places[name][0] for name in sorted(places, key=lambda each: single[each].optional) if places[name]}
    if all(single[name].optional for name in steps):
        message = f"`{node.name}` has as many steps as its input is long, but an optional input may be absent"
        hint = "make the input required, or give it a default"
        raise ScanMismatch(Diagnostic("optional-edge", message, _wire(node, next(iter(steps))), hint=hint))
    return axis, steps


def _is(one: Axis, axis: Axis) -> bool:
    """Return whether two axes are one: lengths that are numbers may agree by chance, so that names decide."""
    return one == axis if isinstance(axis.size, int) else one.size == axis.size


def _has(type_: Type, axis: Axis) -> bool:
    return isinstance(type_, TensorType) and any(_is(one, axis) for one in type_.axes)


def unscanned(
    node: ScanNode, given: InputTypes, axis: Axis, steps: Mapping[str, int], named: Collection[str]
) -> Iterator[Diagnostic]:
    """Yield a warning for what each step reads whole though it has the length of the scan, at the same place and under a name
    that is none of those `named` by inputs of the model, such as that of a `rearrange`.
    """
    if not isinstance(axis.size, int):  # else what has the length has the axis
        return
    for name, type_ in given.items():
        if name in steps or not isinstance(type_, TensorType):
            continue
        other = next((one for place, one in enumerate(type_.axes) if place in steps.values() and one.size == axis.size), axis)
        if other.name not in (*named, axis.name):
            message = f"`{name}` is not scanned: its axis of {axis.size} is called `{other.name}`, not `{axis.name}`"
            hint = f"each step reads all of it; where that is not meant, call the axis `{axis.name}` where it is made"
            yield Diagnostic("scan-axis", message, _wire(node, name), "warning", hint=hint)


def carried_inputs(node: ScanNode, steps: Mapping[str, int]) -> dict[str, str]:
    """Return each carried input with the output of the step before that it is: the one of its name, or, where no name is both,
    the first output for the first input, unless that is scanned.
    """
    handed = [item.name for item in node.graph.inputs if not item.captured]
    outputs = [name for name, _ in node.graph.outputs]
    matched = {name: name for name in handed if name in outputs}
    if not matched and outputs and handed and handed[0] not in steps:  # a mistake in the graph leaves no outputs
        return {handed[0]: outputs[0]}
    for name in matched:
        if name in steps:
            message = f"`{name}` has the axis `{node.axis}`, so it is scanned, but the graph also returns it"
            raise ScanMismatch(Diagnostic("carried", message, _wire(node, name), hint="use two different names"))
    return matched


def step_types(given: InputTypes, steps: Mapping[str, int], back: Mapping[str, str]) -> tuple[dict[str, Types], dict[str, int]]:
    """Return the types of the inputs of one step, and how many leading axes the start of each carried value lacks.

    What lacks the axes before the scan's, such as the batch, starts the same in each row.
    """
    types = dict(given)
    before: tuple[Axis, ...] = ()
    for name, place in reversed(list(steps.items())):
        whole = given[name]
        assert isinstance(whole, TensorType)
        before = whole.axes[:place]
        types[name] = replace(whole, axes=(*before, *whole.axes[place + 1 :]))
    widened = {}
    for name in back:
        start = given.get(name)
        if isinstance(start, TensorType):
            lacking = start.sizes[: len(before)] != tuple(axis.size for axis in before)
            widened[name] = len(before) if lacking else 0
            types[name] = replace(start, axes=(*before, *start.axes)) if lacking else start
    return types, widened


def scan_outputs(returned: PortTypes, axis: Axis, place: int) -> PortTypes:
    """Return the types of what a scan returns: the first output of every step, and the others as of the last step."""
    (first, type_), *others = returned.items()
    if isinstance(type_, TensorType):
        type_ = replace(type_, axes=(*type_.axes[:place], axis, *type_.axes[place:]))
    return dict([(first, type_), *others])


def carry_mismatches(node: ScanNode, types: InputTypes, returned: PortTypes, back: Mapping[str, str]) -> Iterator[Diagnostic]:
    """Yield the carried values that a step returns with another type than they start with."""
    for name, output in back.items():
        start, after = types.get(name), returned[output]
        if isinstance(start, TensorType) and start.optional:
            message = f"`{name}` starts as an optional input, which may be absent"
            yield Diagnostic("optional-edge", message, _wire(node, name), hint="give the input a default")
        elif isinstance(start, TensorType) and isinstance(after, TensorType) and not start.agrees(after):
            message = f"`{name}` starts as {start} and each step returns {after}; the carry must keep its type"
            yield Diagnostic("carried", message, _wire(node, name))


def _wire(node: ScanNode, name: str) -> Span:
    return next((wire.span for wire in node.wires if wire.port == name), node.name_span)
