"""Names in generated code, which shadow no keyword, no builtin and nothing of torch's."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Sequence

from composer.language.python_names import TAKEN
from composer.lower.model import Model
from composer.printable import printable

STREAM = ("x", "y", "z", "u", "w")
"""The variables of values from node to node, the first one that is free."""


def safe(name: str, taken: Iterable[str] = ()) -> str:
    """Return the name, changed as little as needed to be no keyword, no builtin, and none that is taken."""
    given = name
    while given in TAKEN or given in taken:
        given += "_"
    return given


def parameter_names(inputs: Sequence[str]) -> dict[str, str]:
    """Return the names of the parameters of a forward with these inputs; what is taken out of a graph inside has a path for a
    name.
    """
    names: dict[str, str] = {}
    for position, name in enumerate(inputs):
        wanted = STREAM[0] if position == 0 and name == "input" else name.replace(".", "_")
        names[name] = safe(wanted, [*names.values(), *(inputs if wanted != name and "." in name else ())])
    return names


def attribute(path: str, *, module: bool = True) -> str:
    """Return the expression of an attribute, such as `self.attn.norm` or `self.layers[3]`. Where torch itself uses the name, the
    attribute is looked up among the modules, or has a prefix if it is no `module`.
    """
    text = "self"
    *above, last = path.split(".")
    for name in above:
        text += f"[{name}]" if name.isdigit() else f"._modules[{name!r}]" if _is_hidden(name) else f".{name}"
    if last.isdigit():
        return f"{text}[{last}]"
    if not _is_hidden(last):
        return f"{text}.{last}"
    return f"{text}._modules[{last!r}]" if module else f"{text}._node_{last}"


def _is_hidden(name: str) -> bool:
    return keyword.iskeyword(name) or name in _MODULE_NAMES


_MODULE_NAMES = frozenset({*dir(Model), "training", "cache", *Model.__annotations__})
"""Attributes of every module or of a compiled model, which a node of this name must not hide."""


def camel(name: str) -> str:
    """Return `my_model` as the name of a class: `MyModel`."""
    return "".join(piece[:1].upper() + piece[1:] for piece in re.split(r"[_\W]+", name) if piece) or "Model"


def one_line(text: str) -> str:
    """Return text that stays within one comment."""
    return printable(text)
