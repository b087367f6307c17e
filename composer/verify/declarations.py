"""What a block declares, tried on the block alone: each declaration that is not true, in plain words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch.utils.flop_counter import FlopCounterMode

from blocks.masks.mask import Mask
from composer.cost.costs import costs
from composer.graph.dims import Dim
from composer.graph.row_mixing import mixing
from composer.graph.typed import TypedBlock
from composer.graph.types import TensorType
from composer.verify.computing import (
    calls_repeat,
    exported_is_equal,
    gradients_reach,
    rows_are_apart,
    state_is_whole,
    training_repeats,
    types_are_declared,
    without_influence,
)
from composer.verify.inputs import Draw
from composer.verify.static import parameters_are_declared
from composer.verify.subject import ROUNDING, Subject, Violation, difference
from composer.verify.texts import nothing_looks_ahead, sessions_equal_one_call


@dataclass(frozen=True, eq=False)
class BlockAlone:
    """A block that stands alone in a recipe, and in a small language model where it fits into one."""

    block: TypedBlock
    subject: Subject
    language_model: Subject | None

    @cached_property
    def own(self) -> TypedBlock:
        """The block in its recipe."""
        node = self.subject.program.root.nodes[0]
        assert isinstance(node, TypedBlock)
        return node

    @property
    def masks(self) -> bool:
        """Whether a mask decides which positions see each other."""
        return any(isinstance(getattr(self.own.part, name), Mask) for name in type(self.own.part).model_fields)

    def looks_back(self, axis: Dim) -> bool:
        """Return whether it declares that a position along an axis depends on those before it."""
        inner = (getattr(self.own.part, name) for name in type(self.own.part).model_fields)
        inside = any(getattr(type(part), "cache_slots", {}) or getattr(type(part), "carry", {}) for part in inner)
        return inside or axis in self.own.part.past_axes(self.own.sizes)


@dataclass(frozen=True, slots=True)
class DeclarationTest:
    """A test of one declaration of a block."""

    name: str
    try_: Callable[[BlockAlone], Iterator[Violation]]
    declaration: str
    """The attribute or method of the block that is not true if the test fails."""
    hint: str
    """What to do then."""
    says: str
    """What must be true, in plain words."""


def of_subject(property: Callable[[Subject], Iterator[Violation]]) -> Callable[[BlockAlone], Iterator[Violation]]:
    """Return a property of models as a test of a block alone."""
    return lambda alone: property(alone.subject)


@torch.no_grad()
def positions_are_apart(alone: BlockAlone) -> Iterator[Violation]:
    """Check that a position depends on others only if `mixed_axes` or a mask says so, and with `past_axes` on earlier ones."""
    if alone.masks:
        return
    subject, block = alone.subject, alone.own
    mixed = list(block.part.mixed_axes(block.sizes))
    how = subject.draws[0]
    given, other = subject.draw(how), subject.draw(Draw(how.lengths, 31, optional=how.optional))
    before = subject.outputs(given)
    for axis in _axes(subject):
        if str(axis) == "batch" or axis in mixed:
            continue
        for place in range(how.lengths[str(axis)]):
            changed = {name: _at(value, other[name], subject.program.inputs[name], axis, place) for name, value in given.items()}
            for name, index, by in _changes(alone, axis, place, before, subject.outputs(changed)):
                message = (
                    f"`{name}` at position {index} along `{axis}` changes by {by:.2g} when position {place} of the input does"
                )
                yield Violation("positions", message)
                return


def _changes(
    alone: BlockAlone, axis: Dim, place: int, before: Mapping[str, torch.Tensor], after: Mapping[str, torch.Tensor]
) -> Iterator[tuple[str, int, float]]:
    """Yield the outputs that differ at another place along an axis than the one that was changed."""
    subject = alone.subject
    for (_, name), type_ in zip(subject.module.outputs, subject.program.root.outputs.values(), strict=True):
        if not isinstance(type_, TensorType) or axis not in type_.sizes:
            continue
        where = type_.sizes.index(axis)
        for index in range(before[name].shape[where]):
            if index == place or (index > place and alone.looks_back(axis)):
                continue
            by = difference(before[name].select(where, index), after[name].select(where, index))
            if by > ROUNDING:
                yield name, index, by


def _axes(subject: Subject) -> list[Dim]:
    """Return the axes of the inputs whose lengths are known only when the model runs."""
    sizes = dict.fromkeys(size for type_ in subject.program.inputs.values() for size in type_.sizes)
    return [size for size in sizes if not isinstance(size, int) and str(size).isidentifier()]


def _at(value: torch.Tensor, other: torch.Tensor, type_: TensorType, axis: Dim, place: int) -> torch.Tensor:
    """Return the value with another one's numbers at a place along an axis, if it has that axis."""
    if axis not in type_.sizes:
        return value
    where = type_.sizes.index(axis)
    index = torch.arange(value.shape[where]) == place
    return torch.where(index.view([-1 if at == where else 1 for at in range(value.dim())]), other, value)


