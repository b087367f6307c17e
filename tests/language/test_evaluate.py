"""Expressions come to what exact arithmetic says, and to nothing where they have no value."""

import math
import random
from fractions import Fraction
from typing import Any

import pytest

import composer
from composer.diagnostics import Source, Span
from composer.language.expressions.ast import Expression
from composer.language.expressions.evaluator import as_bool, as_float, as_int, evaluate, evaluate_word
from composer.language.expressions.parser import ExpressionError, parse_expression
from composer.language.yaml.nodes import YamlScalar

MIXER: Any = object()  # stands for a block that was passed
SCOPE = {"d_model": 768, "n_heads": 12, "deep": True, "kind": "attention", "rate": 0.5, "third": Fraction(1, 3), "mixer": MIXER}


def parsed(text: str) -> Expression:
    return parse_expression(YamlScalar(text, Span(Source("r.yaml", text), 1, 1, 1, 1 + len(text))))


def value(text: str) -> object:
    return evaluate(parsed(text), SCOPE)


def refusal(text: str) -> tuple[str, str]:
    """Return the code, and the characters under the caret."""
    with pytest.raises(ExpressionError) as refused:
        value(text)
    diagnostic = refused.value.diagnostic
    return diagnostic.code, text[diagnostic.span.column - 1 : diagnostic.span.end_column - 1]


@pytest.mark.parametrize(
    ("text", "layers"),
    [
        ("layer in places", {1, 4}),
        ("layer not in places", {0, 2, 3}),
        ("not layer in places", {0, 2, 3}),
        ("layer + 1 in places and deep", {0, 3}),
        ("layer in places or layer == 0", {0, 1, 4}),
        ("layer in none_of_them", set()),
        ("kinds(layer) in kinds", {0, 1, 2, 3, 4}),
        ("far in kinds", {0, 1, 2, 3, 4}),
        ("huge not in kinds", {0, 1, 2, 3, 4}),
    ],
)
def test_a_list_has_an_item_where_python_finds_it(text: str, layers: set[int]) -> None:
    """In conditions, which bind as in Python; a bare word is one beside words."""
    scope = {"places": (1, Fraction(4)), "none_of_them": (), "deep": True, "kinds": ("near", "far", "far", "near", "far")}
    assert {layer for layer in range(5) if evaluate(parsed(text), {**scope, "layer": layer})} == layers


def test_layers_of_a_list_are_others() -> None:
    """The condition of a node, and a param that asks a list."""
    recipe = composer.load("""recipe: some
params:
  places: [1, 3]
  kinds: {type: [choice], of: [near, far], default: [near, far, near, near]}
  any_far: far in kinds
inputs: {x: "float[batch, time, 16]"}
graph:
  layers:
    repeat: 4
    graph:
      ffn: {type: ffn, hidden: 48 if layer in places else 32}
      norm: {type: rmsnorm, when: layer not in places and any_far}
""")
    assert recipe.check() == []
    names = [name for name, _ in recipe.compile(seed=0, device="meta").named_parameters()]
    assert [index for index in range(4) if f"layers.{index}.norm.weight" in names] == [0, 2]
    assert recipe.summary().costs.parameters == sum(2 * 16 * width + width + 16 for width in (32, 48, 32, 48)) + 2 * 16


def test_arithmetic_is_exact() -> None:
    """Random expressions agree with Python's over Fractions, or are refused for their size or a division by zero."""
    chance, agreed = random.Random(3), 0
    for _ in range(3000):
        operands = [str(chance.randint(0, 12)) for _ in range(chance.randint(2, 5))]
        text = operands[0]
        for operand in operands[1:]:
            text = f"({text}) {chance.choice(['+', '-', '*', '/', '//', '%'])} {operand}"
        try:
            expected = eval(
                "".join(f"Fraction({part})" if part.isdigit() else f" {part} " for part in split(text)), {"Fraction": Fraction}
            )
        except ZeroDivisionError:
            assert refusal(text)[0] == "division-by-zero"
            continue
        found = value(text)
        assert found == expected
        assert type(found) is (int if expected == int(expected) else Fraction)
        agreed += 1
    assert agreed > 2000


