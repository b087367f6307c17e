"""Formulas that are drawn as the operations that they consist of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import composer
from blocks.core import BlockView, Piece
from blocks.primitives.compute import Compute
from composer.draw.build.levels import Level
from composer.graph.typed import TypedBlock
from tests.draw.cases import PAPERS
from tests.draw.checks import borders, ends, overlaps, starts
from tests.draw.test_drawings import assert_every_edge

GATED = """recipe: gated
inputs: {x: "float[batch, time, 8]", y: "float[batch, time, 8]", z: "float[batch, time, 8]"}
graph:
  a: {type: linear, out: 8, in: x}
  b: {type: linear, out: 8, in: y}
  c: {type: linear, out: 8, in: z}
  gated: {compute: FORMULA}
  out: {type: linear, out: 8}
outputs: {y: out}
"""
CURVES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "σ": torch.sigmoid,
    "tanh": torch.tanh,
    "softplus": torch.nn.functional.softplus,
    "ReLU": torch.relu,
    "exp": torch.exp,
    "1 − x": lambda x: 1 - x,
}
WAVENET = next(path for path in PAPERS if path.stem == "wavenet")


def recipe_of(formula: str) -> composer.Recipe:
    """Return a recipe with a formula of three values."""
    return composer.load(GATED.replace("FORMULA", f'"{formula}"'))


def pieces_of(formula: str) -> list[Piece]:
    """Return the operations of a formula."""
    node = recipe_of(formula).program.root["gated"]
    assert isinstance(node, TypedBlock) and isinstance(node.part, Compute)
    return [*node.part.inside(BlockView("gated"))]


def computed(pieces: list[Piece], given: dict[str, torch.Tensor]) -> torch.Tensor:
    """Return what the last of some pieces gives, from what each is said to read and to be."""
    found = dict(given)
    for piece in pieces:
        read = [found[name] for name, _ in piece.reads]
        if piece.look.sign:
            found[piece.name] = sum(read[1:], read[0]) if piece.look.sign == "+" else torch.stack(read).prod(0)
        else:
            (one,) = read
            found[piece.name] = CURVES[piece.look.title](one)
    assert pieces[-1].gives == ("y",)
    return found[pieces[-1].name]


@pytest.mark.parametrize(
    ("formula", "count"),
    [
        ("tanh(a + b) * sigmoid(c)", 4),
        ("a + b * c", 2),
        ("(a + b) * c", 2),
        ("a * (1 - sigmoid(b)) + exp(c)", 5),
        ("max(a, 0) * softplus(float32(b)) + c", 4),
        ("tanh(tanh(a) + tanh(b)) * c", 5),
    ],
)
def test_pieces_compute_what_the_formula_does(formula: str, count: int) -> None:
    """Each as it is wired and named; a cast changes nothing that a drawing tells."""
    pieces = pieces_of(formula)
    given = {name: torch.randn(5) for name in "abc"}
    scope: dict[str, Any] = {name: getattr(torch, name) for name in ("tanh", "sigmoid", "exp")}
    scope |= {**given, "softplus": CURVES["softplus"], "max": lambda x, y: torch.relu(x), "float32": torch.Tensor.float}
    wanted = eval(formula, scope)
    torch.testing.assert_close(computed(pieces, {f"${name}": one for name, one in given.items()}), wanted)
    assert len(pieces) == count == len({piece.name for piece in pieces})


@pytest.mark.parametrize(
    "formula",
    [
        "a + b + c",  # one circle
        "sigmoid(a) * b + a * c",  # a value twice
        "(a - b) * c",
        "2 * a + b * c",
        "where(a > 0, b, c)",
        "tanh(tanh(tanh(tanh(a) + tanh(b)))) * tanh(tanh(c))",  # long
    ],
)
def test_other_formulas_stay_as_they_are_written(formula: str) -> None:
    """Of one operation, with a value twice, with others or many operations."""
    assert pieces_of(formula) == []


def test_formula_is_drawn_as_circles_unless_it_is_named() -> None:
    """At `block` and `full`; the overview, and what an option calls by the path of the node, have the formula."""
    recipe = recipe_of("a + b * tanh(c)")
    opened: tuple[Level, ...] = ("block", "full")
    for level in opened:
        scene = recipe.draw(level).scene
        assert [merge.about.path for merge in scene.merges] == ["gated.product", "gated.sum"]
        assert_every_edge("gated", recipe.program, scene)
    for figure in (recipe.draw("overview"), recipe.draw(labels={"gated": "Gate"})):
        assert not figure.scene.merges
        assert "gated" in {box.about.path for box in figure.scene.boxes}


def test_gates_of_two_streams_stand_side_by_side() -> None:
    """Each branch reads the same value of another column, below all."""
    recipe = composer.load(WAVENET)
    scene = recipe.draw().scene
    boxes = {box.about.path: box for box in scene.boxes}
    assert boxes["layers.gated.tanh"].y == boxes["layers.gated.sigmoid"].y
    row = ["voice_filter", "filter", "voice_gate", "gate"]
    assert sorted(row, key=lambda name: boxes[f"layers.{name}"].x) == row
    assert [fault for check in (overlaps, borders, ends, starts) for fault in check(scene)] == []
    assert_every_edge("wavenet", recipe.program, scene)
