"""Small pieces of the language, each by itself: patterns, words of expressions, types, settings, and what is written back."""

from __future__ import annotations

import re
from fractions import Fraction
from random import Random

import pytest
import yaml

import composer
from composer.diagnostics import Source, Span
from composer.language.composition.locator import Locator
from composer.language.composition.override import read_override, to_text
from composer.language.patterns import Unbalanced, matches
from composer.language.recipe.free_names import identifiers
from composer.language.recipe.parser import parse
from composer.language.recipe.type_syntax import axes_of
from composer.language.recipe.writer import Remark, data_of, write
from composer.language.wording import describe_value, format_value
from composer.language.yaml.flow_style import balance
from composer.language.yaml.nodes import YamlMapping, YamlScalar
from composer.language.yaml.reader import read
from tests.zoo import REPRESENTATIVES, rest

GPT2 = composer.load("gpt2")


def root_of(text: str) -> YamlMapping:
    root = read(Source("r.yaml", text)).root
    assert root is not None
    return root


# -- patterns over names


def as_regex(pattern: str) -> re.Pattern[str]:
    """Return the pattern for Python's own matcher."""
    return re.compile("".join({"*": ".*", "?": ".", ".": r"\."}.get(sign, sign) for sign in pattern))


def test_patterns_match_what_regular_expressions_match() -> None:
    """Names of two letters and a dot, patterns of the same signs."""
    chance, hits = Random(2), 0
    for _ in range(3000):
        pattern = "".join(chance.choice(["a", "b", ".", "*", "?", "(a|b.)", "(ab)"]) for _ in range(chance.randint(1, 5)))
        name = "".join(chance.choice("ab.") for _ in range(chance.randint(0, 6)))
        hits += matches(pattern, name)
        assert matches(pattern, name) == bool(as_regex(pattern).fullmatch(name)), (pattern, name)
    assert hits > 200


@pytest.mark.parametrize("pattern", ["(a", "a)", "((a))"])
def test_brackets_of_a_pattern_match(pattern: str) -> None:
    """One inside another is refused too."""
    with pytest.raises(Unbalanced):
        matches(pattern, "a")


# -- names, types, brackets


def test_identifiers_are_those_of_every_value_below() -> None:
    """Keys of a mapping are no values."""
    root = root_of("a: {type: linear, out: 4 * d_model}\nb: [x.y, 'n2 if deep else 3']\n")
    assert identifiers([root]) == {"linear", "d_model", "x", "y", "n2", "if", "deep", "else"}


@pytest.mark.parametrize(
    ("text", "axes"), [("batch, time", ["batch", " time"]), ("..., max(a, b), 3", ["...", " max(a, b)", " 3"]), ("  ", [])]
)
def test_axes_of_a_type_stand_between_commas(text: str, axes: list[str]) -> None:
    """Commas in round brackets are a function's."""
    assert axes_of(text) == axes


@pytest.mark.parametrize(("text", "open_"), [("layers(:2)", 0), ("f(a", 1), ("f([a, b]", 1)])
def test_balance_counts_brackets_that_stay_open(text: str, open_: int) -> None:
    """Of all kinds."""
    assert balance(text) == open_


# -- words of messages


@pytest.mark.parametrize(
    ("value", "said"), [(True, "`true`"), ("relu", "`relu`"), (Fraction(1, 3), "1 / 3"), (0.5, "0.5"), (12, "12")]
)
def test_values_are_shown_as_a_recipe_writes_them(value: object, said: str) -> None:
    """With what they are behind."""
    assert format_value(value) == said
    assert describe_value(value).startswith(f"{said} is a ")


# -- settings


@pytest.mark.parametrize("value", [None, True, 6, 0.25, [1, 2], {"type": "relu"}, {"a": ["x, y", 'say "no"', "b\\c"]}])
def test_python_value_comes_back_from_what_is_written(value: object) -> None:
    """Read by PyYAML, which knows types."""
    assert yaml.safe_load(to_text(value)) == value


def test_setting_is_read_with_the_place_of_each_step() -> None:
    """And of its value, as it stands in the argument."""
    argument = "layers.attn.mask=window(4)"
    found = read_override(argument)
    assert isinstance(found.value, YamlScalar)
    for piece, text in zip([*found.path, found.value], ["layers", "attn", "mask", "window(4)"], strict=True):
        assert argument[piece.span.column - 1 : piece.span.end_column - 1] == text == piece.text


@pytest.mark.parametrize(("argument", "code"), [("n_layers", "assignment"), ("=6", "assignment"), ("n_layers=", "empty-value")])
def test_what_sets_nothing_is_refused(argument: str, code: str) -> None:
    """Before any recipe is looked at."""
    override = read_override(argument)
    assert override.value is None
    assert [each.code for each in override.diagnostics] == [code]


