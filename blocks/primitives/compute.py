"""A pointwise formula."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

from blocks.core import UNIT_BUFFER, Block, BlockView, Cost, Formula, InputAxes, Look, Piece, Sizes, Tensor, grouped
from blocks.core.formula import AppliedFunction, FormulaTree, KnownNumber, ReadValue, without_ones
from blocks.core.look import ProductIcon, ProductSide
from blocks.core.matched_axes import ARROW
from blocks.formulas.dtypes import TypedFormula, typed_formula
from blocks.formulas.expressions import expression, reads_model_dtype
from blocks.primitives.axes import changed
from blocks.primitives.operations import pieces_of
from blocks.primitives.stack_split import of_port

WIDEST, WIDEST_BELOW = 40, 76
"""Signs of the longest formula that is drawn as a title; and in the smaller letters below the name of its node."""
BATCH = "B"
"""How long the axis of a batch is, as drawings tell it."""
MAX_IN_BRIEF = 40
"""Signs of the longest formula that a box around it names."""
WIDEST_WITH_LETTERS = 52
"""The same of one in which letters tell axes."""
SHORTEST_NAME = 4
"""Signs that are left of a name that is cut."""
FACTOR = re.compile(r"(?:[a-zA-Z_][\w.]*)?\([^()]*\)|[a-zA-Z_][\w.]*")
PRODUCT = re.compile(rf"(?<![\w.])(?<![/*] )(?:{FACTOR.pattern})(?: \* (?:{FACTOR.pattern})(?![\w.(]))+")
"""Factors in a row, each a name, a function or a bracket around what has no more brackets."""


class Compute(Block, kind="compute"):
    """A pointwise formula over the values that it names: `{compute: exp(-softplus(dt) * a)}` is short for
    `{type: compute, formula: exp(-softplus(dt) * a)}`.

    The language page lists the functions. The result is a float, an int or a boolean, as the formula says. A formula of which no
    value is a float in the dtype of the model keeps a buffer that is.
    """

    formula: Formula
    """The formula; each name in it is an edge, or a number in scope."""
    axes: InputAxes = ()
    """The names of the axes of each value, where these do not match in order: `{dt: rows inner, a: inner state}`."""

    is_primitive = True
    example = """
