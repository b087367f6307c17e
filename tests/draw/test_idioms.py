"""Primitives that have a name together are one box, which says what they compute; almost the same ones are not."""

from __future__ import annotations

from pathlib import Path

import pytest

import composer
from composer.draw.options import Options
from composer.draw.scene import Scene
from tests.draw.checks import borders, ends, overlaps, starts
from tests.draw.edges import shown_in
from tests.draw.read_back import read
from tests.draw.read_idioms import misnamed_idioms
from tests.draw.test_drawings import assert_every_edge
from tests.draw.test_read_back import wrong
from tests.draw.test_reductions import said

PAPERS = Path(__file__).parent / "papers"

TABLE = """recipe: table
inputs: {{x: "float[batch, time, 8]"}}
graph:
  z: {{type: linear, out: 4}}
  codes: {{type: parameter, shape: [{shape}]}}
  other: {{type: parameter, shape: [{shape}]}}
{nodes}
  index: {{type: argmax, axis: last}}
  code: {{type: gather, axis: {axis}, in: {{x: codes, index: index}}}}
outputs: {{code: code, z: z, other: other{more}}}
"""
INNER = '  along: {type: einsum, pattern: "b t c, k c -> b t k", in: [z, codes]}\n'
SQUARES = "  squares: {compute: codes ** 2}\n  lengths: {type: sum, axis: last}\n"
AXES = "axes: {along: b t k, lengths: k}"
SCORES = f"{INNER}{SQUARES}  scores: {{compute: 2 * along - lengths, {AXES}}}"
OWN = "  own: {compute: z * z}\n  norms: {type: sum, axis: last}\n"
ALL_AXES = "axes: {norms: b t, along: b t k, lengths: k, ->: b t k}"
WHOLE = f"{OWN}{INNER}{SQUARES}  scores: {{compute: -(norms - 2 * along + lengths), {ALL_AXES}}}"
FAR = "  far: {compute: z - codes, axes: {z: b t c, codes: k c, ->: b t k c}}\n"
DIFFERENCE = f"{FAR}  squares: {{compute: far ** 2}}\n  distance: {{type: sum, axis: last}}\n  scores: {{compute: -distance}}"
OTHER_ORDER = DIFFERENCE.replace("axis: last", "axis: -2").replace("b t k c}", "b t c k}")
ROOT = f"{FAR}  squares: {{compute: far * far}}\n  distance: {{type: sum, axis: last}}\n  scores: {{compute: -sqrt(distance)}}"
HALF = f"{INNER}{SQUARES}  scores: {{compute: along - lengths / 2, {AXES}}}"
SCALED = f"{SCORES}\n  warm: {{type: scale, by: 0.5}}"
COLUMNS = SCORES.replace("k c ->", "c k ->").replace("{type: sum, axis: last}", "{type: sum, axis: -2}")


def table(nodes: str, *, more: str = "", shape: str = "16, 4", axis: str = "first") -> str:
    """Return a recipe that reads a row of a table."""
    return TABLE.format(nodes=nodes, more=more, shape=shape, axis=axis)


def checked(text: str) -> Scene:
    """Return the drawing of a recipe, in which all is true."""
    recipe = composer.load(text)
    scene = recipe.draw().scene
    assert [fault for check in (overlaps, borders, ends, starts) for fault in check(scene)] == []
    assert wrong(recipe, "block") == []
    assert_every_edge(recipe.name, recipe.program, scene)
    return scene


@pytest.mark.parametrize("nodes", [SCORES, WHOLE, DIFFERENCE, OTHER_ORDER, ROOT, HALF, SCALED])
def test_the_nearest_row_of_a_table_is_one_box(nodes: str) -> None:
    """However its distance is written: without what is the same for all rows, in full, as a difference, its root, half of it."""
    scene = checked(table(nodes))
    assert said(scene, "index") == ["argmin over k of |z − codesₖ|²"]
    (box,) = (one for one in scene.boxes if one.about.path == "index")
    assert box.texts[0].text == "Nearest row" and shown_in(scene).isdisjoint(box.about.covers)
    assert {"z", "codes", "index", "code"} <= shown_in(scene) and "scores is compute" in box.about.description


def test_the_nearest_column_of_a_table_is_one_box() -> None:
    """Where the vectors of a table are its columns."""
    nodes = COLUMNS + "\n  back: {compute: scores}"
    scene = checked(table(nodes, shape="4, 16", axis="last", more="").replace("  code: {type: gather", "  code: {type: gather"))
    (box,) = (one for one in scene.boxes if one.about.path == "index")
    assert box.texts[0].text == "Nearest column"


