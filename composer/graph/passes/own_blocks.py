"""Exceptions that the methods of the user's own blocks raise."""

from __future__ import annotations

from blocks.core import Library, Part
from composer.diagnostics import Diagnostic, Label, Span
from composer.diagnostics.python_source import class_span, raising_span
from composer.language.recipe.defined_block import is_defined

LIBRARY = "blocks."
"""How the names of modules begin that blocks of the library are in."""


def is_own(part: type[Part]) -> bool:
    """Return whether a block is a Python class of the user."""
    return not part.__module__.startswith(LIBRARY) and not is_defined(part)


def raised(part: type[Part], error: Exception, library: Library, used: Span) -> Diagnostic | None:
    """Return the diagnostic of an exception that came up at a use of a block: at the line of the user's block that raised it, or
    else at the class; None where no block of the user is involved.
    """
    own = [each for each in dict.fromkeys([part, *map(library.__getitem__, library)]) if is_own(each)]
    places = ((each, span) for each in own if (span := raising_span(each, error)) is not None)
    found = next(places, (part, class_span(part)) if is_own(part) else None)
    if found is None:
        return None
    culprit, place = found
    message = f"{culprit.kind}: raises {type(error).__name__}: {' '.join(str(error).split())[:300]}"
    return Diagnostic("block-file", message, place, labels=(Label(used, "used here"),))
