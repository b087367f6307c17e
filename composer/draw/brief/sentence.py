"""What a closed box says beside the sentence of its author about what it is for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from composer.draw.brief.block import LETTERS, NUMBERS, brief_of, is_parameter, named_numbers
from composer.draw.brief.words import MORE, TIMES
from composer.draw.diagram import Flow, Leaf


def beside_sentence(flows: Sequence[Flow], told: Sequence[str]) -> tuple[str, ...] | None:
    """Return which of the blocks that a box tells of flows it has beside a sentence about what for: one that learns at most,
    parameters that are read as they are, and the numbers that formulas name. None where others are not several operations and
    formulas, which tell how; beside one that learns, several formulas.
    """
    leaves = [item for flow in flows for item in flow.leaves() if isinstance(item, Leaf)]
    tables = {form for item in leaves if is_parameter(item) for form in brief_of(item, reads=False).forms}
    learn = _forms(item for item in leaves if item.about.parameters and not is_parameter(item))
    free = [item for item in leaves if not item.about.parameters]
    formulas = _forms(item for item in free if item.look.formula or item.closed)
    steps = formulas | _forms(item for item in free if item.look.operation)
    numbers = {number for item in free if item.look.formula for number in named_numbers(item.look)}
    named = {said for said in told if {*said.split(NUMBERS)} <= numbers}  # in place of formulas
    own = [said for said in told if said != MORE and said not in (*tables, *named, *LETTERS.values())]
    forms = [TIMES.sub("", said) for said in own]
    maps = [said for said, form in zip(own, forms, strict=True) if form in learn]
    several = len(named) + sum(form in (formulas if maps else steps) for form in forms)
    few = len(maps) <= 1 < several and not any(map(TIMES.match, maps))
    return tuple(said for said in told if said in (*tables, *named, *maps)) if few and learn | _forms(free) >= {*forms} else None


def _forms(leaves: Iterable[Leaf]) -> set[str]:
    """Return what is told of blocks, in each form."""
    return {form for item in leaves for form in brief_of(item, reads=True).forms}
