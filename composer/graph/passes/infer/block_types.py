"""One block with its types: axes from what is wired, then fields, then outputs, parameters and slots."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, replace
from typing import Any, TypeAlias

from blocks.core import BlockError, Part, fields, ports
from blocks.core.fields import formula_of
from blocks.core.matched_axes import AxesMismatch, MatchedAxes, match_axes
from composer.diagnostics import Declaration, Diagnostic
from composer.graph.formula_text import written_axes
from composer.graph.ir import BlockNode, Program, Ref
from composer.graph.leading_axes import declared_edges
from composer.graph.passes.error_report import StopExpansion
from composer.graph.passes.infer.axis_lengths import axis_lengths, check_field_axes, check_optional_inputs, declared_type
from composer.graph.passes.infer.axis_names import named_as_given
from composer.graph.passes.infer.block_weights import NodeTyper, WeightTyper
from composer.graph.passes.infer.computed_fields import FieldComputer, Inline, plain
from composer.graph.passes.infer.folded_axes import Folding, folding
from composer.graph.passes.infer.mask_checks import check_masks
from composer.graph.passes.infer.text_dependence import GeneratedText, output_types
from composer.graph.passes.infer.type_errors import Surroundings
from composer.graph.passes.own_blocks import is_own, raised
from composer.graph.type_patterns import Mismatch, UnknownSize, axis_names, axis_symbols, fill, pattern
from composer.graph.typed import TypedBlock, TypedGraph
from composer.graph.types import UNKNOWN, InputTypes, TensorType, Type, Types, Unknown, each_given, each_of
from composer.language.expressions.parser import ExpressionError
from composer.language.recipe.free_names import IDENTIFIER

Expansions: TypeAlias = tuple[tuple[int | None, ...], ...]
"""For each input, which of its axes stands at each axis of the output."""


class BlockTyper:
    """Types blocks, one by one."""

    def __init__(self, program: Program, text: GeneratedText | None, typed: NodeTyper) -> None:
        self.program, self.text, self.typed = program, text, typed
        self.named_positions = dict(program.positions)

    def block(self, node: BlockNode, given: InputTypes, here: Surroundings) -> TypedBlock:
        """Return the block in place, or one of no known types where something is wrong, which is reported."""
        nothing = dict.fromkeys([*(name.rstrip("?") for name in node.part.outputs), "y"], UNKNOWN)
        failed = TypedBlock(node, Inline(), {}, given, nothing, (), {}, {})
        if node.broken or any(isinstance(one, Unknown) for one in each_given(given)):
            return failed
        try:
            return self._typed(node, given, here)
        except BlockError as error:
            here.rejected(node, error)
        except ExpressionError as error:
            found = error.diagnostic
            here.report(replace(found, span=node.name_span) if isinstance(found.span.source, Declaration) else found)
        except UnknownSize as unknown:
            self._report_unknown(node, unknown.name, here)
        except StopExpansion:
            pass
        except Exception as error:  # the code of a user's own block may raise anything
            mistake = raised(node.part, error, self.program.recipe.library, here.place(node))
            if mistake is None:
                raise
            here.report(mistake)
        return failed

    def _report_unknown(self, node: BlockNode, name: str, here: Surroundings) -> None:
        """Report a length that a block's declarations name, and that nothing gives."""
        port = next((port for port, text in node.part.inputs.items() if name in axis_names(text)), None)
        if port is None:
            message = f"{here.kind(node)} declares something of the size `{name}`, which is no field and no axis of its inputs"
            here.report(Diagnostic("rejected", message, node.name_span))
            return
        message = f"{here.kind(node)} needs the length of `{name}`, an axis of its input {port.rstrip('?*')}, which is not wired"
        hint = f"wire it; a block that can do without it declares in `axis_defaults` what stands for `{name}`"
        here.report(Diagnostic("missing-port", message, node.name_span, hint=hint))

    def _typed(self, node: BlockNode, given: InputTypes, here: Surroundings) -> TypedBlock:
        wired, read = frozenset(given), given
        front = folding(node.part, given, self.text)
        given = _folded(node, given, {port: declared_type(node.part, port) for port in given}, front, here)
        part, sizes = self._part(node, wired, self._lengths(node, given, front, here), here)
        given = _folded(node, given, declared_edges(part), front, here)
        sizes |= part.constants(given, sizes)
        check_field_axes(node, given, sizes, here, self.text)
        check_masks(node, part, given, sizes, here, self.text)
        self._check_positions_stand_before(node, part, given, sizes, here)
        self._check_given_positions(node, part, given, sizes, here)
        for warning in part.warn(sizes, wired):
            here.rejected(node, warning, "warning")
        outputs, expansions = self._outputs(node, part, given, sizes, here)
        if node.name not in self.program.losses.values():
            self._check_absent_inputs(node, part, given, sizes, outputs, front, here)
        _check_cost(part, sizes, wired)
        learned = WeightTyper(node, part, sizes, here, self.text, self.typed)
        held = learned.contents(given)
        outputs = {name: front.unfolded(type_) if isinstance(type_, TensorType) else type_ for name, type_ in outputs.items()}
        if self.text is not None:
            # what nothing reads outside of a slot, such as the load of a mixture inside of a mixture, is not computed
            inside = [
                (name, next(iter(slot.outputs.values())))
                for name, slot in held.slots.items()
                if slot is not None and slot.outputs
            ]
            places = self._positions_of(part, given, sizes, here)
            outputs = output_types(part, read, outputs, sizes, [*inside, *places], self.text)
        return TypedBlock(
            node,
            part,
            sizes,
            read,
            outputs,
            tuple(held.parameters),
            held.modules,
            held.slots,
            expansions,
            front.axes,
            buffers=learned.buffers(),
        )

    def _lengths(self, node: BlockNode, given: InputTypes, front: Folding, here: Surroundings) -> dict[str, Any]:
        if node.name not in self.program.losses.values():
            check_optional_inputs(node, given, here)
        known = axis_lengths(node, given, here, self.text)
        for port, axis in node.part.position_inputs.items():
            if port not in given and isinstance(named := self.positions(str(known.get(axis)), here.root), TensorType):
                with here.fitting(node, port):
                    known.setdefault("...", front.type(declared_type(node.part, port), named).axes[:-1])
        return known

    def positions(self, axis: str, root: TypedGraph | None) -> Types | None:
        """Return the type of what the recipe names as the positions of an axis, where that stands before what is being typed."""
        ref = self.named_positions.get(axis)
        if ref is None or root is None or not _stands_before(ref, root):
            return None
        given = root.type_of(ref)
        return given if isinstance(given, TensorType) and are_positions(given, axis) else UNKNOWN  # which is reported once

    def _check_positions_stand_before(
        self, node: BlockNode, part: Part, given: InputTypes, sizes: Mapping[str, Any], here: Surroundings
    ) -> None:
        """Report a block that reads positions of which the recipe names a node that is computed from it."""
        if here.root is None:
            return
        for port, axis in part.position_inputs.items():
            ref = self.named_positions.get(str(sizes.get(axis)))
            if ref is not None and port not in given and not _stands_before(ref, here.root):
                message = f"{here.kind(node)} reads the positions of {sizes[axis]}, which `{ref}` computes from what it gives"
                hint = "compute the positions from what stands before, or wire others here"
                here.report(Diagnostic("positions", message, node.name_span, hint=hint))
                raise StopExpansion

    def _check_given_positions(
        self, node: BlockNode, part: Part, given: InputTypes, sizes: Mapping[str, Any], here: Surroundings
    ) -> None:
        """Report a block that needs the positions of all rows so far, where the recipe names those of the rows of one call."""
        if self.text is None or not self.named_positions or str(self.text.length) not in self.named_positions:
            return
        if any(sizes.get(axis) == self.text.so_far and port not in given for port, axis in part.position_inputs.items()):
            kind, axis = here.kind(node), self.text.length
            message = f"{kind} needs positions along {axis} so far, and `positions` names those of the tokens of one call"
            here.report(Diagnostic("positions", message, node.name_span, hint="wire what has the rows of one call"))
            raise StopExpansion

    def _positions_of(
        self, part: Part, given: InputTypes, sizes: Mapping[str, Any], here: Surroundings
    ) -> Iterator[tuple[str, Types]]:
        """Yield the types of the positions that the recipe names for the axes of a block, by their ports."""
        for port, axis in part.position_inputs.items() if self.named_positions else ():
            if port not in given or any(isinstance(one, TensorType) and one.optional for one in each_of(given[port])):
                named = self.positions(str(sizes.get(axis)), here.root)
                if named is not None:
                    yield port, named

    def _part(
        self, node: BlockNode, wired: frozenset[str], known: Mapping[str, Any], here: Surroundings
    ) -> tuple[Part, dict[str, Any]]:
        """Return the block with all its fields, and their numbers beside the lengths; derived fields
        once the others are accepted.
        """
        computed = FieldComputer(here)
        values = computed.fields(node, known)
        part = node.part.model_construct(**values)
        sizes = {**plain(values), **known}
        part.check(sizes, wired)
        derived = [field for field in fields(node.part).values() if field.derived]
        if not derived:
            return part, sizes
        for field in derived:
            if values.get(field.name) is None:
                values[field.name] = computed.derive(node, field, {**sizes, **_numbers(values)})
                sizes |= _numbers({field.name: values[field.name]})
        part = node.part.model_construct(**values)
        part.check(sizes, wired)
        return part, sizes

    def _check_absent_inputs(
        self,
        node: BlockNode,
        part: Part,
        given: InputTypes,
        sizes: Mapping[str, Any],
        outputs: Mapping[str, Type],
        front: Folding,
        here: Surroundings,
    ) -> None:
        """Check that the block is the same without each input that may be absent: of equal weights and outputs."""
        for port, type_ in given.items():
            if not (isinstance(type_, TensorType) and type_.optional and port + "?" in node.part.inputs):
                continue  # at a required port it is refused already
            others, apart = {name: each for name, each in given.items() if name != port}, replace(here, found=[])
            try:
                alone, lengths = self._part(node, frozenset(others), self._lengths(node, others, front, apart), apart)
                lengths |= alone.constants(others, lengths)
                left, _ = self._outputs(node, alone, others, lengths, apart)
                same = left == outputs and _weights(alone, others, lengths) == _weights(part, given, sizes)
            except (BlockError, ExpressionError, StopExpansion, UnknownSize):
                same = False
            if not same:
                message = (
                    f"what {here.kind(node)} computes depends on whether {port} is given, but an optional input may be absent"
                )
                here.at_port(node, port, "optional-edge", message, "make the input required, or leave the port unwired")
                raise StopExpansion

    def _outputs(
        self, node: BlockNode, part: Part, given: InputTypes, sizes: dict[str, Any], here: Surroundings
    ) -> tuple[dict[str, Type], Expansions]:
        several = [one for one in each_of(given.get("xs", ())) if isinstance(one, TensorType)]
        if type(part).broadcasts and several:
            matched = self._matched(node, part, several, here)
            one = replace(several[0], axes=matched.axes)
            outputs: dict[str, Type] = {**(part.output_types(given, {**sizes, "...": matched.axes}) or {"y": one})}
            return outputs, matched.places
        types = part.output_types(given, sizes)
        table = types if types is not None else type(part).outputs
        lengths = sizes
        if self.text is not None and part.kept_axes:
            kept = (axis for axis in part.kept_axes if sizes.get(axis) == self.text.length)
            lengths = {**sizes, **dict.fromkeys(kept, self.text.so_far)}
        filled = {
            name.rstrip("?"): fill(pattern(text), lengths) if isinstance(text, str) else text for name, text in table.items()
        }
        declared = {name.rstrip("?"): pattern(text) for name, text in table.items() if isinstance(text, str)}
        return named_as_given(node.part, given, declared, filled), ()

    def _matched(self, node: BlockNode, part: Part, several: Sequence[TensorType], here: Surroundings) -> MatchedAxes:
        """Return how the axes of the inputs of a block that broadcasts match.

        Raises:
            StopExpansion: where that is not known, or they do not.
        """
        try:
            return match_axes(several, getattr(part, "axes", ()))
        except AxesMismatch as wrong:
            hint = f"write which are the same, such as `axes: {_shown_axes(part, wrong.meant)}`" if wrong.meant else ""
            here.at_port(node, "xs", "type-mismatch", f"{here.kind(node)} {wrong.message}", hint, index=wrong.index)
            raise StopExpansion from None