@pytest.mark.parametrize(
    ("nodes", "more"),
    [
        (SCORES.replace("2 * along", "3 * along"), ""),
        (SCORES.replace("- lengths", "+ lengths"), ""),
        (SCORES.replace("2 * along - lengths", "lengths - 2 * along"), ""),
        (SCORES.replace("codes ** 2", "codes ** 3"), ""),
        (SCORES.replace("codes ** 2", "other ** 2"), ""),
        (SCORES.replace("[z, codes]", "[z, other]"), ""),
        (SCORES, ", lengths: lengths"),
        (SCORES, ", scores: scores"),
        (DIFFERENCE.replace("-distance", "distance"), ""),
        (DIFFERENCE, ", far: far"),
        (WHOLE.replace("z * z", "x"), ""),
    ],
)
def test_almost_a_nearest_row_is_what_it_is(nodes: str, more: str) -> None:
    """Another factor, sign, power or table, what something else reads too, the farthest row, and another value."""
    recipe = composer.load(table(nodes, more=more))
    scene = recipe.draw().scene
    (box,) = (one for one in scene.boxes if one.about.path == "index")
    assert box.texts[0].text == "Arg max" or box.about.covers == ()
    assert wrong(recipe, "block") == []


PAIR = """recipe: pair
inputs: {{a: "float[batch, time, 8]", b: "float[batch, row, 8]"}}
graph:
  one: {{type: l2norm, in: a{axis}}}
  two: {{type: l2norm, in: b}}
{nodes}
outputs: {{y: y{more}}}
"""
COSINE = '  y: {type: einsum, pattern: "b t c, b r c -> b t r", in: [one, two]}'


@pytest.mark.parametrize(
    ("nodes", "lines"),
    [
        (COSINE, ["b t c, b r c → b t r"]),
        (COSINE.replace("b r c ->", "b t c ->").replace("b t r", "b t").replace("two]", "one]"), ["b t c, b t c → b t"]),
    ],
)
def test_cosines_are_one_box(nodes: str, lines: list[str]) -> None:
    """Also those of a value with itself."""
    scene = checked(PAIR.format(nodes=nodes, more="" if "two" in nodes else ", two: two", axis=""))
    assert said(scene, "y") == lines
    (box,) = (one for one in scene.boxes if one.about.path == "y")
    assert box.texts[0].text == "Cosine similarity" and box.about.covers


@pytest.mark.parametrize(
    ("nodes", "more", "axis"),
    [
        (COSINE, ", one: one", ""),
        (COSINE, "", ", axis: -2"),
        (COSINE.replace("[one", "[a"), ", one: one", ""),
        (COSINE.replace("-> b t r", "-> b t r c"), "", ""),
        (COSINE.replace("-> b t r", "-> b"), "", ""),
    ],
)
def test_almost_cosines_are_what_they_are(nodes: str, more: str, axis: str) -> None:
    """Vectors that something else reads, of unit length along another axis, of any length, not summed, or summed over more."""
    scene = checked(PAIR.format(nodes=nodes, more=more, axis=axis))
    (box,) = (one for one in scene.boxes if one.about.path == "y")
    assert box.texts[0].text != "Cosine similarity"


SHARES = """recipe: shares
inputs: {{x: "float[batch, time, 8]"}}
graph:
  far: {{type: linear, out: 8}}
{nodes}
outputs: {{far: far, y: y{more}}}
"""
POWERS = "  powers: {compute: far ** 2}\n  total: {type: sum, axis: last}\n"
SHARE = f"{POWERS}  y: {{compute: powers / total, axes: {{powers: b t c, total: b t}}}}"
EXP = "  powers: {compute: exp(far)}\n  total: {type: sum, axis: last}\n" + SHARE.split("\n")[2]
STABLE = (
    "  most: {type: max, axis: last, in: far}\n"
    "  powers: {compute: exp(far - most), axes: {far: b t c, most: b t}}\n"
    "  total: {type: sum, axis: last}\n" + SHARE.split("\n")[2]
)


