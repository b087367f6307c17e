"""A formula as one expression of torch, as a person would write it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from blocks.core.formula import Formula, KnownNumber, ReadValue
from blocks.core.weights import UNIT
from blocks.formulas.dtypes import TypedFormula
from blocks.formulas.functions import ATOM, FUNCTIONS, SIGNED

MODEL_DTYPE = f"{{self}}.{UNIT}.dtype"
"""The dtype of the model, where no value that the formula reads has it."""


@dataclass(frozen=True, slots=True)
class _Text:
    text: str
    binding: int = ATOM

    def within(self, binding: int) -> str:
        """Return the text, in parentheses where it binds less tightly than needed."""
        return self.text if self.binding >= binding else f"({self.text})"


def expression(formula: Formula, typed: TypedFormula) -> str:
    """Return the expression: `{xs[0]}` is the first value that it reads, `{number_0}` its first number.

    A result in float32 is converted back to the dtype of the model, unless `float32` is called on all of it.

    Args:
        formula: The formula.
        typed: The same with dtypes.

    Examples:
        >>> from blocks.core.formula import AppliedFunction, KnownNumber, Formula, ReadValue
        >>> from blocks.formulas.dtypes import typed_formula
        >>> from blocks.formulas.expressions import expression
        >>> scaled = Formula(AppliedFunction("*", (AppliedFunction("exp", (ReadValue(0),)), KnownNumber(0))), (0.5,))
        >>> expression(scaled, typed_formula(scaled, ["float"]))
        'torch.exp({xs[0]}) * {number_0}'
    """
    writer = _Writer(formula, typed)
    text = writer.write(typed)
    if typed.float32 and writer.function(typed) != "float32":
        return f"{text.within(ATOM)}.to({writer.dtype(among_converted=True)})"
    return text.text


def reads_model_dtype(formula: Formula, typed: TypedFormula) -> bool:
    """Return whether the expression of a formula reads the dtype of the model, which none of its values has for certain.

    Args:
        formula: The formula.
        typed: The same with dtypes.
    """
    return MODEL_DTYPE in expression(formula, typed)


class _Writer:
    """Writes one formula."""

    def __init__(self, formula: Formula, typed: TypedFormula) -> None:
        self.formula = formula
        self.plain = next(_floats(typed, converted=False), None)
        """The first float that is read as it is."""
        self.any_float = next(_floats(typed, converted=True), None)

    def function(self, typed: TypedFormula) -> str:
        """Return the function that is applied; an empty string for a value and a number."""
        return getattr(typed.tree, "function", "")

    def dtype(self, *, among_converted: bool) -> str:
        """Return the expression of the model's dtype, where that may also be read off a value in `float` or `float32`."""
        index = self.plain if self.plain is not None or not among_converted else self.any_float
        return MODEL_DTYPE if index is None else f"{{xs[{index}]}}.dtype"

    def write(self, typed: TypedFormula, taken: Sequence[_Text] = ()) -> _Text:
        """Return the expression of a part of the formula, of which a result is used only where all of `taken` hold."""
        match typed.tree:
            case ReadValue(index=index):
                return _Text(f"{{xs[{index}]}}")
            case KnownNumber(index=index):
                return _Text(f"{{number_{index}}}", SIGNED if self.formula.numbers[index] < 0 else ATOM)
        name, row = self.function(typed), FUNCTIONS[self.function(typed)]
        if name == "where":
            return self._where(typed, taken)
        given = [self.write(argument, taken) for argument in typed.arguments]
        if row.safe is not None and not isinstance(typed.arguments[row.guarded].tree, KnownNumber):
            safe = f"{row.safe:g}" if typed.arguments[row.guarded].dtype == "int" else repr(row.safe)
            for condition in taken:
                given[row.guarded] = _Text(f"torch.where({condition.text}, {given[row.guarded].text}, {safe})")
        match name:
            case "min" | "max":
                return self._bound(name, (typed.arguments[0], given[0]), (typed.arguments[1], given[1]))
            case "/" if all(argument.dtype == "int" for argument in typed.arguments):
                # A quotient of ints would have torch's default dtype.
                first = next(i for i, argument in enumerate(typed.arguments) if not argument.literal)
                given[first] = _Text(f"{given[first].within(ATOM)}.to({self.dtype(among_converted=True)})")
            case "//" if typed.dtype == "float":  # of which torch has no gradient, not even 0
                given = [
                    one if argument.literal else _Text(f"{one.within(ATOM)}.detach()")
                    for one, argument in zip(given, typed.arguments, strict=True)
                ]
            case "%" if typed.dtype == "float" and isinstance(typed.arguments[0].tree, KnownNumber):
                # Torch has a gradient of a tensor's remainder, and none of a number's.
                dtype = self.dtype(among_converted=True)
                given[0] = _Text(f"{{xs[{_first_read(typed)}]}}.new_full((), {given[0].text}, dtype={dtype})")
            case "float":
                source = typed.arguments[0]
                dtype = self.dtype(among_converted=source.dtype != "float")
                return _Text(f"{given[0].within(ATOM)}.to({dtype})")
        around = row.around or (0,) * len(given)
        texts = [one.within(binding) for one, binding in zip(given, around, strict=True)]
        return _Text(row.torch.format(*texts), row.binding)

    def _where(self, typed: TypedFormula, taken: Sequence[_Text]) -> _Text:
        """Return a choice; whatever a branch computes where it is not taken, its gradient there is 0 and not NaN."""
        condition, *branches = typed.arguments
        chosen = self.write(condition, taken)
        other = _Text(f"~{chosen.within(SIGNED)}", SIGNED)
        first, second = (self.write(branch, (*taken, which)) for branch, which in zip(branches, (chosen, other), strict=True))
        if typed.dtype == "float" and all(branch.literal for branch in branches):
            # Of two numbers torch would make a value of its default dtype, which rounds them.
            dtype = self.dtype(among_converted=True)
            first = _Text(f"{{xs[{_first_read(condition)}]}}.new_full((), {first.text}, dtype={dtype})")
        return _Text(f"torch.where({chosen.text}, {first.text}, {second.text})")

    def _bound(self, name: str, one: tuple[TypedFormula, _Text], other: tuple[TypedFormula, _Text]) -> _Text:
        """Return the smaller or the larger of two."""
        known = next((text for typed, text in (one, other) if isinstance(typed.tree, KnownNumber)), None)
        if known is None:
            return _Text(f"torch.{name}imum({one[1].text}, {other[1].text})")
        value = next(text for _, text in (one, other) if text is not known)
        return _Text(f"torch.clamp({value.text}, {'max' if name == 'min' else 'min'}={known.text})")


def _floats(typed: TypedFormula, *, converted: bool) -> Iterator[int]:
    """Yield the floats that are read, perhaps those too that are an argument of `float` or `float32`."""
    if isinstance(typed.tree, ReadValue) and typed.dtype == "float":
        yield typed.tree.index
    if converted or getattr(typed.tree, "function", "") not in ("float", "float32"):
        for argument in typed.arguments:
            yield from _floats(argument, converted=converted)


def _first_read(typed: TypedFormula) -> int:
    """Return the first value that a part of a formula reads."""
    if isinstance(typed.tree, ReadValue):
        return typed.tree.index
    return next(_first_read(argument) for argument in typed.arguments if not argument.literal)