@pytest.mark.parametrize(
    ("setting", "change"),
    [
        ("n_layers=3", {"params": {"n_layers": "3"}}),
        ("graph.norm.eps=1e-3", {"graph": {"norm": {"eps": "1e-3"}}}),
        ("norm.eps=1e-3", {"graph": {"norm": {"eps": "1e-3"}}}),
    ],
)
def test_setting_is_found_in_the_recipe(setting: str, change: dict[str, object]) -> None:
    """By the name of a param, by a full path, or by a path from a node on."""
    override = read_override(setting)
    assert override.value is not None and GPT2.document.root is not None
    assert data_of(Locator(GPT2.document.root, GPT2.library).change(override.path, override.value)) == change


@pytest.mark.parametrize(
    ("setting", "hint"),
    [
        ("heads=4", "did you mean layers.attn.body.heads?"),
        ("attn.body.heads=4", "did you mean layers.attn.body.heads?"),
        ("eps=1e-3", "did you mean layers.attn.norm.eps or layers.ffn.norm.eps or norm.eps?"),
        ("n_layer=3", "did you mean n_layers?"),
    ],
)
def test_setting_that_is_a_part_of_a_path_offers_the_whole(setting: str, hint: str) -> None:
    """At most three; a name that ends no path offers what is spelled alike."""
    (found,) = composer.load("gpt2", overrides=[setting]).check()
    assert (found.code, found.hint) == ("unknown-path", hint)


LOSSES = """recipe: example
blocks:
  two:
    params: {wide: 16}
    inputs: {x: "float[..., dim]"}
    graph: {up: {type: linear, out: wide}, down: {type: linear, out: dim}}
inputs: {x: "float[batch, time, 8]", y: "float[batch, time, 8]"}
graph: {block: {type: residual, body: two}, last: {type: residual, norm: {type: rmsnorm}, body: {graph: {a: relu}}}}
losses: {main: {type: mse, in: {input: last, target: y}}}
"""


@pytest.mark.parametrize("name", [*REPRESENTATIVES, pytest.param(LOSSES, id="losses"), *rest])
def test_every_path_that_may_be_offered_leads_somewhere(name: str) -> None:
    """To a node or a field, so that a value is set there; but for a name that a param has too."""
    root, library = (recipe := composer.load(name).program.untyped.recipe).root, recipe.library
    params = data_of(root).get("params", {})
    place = Span(Source("--set", "x"), 1, 1, 1, 2)
    for path in Locator(root, library).paths():
        steps = tuple(YamlScalar(step, place) for step in path)
        if len(path) > 1 or path[0] not in params:
            Locator(root, library).change(steps, YamlScalar("1", place))


# -- parsing


def test_recipe_is_parsed_into_its_declarations() -> None:
    """Params, inputs and nodes in the order of the file."""
    text = "recipe: r\nparams: {d: 8, n: 2}\ninputs: {x: 'float[batch, d]?'}\ngraph:\n  b: relu\n  a: {type: linear, out: d}\n"
    recipe = composer.load(text)
    parsed = parse(recipe.document, recipe.library)
    assert parsed is not None
    assert parsed.diagnostics == ()
    assert [param.name for param in parsed.params] == ["d", "n"]
    assert [(item.name, item.optional, len(item.type.axes)) for item in parsed.inputs] == [("x", True, 2)]
    assert [node.name for node in parsed.body.nodes] == ["b", "a"]


# -- writing


@pytest.mark.parametrize("name", ["gpt2", "gemma3", "switch"])
def test_recipe_written_back_reads_as_the_same_data(name: str) -> None:
    """By PyYAML as by our own reader."""
    data = data_of(composer.load(name).document.root)  # type: ignore[arg-type]  # there is one
    text = write(data)  # type: ignore[arg-type]  # a mapping
    assert data_of(root_of(text)) == data
    assert yaml.load(text, yaml.BaseLoader) == data


@pytest.mark.parametrize("value", ["a: b", "- x", "#no", "", "é", "two\nlines\n", " padded ", "{open", "yes", '"', "tab\there"])
def test_any_text_is_quoted_where_it_must_be(value: str) -> None:
    """Alone, in a list and as a key."""
    data = {"top": value, "list": [value, "x"], "deep": {"inner": {"k": value}}}
    assert yaml.load(write(data), yaml.BaseLoader) == data


def test_remark_is_a_comment_at_the_end_of_its_line() -> None:
    """Which changes nothing of the data."""
    text = write({"a": Remark("1", "one"), "b": {"c": "2"}})
    assert text.splitlines()[0] == "a: 1  # one"
    assert yaml.load(text, yaml.BaseLoader) == {"a": "1", "b": {"c": "2"}}


def test_part_of_a_scalar_has_a_place_of_its_own() -> None:
    """That of its characters."""
    scalar = YamlScalar("abc def", Span(Source("r", "x: abc def"), 1, 4, 1, 11))
    part = scalar.part(4, 7)
    assert (part.column, part.end_column) == (8, 11)