@pytest.mark.parametrize(
    ("nodes", "title", "lines"),
    [
        (SHARE, "powers / Σ powers", ["summed over the last axis"]),
        (SHARE.replace("/ total", "/ (total + 0.5)"), "powers / (Σ powers + 0.5)", ["summed over the last axis"]),
        (
            SHARE.replace("axis: last", "axis: time").replace("total: b t", "total: b c"),
            "powers / Σ powers",
            ["summed over time"],
        ),
        (EXP, "Softmax", ["over the last axis"]),
        (STABLE, "Softmax", ["over the last axis"]),
    ],
)
def test_values_divided_by_their_sum_are_one_box(nodes: str, title: str, lines: list[str]) -> None:
    """Exponentials are a softmax."""
    scene = checked(SHARES.format(nodes=nodes, more=""))
    (box,) = (one for one in scene.boxes if one.about.path == "y")
    assert box.texts[0].text == title and said(scene, "y") == lines


@pytest.mark.parametrize(
    ("nodes", "more"),
    [
        (SHARE, ", total: total"),
        (SHARE.replace("powers / total", "total / powers"), ""),
        (SHARE.replace("type: sum", "type: mean"), ""),
        (SHARE.replace("type: sum, axis: last", "type: sum, axis: last, in: far"), ""),
        (SHARE.replace("far ** 2", "far ** 2").replace("/ total", "/ total ** 2"), ""),
        (STABLE.replace("type: max, axis: last", "type: max, axis: time").replace("most: b t", "most: b c"), ""),
    ],
)
def test_almost_shares_are_what_they_are(nodes: str, more: str) -> None:
    """A sum that something else reads, that is divided, a mean, of other values, squared; exponentials less another maximum."""
    scene = checked(SHARES.format(nodes=nodes, more=more))
    (box,) = (one for one in scene.boxes if one.about.path == "y")
    assert "Σ" not in box.texts[0].text or "most" in shown_in(scene)
    assert box.texts[0].text != "Softmax"


def test_a_sum_over_another_axis_of_the_same_length_is_no_share() -> None:
    """The sum of each column divides the rows."""
    text = SHARES.format(nodes=SHARE.replace("axis: last", "axis: -2"), more="").replace("batch, time, 8", "batch, 8, 8")
    (box,) = (one for one in checked(text).boxes if one.about.path == "y")
    assert "Σ" not in box.texts[0].text


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (Options(labels={"lengths": "Lengths"}), True),
        (Options(highlight=["scores"]), True),
        (Options(labels={"index": "Code"}), True),
        (Options(labels={"code": "Code"}), False),
    ],
)
def test_what_an_option_names_stays_a_box(options: Options, shown: bool) -> None:
    """A title, or what is bright."""
    scene = composer.load(table(SCORES)).draw(**options).scene
    assert ({"along", "lengths", "scores"} <= shown_in(scene)) is shown


def test_the_level_of_everything_has_a_box_for_each() -> None:
    """With all that is written."""
    recipe = composer.load(table(SCORES))
    assert {"along", "squares", "lengths", "scores", "index"} <= shown_in(recipe.draw("full").scene)
    assert wrong(recipe, "full") == []


@pytest.mark.parametrize(
    ("text", "there", "planted"),
    [
        (table(SCORES), "|z − codesₖ|²", "|codes − zₖ|²"),
        (table(SCORES), "argmin over k", "argmax over k"),
        (table(SCORES), "Nearest row", "Nearest column"),
        (PAIR.format(nodes=COSINE, more="", axis=""), "Cosine similarity", "Inner product"),
        (SHARES.format(nodes=SHARE, more=""), "Σ powers", "Σ far"),
        (SHARES.format(nodes=SHARE, more=""), "over the last axis", "over time and batch"),
    ],
)
def test_a_planted_fault_is_found(text: str, there: str, planted: str) -> None:
    """Another table, the farthest row, a column, vectors of any length, another sum."""
    recipe = composer.load(text)
    svg = recipe.draw().svg()
    assert there in svg and not [*misnamed_idioms(read(svg), recipe.program)]
    assert [*misnamed_idioms(read(svg.replace(there, planted)), recipe.program)]


@pytest.mark.parametrize(
    ("paper", "box", "title"),
    [
        ("vq_vae", "quantize.index", "Nearest row"),
        ("neural_turing_machine", "steps.write_head.similarity", "Cosine similarity"),
        ("neural_turing_machine", "steps.write_head.weights", "powers / Σ powers"),
    ],
)
def test_idioms_in_papers_are_told(paper: str, box: str, title: str) -> None:
    """In a detail."""
    scene = checked((PAPERS / f"{paper}.yaml").read_text())
    (found,) = (one for one in scene.details for one in one.inside.boxes if one.about.path == box)
    assert title in [text.text for text in found.texts]
