"""What of the generated text each value depends on: nothing, its own past, or all of it.

A model that generates a text must not see ahead, and a call of a session has the rows of its own tokens only, or all rows so far.
Both are part of the types: the size of an axis says which rows it has, `TensorType.depends` what of the text. The length of the
text is a size like no other, also where a recipe gives it a number (`Capped`), so an axis of that size is along the text, and no
other is so by chance.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from blocks.core import Part
from blocks.core.matched_axes import NUMBER
from blocks.masks.mask import Mask
from blocks.masks.order import first_ahead, needs_end
from composer.graph.dims import Capped, Dim, Symbolic, capped, is_routed, leaves, routed, so_far
from composer.graph.types import Axis, Depends, InputTypes, PortTypes, TensorType, Type, Types, each_of


@dataclass(frozen=True, slots=True)
class GeneratedText:
    """The text that a model generates."""

    task: str
    written: Axis
    """Its axis as the recipe writes it, which may have a number for its length."""
    length: Symbolic
    """The number of tokens in one call, which grows from call to call."""
    so_far: Symbolic
    """The number of tokens until now."""
    leaves: frozenset[str | Capped]
    """The axes that the number of tokens is made of: one, in general."""

    def grows(self, size: object) -> bool:
        """Return whether a size is that of the rows of one call, or of all so far."""
        return isinstance(size, Symbolic) and size in (self.length, self.so_far)

    def touches(self, size: object) -> bool:
        """Return whether a size depends on the length of the text."""
        return isinstance(size, Symbolic) and (size == self.length or not self.leaves.isdisjoint(leaves(size)))


def text_of(task: str, type_: Type) -> GeneratedText | None:
    """Return the text of a task, given its type as the recipe writes it; None for a type that is none of a text,
    or that does not tell its axis from the number of texts.
    """
    if not isinstance(type_, TensorType) or len(type_.axes) != 2 or type_.sizes[0] == type_.sizes[1]:
        return None
    written = type_.axes[1]
    length = (
        capped(written.name if written.name != NUMBER else "", written.size) if isinstance(written.size, int) else written.size
    )
    return GeneratedText(task, written, length, so_far(length), leaves(length))


def input_type(type_: TensorType, text: GeneratedText, *, whole: bool) -> TensorType:
    """Return the type of an input: its axis of the text has the rows of a call, and a second one all rows so far.

    An axis with a number is that of the text where it is the same param, or else where it has the number first. An input that the
    task reads as a `whole` has no axis of the text, though it may have the same number.
    """
    if whole and isinstance(text.written.size, int):
        return type_
    axes: list[Axis] = []
    for axis in type_.axes:
        known = any(text.grows(one.size) for one in axes)
        chance = isinstance(axis.size, int) and (axis.name != text.written.name or (axis.name == NUMBER and known))
        if axis.size == text.written.size and not chance:
            axis = replace(axis, size=text.so_far if known else text.length)
        axes.append(axis)
    return depending(replace(type_, axes=tuple(axes)), Depends.NONE, text)


def depending(type_: TensorType, least: Depends, text: GeneratedText) -> TensorType:
    """Return a type that depends on the text as its axes say, and not less than `least`: what has a row for each token depends
    on these, also where the rows are sorted by expert, and what has another number of rows for them on all.
    """
    own = least
    for axis in type_.axes:
        if own is not Depends.ALL and not isinstance(axis.size, int) and text.touches(axis.size):
            own = Depends.PAST if text.grows(axis.size) or is_routed(axis.size) else Depends.ALL
    return type_ if own is type_.depends else TensorType(type_.dtype, type_.axes, type_.optional, own, type_.within)


def at_least(type_: Type, least: Depends) -> Type:
    """Return the type of what depends on the text no less than `least`."""
    return replace(type_, depends=max(type_.depends, least)) if isinstance(type_, TensorType) else type_


def each_at_least(types: Types, least: Depends) -> Types:
    """Return the types of values that depend on the text no less than `least`."""
    return tuple(at_least(one, least) for one in types) if isinstance(types, tuple) else at_least(types, least)


def most_of(types: Iterable[Types]) -> Depends:
    """Return what the value depends on most that is computed from values of these types."""
    most = Depends.NONE
    for each in types:
        for one in each_of(each):
            if isinstance(one, TensorType) and one.depends > most:
                most = one.depends
    return most


def sources(part: Part, wired: Collection[str], name: str) -> Collection[str] | None:
    """Return the inputs and slots that an output or a slot is computed from; None for all of them."""
    return part.reads(frozenset(wired)).get(name)


def read_by(part: Part, given: InputTypes, name: str = "") -> Mapping[str, Types]:
    """Return the inputs of which a block reads the values in evaluation, and not only the shape: all that it reads, or what an
    output or a slot is computed from.
    """
    left_out, only = (*type(part).shape_only_inputs, *type(part).training_inputs), sources(part, given, name)
    return {port: types for port, types in given.items() if port not in left_out and (only is None or port in only)}


def routed_rows(type_: TensorType, text: GeneratedText | None) -> TensorType:
    """Return the type of rows that are sorted by expert: they are no longer those of the text in its order."""
    if text is None:
        return type_
    axes = tuple(
        replace(axis, size=routed(axis.size)) if isinstance(axis.size, Symbolic) and text.touches(axis.size) else axis
        for axis in type_.axes
    )
    return replace(type_, axes=axes)


# -- what looks ahead


class Cause(NamedTuple):
    """Why an output of a block depends on later tokens, whatever its inputs depend on."""

    what: Literal["mixed", "disordered", "end", "mask", "count", "one", "pairs"]
    port: str = ""
    """The output; empty for all of them."""
    slot: str = ""
    """The field of the mask, for `end` and `mask`."""


def causes(part: Part, given: InputTypes, outputs: PortTypes, sizes: Mapping[str, Any], text: GeneratedText) -> Iterator[Cause]:
    """Yield why outputs of a block depend on later tokens."""
    if any(text.touches(size) for size in part.mixed_axes(sizes)):
        yield Cause("mixed")
    if reads_order(part, given, sizes) and any(is_routed(size) for types in given.values() for size in _sizes(types)):
        yield Cause("disordered")
    for slot, mask, query, key in masks(part, given, sizes):
        if needs_end(mask) and (text.grows(query) or text.grows(key)):
            yield Cause("end", slot=slot)
        elif text.grows(query) and text.grows(key) and first_ahead(mask, optional_edges(mask, given)) is not None:
            yield Cause("mask", slot=slot)
    for name, type_ in outputs.items():
        rows = {size for types in read_by(part, given, name).values() for size in _sizes(types) if text.grows(size)}
        found = _sizes(type_)
        kept = bool(part.kept_axes) and any(text.grows(size) for size in found)
        if not kept and not rows.issubset(found):
            odd = any(text.touches(size) and not text.grows(size) for size in found)
            yield Cause("count" if odd else "one", name)
        if found.count(text.length) > 1:
            yield Cause("pairs", name)


def reads_order(part: Part, given: InputTypes, sizes: Mapping[str, Any]) -> bool:
    """Return whether what a block computes depends on the order of its routed rows, though on no later one."""
    past = any(isinstance(size, Symbolic) and is_routed(size) for size in part.past_axes(sizes))
    return bool(past or part.position_inputs or part.per_call(frozenset(given)))


def masks(part: Part, given: InputTypes, sizes: Mapping[str, Any]) -> Iterator[tuple[str, Mask, Dim, Dim]]:
    """Yield each mask of a block by its field, with the numbers of its queries and of its keys."""
    for prepared in part.per_call(frozenset(given)).values():
        mask = getattr(part, prepared.slot)
        if isinstance(mask, Mask) and len(prepared.ports) > 1:
            query, key = (sizes[part.position_inputs[port]] for port in prepared.ports[:2])
            yield prepared.slot, mask, query, key


def optional_edges(mask: Mask, given: InputTypes) -> frozenset[str]:
    """Return the edges of a mask that may be absent."""
    return frozenset(name for name in mask.edge_types() if getattr(given.get(name), "optional", False))


def _sizes(types: Types) -> list[Dim]:
    return [axis.size for one in each_of(types) if isinstance(one, TensorType) for axis in one.axes]


def output_types(
    part: Part,
    given: InputTypes,
    outputs: PortTypes,
    sizes: Mapping[str, Any],
    others: Sequence[tuple[str, Types]],
    text: GeneratedText,
) -> dict[str, Type]:
    """Return the types of a block's outputs with what they depend on: what each is computed from, and the rows that they have.
    `others` are what fills slots and the positions of axes, by slot and by port.
    """
    ahead = {cause.port for cause in causes(part, given, outputs, sizes, text)}
    along = any(text.touches(size) for types in outputs.values() for size in _sizes(types))
    found: dict[str, Type] = {}
    for name, type_ in outputs.items():
        only = sources(part, given, name)
        least = most_of([*read_by(part, given, name).values(), *(one for at, one in others if only is None or at in only)])
        # What depends on nothing of the text has none of its rows, unless it takes their number from an input.
        whole = (least is not Depends.NONE or along) and ("" in ahead or name in ahead)
        found[name] = depending(type_, Depends.ALL if whole else least, text) if isinstance(type_, TensorType) else type_
    return found
