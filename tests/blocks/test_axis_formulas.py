"""Formulas over axes, against Python's own arithmetic: for numbers, for tensors, and with the numbers in scope computed."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import pytest
import torch

import composer
from blocks.along_axes.axis_formulas import evaluated, parsed
from composer.decode.session import session

ARITHMETIC = ("+", "-", "*", "//", "%", "/")
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
SIZES = {"i": 4, "j": 3}
SCOPE = {"n": 3, "m": -2}


def drawn(random: Random, depth: int) -> str:
    """Return a formula over the axes `i` and `j` and the numbers `n` and `m`; what it divides by is never 0."""
    if depth == 0:
        return random.choice(["i", "j", "i", "j", "n", "m", "2", "0.5"])
    a, b = drawn(random, depth - 1), drawn(random, depth - 1)
    operator = random.choice(ARITHMETIC)
    return random.choice([
        f"({a}) {operator} ({b})" if operator in "+-*" else f"({a}) {operator} (abs({b}) + 1)",
        f"{a} + {b}", f"{a} - ({b})", f"-({a}) * {b}" if "=" not in a + b and "<" not in a + b else f"abs({a})",
        f"(({a}) {random.choice(COMPARISONS)} ({b}))", f"(({a}) > 1 and ({b}) < 2)", f"(not ({a}) > ({b}))",
        f"min({a}, {b})", f"max({a}, {b})", f"floor(({a}) / 2)", f"exp(-abs({a}))", f"({a}) ** 2",
    ])  # fmt: skip


PYTHON: dict[str, Any] = {"floor": math.floor, "exp": math.exp, "min": min, "max": max, "abs": abs, "__builtins__": {}}


@pytest.mark.parametrize("seed", range(40))
def test_a_constant_has_the_values_of_its_formula(seed: int) -> None:
    """At each place; ints where Python's are, and then exactly."""
    random = Random(f"formula {seed}")
    formula = drawn(random, random.choice((1, 2, 3)))
    text = "recipe: c\nparams: {n: 3, m: -2}\ninputs: {x: 'float[batch, wide]'}\ngraph:\n"
    text += f"  at: {{type: constant, over: {{i: 4, j: n}}, value: '{formula} + 0 * (n + m)'}}\n"
    text += f"  run: {{type: constant, over: {{i: 4, j: wide}}, value: '{formula}', in: {{like: x}}}}\n"
    recipe = composer.load(text + "outputs: {at: at, run: run}\n")
    assert not [found for found in recipe.check() if found.severity == "error"], formula
    model = recipe.compile(seed=0).double()
    outputs = model(torch.zeros(1, 3, dtype=torch.float64))
    values = [[eval(formula, PYTHON, {"i": i, "j": j, **SCOPE}) for j in range(3)] for i in range(4)]
    wanted = torch.tensor([[float(value) for value in row] for row in values], dtype=torch.float64)
    for found in (outputs.at, outputs.run):
        whole = found.dtype == torch.int64
        assert whole or found.dtype == torch.float64
        assert not whole or all(isinstance(value, int) for row in values for value in row)
        assert whole or any(sign in formula for sign in ("/", "0.5", "exp"))
        torch.testing.assert_close(found.double(), wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2 ** 3 ** 2", 512),
        ("-2 ** 2", -4),
        ("7 // -2", -4),
        ("-7 % 3", 2),
        ("1 < 2 and 2 < 3", 1),
        ("not 1 > 2", 1),
        ("round(2.5)", 2),
    ],
)
def test_a_tree_has_the_precedence_of_the_language(text: str, value: int) -> None:
    """Which is Python's."""
    assert evaluated(parsed(text), {}) == value


