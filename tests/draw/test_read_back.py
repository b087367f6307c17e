"""Every statement of a picture holds in every pass that it is about."""

from __future__ import annotations

import re
from random import Random

import pytest

import composer
from composer.draw.build.levels import LEVELS, Level
from tests.draw.cases import CASES, MORE_CASES, each_of, sources
from tests.draw.checks import borders, ends, overlaps, starts
from tests.draw.edges import mixed
from tests.draw.odd_shapes import odd
from tests.draw.paper_shapes import paperlike
from tests.draw.read_back import OPEN, DrawnBox, Model, lies, loose, read
from tests.draw.read_marks import unmarked
from tests.draw.read_names import misnamed_titles
from tests.draw.read_passes import misread
from tests.draw.read_shapes import missized
from tests.draw.shapes import forked, grouped, shaped
from tests.draw.test_drawings import assert_every_edge

COUNT, MORE = 10, 120
PAPERLIKE, MORE_PAPERLIKE, OTHER_LEVELS = 24, 1600, 200
"""Recipes of shapes as papers have them, in the usual tests, in the exhaustive ones, and there at levels other than `block`."""
ONCE_WRONG = [25, 65, 87, 592, 1553]
"""Of these, such as were once drawn wrong: rows and maps of layers in the colors of others, shares of passes."""
PART = 40
"""Of these in one exhaustive test."""
KINDS: dict[str, tuple[str, ...]] = {
    "window": ("causal and window(5)", "causal and window(11)", "causal and window(17)", "causal"),
    "hidden": ("72", "104", "136", "152"),
    "activation": ("relu", "gelu", "silu", "relu_squared"),
    "norm": ("rmsnorm", "layernorm"),
    "bias": ("true", "false"),
    "dropout": ("0.0", "0.1", "0.3"),
    "kernel": ("3", "7", "13"),
}
"""What may vary from pass to pass. No number occurs in two places."""


def layers(seed: int) -> tuple[str, dict[str, list[str]]]:
    """Return the text of a decoder whose layers differ in some of these respects, and what they are in each."""
    random = Random(seed)
    count = random.choice([4, 6, 9, 12])
    varied = {}
    for name, values in KINDS.items():
        few = random.sample(values, random.choice([1, 1, 2, min(3, len(values)), min(4, len(values))]))
        varied[name] = [random.choice(few) for _ in range(count)] if random.random() < 0.6 else [few[0]] * count
    return text_of(varied), varied


def text_of(varied: dict[str, list[str]]) -> str:
    """Return a decoder with these layers, each of which has the number of what it is in a list."""

    def chosen(name: str) -> str:
        first, *others = reversed([*enumerate(KINDS[name])])
        said = first[1]
        for number, value in others:
            said = f"{value} if {name[0]}(layer) == {number} else {said}"
        return f'"{said}"'

    params = "".join(
        f"  {name[0]}: {{type: [int], default: [{', '.join(str(KINDS[name].index(value)) for value in values)}]}}\n"
        for name, values in varied.items()
    )
    return f"""recipe: layers
task: causal_lm
params:
{params}inputs: {{tokens: "int[batch, time]"}}
graph:
  embed: {{type: embedding, vocab: 61, dim: 32}}
  layers:
    repeat: {len(varied["window"])}
    graph:
      attn:
        type: residual
        norm: {{type: {chosen("norm")}}}
        dropout: {chosen("dropout")}
        body: {{type: attention, heads: 4, mask: {chosen("window")}, bias: {chosen("bias")}}}
      mix: {{type: residual, body: {{type: conv1d, out: 32, kernel_size: {chosen("kernel")}, causal: true}}}}
      ffn:
        type: residual
        norm: layernorm
        body: {{type: ffn, hidden: {chosen("hidden")}, activation: {chosen("activation")}}}
  norm: layernorm
  head: {{type: linear, out: 61}}
outputs: {{logits: head}}
"""


def wrong(recipe: composer.Recipe, level: Level) -> list[str]:
    """Return all that a picture says and does not hold."""
    return faults(recipe.draw(level).svg(), recipe, Model(recipe.program))