def rows_in_evaluation(alone: BlockAlone) -> Iterator[Violation]:
    """Check that the rows of a batch do not see each other, unless the block says so."""
    if next(mixing(alone.subject.program, training=False), None) is None:
        yield from rows_are_apart(alone.subject)


def rows_in_training(alone: BlockAlone) -> Iterator[Violation]:
    """Check that in training too, the rows of a batch do not see each other, unless the block says so."""
    if next(mixing(alone.subject.program, training=True), None) is None:
        yield from rows_are_apart(Subject(alone.subject.recipe, training=True))


@torch.no_grad()
def padding_is_left_out(alone: BlockAlone) -> Iterator[Violation]:
    """Check that what stands at padding changes nothing elsewhere, for a block with a port `valid`."""
    subject = alone.subject
    if "valid" not in subject.program.inputs:
        return
    given, flags = subject.draw(subject.draws[0]), subject.program.inputs["valid"]
    other = subject.draw(Draw(subject.draws[0].lengths, 33))
    valid = given["valid"].clone()
    valid[..., 1::2] = False
    given["valid"] = other["valid"] = valid
    noisy = {
        name: torch.where(valid.view(*valid.shape, *[1] * (value.dim() - valid.dim())), value, other[name])
        if name != "valid" and subject.program.inputs[name].sizes[: valid.dim()] == flags.sizes else value
        for name, value in given.items()
    }  # fmt: skip
    before, after = subject.outputs(given), subject.outputs(noisy)
    for (_, name), type_ in zip(subject.module.outputs, subject.program.root.outputs.values(), strict=True):
        ours, theirs = before[name], after[name]
        if isinstance(type_, TensorType) and type_.sizes[: valid.dim()] == flags.sizes:
            ours, theirs = ours[valid], theirs[valid]
        if (by := difference(ours, theirs)) > ROUNDING:
            yield Violation("padding", f"`{name}` changes by {by:.2g} where only padding changes")


@torch.no_grad()
def shapes_alone_are_read(alone: BlockAlone) -> Iterator[Violation]:
    """Check that other numbers at an input of which only the shape is read change nothing."""
    yield from numbers_are_not_read(alone, "shapes", alone.own.part.shape_only_inputs)


@torch.no_grad()
def read_in_training_alone(alone: BlockAlone) -> Iterator[Violation]:
    """Check that other numbers at an input that is read in training alone change nothing in evaluation."""
    yield from numbers_are_not_read(alone, "evaluation", alone.own.part.training_inputs)


def numbers_are_not_read(alone: BlockAlone, name: str, ports: Sequence[str]) -> Iterator[Violation]:
    """Yield the outputs that change in evaluation with the numbers of some inputs, as violations of a test."""
    subject = alone.subject
    given = subject.draw(subject.draws[0])
    other = subject.draw(Draw(subject.draws[0].lengths, 34))
    for port in ports:
        if port in given:
            before, after = subject.outputs(given), subject.outputs({**given, port: other[port]})
            for output, value in before.items():
                if (by := difference(value, after[output])) > ROUNDING:
                    yield Violation(name, f"`{output}` changes by {by:.2g} with the numbers of `{port}`")


@torch.no_grad()
def sources_alone_are_read(alone: BlockAlone) -> Iterator[Violation]:
    """Check that an output changes with nothing but the inputs that it is declared to be computed from."""
    subject = alone.subject
    given = subject.draw(subject.draws[0])
    other = subject.draw(Draw(subject.draws[0].lengths, 35))
    before = subject.outputs(given)
    for output, declared in alone.own.part.reads(frozenset(alone.own.inputs)).items():
        if output in before:
            kept = {name for wire in alone.own.node.wires if wire.port in declared for name in (ref.node for ref in wire.refs)}
            after = subject.outputs({name: value if name in kept else other[name] for name, value in given.items()})
            if (by := difference(before[output], after[output])) > ROUNDING:
                yield Violation("reads", f"`{output}` changes by {by:.2g} with inputs other than {' and '.join(declared)}")


@torch.no_grad()
def flops_are_declared(alone: BlockAlone) -> Iterator[Violation]:
    """Check that the declared FLOPs are those that torch counts."""
    if alone.masks or any(alone.own.slots.values()):
        return
    subject, how = alone.subject, alone.subject.draws[0]
    given = subject.draw(how)
    with FlopCounterMode(display=False) as counter:
        subject.call(given)
    declared, counted = costs(subject.program, how.lengths).flops.dense, counter.get_total_flops()
    if declared != counted:
        lengths = ", ".join(f"{axis} {length}" for axis, length in how.lengths.items())
        yield Violation("flops", f"{declared} FLOPs are declared for {lengths}, and torch counts {counted}")


