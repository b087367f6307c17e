"""The exported file: the generated source, with what it is and where it is from at its head."""

from __future__ import annotations

import hashlib

from composer.lower.model import Module
from composer.version import __version__

EXPORT_FORMAT = 1
"""The number of the format of exported files: what a program may rely on in one.

The module defines a class for the model, named like the recipe, that takes no arguments and imports only torch. Its `state_dict`
has the names of the recipe, each tied parameter once.
"""


def exported(module: Module, recipe: str) -> str:
    """Return the source as a file of its own.

    Args:
        module: The generated source.
        recipe: The text of the recipe, with overrides and all that it extends and uses.
    """
    title, end, rest = module.text.partition("\n")
    digest = hashlib.sha256(recipe.encode()).hexdigest()
    about = (f"format: {EXPORT_FORMAT}", f"written by: arco-composer {__version__}", f"recipe: sha256 {digest}")
    return title + end + "\n" + "".join(f"# {line}\n" for line in about) + rest