def faults(svg: str, recipe: composer.Recipe, model: Model) -> list[str]:
    """Return all that the text of a picture says of a recipe and does not hold."""
    picture = read(svg)
    said = [*lies(picture, model), *loose(picture), *misread(picture, recipe.program)]
    said += misnamed_titles(svg, picture, model, recipe.program)
    return [*said, *unmarked(svg, picture, model, recipe.program), *missized(svg, picture, recipe.program)]


def seeds(more: int) -> list[object]:
    """Return numbers of generated recipes, most of them for the exhaustive tests."""
    return [*range(COUNT), *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(COUNT, more))]


@each_of(CASES, MORE_CASES)
def test_pictures_of_blocks_say_what_holds_in_every_pass(case: str) -> None:
    """Numbers, counts, shares of passes, maps of layers, and where wires lead."""
    for name, source in sources(case):
        assert wrong(composer.load(source), "block") == [], name


@pytest.mark.exhaustive
@pytest.mark.parametrize("level", [level for level in LEVELS if level != "block"])
@each_of(CASES)
def test_pictures_at_other_levels_say_what_holds_in_every_pass(case: str, level: Level) -> None:
    """Closed repeats and the pieces of blocks."""
    for name, source in sources(case):
        assert wrong(composer.load(source), level) == [], name


@pytest.mark.parametrize("seed", seeds(MORE))
def test_layers_of_many_kinds_are_told_as_what_they_are(seed: int) -> None:
    """Up to five windows, four widths and activations, two norms, in any order, at every level."""
    recipe = composer.load(layers(seed)[0])
    for level in LEVELS:
        assert wrong(recipe, level) == []


@pytest.mark.parametrize("seed", seeds(2 * MORE))
def test_shapes_beyond_a_chain_of_layers_are_told_as_what_they_are(seed: int) -> None:
    """Towers that meet or do not, recurrent layers, and heads and outputs of layers in the middle, at every level."""
    recipe = composer.load(shaped(seed))
    for level in LEVELS:
        scene = recipe.draw(level).scene
        assert wrong(recipe, level) == []
        assert [fault for check in (overlaps, borders, ends, starts) for fault in check(scene)] == []


@pytest.mark.parametrize("seed", seeds(2 * MORE))
def test_ways_that_part_and_meet_are_told_as_they_are(seed: int) -> None:
    """Framed branches, a U, a pyramid with outputs, ways with several meeting points: every edge once, nothing on anything."""
    recipe = composer.load(forked(seed))
    scene = recipe.draw().scene
    assert wrong(recipe, "block") == []
    assert [fault for check in (overlaps, borders, ends, starts) for fault in check(scene)] == []
    assert_every_edge(f"forked {seed}", recipe.program, scene)


@pytest.mark.parametrize("seed", seeds(2 * MORE))
def test_groups_of_many_values_are_told_as_they_are(seed: int) -> None:
    """Several inputs and outputs, branches that read each other's values, a U: every edge once, nothing on anything."""
    recipe = composer.load(grouped(seed))
    scene = recipe.draw().scene
    assert wrong(recipe, "block") == []
    assert [fault for check in (overlaps, borders, ends, starts) for fault in check(scene)] == []
    assert_every_edge(f"grouped {seed}", recipe.program, scene)


@pytest.mark.parametrize("seed", [*range(PAPERLIKE), *ONCE_WRONG])
def test_shapes_of_papers_are_told_as_they_are(seed: int) -> None:
    """A U of repeats, readers of passes, starts, parallel repeats, streams, pyramids, sums of passes, kinds of layers."""
    recipe = composer.load(paperlike(seed))
    for level in LEVELS[1:] if seed in ONCE_WRONG else LEVELS[1:2]:
        assert wrong(recipe, level) == [], level


