"""Long formulas in two lines or three, so that their boxes are as wide as others."""

from __future__ import annotations

import re
from dataclasses import replace

from composer.draw.diagram import Flow, Leaf

ONE_LINE = 46
"""Signs of what a box of the usual width has below its title."""
LONG = 66
"""Signs of half of a formula that is still one line."""
CONSTANT = "Constant"
"""The title of values that a formula gives at each place of some axes, which stand below it in a line of their own."""
OPERATOR = re.compile(r"(?<= [+−·⊗/]) ")
"""Behind which sign a formula may go on in another line: a line that began with a `·` would seem to be another fact."""


def with_formula_lines(flow: Flow) -> Flow:
    """Return a diagram whose long formulas are in two lines each, below the names of their nodes."""

    def of_leaf(item: Leaf) -> Leaf:
        if item.rows or item.closed or not (item.look.hue == "merge" or is_constant(item)) or len(item.look.detail) <= ONE_LINE:
            return item
        formula, *others = item.look.facts
        whole = is_constant(item) and bool(others) and len(formula) <= ONE_LINE
        lines = (formula,) if whole else in_lines(formula)
        if len(lines) < 2 and not whole:
            return item
        title = item.name or item.look.title
        return replace(item, lines=(("title", title), *(("detail", line) for line in (*lines, *others))))

    return flow.map_leaves(of_leaf)


def is_constant(item: Leaf) -> bool:
    """Return whether a block is values that a formula gives at each place of some axes, called so or by its name."""
    return item.look.title == CONSTANT or (item.array and not item.about.parameters)


def in_lines(formula: str) -> tuple[str, ...]:
    """Return a formula in two lines, each of which is in two again where it is too long for a box."""
    first, *others = in_two_lines(formula)
    return tuple(line for half in (first, *others) for line in (in_two_lines(half) if others and len(half) > LONG else (half,)))


def in_two_lines(formula: str) -> tuple[str, ...]:
    """Return a formula in two lines, about equally long, at an operator in as few brackets as can be, rather at
    a sum than at a product; in one line where there is none.

    >>> in_two_lines("tanh(left + right) · σ(gate)")
    ('tanh(left + right) ·', 'σ(gate)')
    """
    ends = [found.start() for found in OPERATOR.finditer(formula)]
    if not ends:
        return (formula,)

    def cost(end: int) -> tuple[int, bool, int]:
        depth = formula[:end].count("(") - formula[:end].count(")")
        return depth, formula[end - 1] not in "+−", abs(2 * end - len(formula))

    fair = [end for end in ends if 0.2 <= end / len(formula) <= 0.85] or ends
    end = min(fair, key=cost)
    return formula[:end], formula[end + 1 :]
