"""Names in generated code: no keyword, no builtin, nothing of torch's, none twice."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable, Sequence

from composer.lower.model import Model

RESERVED = frozenset(
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
        "Output",
        "NamedTuple",
        "Tensor",
        "load_carry",
        "store_carry",
    }
)
STREAM = ("x", "y", "z", "u", "w")


def safe(name: str, taken: Iterable[str] = ()) -> str:
    """Return the name, changed as little as needed to be no keyword, no builtin, and none that is taken."""
    given = name
    while given in RESERVED or given in taken:
        given += "_"
    return given


def parameter_names(inputs: Sequence[str]) -> dict[str, str]:
    """Return what the parameters of a class are called that is given these inputs."""
    names: dict[str, str] = {}
    for position, name in enumerate(inputs):
        names[name] = safe(STREAM[0] if position == 0 and name == "input" else name, names.values())
    return names


def attribute(path: str, *, module: bool = True) -> str:
    """Return a module, or what it holds, as Python reads it from the one around it: `self.attn.norm`, `self.layers[3]`. Names
    that torch itself uses are read past them; so are those of what is no `module`, which has no place among modules.
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
"""What a node must not hide: torch's own attributes, and those of a compiled model."""


def camel(name: str) -> str:
    """Return `my_model` as the name of a class: `MyModel`."""
    return "".join(piece[:1].upper() + piece[1:] for piece in re.split(r"[_\W]+", name) if piece) or "Model"


def one_line(text: str) -> str:
    """Return text that stays within one comment."""
    return "".join(character if character.isprintable() else "?" for character in text)
