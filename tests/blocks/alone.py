"""One block as a whole model."""

from __future__ import annotations

import torch

import composer
from composer.lower import Model


def alone(node: str, wires: str = "", **inputs: str) -> Model:
    """Return the model of one block, its parameters drawn anew; `node` and `wires` are what a recipe
    says, `inputs` their types.
    """
    model = recipe(node, wires, **inputs).compile(seed=0).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0.2, 1.0)
    return model


def recipe(node: str, wires: str = "", **inputs: str) -> composer.Recipe:
    """Return the recipe of one block, to see what is wrong with it."""
    declared = "".join(f'  {name}: "{type_}"\n' for name, type_ in inputs.items())
    reads = f", in: {wires}" if wires else ""
    return composer.load(f"recipe: alone\ninputs:\n{declared}graph:\n  block: {{{node}{reads}}}\n")


def refusal(node: str, wires: str = "", **inputs: str) -> str:
    """Return the one error of a recipe, as its place in the node's line and its message: `patch: 9 … `."""
    found = recipe(node, wires, **inputs).check()
    assert [each.severity for each in found] == ["error"], found
    span = found[0].span
    return f"{span.source.lines[span.line - 1][span.column - 1 : span.end_column - 1]}: {found[0].message}"
