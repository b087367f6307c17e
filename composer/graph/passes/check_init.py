"""Formulas of initial values that have no value for a parameter."""

from __future__ import annotations

from itertools import product
from math import isfinite

from blocks.along_axes.axis_formulas import evaluated, names_in, parsed
from blocks.core import Init
from composer.diagnostics import Diagnostic, Span
from composer.graph.initial_values import DRAWN, LAYER, PLACES, layer_of, rule_of
from composer.graph.parameters import NamedParameter, parameters
from composer.graph.passes.compilation import Compilation

WORDS = ("no axis", "one axis", "two axes", "three axes")


def check_init(state: Compilation) -> Compilation:
    """Refuse formulas of initial values that read an axis or a pass that a parameter lacks, or that have no value at its ends.

    Before:
        graph:
          up: {type: linear, out: 16, bias: false}
        init:
          up.weight: {formula: log(i)}
    After:
        error[init-formula]: the formula has no value for up.weight at i = 0
    """
    assert state.typed is not None
    program = state.typed.untyped
    if not any(rule.init.formula for rule in program.init):
        return state
    found: dict[Span, Diagnostic] = {}
    tried: set[tuple[Init, tuple[int, ...], int | None]] = set()
    for entry in parameters(state.typed):
        rule = None if entry.tied_to else rule_of(program, entry)
        if rule is None or not rule.init.formula or rule.span in found:
            continue
        key = rule.init, entry.parameter.shape, layer_of(entry.name)
        if key not in tried:
            tried.add(key)
            mistake = _mistake(rule.init, entry, rule.span)
            if mistake is not None:
                found[rule.span] = mistake
    return state.stop(list(found.values())) if found else state


def _mistake(init: Init, entry: NamedParameter, span: Span) -> Diagnostic | None:
    """Return what keeps a formula from a parameter: what it reads, or one of its ends at which it has no value."""
    tree, shape, layer = parsed(init.formula), entry.parameter.shape, layer_of(entry.name)
    read = names_in(tree)
    if missing := sorted(read & {*PLACES[len(shape) :]}):
        message = f"`{missing[0]}` is no place in {entry.name}, which has {WORDS[len(shape)]}"
        return Diagnostic("init-formula", message, span, hint=f"it has {', '.join(PLACES[: len(shape)])}" if shape else "")
    if LAYER in read and layer is None:
        return Diagnostic("init-formula", f"{entry.name} is in no pass of a repeat, so it has no `{LAYER}`", span)
    ends = [sorted({0, size - 1}) for size in shape]
    for *at, drawn in product(*ends, _drawn(init)):
        names = {**dict(zip(PLACES, at, strict=False)), DRAWN: drawn, LAYER: layer}
        try:
            sound = isfinite(evaluated(tree, names))
        except (ArithmeticError, ValueError, TypeError):  # TypeError: a power that is complex
            sound = False
        if not sound:
            said = ", ".join(f"{name} = {names[name]}" for name in (*PLACES[: len(at)], DRAWN, LAYER) if name in read)
            where = f" at {said}" if said else ""
            return Diagnostic("init-formula", f"the formula has no value for {entry.name}{where}", span)
    return None


def _drawn(init: Init) -> tuple[float, ...]:
    """Return numbers that may be drawn: the ends of a range, or one standard deviation."""
    value = float(init.value)
    return (-value if init.low is None else init.low, value) if init.is_drawn else (0.0,)