@pytest.mark.parametrize("seed", seeds(MORE))
def test_what_is_easily_told_wrong_is_told_as_it_is(seed: int) -> None:
    """Passes that read passes of another repeat alone: every edge once where passes consist of the same nodes."""
    recipe = composer.load(odd(seed))
    for level in LEVELS:
        scene = recipe.draw(level).scene
        assert wrong(recipe, level) == [], level
        assert [fault for check in (overlaps, borders, ends, starts) for fault in check(scene)] == []
        if not mixed(scene):
            assert_every_edge(f"odd {seed}", recipe.program, scene)


@pytest.mark.exhaustive
@pytest.mark.parametrize("first", range(0, MORE_PAPERLIKE, PART))
def test_many_shapes_of_papers_are_told_as_they_are(first: int) -> None:
    """The same for many more; for some, at every level."""
    for seed in range(first, first + PART):
        recipe = composer.load(paperlike(seed))
        for level in LEVELS if seed < OTHER_LEVELS else LEVELS[1:2]:
            assert wrong(recipe, level) == [], f"{seed} {level}"


@pytest.mark.parametrize("seed", seeds(MORE // 3))
def test_a_word_for_one_kind_of_layer_is_there_beside_others(seed: int) -> None:
    """All that tells a box from that of a model whose layers are all of one kind, as often as there are kinds."""
    text, varied = layers(seed)
    mixed = {box.path: box for box in read(composer.load(text).draw().svg()).boxes}
    count = len(varied["window"])
    kinds = {tuple(values[index] for values in varied.values()) for index in range(count)}
    pure = [
        read(composer.load(text_of({name: [value] * count for name, value in zip(varied, kind, strict=True)})).draw().svg()).boxes
        for kind in sorted(kinds)
    ]
    for alike in zip(*pure, strict=True):
        said = [words(box) for box in alike]
        own = set.union(*said) - set.intersection(*said)
        box = mixed[alike[0].path]
        if not OPEN.search(" ".join(box.lines)):
            assert own - words(box) == set(), box


def words(box: DrawnBox) -> set[str]:
    """Return the words and numbers in a box, but for how many parameters it has, which a box of many kinds does not say."""
    lines = [line for line in box.lines if not re.fullmatch(r"[\d.]+( [KM])?", line)]
    return set(re.findall(r"\w+", " ".join(lines)))


PLANTED = """recipe: planted
task: causal_lm
params:
  w: {type: [int], default: [5, 11, 17, 23, 5, 11, 17, 23]}
  h: {type: [int], default: [72, 104, 72, 72, 72, 104, 72, 72]}
inputs: {tokens: "int[batch, time]"}
graph:
  embed: {type: embedding, vocab: 61, dim: 32}
  layers:
    repeat: 8
    graph:
      attn: {type: residual, norm: layernorm, body: {type: attention, heads: 4, mask: causal and window(w(layer))}}
      ffn: {type: residual, norm: layernorm, body: {type: ffn, hidden: h(layer)}}
  head: {type: linear, out: 61}
  other: {type: linear, out: 7, in: layers}
outputs: {logits: head, other: other}
"""


@pytest.mark.parametrize(
    ("there", "planted"),
    [
        ("window 5, 11, 17, 23", "window 5"),
        ("causal, window 5, 11, 17, 23", "causal, window 13"),
        (">× 8<", ">× 7<"),
        (">other<", ">head<"),
        (">6 of 8: ", ">5 of 8: "),
        ("6 of 8: 32 → 72", "6 of 8: 32 → 104"),
        (">4.10 K<", ">4.11 K<"),
        ("up to 11.0 K", "11.0 K each"),
        ('points="226.7,496', 'points="226.7,476'),
        ('width="12" height="50.6" fill="#0C68A6"', 'width="12" height="50.6" fill="#A9CFFF"'),
    ],
)
def test_a_fault_that_is_planted_is_found(there: str, planted: str) -> None:
    """A value dropped or wrong, a count, a share, a name, a number of parameters, an arrowhead, a color."""
    recipe = composer.load(PLANTED)
    svg, model = recipe.draw().svg(), Model(recipe.program)
    assert there in svg
    assert not [*lies(read(svg), model), *loose(read(svg))]
    changed = read(svg.replace(there, planted))
    assert [*lies(changed, model), *loose(changed)]
