"""Results that belong to a class, kept in it: with the last use of a block that a recipe defines, they are gone as well."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

C = TypeVar("C", bound=type)
R = TypeVar("R")


def per_class(function: Callable[[C], R]) -> Callable[[C], R]:
    """Return a function of a class that computes its result once for each class, and keeps it in the class.

    A table beside the classes would keep every class that it was ever asked about.

    Args:
        function: A function whose result depends on nothing but the class.

    Examples:
        >>> from blocks.core.per_class import per_class
        >>> asked = []
        >>> name = per_class(lambda part: asked.append(part) or part.__name__)
        >>> class Own: pass
        >>> name(Own), name(Own), len(asked)
        ('Own', 'Own', 1)
    """
    attribute = f"__{function.__module__.replace('.', '_')}_{function.__qualname__}__"

    @wraps(function)
    def kept(part: C) -> R:
        if attribute not in part.__dict__:  # and not in that of a class below
            type.__setattr__(part, attribute, function(part))
        result: R = part.__dict__[attribute]
        return result

    return kept
