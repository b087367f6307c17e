"""What a call gives a model, held against what its recipe declares: numbers of the right kind, with the declared axes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

import torch

from composer.errors import ComposerError
from composer.graph.dims import Dim, Symbolic, TextRows, names, substitute
from composer.graph.typed import TypedProgram

DTYPES: Mapping[str, tuple[torch.dtype, ...]] = {
    "bool": (torch.bool,),
    "int": (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8),
    "float": (torch.float32, torch.bfloat16, torch.float16, torch.float64),
}
"""What is taken for each declared dtype: the width of the numbers is that of the model, or of `torch.autocast`."""
CASTS = {"bool": "bool", "int": "long", "float": "float"}
"""The method of a tensor that makes each declared dtype."""


class InputError(ComposerError, ValueError):
    """A call of a model gives an input that is not as the recipe declares it; the message says what was given, and what to do."""


class DeclaredInput(NamedTuple):
    """An input of a model, as calls are held against it."""

    name: str
    """As an argument of the model."""
    declared: str
    """Its type as the recipe writes it, such as `bool[batch, time]`."""
    dtype: str
    dtypes: tuple[torch.dtype, ...]
    axes: tuple[str, ...]
    """As the recipe writes them."""
    numbers: tuple[tuple[int, int], ...]
    """Place of each axis with a number, and the number."""
    most: tuple[tuple[int, int], ...]
    """Place of each axis of a text with a number, and the number: a call may have fewer tokens, as those of a session have."""
    shared: tuple[tuple[int, int], ...]
    """Place of each axis without a number that another axis of the inputs is too, with a number for its name."""
    plain: tuple[tuple[int, str], ...]
    """Place of each axis that is a name of which another is computed, such as `time` where there is `2 * time`."""
    computed: tuple[tuple[int, Symbolic], ...]
    """Place of each axis that is an expression of names, and the expression."""


def declared_inputs(program: TypedProgram, arguments: Sequence[str]) -> tuple[DeclaredInput, ...]:
    """Return the inputs of a model, whose arguments have these names."""
    lengths = {name: [*map(_in_call, type_.sizes)] for name, type_ in program.inputs.items()}
    counts = Counter(size for sizes in lengths.values() for size in sizes)
    shared: list[Dim] = [size for size, count in counts.items() if count > 1 and not isinstance(size, int)]
    expressions = [size for size in counts if isinstance(size, Symbolic) and names(size) and _name(size) is None]
    needed = {name for size in expressions for name in names(size)}
    found = []
    for argument, item in zip(arguments, program.untyped.inputs, strict=True):
        written, sizes = program.written_inputs[item.name], [*enumerate(lengths[item.name])]
        numbers = tuple((place, size) for place, size in sizes if isinstance(size, int))
        most = tuple(
            (place, own) for place, own in enumerate(written.sizes) if isinstance(own, int) and (place, own) not in numbers
        )
        places = tuple((place, shared.index(size)) for place, size in sizes if size in shared)
        plain = tuple((place, name) for place, size in sizes if (name := _name(size)) in needed and name is not None)
        computed = tuple((place, size) for place, size in sizes if isinstance(size, Symbolic) and size in expressions)
        axes, dtypes = tuple(map(str, written.axes)), DTYPES[written.dtype]
        found.append(DeclaredInput(argument, str(written), written.dtype, dtypes, axes, numbers, most, places, plain, computed))
    return tuple(found)


def _in_call(size: Dim) -> Dim:
    """Return the size of an axis in a call without a session, where all rows of a text so far are those of the call."""
    match size:
        case Symbolic(terms=(((TextRows(count=count),), 1),)):
            return count
    return size


def _name(size: Dim) -> str | None:
    """Return the name that a size is; None for a number or an expression."""
    match size:
        case Symbolic(terms=(((str(name),), 1),)):
            return name
    return None


def check_kinds(
    program: TypedProgram, inputs: Sequence[DeclaredInput], arguments: Sequence[Any], named: Mapping[str, Any]
) -> None:
    """Raise `InputError` if a tensor of a call has numbers of another kind than its input, or another number of axes.

    What is no tensor, and what is lacking, is left to the model: it takes numbers for inputs without axes, and None.
    """
    for place, item in enumerate(inputs):
        value = arguments[place] if place < len(arguments) else named.get(item.name)
        if isinstance(value, torch.Tensor) and (value.dtype not in item.dtypes or value.dim() != len(item.axes)):
            _refuse_kind(program, item, value)


def check_lengths(
    program: TypedProgram,
    inputs: Sequence[DeclaredInput],
    arguments: Sequence[Any],
    named: Mapping[str, Any],
    *,
    in_session: bool,
) -> None:
    """Raise `InputError` if, in a call whose tensors have the declared axes, an axis with a number has another length, axes of
    one name have several lengths, or a computed one is not what the others make it.

    In a session only numbers are held: what has a name may be of the next tokens, or of all so far.
    """
    lengths: dict[int, int] = {}
    computed = False
    for place, item in enumerate(inputs):
        value = arguments[place] if place < len(arguments) else named.get(item.name)
        if not isinstance(value, torch.Tensor):
            continue
        shape = value.shape
        for axis, number in item.numbers:
            if shape[axis] != number:
                _refuse_length(program, item, value, axis, f"must be {number}")
        if in_session:
            continue
        for axis, number in item.most:
            if shape[axis] > number:
                _refuse_length(program, item, value, axis, f"must be at most {number}")
        for axis, name in item.shared:
            length = shape[axis]
            if lengths.setdefault(name, length) != length:
                alike = next(one for one, _ in _tensors(inputs, arguments, named) if name in dict(one.shared).values())
                _refuse_length(program, item, value, axis, f"that of `{alike.name}` is {lengths[name]}")
        computed = computed or bool(item.computed)
    if computed:
        _check_computed(program, [*_tensors(inputs, arguments, named)])


def _check_computed(program: TypedProgram, given: Sequence[tuple[DeclaredInput, torch.Tensor]]) -> None:
    """Hold computed axes against the lengths of names; a name that is no axis of its own has the length that they make it."""
    lengths: dict[str, int] = {}
    givers: dict[str, str] = {}
    for item, value in given:
        for place, name in item.plain:
            lengths.setdefault(name, value.shape[place])
            givers.setdefault(name, f"{name} of `{item.name}` is {value.shape[place]}")
    waiting = [(item, value, place, size) for item, value in given for place, size in item.computed]
    while ready := next(
        (each for each in waiting if len(names(each[3]) - lengths.keys()) < 2 and _solvable(each[3], lengths)), None
    ):
        waiting.remove(ready)
        item, value, place, size = ready
        found = value.shape[place]
        unknown = names(size) - lengths.keys()
        by = [givers[name] for name in sorted(names(size) - unknown)]
        for name in unknown:
            base = substitute(size, {**lengths, name: 0})
            step = substitute(size, {**lengths, name: 1}) - base
            length, rest = divmod(found - base, step)
            if rest or length < 0:
                because = f", where {', and '.join(by)}" if by else ""
                _refuse_length(program, item, value, place, f"is so for no {name}{because}")
            lengths[name] = length
            givers[name] = f"{name} is {length} by {item.axes[place]} of `{item.name}`"
        if not unknown and found != (must := substitute(size, lengths)):
            _refuse_length(program, item, value, place, f"must be {must}: {', and '.join(by)}")


def _solvable(size: Symbolic, lengths: Mapping[str, int]) -> bool:
    """Return whether a size can be computed, or tells the length of the one name that has none: where it is linear in it."""
    unknown = names(size) - lengths.keys()
    return all(
        unknown.isdisjoint(names(Symbolic((((atom,), 1),)))) or (isinstance(atom, str) and len(monomial) == 1)
        for monomial, _ in size.terms
        for atom in monomial
    )


def _tensors(
    inputs: Sequence[DeclaredInput], arguments: Sequence[Any], named: Mapping[str, Any]
) -> Iterator[tuple[DeclaredInput, torch.Tensor]]:
    for place, item in enumerate(inputs):
        value = arguments[place] if place < len(arguments) else named.get(item.name)
        if isinstance(value, torch.Tensor):
            yield item, value


def _refuse_kind(program: TypedProgram, item: DeclaredInput, value: torch.Tensor) -> NoReturn:
    fixes = []
    if value.dtype not in item.dtypes:
        fixes.append(f"pass `{item.name}.{CASTS[item.dtype]}()`")
    if value.dim() != len(item.axes):
        by = (
            "no axes"
            if not item.axes
            else "the axis " + item.axes[0]
            if len(item.axes) == 1
            else "the axes " + ", ".join(item.axes)
        )
        one_row = value.dim() == len(item.axes) - 1 and item.axes[0] == "batch"
        fixes.append(f"give it {by}" + (f", such as `{item.name}[None]` for one row" if one_row else ""))
    raise InputError(f"{_given(program, item, value)}: {', and '.join(fixes)}")


def _refuse_length(program: TypedProgram, item: DeclaredInput, value: torch.Tensor, axis: int, must: str) -> NoReturn:
    name = item.axes[axis]
    which = f"axis {axis}, counted from 0," if name.isdecimal() else name
    raise InputError(f"{_given(program, item, value)}: its {which} is {value.shape[axis]}, and {must}")


def _given(program: TypedProgram, item: DeclaredInput, value: torch.Tensor) -> str:
    dtype = str(value.dtype).removeprefix("torch.")
    return f"`{item.name}` of {program.name} takes {item.declared}, and was given {dtype}{[*value.shape]}"