def _shown_axes(part: Part, axes: Sequence[Sequence[str]]) -> str:
    """Return names for the axes of a block's inputs as a recipe writes them."""
    texts = [" ".join(names) for names in axes]
    if (formula := formula_of(part)) is None:
        return f"[{', '.join(texts)}]"
    return "{" + ", ".join(f"{name}: {text}" for name, text in written_axes(texts, formula.names).items()) + "}"


def _check_cost(part: Part, sizes: Mapping[str, Any], wired: frozenset[str]) -> None:
    """Check that every length is known that the cost of a block names, of one that lacks some; that of the user's own is run in
    any case, since it may raise.

    Raises:
        UnknownSize: where one is not.
    """
    lacking = axis_symbols(type(part)) - sizes.keys()
    if not lacking and not is_own(type(part)):
        return
    cost = part.cost(dict(sizes), wired)
    for text in () if cost is None or not lacking else (cost.dense, cost.per_pair, cost.pairs):
        for name in IDENTIFIER.findall(text):
            if sizes.get(name) is None:
                raise UnknownSize(name)


def _folded(node: BlockNode, given: InputTypes, declared: Mapping[str, str], front: Folding, here: Surroundings) -> InputTypes:
    """Return the types of inputs as a block sees them, for the ports that are `declared`.

    Raises:
        StopExpansion: where one has other axes in front than the block's first input.
    """
    if not front.axes:
        return given
    found = dict(given)
    for port, text in declared.items():
        if text and isinstance(type_ := given.get(port), TensorType):
            of_mask = port not in ports(node.part)
            try:
                found[port] = front.type(text, type_, partly=of_mask or pattern(text).leading)
            except Mismatch as wrong:
                reader = f"the mask {port.partition('_')[0]}" if of_mask else f"port {port} of {node.part.kind}"
                here.at_port(node, port, "type-mismatch", f"{reader} {wrong.message}")
                raise StopExpansion from None
    return found


def _weights(part: Part, given: InputTypes, sizes: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what a block learns, and the lengths that its shapes are made of."""
    weights = part.weights(dict(sizes), frozenset(given)) if callable(part.weights) else part.weights
    used = {name for weight in weights.values() for text in _texts(astuple(weight)) for name in re.findall(r"[A-Za-z_]\w*", text)}
    return dict(weights), {name: length for name, length in sizes.items() if name in used}


def _texts(value: object) -> Iterator[str]:
    """Yield the strings in a declaration, which are expressions of lengths among others."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _texts(item)


def _numbers(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if isinstance(value, int | float) and not isinstance(value, bool)}


def _stands_before(ref: Ref, root: TypedGraph) -> bool:
    """Return whether a reference is to an input of the model, or to a node that is typed already."""
    return ref.node in root.inputs or ref.node in root.by_name


def are_positions(given: TensorType, axis: str) -> bool:
    """Return whether a value can be the positions of an axis: whole numbers, one for each place along it."""
    return given.dtype == "int" and str(given.axes[-1] if given.axes else "") == axis