def split(text: str) -> list[str]:
    return text.replace("(", " ( ").replace(")", " ) ").split()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4 * d_model", 3072),
        ("d_model / n_heads", 64),
        ("ceil_to(8 * d_model / 3, 256)", 2048),
        ("ceil_to(2048, 256)", 2048),
        ("ceil_to(2048.001, 256)", 2304),
        ("-7 // 2", -4),
        ("-7 % 3", 2),
        ("-2 ** 2", -4),
        ("2 ** -1", Fraction(1, 2)),
        ("2 ** 63", 2**63),
        ("(-1) ** 999999999999", -1),
        ("0 ** 0", 1),
        ("third * 3", 1),
        ("min(3, rate)", 0.5),
        ("max(1, 2, 3)", 3),
        ("abs(-4)", 4),
        ("floor(-0.5)", -1),
        ("ceil(7 / 2)", 4),
        ("round(2.6)", 3),
        ("1e4", 10000.0),
        ("deep", True),
        ("true and not false", True),
        ("n_heads % 6 == 0", True),
        ("1 == 1.0", True),
        ("1 / 3 == third", True),
        ("kind == attention", True),
        ("attention != kind", False),
        ("kind == mlp", False),
        ("kind if deep else 3", "attention"),
        ("1 if n_heads > 12 else 2 if n_heads > 11 else 3", 2),
        ("mixer", MIXER),
        ("+".join("1" * 100), 100),
    ],
)
def test_a_value(text: str, expected: object) -> None:
    """Worked by hand."""
    found = value(text)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("text", "expected"), [("1 / sqrt(2 * n_heads)", 24**-0.5), ("log(d_model)", math.log(768)), ("exp(1)", math.e)]
)
def test_functions_of_analysis_give_floats(text: str, expected: float) -> None:
    """Python's own library is the witness."""
    assert value(text) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize(
    "text",
    [
        "1 if deep else nowhere",
        "nowhere if not deep else 1",
        "deep or nowhere",
        "not deep and nowhere == 3",
        "1 if deep else 1 / 0",
    ],
)
def test_a_branch_that_is_not_taken_is_not_looked_at(text: str) -> None:
    """Names that only the other branch needs may be missing."""
    assert value(text) in (1, True, False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2 * d_modle", ("unknown-name", "d_modle")),
        ("attention == mlp", ("unknown-name", "attention")),
        ("n_heads == attention", ("unknown-name", "attention")),
        ("sqr(2)", ("unknown-name", "sqr")),
        ("sqrt + 1", ("not-a-value", "sqrt")),
        ("n_heads(2)", ("not-a-value", "n_heads")),
        ("embed.weight", ("not-a-value", "embed.weight")),
        ("none", ("not-a-value", "none")),
        ("mixer + 1", ("not-a-number", "mixer")),
        ("mixer == 1", ("not-a-number", "mixer")),
        ("deep + 1", ("not-a-number", "deep")),
        ("kind < 3", ("not-a-number", "kind")),
        ("max(1, 1:2)", ("not-a-number", "1:2")),
        ("deep == 1", ("unlike-values", "deep == 1")),
        ("n_heads and deep", ("not-a-boolean", "n_heads")),
        ("1 if n_heads else 2", ("not-a-boolean", "n_heads")),
        ("not 3", ("not-a-boolean", "3")),
        ("d_model / 0", ("division-by-zero", "0")),
        ("3 % (2 - 2)", ("division-by-zero", "2 - 2")),
        ("0 ** -1", ("division-by-zero", "0 ** -1")),
        ("sqrt(-1)", ("no-real-value", "sqrt(-1)")),
        ("log(0)", ("no-real-value", "log(0)")),
        ("(-8) ** (1 / 3)", ("no-real-value", "(-8) ** (1 / 3)")),
        ("ceil_to(5, 0)", ("no-real-value", "ceil_to(5, 0)")),
        ("2 ** 64", ("number-too-large", "2 ** 64")),
        ("1 + 9 ** 9 ** 9", ("number-too-large", "9 ** 9 ** 9")),
        ("1e300 * 1e300", ("number-too-large", "1e300 * 1e300")),
        ("floor(1e300)", ("number-too-large", "floor(1e300)")),
        ("exp(1000)", ("number-too-large", "exp(1000)")),
        ("min(1)", ("argument-count", "min(1)")),
        ("ceil_to(1)", ("argument-count", "ceil_to(1)")),
        ("sqrt()", ("argument-count", "sqrt()")),
    ],
)
def test_what_has_no_value_says_so_at_its_place(text: str, expected: tuple[str, str]) -> None:
    """The narrowest part is marked: the operand, not the sum."""
    assert refusal(text) == expected


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("2 * d_modle", "there is no name called `d_modle`", "did you mean d_model?"),
        ("sqr(2)", "there is no function called `sqr`", "did you mean sqrt?"),
        ("mixer + 1", "`mixer` is a block, not a number", ""),
        ("true + 1", "`true` is a boolean, not a number", ""),
        ("1 / (n_heads - 12)", "1 / 0 is undefined", ""),
    ],
)
def test_a_message_is_in_the_recipes_words(text: str, message: str, hint: str) -> None:
    """Near names are offered, and values named as they stand in the recipe."""
    with pytest.raises(ExpressionError) as refused:
        value(text)
    assert (refused.value.diagnostic.message, refused.value.diagnostic.hint) == (message, hint)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pre", "pre"),
        ("pre if deep else post", "pre"),
        ("pre if not deep else post", "post"),
        ("place", "sandwich"),
        ("nowhere if not deep else pre", "pre"),
    ],
)
def test_a_choice_takes_words(text: str, expected: str) -> None:
    """A word stands for itself, and a name in scope for its value."""
    assert evaluate_word(parsed(text), {**SCOPE, "place": "sandwich"}, ["pre", "post", "sandwich"]) == expected


