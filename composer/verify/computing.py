"""Properties of every model that runs: types, gradients, rows of a batch, repeated calls, saving and exporting."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from composer.graph.row_mixing import mixing
from composer.graph.types import TensorType
from composer.verify.inputs import Draw, shape_of
from composer.verify.subject import ROUNDING, DoesNotApply, Subject, Violation, difference, executed, finite, named

DTYPES = {"float": torch.float64, "int": torch.int64, "bool": torch.bool}
SMALL_STEP, LARGE_STEP = 1e-4, 1.0
"""Standard deviations of what is added to a parameter: along one a function is straight, the other shows any influence."""
INFLUENCE = 1e-6
"""Relative change of the outputs for each unit of a step that counts as an influence."""
TRIED = 9
"""The seed of the inputs with which an influence is looked for."""


def types_are_declared(subject: Subject) -> Iterator[Violation]:
    """Check that every output has the inferred shape and dtype, with optional inputs and without."""
    for how in subject.draws:
        with torch.no_grad():
            result = subject.call(subject.draw(how))
        for (field, name), type_ in zip(subject.module.outputs, subject.program.root.outputs.values(), strict=True):
            value = getattr(result, field)
            if not isinstance(type_, TensorType) or not isinstance(value, torch.Tensor):
                yield Violation("types", f"`{name}` is {type(value).__name__}, and is declared {type_}")
                continue
            expected = shape_of(type_, how.lengths)
            if tuple(value.shape) != expected:
                lengths = ", ".join(f"{axis} {length}" for axis, length in how.lengths.items())
                yield Violation(
                    "types", f"`{name}` has the shape {list(value.shape)} and is declared {type_}, {list(expected)} for {lengths}"
                )
            if value.dtype != DTYPES[type_.dtype] and not (type_.dtype == "float" and value.dtype.is_floating_point):
                yield Violation("types", f"`{name}` has the dtype {str(value.dtype)[6:]} and is declared {type_.dtype}")
            if type_.within is not None and not type_.within[0] <= int(value.min()) <= int(value.max()) <= type_.within[1]:
                yield Violation("types", f"`{name}` has values outside of {type_.within[0]} to {type_.within[1]}, as is declared")


def gradients_reach(subject: Subject) -> Iterator[Violation]:
    """Check that every trainable parameter has a gradient, unless small changes of it change no output: the weights of a router
    that selects one expert have none, nor do those that add the same to all scores of a softmax.

    The last inputs are those with which changes are tried: with others a layer may be cut off, all of its units below 0.
    """
    model = copy.deepcopy(subject.model)
    waiting = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    first, second = subject.draws[:2]
    for how, seed in ((first, 0), (second, 1), (first, 2), (second, 3), *((each, TRIED) for each in subject.draws)):
        if not waiting:
            return
        given = subject.draw(_again(how, seed))
        total = one_number(subject.outputs(given, model))
        if total is None:
            return
        model.zero_grad(set_to_none=True)
        if total.requires_grad:
            total.backward()  # type: ignore[no-untyped-call]  # torch has no annotation
        waiting -= {n for n, p in model.named_parameters() if p.grad is not None and bool((p.grad.abs() > 1e-12).any())}
    for name in _influential(subject, sorted(waiting)):
        yield Violation("gradients", f"`{name}` changes the outputs, and no gradient reaches it")


def _influential(subject: Subject, names: Sequence[str]) -> Iterator[str]:
    """Yield those of some parameters that have any influence, all of which are moved together first, then half of them: there may
    be thousands that have none.
    """
    if not names or not influence(subject, names, SMALL_STEP):
        return
    if len(names) == 1:
        yield from names
        return
    half = len(names) // 2
    yield from _influential(subject, names[:half])
    yield from _influential(subject, names[half:])


def without_influence(subject: Subject) -> Iterator[str]:
    """Yield the parameters on which no output depends."""
    for name, parameter in subject.model.named_parameters():
        if parameter.requires_grad and not influence(subject, [name], LARGE_STEP):
            yield name


@torch.no_grad()
def influence(subject: Subject, names: Sequence[str], step: float) -> bool:
    """Return whether steps of a size, from where some parameters are, change any output."""
    moved = [subject.model.get_parameter(name) for name in names]
    for how in subject.draws:
        given = subject.draw(_again(how, TRIED))
        before, kept = subject.outputs(given), [parameter.clone() for parameter in moved]
        chance = torch.Generator().manual_seed(3)
        for name, parameter in zip(names, moved, strict=True):
            by = step * torch.randn(parameter.shape, generator=chance, dtype=parameter.dtype)
            if name in subject.padding_rows:
                by[subject.padding_rows[name]] = 0.0  # it is not trained
            parameter.add_(by)
        try:
            after = subject.outputs(given)
        finally:
            for parameter, value in zip(moved, kept, strict=True):
                parameter.copy_(value)
        if any(difference(before[each], after[each]) > INFLUENCE * step for each in before):
            return True
    return False


def one_number(outputs: Mapping[str, torch.Tensor]) -> torch.Tensor | None:
    """Return one number that depends on every output in its own way; None where no output is of floats."""
    parts = [value for value in outputs.values() if value.dtype.is_floating_point]
    weighted = [(p * torch.linspace(0.5, 1.5, p.numel(), dtype=p.dtype).view_as(p)).sin().sum() for p in parts]
    return torch.stack(weighted).sum() if weighted else None


@torch.no_grad()
def rows_are_apart(subject: Subject) -> Iterator[Violation]:
    """Check that each row of a batch gives the same whatever the other rows are."""
    batched = {name for name, type_ in subject.program.inputs.items() if type_.sizes and str(type_.sizes[0]) == "batch"}
    first = [name for (_, name), type_ in zip(subject.module.outputs, subject.program.root.outputs.values(), strict=True)
             if isinstance(type_, TensorType) and type_.axes and str(type_.axes[0].size) == "batch"]  # fmt: skip
    if not batched or not first:
        raise DoesNotApply
    for attempt in range(3 if subject.selects else 1):
        given = subject.draw(_again(subject.draws[0], 20 + attempt))
        other = subject.draw(_again(subject.draws[0], 40 + attempt))
        before = subject.outputs(given)
        wrong = []
        for row in range(given[min(batched)].shape[0]):
            mixed = {name: _but(value, other[name], row) if name in batched else value for name, value in given.items()}
            after = subject.outputs(mixed)
            found = [(name, difference(before[name][row], after[name][row])) for name in first]
            wrong += [(name, row, by) for name, by in found if by > ROUNDING]
        if not wrong:
            return
    yield from (
        Violation("rows", f"`{name}` of row {row} changes by {by:.2g} when the other rows of the batch change")
        for name, row, by in wrong[:1]
    )


def rows_are_apart_in_a_model(subject: Subject) -> Iterator[Violation]:
    """Check that rows do not see each other, in training too unless the types say so; what mixes them is named."""
    for training in (False, True):
        mixed = next(mixing(subject.program, training=training), None)
        if training and (mixed is not None or subject.selects):  # the dropout of experts draws for rows in the order of experts
            return
        for found in rows_are_apart(subject if not training else Subject(subject.recipe, training=True)):
            told = f"{'in training, ' * training}{found.message}"
            yield Violation(found.property, told if mixed is None else f"{told}: `{mixed.path}` {mixed.does}")
            return


def _but(value: torch.Tensor, other: torch.Tensor, row: int) -> torch.Tensor:
    """Return another value in which one row is that of the first."""
    mixed = other.clone()
    mixed[row] = value[row]
    return mixed


@torch.no_grad()
def calls_repeat(subject: Subject) -> Iterator[Violation]:
    """Check that a call leaves nothing behind but what every call renews by its declaration.

    The same inputs give the same outputs, whatever was computed in between, and the same values for the next call.
    """
    model = copy.deepcopy(subject.model)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    given = subject.draw(subject.draws[0])
    first = subject.outputs(given, model)
    renewed = {name: model.get_buffer(name).clone() for name in subject.running}
    again = subject.outputs(given, model)
    for name, by in _differences(first, again):
        yield Violation("repeatable", f"`{name}` differs by {by:.2g} between two calls with the same inputs")
        return
    for name, by in _differences(renewed, {name: model.get_buffer(name) for name in subject.running}):
        yield Violation("repeatable", f"`{name}` differs by {by:.2g} after two calls with the same inputs from the same value")
        return
    subject.outputs(subject.draw(_again(subject.draws[1], 5)), model)
    for name, by in _differences(first, subject.outputs(given, model)):
        yield Violation("repeatable", f"`{name}` differs by {by:.2g} after a call with other inputs: the model keeps something")
        return
    for name, value in model.state_dict().items():
        if name not in subject.running and not torch.equal(value, before[name]):
            yield Violation("repeatable", f"a call in evaluation changes `{name}`")


@torch.no_grad()
def training_repeats(subject: Subject) -> Iterator[Violation]:
    """Check that in training, the same seed gives the same outputs."""
    results = []
    for _ in range(2):
        model = copy.deepcopy(subject.model).train()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            results.append(finite(named(subject.call(subject.draw(subject.draws[0]), model), subject.module.outputs)))
    for name, by in _differences(*results):
        yield Violation("repeatable", f"in training, `{name}` differs by {by:.2g} between two calls with the same seed")


@torch.no_grad()
def state_is_whole(subject: Subject) -> Iterator[Violation]:
    """Check that a model that loads the state of another computes the same."""
    given = subject.draw(subject.draws[0])
    again = subject.recipe.compile(dtype=torch.float64, seed=2).eval()
    again.load_state_dict(subject.model.state_dict(), strict=True)
    for name, by in _differences(subject.outputs(given), subject.outputs(given, again)):
        yield Violation("state", f"`{name}` differs by {by:.2g} in a model that loaded the state_dict")


@torch.no_grad()
def exported_is_equal(subject: Subject) -> Iterator[Violation]:
    """Check that the exported file loads the state strictly, and computes the same."""
    given = subject.draw(subject.draws[0])
    exported: Any = executed(subject.module)().double().eval()
    try:
        exported.load_state_dict(subject.model.state_dict(), strict=True)
    except RuntimeError as error:
        yield Violation("export", f"the exported file does not load the state_dict: {' '.join(str(error).split())}")
        return
    for name, by in _differences(subject.outputs(given), subject.outputs(given, exported)):
        yield Violation("export", f"`{name}` differs by {by:.2g} between the model and its exported file")


def _differences(ours: Mapping[str, torch.Tensor], theirs: Mapping[str, torch.Tensor]) -> Iterator[tuple[str, float]]:
    """Yield what is not equal bit for bit."""
    for name, value in ours.items():
        if name not in theirs or not torch.equal(value, theirs[name]):
            yield name, difference(value, theirs[name]) if name in theirs else float("inf")


def _again(how: Draw, seed: int) -> Draw:
    return Draw(how.lengths, seed, optional=how.optional)
