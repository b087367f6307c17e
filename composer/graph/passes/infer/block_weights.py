"""The parameters and buffers of a block, and what fills its slots."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn, TypeAlias

from blocks.core import LinearWeights, Part, Slot, Tensor, ports
from blocks.core.weights import Init
from composer.diagnostics import Diagnostic, Label
from composer.graph.anatomy import TYPED, optional_output, slots
from composer.graph.dims import Dim, Symbolic
from composer.graph.ir import BlockNode, Graph, GroupNode, Node, SlotNode
from composer.graph.passes.error_report import StopExpansion
from composer.graph.passes.infer.axis_lengths import declared_type
from composer.graph.passes.infer.computed_fields import plain
from composer.graph.passes.infer.text_dependence import GeneratedText, depending, most_of, read_by, routed_rows
from composer.graph.passes.infer.type_errors import Surroundings
from composer.graph.type_patterns import declared, fill, pattern, size, text_of_size
from composer.graph.typed import LinearMap, TypedBlock, TypedGraph, TypedNode, TypedParameter
from composer.graph.types import UNKNOWN, Depends, InputTypes, TensorType, Type, Unknown, first_of
from composer.graph.visit import Fold, Inside
from composer.language.expressions.ast import Expression
from composer.language.expressions.evaluator import as_float, evaluate

NodeTyper: TypeAlias = Callable[[Node, TypedGraph, Surroundings], TypedNode]
"""Types a node in a graph whose earlier nodes have types."""


@dataclass(slots=True)
class BlockContents:
    """The parameters, linear modules and slots of a block."""

    parameters: list[TypedParameter] = field(default_factory=list)
    modules: dict[str, LinearMap] = field(default_factory=dict)
    """Every `nn.Linear`, by its name."""
    slots: dict[str, TypedNode | None] = field(default_factory=dict)


class WeightTyper:
    """Computes the parameters and slots of one block from the lengths of its axes and its fields."""

    def __init__(
        self,
        node: BlockNode,
        part: Part,
        sizes: Mapping[str, Any],
        here: Surroundings,
        text: GeneratedText | None,
        typed: NodeTyper,
    ) -> None:
        self.node, self.part, self.sizes, self.here = node, part, sizes, here
        self.text, self.typed = text, typed
        self.filled = {name: value for name, value in node.fields if isinstance(value, SlotNode)}

    def contents(self, given: InputTypes) -> BlockContents:
        """Return its parameters and slots.

        Raises:
            StopExpansion: where a length is not known, or a slot is filled with what does not fit, which is reported.
        """
        weights = self.part.weights(self.sizes, frozenset(given)) if callable(self.part.weights) else self.part.weights
        held = BlockContents()
        for name, weight in weights.items():
            match weight:
                case Tensor(when=when):
                    if not when or getattr(self.part, when):
                        held.parameters.append(self.tensor(name, weight))
                case LinearWeights():
                    self._linear(name, weight, held, given)
                case Slot():
                    held.slots[name] = self._slot(name, weight, most_of(read_by(self.part, given, name).values()))
        self._constructor()
        declared_slots = {weight.field for weight in weights.values() if isinstance(weight, Slot)}
        for name, filled in self.filled.items():
            if name not in held.slots and name not in declared_slots:
                held.slots[name] = self._fill(filled, first_of(next(iter(given.values()))), None)
        return held

    def buffers(self) -> tuple[TypedParameter, ...]:
        """Return the tensors that it keeps from call to call and does not learn."""
        kept = self.part.buffers(self.sizes) if callable(self.part.buffers) else self.part.buffers
        return tuple(self.tensor(name, tensor) for name, tensor in kept.items())

    def tensor(self, name: str, tensor: Tensor) -> TypedParameter:
        """Return one tensor, with its shape and how it starts."""
        shape = self._shape(name, tensor.shape)  # first, since the start is computed from the sizes
        start = tensor.init.value
        number = self._computed(declared(start)) if isinstance(start, str) else float(start)
        zero = getattr(self.part, tensor.zero_row) if tensor.zero_row else None
        return TypedParameter(name, shape, tensor.role, Init(tensor.init.how, number), zero)

    def _computed(self, start: Expression) -> float:
        """Return the number at which a tensor starts, computed from the sizes."""
        return as_float(evaluate(start, plain(self.sizes)), start.span)

    def _constructor(self) -> None:
        """Refuse a length in the constructor call of its module that is known only when the model runs.

        Raises:
            StopExpansion: where there is one, which is reported.
        """
        call = self.part.build(self.sizes)
        if call is None:
            return
        for value in (*call.arguments, *call.keywords.values()):
            if isinstance(value, str) and value not in type(self.part).model_fields:
                length = size(declared(value), self.sizes)
                if isinstance(length, Symbolic):
                    self._unknown(f"`{call.function.rpartition(':')[2]}` of {self.node.part.kind} is given", length)

    def _linear(self, name: str, linear: LinearWeights, held: BlockContents, given: InputTypes) -> None:
        width, out = self._shape(name, (linear.inputs, linear.outputs))
        bias = bool(getattr(self.part, linear.bias)) if isinstance(linear.bias, str) else linear.bias
        start = Init("uniform", width**-0.5)
        held.modules[name] = LinearMap(width, out, bias, linear.rows or self._port(linear.inputs, given), linear.adaptable)
        held.parameters.append(TypedParameter(f"{name}.weight", (out, width), "matrix", start))
        if bias:
            held.parameters.append(TypedParameter(f"{name}.bias", (out,), "bias", start))

    def _port(self, axis: str, given: InputTypes) -> str:
        """Return the wired port whose last axis has this name, the first one if none has."""
        wired = {port: pattern(declared_type(self.node.part, port)).axes for port in ports(self.node.part) if port in given}
        found = (port for port, axes in wired.items() if axes and text_of_size(axes[-1]) == axis)
        return next(found, next(iter(wired), ""))

    def _shape(self, name: str, shape: tuple[str | int, ...]) -> tuple[int, ...]:
        found = []
        for item in shape:
            length = item if isinstance(item, int) else size(declared(item), self.sizes)
            if not isinstance(length, int):
                self._unknown(f"`{name}` of {self.node.part.kind} would have", length)
            found.append(length)
        return tuple(found)

    def _unknown(self, what: str, length: Dim) -> NoReturn:
        """Report a size that is known only when the model runs, and raise."""
        message = f"{what} the size `{length}`, which is known only when the model runs"
        hint = "give that axis a number, in `inputs` or with a node before this one"
        if self.text is not None and self.text.touches(length):
            hint = f"a text that {self.text.task} generates has no fixed length, whatever number it is given"
        self.here.report(Diagnostic("unknown-size", message, self.node.name_span, hint=hint))
        raise StopExpansion

    # -- slots

    def _slot(self, name: str, slot: Slot, least: Depends) -> TypedNode | None:
        filled = self.filled.get(slot.field)
        if filled is not None and isinstance(filled.node, GroupNode):
            self._check_axes(filled, filled.node, slot)
        given, expected = fill(pattern(slot.given), self.sizes), fill(pattern(slot.outputs or slot.given), self.sizes)
        if not slot.count:
            return self._fill(filled, depending(given, least, self.text) if self.text is not None else given, expected)
        if self.text is not None:
            given, expected = (replace(routed_rows(type_, self.text), depends=least) for type_ in (given, expected))
        expert = self._fill(filled, given, expected)
        if isinstance(expert, TypedBlock) and (learner := next((n for n, one in slots(expert) if _learns(one)), None)):
            message = f"the block in the slot `{learner}` of an expert has parameters, which all experts would share"
            place = filled.span if filled is not None else self.node.name_span
            self.here.report(Diagnostic("rejected", message, place, hint="such as silu, which has none"))
            raise StopExpansion
        return _replicated(expert, self._shape(name, (slot.count,))[0])

    def _check_axes(self, filled: SlotNode, node: GroupNode, slot: Slot) -> None:
        """Refuse a block whose declaration takes an axis that it is handed for another one.

        Raises:
            StopExpansion: where it does.
        """
        handed = [text_of_size(axis) for axis in pattern(slot.given).axes]
        for port in node.ports[:1]:
            declared = [text_of_size(axis) for axis in port.type.axes]
            pairs = zip(reversed(declared), reversed(handed), strict=False)
            if mistaken := [name for name, place in pairs if name != place and name in handed]:
                message = f"the slot `{slot.field}` hands over {slot.given}, but this block takes {port.type.text}"
                hint = f"`{mistaken[0]}` stands elsewhere; `...` takes whatever axes are in front"
                labels = (Label(port.type.span, "declared here"),)
                self.here.report(Diagnostic("type-mismatch", message, filled.span, labels=labels, hint=hint))
                raise StopExpansion

    def _fill(self, filled: SlotNode | None, given: Type, expected: Type | None) -> TypedNode | None:
        if filled is None:
            return None
        typed = self.typed(filled.node, TypedGraph(Graph((), (), ()), {"input": given}, (), {}, {}), self.here)
        out = next(iter(typed.outputs.values()), UNKNOWN)
        if isinstance(out, Unknown):
            raise StopExpansion
        if isinstance(typed, TypedBlock):
            others = [name for name in [*typed.outputs][1:] if not optional_output(typed, name)]
            if others:
                named = ", ".join(f"`{name}`" for name in [*typed.outputs][:1] + others)
                message = f"{typed.part.kind} always returns {named}, and this slot of {self.node.part.kind} takes one output"
                hint = "a block of your own reads one of them"
                self.here.report(Diagnostic("type-mismatch", message, filled.span, hint=hint))
                raise StopExpansion
        if isinstance(expected, TensorType) and not expected.agrees(out):
            message = f"the block in this slot of {self.node.part.kind} returns {out} instead of {expected}"
            self.here.report(Diagnostic("type-mismatch", message, filled.span))
            raise StopExpansion
        return typed


def _replicated(expert: TypedNode | None, count: int) -> TypedBlock:
    """Return several copies of an expert as one block, whose parameters have them along a first axis."""
    assert isinstance(expert, TypedBlock)
    stacked = tuple(
        replace(each, shape=(count, *each.shape), role="experts" if each.role == "matrix" else each.role)
        for each in expert.parameters
    )
    return replace(expert, parameters=stacked, copies=count)


def _learns(node: TypedNode) -> bool:
    """Return whether a block or a graph has parameters."""

    def learns(node: TypedNode, inside: Inside[TypedGraph, bool, bool]) -> bool:
        own = isinstance(node, TypedBlock) and bool(node.parameters)
        return own or any(inside.passes()) or any(below for _, below in inside.slots)

    return Fold(TYPED, learns, lambda _, found: any(found)).node(node, node.name)
