"""Where along an axis of a larger weight the smaller one lies, and what the rest must be for equal outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Literal, TypeAlias

from blocks.core import LinearWeights, Slot, Tensor
from composer.graph.type_patterns import declared, pattern, size, text_of_size
from composer.graph.typed import TypedBlock
from composer.language.expressions.parser import names


@dataclass(frozen=True)
class Kept:
    """The axis is as long as before."""


@dataclass(frozen=True)
class AddedPlaces:
    """There are more places, in which nothing has an effect yet."""

    places: tuple[int, ...]
    """Where each of the smaller axis is now."""
    rest: Literal["start", "zeros", "never"]
    """What the others have: the values that they start with, zeros, or −∞, the logit of what is not chosen."""


@dataclass(frozen=True)
class Repeated:
    """The channels of the smaller axis come several times, one whole after the other: means over them are as they were."""

    times: int
    shared: bool
    """Whether what reads them divides its weights among the copies."""


AxisGrowth: TypeAlias = Kept | AddedPlaces | Repeated
KEPT = Kept()


class NotEqual(Exception):
    """An axis that cannot grow with equal outputs: what is wrong with it, and what would help."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message, self.hint = message, hint


@dataclass(frozen=True)
class BlockPair:
    """A block of the smaller model, and the one in its place in the larger."""

    path: str
    small: TypedBlock
    large: TypedBlock
    copies: AxisGrowth | None = None
    """Of an expert: how the axis of its copies grows."""
    is_output: bool = False
    """Whether the model returns what it computes, so that its outputs are no channels but scores, of which more are added."""

    def growth(self) -> Mapping[str, tuple[AxisGrowth, ...]]:
        """Return how each axis of each of its own parameters and buffers grows, by the names below the block.

        Raises:
            NotEqual: One cannot.
        """
        found: dict[str, tuple[AxisGrowth, ...]] = {}
        for name, weight in declared_weights(self.large).items():
            match weight:
                case LinearWeights(inputs=inputs, outputs=outputs):
                    rows = self._rows(name, outputs)
                    found[f"{name}.weight"] = (rows, self._axis(inputs, reads=True))
                    if self._chooses(name, outputs) and isinstance(rows, AddedPlaces):
                        if f"{name}.bias" not in {each.name for each in self.large.parameters}:
                            message = f"`{self.path}.{name}` has no bias, which would keep new {outputs} from being chosen"
                            raise NotEqual(message, "train the smaller model with `bias: true` in its router")
                        rows = AddedPlaces(rows.places, "never")
                    found[f"{name}.bias"] = (rows,)
                case Tensor(shape=shape, role=role):
                    matrix = role == "matrix"
                    found[name] = tuple(
                        self._rows("", str(axis)) if place == 0 else self._axis(str(axis), reads=matrix and place == 1)
                        for place, axis in enumerate(shape)
                    )
                case Slot():
                    pass
        if self.copies is None:
            return found
        return {name: (self.copies, *axes) for name, axes in found.items()}

    def count_of(self, slot: Slot) -> AxisGrowth | None:
        """Return how the axis of the copies grows of what fills a slot; None where it is there once."""
        return self._axis(slot.count, reads=False) if slot.count else None

    def may_differ(self) -> frozenset[str]:
        """Return the fields that may differ: they say what sizes say."""
        part = type(self.large.part)
        slots = {weight.field for weight in declared_weights(self.large).values() if isinstance(weight, Slot)}
        return frozenset({*part.units, *widths(self.large), part.vocab_field, part.length_field, *slots})

    def _chooses(self, name: str, outputs: str) -> bool:
        units = self.large.part.units.get(outputs)
        return units is not None and units.chosen_by == name

    def _rows(self, name: str, axis: str) -> AxisGrowth:
        """Return how what a weight gives grows: of scores that the model returns, there are more."""
        small, large = length(axis, self.small), length(axis, self.large)
        if self.is_output and axis in widths(self.large) and small < large:
            return AddedPlaces(tuple(range(small)), "start")
        return self._axis(axis, reads=False)

    def _axis(self, axis: str, *, reads: bool) -> AxisGrowth:
        """Return how an axis grows, which is written as an expression of sizes.

        Args:
            axis: The expression.
            reads: Whether the weight adds up along it, rather than gives what is along it.
        """
        small, large = length(axis, self.small), length(axis, self.large)
        part = type(self.large.part)
        factors = axis.split(" * ")
        if small == large:
            for each in factors:
                if each in part.units and (within := part.units[each].within):
                    self._places(each, within=within)  # the groups may be others
            return KEPT
        if large < small:
            raise NotEqual(f"`{axis}` of `{self.path}` is {large}, and was {small}: it cannot shrink")
        grown = [each for each in factors if length(each, self.small) != length(each, self.large)]
        if len(grown) == 1 and grown[0] in part.units:
            units = part.units[grown[0]]
            places = self._places(grown[0], within=units.within)
            place = factors.index(grown[0])
            outer, inner = (prod(length(each, self.small) for each in some) for some in (factors[:place], factors[place + 1 :]))
            count = length(grown[0], self.large)
            spread = tuple((o * count + at) * inner + i for o in range(outer) for at in places for i in range(inner))
            return AddedPlaces(spread, "zeros" if reads and not units.chosen_by else "start")
        if len(factors) == 1 and names(declared(axis)) & {part.vocab_field, part.length_field}:
            return AddedPlaces(tuple(range(small)), "start")
        if axis in widths(self.large):
            if large % small:
                message = f"`{axis}` of `{self.path}` would grow from {small} to {large} channels"
                raise NotEqual(message, "a width grows with equal outputs by whole copies of its channels: to a multiple")
            return Repeated(large // small, shared=reads)
        what = f"`{grown[0]}` of `{self.path}`" if grown else f"`{self.path}`"
        one, other = (length(grown[0] if grown else axis, each) for each in (self.small, self.large))
        raise NotEqual(f"{what} would grow from {one} to {other}, with which no outputs are known to stay equal", "keep it")

    def _places(self, field: str, *, within: str) -> list[int]:
        """Return where each of the units is in the larger block; those within a group stay in it, in front of new ones."""
        small, large = length(field, self.small), length(field, self.large)
        if not within:
            return list(range(small))
        of_group, now = (length(field, each) // length(within, each) for each in (self.small, self.large))
        if now < of_group:
            message = f"`{field}` of `{self.path}` would be {large} in groups of {now}, and are in groups of {of_group}"
            raise NotEqual(message, f"keep the number of `{field}` for each of `{within}`, or raise it")
        return [at // of_group * now + at % of_group for at in range(small)]


def declared_weights(block: TypedBlock) -> Mapping[str, LinearWeights | Tensor | Slot]:
    """Return what a block declares of its parameters, buffers and slots, by name."""
    part = block.part
    weights = part.weights(block.sizes, frozenset(block.inputs)) if callable(part.weights) else part.weights
    kept = part.buffers(block.sizes) if callable(part.buffers) else part.buffers
    return {**weights, **kept}


def widths(block: TypedBlock) -> frozenset[str]:
    """Return the names of the last axes of what a block reads and of what it returns first, which are widths of the model."""
    part = type(block.part)
    read = {_last(text) for text in part.inputs.values()} - part.model_fields.keys()
    given = {_last(text) for text in [*part.outputs.values()][:1]}
    return frozenset((read | given) - {""} - part.units.keys())


def output_width(block: TypedBlock) -> str:
    """Return the name of the last axis of the first output."""
    return next((_last(text) for text in type(block.part).outputs.values()), "")


def _last(text: str) -> str:
    axes = pattern(text).axes
    return text_of_size(axes[-1]) if axes else ""


def length(axis: str, block: TypedBlock) -> int:
    """Return the length of an axis that a weight of a block has, which is always a number."""
    found = size(declared(axis), block.sizes)
    assert isinstance(found, int), axis
    return found
