"""The lengths of axes at which a model is measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from composer.diagnostics import Diagnostic, Source, Span
from composer.graph.dims import names
from composer.graph.typed import TypedProgram
from composer.language.unknown_names import unknown

DEFAULT_LENGTH = 1024
"""Length of an axis if the recipe has no param `context`."""

USUAL_LENGTHS = {"batch": 1, "height": 224, "width": 224}
"""Lengths of axes that have the same name in every recipe: a batch, and the sides of an image in pixels."""


def axes(typed: TypedProgram) -> tuple[str, ...]:
    """Return the axes of the inputs whose lengths are known only at run time, in order."""
    found = (name for type_ in typed.inputs.values() for size in type_.sizes for name in sorted(names(size)))
    return tuple(dict.fromkeys(found))


def unknown_axis(name: str, known: Sequence[str]) -> Diagnostic:
    """Diagnose a length that is given for an axis that the model does not have."""
    wrong = unknown("unknown-axis", Span(Source(name, ""), 1, 1, 1, 1), "axis", name, known)
    return wrong if known else replace(wrong, hint="every axis of this model has a fixed length")


def assumed(typed: TypedProgram, given: Mapping[str, int]) -> tuple[str, ...]:
    """Return the axes whose length is `DEFAULT_LENGTH`, for want of any other."""
    context = isinstance(typed.untyped.params.get("context"), int)
    return () if context else tuple(name for name in axes(typed) if name not in given and name not in USUAL_LENGTHS)


def lengths_of(typed: TypedProgram, given: Mapping[str, int]) -> dict[str, int]:
    """Return a length for every axis: the given one, that of `USUAL_LENGTHS`, the param `context`, else `DEFAULT_LENGTH`."""
    context = typed.untyped.params.get("context")
    usual = context if isinstance(context, int) and not isinstance(context, bool) else DEFAULT_LENGTH
    return {name: given.get(name, USUAL_LENGTHS.get(name, usual)) for name in axes(typed)}
