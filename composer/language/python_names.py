"""Names that mean something else in the Python code of a model."""

from __future__ import annotations

import builtins
import keyword

TAKEN = frozenset(
    {
        *keyword.kwlist,
        *dir(builtins),
        "self",
        "torch",
        "nn",
        "F",
        "Any",
        "Module",
        "Plain",
        "Tied",
        "Output",
        "NamedTuple",
        "Tensor",
        "load_carry",
        "store_carry",
    }
)
"""Keywords, builtins, and what every generated module defines."""