def test_a_name_in_scope_wins_over_a_word() -> None:
    """As the language says: a declared name wins over a literal of the same spelling."""
    assert evaluate_word(parsed("pre"), {"pre": "post"}, ["pre", "post"]) == "post"


@pytest.mark.parametrize(
    ("text", "hint"), [("pree", "did you mean pre?"), ("kind", ""), ("n_heads", ""), ("3", ""), ("pre + post", "")]
)
def test_a_choice_refuses_other_words(text: str, hint: str) -> None:
    """Near words are offered."""
    with pytest.raises(ExpressionError) as refused:
        evaluate_word(parsed(text), SCOPE, ["pre", "post"])
    assert (refused.value.diagnostic.code, refused.value.diagnostic.hint) == ("unknown-choice", hint)


def test_a_field_reads_the_value_as_its_own_type() -> None:
    """`1e4` is a count of 10000, and a quotient that comes out even is one too."""
    place = Span(Source("r.yaml", "x"), 1, 1, 1, 2)
    assert [as_int(each, place) for each in (3, 1e4, Fraction(4, 2))] == [3, 10000, 2]
    assert [as_float(each, place) for each in (3, 0.5, Fraction(1, 4))] == [3.0, 0.5, 0.25]
    assert as_bool(True, place) is True


@pytest.mark.parametrize(
    ("convert", "given", "message"),
    [
        (as_int, "10 / 4", "`/` must give an integer here: 10 / 4 is 2.5"),
        (as_int, "rate * 5", "2.5 is not an integer"),
        (as_int, "deep", "`true` is a boolean, not a number"),
        (as_int, "kind", "`attention` is a string, not a number"),
        (as_int, "1e300", "the result is too large for a number"),
        (as_float, "deep", "`true` is a boolean, not a number"),
        (as_bool, "n_heads", "12 is a number, not a boolean"),
    ],
)
def test_a_field_refuses_a_value_of_another_type(convert: Any, given: str, message: str) -> None:
    """In the numbers of the recipe."""
    tree = parsed(given)
    with pytest.raises(ExpressionError) as refused:
        convert(evaluate(tree, SCOPE), tree.span)
    assert refused.value.diagnostic.message == message