@torch.no_grad()
def weights_are_used(alone: BlockAlone) -> Iterator[Violation]:
    """Check that every declared parameter has an influence on an output."""
    for name in without_influence(alone.subject):
        yield Violation("unused", f"`{name}` is declared, and no output depends on it")


def continues(alone: BlockAlone) -> Iterator[Violation]:
    """Check that in a language model, a session computes what one call computes."""
    if alone.language_model is not None:
        yield from sessions_equal_one_call(alone.language_model)


def looks_back_only(alone: BlockAlone) -> Iterator[Violation]:
    """Check that in a language model that passes all checks, no token depends on a later one."""
    if alone.language_model is not None:
        yield from nothing_looks_ahead(alone.language_model)


TESTS = (
    DeclarationTest(
        "types", of_subject(types_are_declared), "outputs",
        "declare in `outputs` or `output_types` what `forward` returns",
        "every output has the declared shape and dtype",
    ),
    DeclarationTest(
        "parameters", of_subject(parameters_are_declared), "weights",
        "declare in `weights` what the module has",
        "the module has exactly the declared parameters",
    ),
    DeclarationTest(
        "unused", weights_are_used, "weights",
        "use it in `forward`, or declare it only if it is used",
        "some output depends on each declared parameter",
    ),
    DeclarationTest(
        "gradients", of_subject(gradients_reach), "forward",
        "`forward` must not detach what depends on it: no `.data`, `.detach()` or `no_grad`",
        "a gradient reaches each parameter on which an output depends",
    ),
    DeclarationTest(
        "repeatable", of_subject(calls_repeat), "forward",
        "keep nothing on `self`: what lives from call to call is declared in `buffers`, `cache_slots` or `carry`",
        "the same inputs give the same outputs, whatever was computed in between",
    ),
    DeclarationTest(
        "training", of_subject(training_repeats), "forward",
        "draw random numbers from torch's own generator",
        "in training, the same seed gives the same outputs",
    ),
    DeclarationTest(
        "rows", rows_in_evaluation, "forward",
        "the first axis is the batch: `forward` must not compute across it, or `mixed_axes` returns it",
        "a row of the batch depends on the other rows only if `mixed_axes`, a mask or a cache says so",
    ),
    DeclarationTest(
        "batch", rows_in_training, "batch_dependent",
        "set `batch_dependent = True`",
        "in training, rows depend on each other only if that is declared",
    ),
    DeclarationTest(
        "positions", positions_are_apart, "mixed_axes",
        "return the axis from `mixed_axes`; if it only looks back, from `past_axes`, and declare a `carry` or `cache_slots`",
        "a position depends on others only if `mixed_axes` or a mask says so, and with `past_axes` on earlier ones",
    ),
    DeclarationTest(
        "padding", padding_is_left_out, "inputs",
        "leave out the positions where `valid` is false, or drop the port",
        "what stands where the port `valid` is false has no influence elsewhere",
    ),
    DeclarationTest(
        "shapes", shapes_alone_are_read, "shape_only_inputs",
        "take it off `shape_only_inputs`",
        "the numbers of an input of which only the shape is read have no influence",
    ),
    DeclarationTest(
        "evaluation", read_in_training_alone, "training_inputs",
        "take it off `training_inputs`",
        "in evaluation, the numbers of an input that is read in training alone have no influence",
    ),
    DeclarationTest(
        "reads", sources_alone_are_read, "reads",
        "name in `reads` every input that the output is computed from, or leave the output out of it",
        "an output changes with no other inputs than those that it is declared to be computed from",
    ),
    DeclarationTest(
        "flops", flops_are_declared, "cost",
        "return from `cost` what `forward` computes",
        "the declared FLOPs are those that torch counts; not tried with a mask or with blocks in slots",
    ),
    DeclarationTest(
        "causal", looks_back_only, "mixed_axes",
        "return the axis from `mixed_axes`, or look back only",
        "in a language model, no token depends on a later one",
    ),
    DeclarationTest(
        "cached", continues, "cache_slots",
        "declare in `cache_slots` what later tokens need, and read it with `append_to_cache`",
        "in a language model, a session computes what one call computes",
    ),
    DeclarationTest(
        "state", of_subject(state_is_whole), "buffers",
        "declare in `weights` or `buffers` what the model must save",
        "the `state_dict` holds all that the block keeps",
    ),
    DeclarationTest(
        "export", of_subject(exported_is_equal), "forward",
        "use only what can be copied into a file: functions, classes and constants of modules",
        "the exported file computes the same",
    ),
)  # fmt: skip
"""The tests in the order in which they are tried."""