@pytest.mark.parametrize(
    ("formula", "says"),
    [
        ("k * 2 ** 62", "too large a number at k = 2: ints reach to 2 ** 63 - 1"),
        ("k * 2 ** 62 - k * 2 ** 62", "too large a number at k = 2"),
        ("k * 2 ** 61", ""),
        ("k ** 100000000000", "too large a number at k = 2"),
        ("10 ** (k * 60)", "too large a number at k = 1: floats reach to 3.4e38"),
        ("10.5 ** (k * 60)", "too large a number at k = 1: floats reach to 3.4e38"),
        ("exp(k * 1000)", "too large a number at k = 1"),
        ("2 ** (k * 1000000000)", "too large a number at k = 1"),
        ("floor(k / 10.0 ** 30)", ""),
        ("10 ** (-k * 60)", ""),
        ("1 / (k - 3)", "division by zero"),
        ("(k - 3) ** 0.5", "-3 ** 0.5 is no real number"),
    ],
)
def test_numbers_that_no_dtype_holds_are_refused(formula: str, says: str) -> None:
    """At the first place that has one, also inside the formula; whatever is accepted has Python's values."""
    text = f"recipe: c\ninputs: {{x: 'float[batch, wide]'}}\ngraph:\n  c: {{type: constant, over: {{k: 4}}, value: {formula}}}\n"
    found = [each.message for each in composer.load(text).check() if each.severity == "error"]
    assert len(found) == bool(says) and all(says in each for each in found)
    if not found:
        (values, _) = composer.load(text).compile(seed=0).double()(torch.zeros(1, 2, dtype=torch.float64))
        assert values.tolist() == pytest.approx([eval(formula, PYTHON, {"k": k}) for k in range(4)], rel=1e-15)


def test_numbers_in_a_formula_are_checked_where_lengths_are_unknown() -> None:
    """What they come to by themselves."""
    text = "recipe: c\ninputs: {x: 'float[batch, wide]'}\ngraph:\n"
    text += "  c: {type: constant, over: {k: wide}, value: k * 2 ** 63, in: {like: x}}\n"
    (found,) = composer.load(text).check()
    assert (found.code, found.message) == ("rejected", "the formula has too large a number: ints reach to 2 ** 63 - 1")
    assert composer.load(text.replace("63", "62")).check() == []


def test_values_follow_the_model() -> None:
    """Floats have its dtype, ints stay what they are; one number is saved for each; a session computes them once."""
    text = "recipe: c\ntask: causal_lm\ninputs: {tokens: 'int[batch, time]'}\ngraph:\n"
    text += "  wave: {type: constant, over: {d: 8}, value: sin(d)}\n  order: {type: constant, over: {d: 8}, value: 7 - d}\n"
    text += "  embed: {type: embedding, vocab: 11, dim: 8, in: tokens}\n"
    text += "  turned: {type: gather, axis: last, in: {x: embed, index: order}}\n"
    text += "  scaled: {type: einsum, pattern: 'b t d, d -> b t d', in: [turned, wave]}\n  head: {type: linear, out: 11}\n"
    text += "outputs: {logits: head, wave: wave, order: order}\n"
    model = composer.load(text).compile(seed=0).eval()
    assert sorted(model.state_dict()) == ["embed.weight", "head.bias", "head.weight", "order.one", "wave.one"]
    tokens = torch.arange(6)[None]
    with torch.no_grad():
        half = model.bfloat16()(tokens)
        assert half.wave.dtype == torch.bfloat16 and half.order.dtype == torch.int64
        double = model.double()
        whole = double(tokens)
        assert whole.wave.dtype == torch.float64
        assert torch.equal(whole.wave, torch.arange(8).double().sin())
        with session(double):
            pieces = [double(piece).logits for piece in tokens.split(2, dim=1)]
        torch.testing.assert_close(torch.cat(pieces, 1), whole.logits)


def test_a_mapping_is_changed_key_by_key(tmp_path: Any) -> None:
    """By an override, and in a recipe that extends another."""
    base = "recipe: base\ninputs: {x: 'float[batch, high, wide, 8]'}\ngraph: {y: {type: roll, by: {high: 1, wide: 2}}}\n"
    (tmp_path / "base.yaml").write_text(base)
    (tmp_path / "next.yaml").write_text("recipe: next\nextends: base.yaml\ngraph: {y: {by: {wide: 5}}}\n")
    set_here = composer.load(tmp_path / "base.yaml", overrides={"graph.y.by.high": 3})
    assert set_here.program.root["y"].part.by == {"high": 3, "wide": 2}  # type: ignore[union-attr]  # a roll
    extended = composer.load(tmp_path / "next.yaml")
    assert extended.program.root["y"].part.by == {"high": 1, "wide": 5}  # type: ignore[union-attr]  # a roll
    assert composer.load(extended.expand()).program.root["y"].part.by == {"high": 1, "wide": 5}  # type: ignore[union-attr]  # a roll
