"""Patterns over names: one meaning, wherever a recipe's patterns are asked."""

from __future__ import annotations

import random
import re

import pytest

import composer
from composer.language.patterns import Unbalanced, below, matches

RECIPE = """recipe: r
inputs: {x: "float[batch, 4]"}
graph:
  down: {type: linear, out: 4}
  b: {type: linear, out: 4}
  up: {type: linear, out: 4}
init:
  "PATTERN": {constant: 3}
"""
NAMES = ("down.weight", "down.bias", "b.weight", "b.bias", "up.weight", "up.bias")


@pytest.mark.parametrize(
    ("pattern", "named"),
    [
        ("*", NAMES),
        ("**.bias", ("down.bias", "b.bias", "up.bias")),
        ("(up|down).weight", ("down.weight", "up.weight")),
        ("(d*|b).weight", ("down.weight", "b.weight")),
        ("(*n|?).(weight|b*)", ("down.weight", "down.bias", "b.weight", "b.bias")),
        ("u?.*", ("up.weight", "up.bias")),
        ("?.bias", ("b.bias",)),
        ("*wn.bias|up.weight", ("down.bias", "up.weight")),
        ("(|b|up).weight", ("b.weight", "up.weight")),
        ("*.b.*", ()),
        ("d(|own).*(|s)", ("down.weight", "down.bias")),
        ("up.weight.", ()),
        ("up.w[e]ight", ()),
        ("up.weigh.", ()),
        ("*a*a*a*a*a*a*a*a*a*a*a*a*b", ()),
    ],
)
def test_check_picture_diff_and_weights_agree_on_what_a_pattern_names(pattern: str, named: tuple[str, ...]) -> None:
    """The warning where it names nothing, the words of the picture, the words of the diff, and the numbers that are built."""
    recipe, plain = (composer.load(RECIPE.replace("PATTERN", text)) for text in (pattern, "nothing"))
    assert {name for name, tensor in recipe.compile().named_parameters() if bool((tensor == 3).all())} == set(named)
    assert ("unused-init" in {each.code for each in recipe.check()}) == (not named)
    for node in ("down", "b", "up"):
        told = next(box.about.description for box in recipe.draw().scene.boxes if box.about.path == node)
        there = {f"{node}.{word}" for word in ("weight", "bias") if re.search(rf"\b{word}\b.*from constant 3", told)}
        assert there == {name for name in named if name.startswith(f"{node}.")}
    assert recipe.diff(plain).equal == (not named)


def translated(pattern: str) -> re.Pattern[str]:
    """Return the pattern as a regular expression, which says the meaning in four replacements and may take forever."""
    special = {"*": ".*", "?": ".", "(": "(?:", ")": ")", "|": "|"}
    return re.compile("".join(special.get(character, re.escape(character)) for character in pattern))


def test_any_pattern_means_what_its_regular_expression_means() -> None:
    """Drawn from few letters, so that many match."""
    draw, matched = random.Random(0), 0
    for _ in range(4_000):
        pattern = "".join(
            draw.choice(["a", "b", ".", "*", "?", "|", "(a|*b)", "(|b?)", "()"]) for _ in range(draw.randrange(1, 7))
        )
        name = "".join(draw.choices("ab.", k=draw.randrange(7)))
        assert matches(pattern, name) == bool(translated(pattern).fullmatch(name)), (pattern, name)
        assert matches(below("x.", pattern), f"x.{name}") == matches(pattern, name)
        assert not matches(below("x.", pattern), f"y{name}")
        matched += matches(pattern, name)
    assert matched > 500


@pytest.mark.parametrize("pattern", ["(a", "a)", "((a))", ")(", "(a|(b))"])
def test_brackets_come_in_pairs(pattern: str) -> None:
    """And not one inside another."""
    with pytest.raises(Unbalanced):
        matches(pattern, "a")


def test_no_pattern_takes_long() -> None:
    """Two hundred stars, and choices that overlap, against a name that fails at its end: backtracking would not end."""
    assert not matches("*a" * 200 + "*b", "a" * 400)
    assert not matches("(a|aa|*)" * 200 + "b", "a" * 400)
