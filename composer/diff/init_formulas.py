"""Formulas of initial values in a form that does not depend on how they are written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from blocks.along_axes.axis_formulas import FUNCTIONS, evaluated, names_in, parsed
from blocks.core import Init, number
from composer.graph.initial_values import LAYER

SIGNS = {"negative": "-", "not": "not "}


def with_layer(init: Init, layer: int | None) -> Init:
    """Return an initializer whose formula reads no layer and computes with numbers no further than it must.

    Examples:
        >>> from blocks.core import Init
        >>> with_layer(Init("constant", 0.0, formula="i * (2 + layer / 4)"), 2).formula
        'i * 2.5'
    """
    if not init.formula:
        return init
    tree = _folded(parsed(init.formula), layer)
    if not isinstance(tree, tuple | str):
        return Init("constant", float(tree))
    return replace(init, formula=_text(tree))


def _folded(tree: Any, layer: int | None) -> Any:
    """Return a formula with every part that reads no place, and nothing that is drawn, as a number."""
    if tree == LAYER:
        return tree if layer is None else layer
    if not isinstance(tree, tuple):
        return tree
    folded = (tree[0], *(_folded(operand, layer) for operand in tree[1:]))
    return folded if names_in(folded) else evaluated(folded, {})


def _text(tree: Any) -> str:
    if not isinstance(tree, tuple):
        return tree if isinstance(tree, str) else number(float(tree))
    name, *operands = tree
    if name in FUNCTIONS:
        return f"{name}({', '.join(map(_text, operands))})"
    parts = [f"({_text(each)})" if isinstance(each, tuple) and each[0] not in FUNCTIONS else _text(each) for each in operands]
    return f" {name} ".join(parts) if len(parts) == 2 else f"{SIGNS[name]}{parts[0]}"
