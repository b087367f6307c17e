"""Paths of what stands on a page: nodes, `layers.attn.body` in `layers.attn`, outputs of the model, `outputs/logits`, and inputs
of a block that is drawn by itself, `inputs/layers.attn.memory`.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from composer.graph.parameters import holders

INPUTS, OUTPUTS = "inputs/", "outputs/"
"""No name of a recipe has such a sign, so no node is called like an input of a block or an output."""


def above(path: str) -> list[str]:
    """Return a path and all that lead to it, the shortest first."""
    return [*holders(path), path]


def belongs(path: str, holders: Collection[str]) -> bool:
    """Return whether a path is one of some, or lies in one of them."""
    return any(one in holders for one in above(path))


def lies_in(path: str, holder: str) -> bool:
    """Return whether a path is another one, or lies in it."""
    return path == holder or path.startswith(f"{holder}.")


def node_beside(maker: str, path: str) -> str:
    """Return the name of the node beside another one, or beside what that lies in, which is what makes a value or holds it."""
    own = f"{path}.".split(".")
    return next((step for step, other in zip(maker.split("."), own, strict=False) if step != other), maker.rpartition(".")[2])


def last_step(path: str) -> str:
    """Return the last node of a path, a pass of a repeat as a recipe names it.

    >>> last_step("unet.stages.1"), last_step("unet.stem")
    ('stages(1)', 'stem')
    """
    *_, before, last = ["", *path.split(".")]
    return f"{before}({last})" if last.isdigit() else last


def plain(path: str) -> str:
    """Return a path without the passes of repeats: `layers.3.attn` is `layers.attn`."""
    return re.sub(r"\.\d+(?=\.|$)", "", path)


def of_pass(path: str, reader: str) -> str:
    """Return a path with the passes of repeats as a recipe names them, but for those that a reader is in too.

    >>> of_pass("hop.2.embed", "w"), of_pass("hop.0.embed", "hop.0.read")
    ('hop(2).embed', 'hop.embed')
    """
    found: list[str] = []
    pieces = path.split(".")
    for at, piece in enumerate(pieces):
        if not piece.isdigit():
            found.append(piece)
        elif not f"{reader}.".startswith(f"{'.'.join(pieces[:at])}."):
            found[-1] += f"({piece})"
    return ".".join(found)


def of_all_passes(named: str) -> str:
    """Return a path without the passes that it names: `hop(2).embed` is `hop.embed`."""
    return re.sub(r"\(\d+\)", "", named)


def is_pass(path: str) -> bool:
    """Return whether a path is that of one pass of a repeat."""
    return path.rpartition(".")[2].isdigit()


def input_path(block: str, port: str) -> str:
    """Return the path of an input of a block that is drawn by itself: around the block, not in it."""
    return f"{INPUTS}{block}.{port}"


def output_path(name: str) -> str:
    """Return the path of an output of the model."""
    return OUTPUTS + name


def is_output(path: str) -> bool:
    """Return whether a path is that of an output of the model."""
    return path.startswith(OUTPUTS)


def title_of(path: str) -> str:
    """Return what an input or an output of the model is called where it stands on the page by its name alone."""
    return path.removeprefix(OUTPUTS)