inputs: {x: "float[batch, time, 8]", gate: "float[batch, time, 8]"}
graph: {y: {compute: x * sigmoid(gate)}}
"""
    inputs = {"xs*": "any[...]"}
    outputs = {"y": "any[...]"}
    broadcasts = True

    def constants(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        typed = typed_formula(self.formula, [one.dtype for one in of_port(inputs["xs"])])
        numbers = {f"number_{index}": value for index, value in enumerate(self.formula.numbers)}
        return {"typed": typed, **numbers}

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        typed: TypedFormula = sizes["typed"]
        return {"y": replace(changed(of_port(inputs["xs"])[0]), dtype=typed.dtype, axes=sizes["..."])}

    def buffers(self, sizes: Sizes) -> Mapping[str, Tensor]:
        """Return a number in the dtype of the model, for a formula of which no value has it."""
        typed: TypedFormula | None = sizes.get("typed")  # none where no model is described
        return UNIT_BUFFER if typed is not None and reads_model_dtype(self.formula, typed) else {}

    def cost(self, sizes: Sizes, wired: frozenset[str]) -> Cost:
        return Cost("0")  # only products of matrices count

    def inline(self, sizes: Sizes) -> str:
        return expression(self.formula, sizes["typed"])

    def look(self, view: BlockView) -> Look:
        plain = as_printed(with_outer_products(self.formula.text, self.axes_by_name))
        written = with_letters(plain, self.letters(view))
        through = straight_through(self.formula)
        numbers = (*through, *(f"{name} = {_number(number)}" for name, number in self.formula.named_numbers))
        zeros = "0" if is_zero(self.formula.tree, self.formula.numbers) else ""
        if len(plain) <= WIDEST and len(written) <= WIDEST_WITH_LETTERS:
            tight = without_ones(self.with_numbers(plain).replace(" · ", "·"))
            icon = product_icon(written, {name: one.split() for name, one in zip(self.formula.names, self.axes, strict=False)})
            return Look(written, numbers, "merge", icon, number=zeros, formula=tight if len(tight) <= MAX_IN_BRIEF else "")
        valued = self.with_numbers(written)
        told = with_short_names(written, WIDEST_BELOW) or begun(written, WIDEST_BELOW)
        if len(" · ".join((told, *numbers))) <= WIDEST_BELOW:
            return Look(view.name, (told, *numbers), "merge", number=zeros)
        return Look(view.name, (valued if len(valued) <= WIDEST_BELOW else told,), "merge", number=zeros)

    def inside(self, view: BlockView) -> Sequence[Piece]:
        outer = with_outer_products(self.formula.text, self.axes_by_name) != self.formula.text
        return () if outer or self.letters(view) else pieces_of(self.formula)

    def letters(self, view: BlockView) -> Mapping[str, Sequence[str]]:
        """Return the axes of each value that not all values have at one place from the last, but for the batch, where some two
        values each have one that the other one lacks, and no sign of a product tells that; nothing for other formulas.
        """
        *_, last = self.axes or ("",)
        order = dict.fromkeys(" ".join([last.removeprefix(ARROW)] if last.startswith(ARROW) else self.axes).split())
        batch = {name for name, length in zip(order, view.gives, strict=False) if length == BATCH}
        own = {name: set(axes) - batch for name, axes in self.axes_by_name.items()}
        nested = all(one <= other or other <= one for one, other in combinations(own.values(), 2))
        if nested or with_outer_products(self.formula.text, self.axes_by_name) != self.formula.text:
            return {}
        shared = {axis for axis in set.intersection(*own.values()) if len({*self.places_of(axis)}) == 1}
        return {name: [axis for axis in order if axis in axes - shared] for name, axes in own.items()}

    def places_of(self, axis: str) -> Iterator[int]:
        """Yield which axis of each value it is, counted from the last: one at the same place in all needs no letter."""
        for _, axes in zip(self.formula.names, self.axes, strict=False):
            yield len(axes.split()) - axes.split().index(axis)

    @property
    def axes_by_name(self) -> Mapping[str, frozenset[str]]:
        """What the axes of each value are called, where it tells."""
        return dict(zip(self.formula.names, (frozenset(one.split()) for one in self.axes), strict=False))

    def with_numbers(self, written: str) -> str:
        """Return its formula as a paper writes it, with the values of the numbers that it names."""
        for name, number in self.formula.named_numbers:
            written = re.sub(rf"\b{re.escape(name)}\b", _number(number), written)
        return written


def with_letters(printed: str, letters: Mapping[str, Sequence[str]]) -> str:
    """Return a formula as it is printed with the axes of its values behind their names.

    >>> with_letters("tanh(left + right)", {"left": ["i"], "right": ["j"], "of.it": []})
    'tanh(left[i] + right[j])'
    """
    for name, axes in letters.items():
        said = name if re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.(])", printed) else name.rpartition(".")[2]
        if axes:
            printed = re.sub(rf"(?<![\w.]){re.escape(said)}(?![\w.(\[])", f"{said}[{', '.join(axes)}]", printed)
    return printed


def straight_through(formula: Formula) -> tuple[str, ...]:
    """Return what a formula gives and which value's gradient goes through it, where it is one value with the gradient of another:
    `a + stop_gradient(b - a)`; nothing for others.
    """
    terms = _terms(formula.tree)
    if not terms or not any(stopped for _, stopped in terms):
        return ()
    given: dict[int, int] = {}
    for (value, _), times in terms.items():
        given[value] = given.get(value, 0) + times
    gives = [value for value, times in given.items() if times]
    trains = [value for (value, stopped), times in terms.items() if times and not stopped]
    if len(gives) != 1 or len(trains) != 1 or gives == trains or given[gives[0]] != 1 or terms[trains[0], False] != 1:
        return ()
    whole = [formula.names[value] for value in (*gives, *trains)]
    one, other = own if len({*(own := [name.rpartition(".")[2] for name in whole])}) > 1 else whole
    return (f"= {one}, with the gradient of {other}",)


def _terms(tree: FormulaTree, stopped: bool = False) -> dict[tuple[int, bool], int] | None:
    """Return how often each value is in a sum, apart for those that no gradient goes through; none for what is no such sum."""
    match tree:
        case ReadValue(index=index):
            return {(index, stopped): 1}
        case AppliedFunction(function="stop_gradient", arguments=(one,)):
            return _terms(one, stopped=True)
        case AppliedFunction(function="+" | "-" | "negative" as sign, arguments=arguments):
            found: dict[tuple[int, bool], int] = {}
            for number, argument in enumerate(arguments):
                terms = _terms(argument, stopped)
                if terms is None:
                    return None
                times = 1 if sign == "+" or (sign == "-" and number == 0) else -1
                for key, count in terms.items():
                    found[key] = found.get(key, 0) + times * count
            return found
        case _:
            return None


def is_zero(tree: FormulaTree, numbers: Sequence[float]) -> bool:
    """Return whether all that a formula gives is zero, as far as signs tell: it multiplies by the number 0.

    >>> is_zero(AppliedFunction("*", (KnownNumber(0), KnownNumber(1))), [0, 2]), is_zero(KnownNumber(1), [0, 2])
    (True, False)
    """
    match tree:
        case KnownNumber(index=index):
            return numbers[index] == 0
        case AppliedFunction(function="*", arguments=arguments):
            return any(is_zero(one, numbers) for one in arguments)
        case AppliedFunction(function="+" | "-" | "negative", arguments=arguments):
            return all(is_zero(one, numbers) for one in arguments)
        case _:
            return False


def with_outer_products(formula: str, axes: Mapping[str, frozenset[str]]) -> str:
    """Return a formula with another sign between factors that share no axis but the first one of all, which have each value of
    one with each of the other.

    >>> axes = {"a": frozenset("nx"), "b": frozenset("ny"), "c": frozenset("nx")}
    >>> with_outer_products("a * b * exp(c)", axes), with_outer_products("c * (1 - a * exp(b))", axes)
    ('a ⊗ b * exp(c)', 'c * (1 - a ⊗ exp(b))')
    """
    batch = frozenset.intersection(*axes.values()) if axes else frozenset()

    def of_product(found: re.Match[str]) -> str:
        said, known = "", frozenset[str]()
        for factor in FACTOR.findall(found[0]):
            own = frozenset[str]().union(*(axes.get(name, ()) for name in re.findall(r"[a-zA-Z_][\w.]*", factor)))
            outer = known - batch and own - batch and known & own <= batch
            sign = (" ⊗ " if outer else " * ") if said else ""
            inner = re.sub(r"\((.*)\)$", lambda inside: f"({with_outer_products(inside[1], axes)})", factor)
            said, known = f"{said}{sign}{inner}", known | own
        return said

    return PRODUCT.sub(of_product, formula) if batch != frozenset().union(*axes.values()) else formula


def product_icon(written: str, axes: Mapping[str, Sequence[str]]) -> ProductIcon | None:
    """Return the picture of the outer product of two or three vectors in each row of a batch; none for others.

    >>> [side.axis for side in product_icon("a ⊗ b", {"a": "nx", "b": "ny"}).sides]
    ['x', 'y']
    """
    names = written.split(" ⊗ ")
    batch = set.intersection(*map(set, axes.values())) if axes else set()
    own = [[axis for axis in axes.get(name, ()) if axis not in batch] for name in names]
    if not batch or len(names) not in (2, 3) or any(len(one) != 1 for one in own):
        return None
    return ProductIcon(
        tuple(ProductSide(name, axis, [*axes[name]].index(axis)) for name, (axis,) in zip(names, own, strict=True))
    )


def with_short_names(formula: str, room: int) -> str:
    """Return a formula of no more signs, its longest names cut where it has more; nothing where that does not do, or makes two
    names the same.

    >>> with_short_names("of_the_past + of_the_present", 26), with_short_names("first / second", 5)
    ('of_the_past + of_the_pres…', '')
    """
    names = {*re.findall(r"\b[a-zA-Z_]\w*\b(?!\()", formula)}
    said = {name: name for name in names}

    def shortened() -> str:
        return re.sub(r"\b[a-zA-Z_]\w*\b(?!\()", lambda found: said[found[0]], formula)

    while len(shortened()) > room:
        longest = max(said, key=lambda name: (len(said[name]), name), default="")
        if len(said.get(longest, "")) <= SHORTEST_NAME:
            return ""
        said[longest] = f"{said[longest].removesuffix('…')[: -1 if said[longest].endswith('…') else -2]}…"
    return shortened() if len({*said.values()}) == len(said) else ""


def begun(formula: str, room: int) -> str:
    """Return how a formula begins that is longer than there is room, and a sign that it goes on.

    >>> begun("where(room < 1, 1000 * room, sqrt(room))", 30)
    'where(room < 1, 1000 * room, …'
    """
    return f"{formula[: room - 1].rpartition(' ')[0]} …"


PRINTED = (
    (r"\b(?:float32|float|int)\((\w+(?:\.\w+)*)\)", r"\1"),  # which dtype a number has is no part of the mathematics
    (r"\babs\(([^()]*)\)", r"|\1|"),
    (r"\bsqrt\((\w+)\)", r"√\1"),
    (r"\bsqrt\(", "√("),
    (r"\bsigmoid\(", "σ("),
    (r" ?\*\* ?2\b", "²"),
    (r" ?\*\* ?3\b", "³"),
    (r" ?\*\* ?", "^"),
    (r" \* ", " · "),
    (r" - ", " − "),
    (r"(?<![\w)\]²³ ])-|(?<=[-+*/(,·−] )-|^-", "−"),
    (r"(?<![\w.])(\d+)\.0(?![\d.eE])", r"\1"),
    (r"(?<![\w.])3\.14159(?:2\d*|3)?(?![\w.])", "π"),
    (r"==", "="),
    (r"!=", "≠"),
    (r">=", "≥"),
    (r"<=", "≤"),
)
"""What a paper writes in place of what a recipe does."""


def as_printed(formula: str) -> str:
    """Return a formula as a paper writes it: signs for functions and operators, and of an output of a node its own name, where no
    other value has that.

    >>> as_printed("ssm * halves.gate * sigmoid(halves.gate)"), as_printed("-exp(float32(a)) / sqrt(dim)")
    ('ssm · gate · σ(gate)', '−exp(a) / √dim')
    >>> as_printed("3.14159265 * 2 ** band"), as_printed("3.1416 * x")
    ('π · 2^band', '3.1416 · x')
    """
    for pattern, sign in PRINTED:
        formula = re.sub(pattern, sign, formula)
    values = {*re.findall(r"\b[a-zA-Z_]\w*(?:\.\w+)*", formula)}
    for value in sorted(values, key=len, reverse=True):
        own = value.rpartition(".")[2]
        if own != value and sum(other.rpartition(".")[2] == own for other in values) == 1:
            formula = re.sub(rf"\b{re.escape(value)}\b", own, formula)
    return formula


def _number(number: bool | int | float) -> str:
    """Return a number for a drawing, a whole one with all of its digits."""
    if isinstance(number, bool):
        return str(number).lower()
    return grouped(number) if float(number).is_integer() else f"{number:.6g}"
