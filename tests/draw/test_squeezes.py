"""An axis of length 1 that is taken away, or put in, is no box: what gives the value gives it without that axis, or with it."""

from __future__ import annotations

from pathlib import Path

import pytest

import composer
from composer.draw.options import Options
from composer.draw.scene import Scene
from tests.draw.edges import shown_in
from tests.draw.read_back import Model, lies, read
from tests.draw.read_marks import unmarked
from tests.draw.test_idioms import checked
from tests.draw.test_read_back import wrong

PAPERS = Path(__file__).parent / "papers"
TEXT = """recipe: squeezed
inputs: {{x: "float[batch, time, 8]", w: "float[batch, time, {length}]"}}
graph:
  score: {{type: linear, out: {length}, in: x}}
  s: {{type: select, axis: last, index: 0, in: {source}}}
  y: {{compute: "{formula}", axes: {{x: b t c, {name}: b t}}}}
outputs: {{y: y{more}}}
"""


def text(*, length: int = 1, source: str = "score", formula: str = "x * sigmoid(s)", name: str = "s", more: str = "") -> str:
    """Return a recipe with a gate."""
    more += "" if source == "score" else ", score: score"
    more += "" if source == "w" else ", w: w"
    return TEXT.format(length=length, source=source, formula=formula, name=name, more=more)


def named(scene: Scene, path: str) -> tuple[str, list[str]]:
    """Return the name of a box and what it covers."""
    (box,) = (one for one in scene.boxes if one.about.path == path)
    return next((one.text for one in box.texts if one.role == "name"), ""), [*box.about.covers]


def test_a_map_to_one_number_gives_a_number() -> None:
    """It has the name by which a formula reads it; its description says what it stands for."""
    scene = checked(text())
    assert "s" not in shown_in(scene) and named(scene, "score") == ("s", ["s"])
    (box,) = (one for one in scene.boxes if one.about.path == "score")
    assert "score is linear" in box.about.description and "s is select" in box.about.description


@pytest.mark.parametrize(
    "recipe",
    [
        text(length=2),
        text(more=", score: score"),
        text(source="w"),
        text().replace("  s:", "  same: identity\n  s:").replace("index: 0, in: score", "index: 0, in: same"),
        text().replace("  s:", "  half: {compute: score / 2}\n  s:").replace("index: 0, in: score", "index: 0, in: half"),
    ],
)
def test_what_is_more_than_that_stays(recipe: str) -> None:
    """One of two numbers; what something else reads with that axis; where a formula needs the name, an input, and what may be no
    box itself.
    """
    scene = checked(recipe)
    assert "s" in shown_in(scene)


NAMELESS = """recipe: nameless
inputs: {x: "float[batch, time, 8]", w: "float[batch, time, 1]"}
graph:
  score: {type: linear, out: 1, in: x}
  s: {type: select, axis: last, index: 0, in: w}
  rows: {type: softmax}
  all: {type: new_axis, name: one, in: rows}
  sum: {type: add, in: [score, all]}
outputs: {y: sum}
"""


def test_what_no_formula_names_is_a_wire() -> None:
    """From an input too; and an axis that is put in is that of what gives the value."""
    scene = checked(NAMELESS)
    assert {"s", "all"}.isdisjoint(shown_in(scene)) and {"rows", "score", "sum"} <= shown_in(scene)


@pytest.mark.parametrize("options", [Options(labels={"s": "Gate"}), Options(highlight=["score"]), Options(labels={"score": "S"})])
def test_what_an_option_names_is_a_box(options: Options) -> None:
    """The squeeze, or what gives its value."""
    assert "s" in shown_in(composer.load(text()).draw(**options).scene)


def test_the_level_of_everything_has_a_box_for_each() -> None:
    """With its name."""
    recipe = composer.load(text())
    assert "s" in shown_in(recipe.draw("full").scene) and wrong(recipe, "full") == []


def test_another_name_is_found() -> None:
    """And none."""
    recipe = composer.load(text())
    svg, model = recipe.draw().svg(), Model(recipe.program)
    assert ">s</text>" in svg
    changed = svg.replace(">s</text>", ">t</text>")
    assert [*lies(read(changed), model)] and [*unmarked(changed, read(changed), model, recipe.program)]


def test_scores_of_papers_are_read_by_their_names() -> None:
    """Those of the gates of a neural Turing machine."""
    scene = checked((PAPERS / "neural_turing_machine.yaml").read_text())
    inside = {one.about.path: one for detail in scene.details for one in detail.inside.boxes}
    names = {path.rpartition(".")[2]: {one.text for one in box.texts if one.role == "name"} for path, box in inside.items()}
    assert [names[path] for path in ("strength", "gate", "sharpness")] == [{"beta"}, {"g"}, {"gamma"}]
