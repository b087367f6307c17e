"""Reductions in a row: those that lead to a loss stand in its box, others of one kind are one box."""

from __future__ import annotations

from pathlib import Path

import pytest

import composer
from composer.draw.options import Options
from composer.draw.scene import Scene
from tests.draw.checks import borders, ends, overlaps, starts
from tests.draw.edges import shown_in
from tests.draw.read_back import read
from tests.draw.read_reductions import misreduced
from tests.draw.test_drawings import assert_every_edge
from tests.draw.test_read_back import wrong

PAPERS = Path(__file__).parent / "papers"
TEXT = """recipe: reduced
blocks:
  whole:
    inputs: {{x: "float[batch, a, b]"}}
    graph:
      rows: {{type: mean, axis: last}}
      all: {{type: mean, axis: last}}
      one: {{type: mean, axis: last}}
inputs: {{x: "float[batch, time, 8]"}}
graph:
  far: {{type: linear, out: 8}}
  square: {{compute: far ** 2}}
{nodes}
outputs: {{far: far{more}}}
losses:
  size: {{type: {kind}}}
"""
KL = "  nats: {type: sum, axis: last}\n  rows: {type: mean, axis: time}\n  one: {type: mean, axis: batch}"


def text(nodes: str = KL, *, kind: str = "scalar, in: one", more: str = "") -> str:
    """Return a recipe with a loss above some nodes."""
    return TEXT.format(nodes=nodes, kind=kind, more=more)


def said(scene: Scene, path: str) -> list[str]:
    """Return the lines of a box below its title, without its name."""
    (box,) = (one for drawing in scene.drawings for one in drawing.boxes if one.about.path == path)
    return [one.text for one in box.texts[1:] if one.role != "name"]


def checked(recipe: composer.Recipe) -> Scene:
    """Return the drawing of a recipe, in which all is true."""
    scene = recipe.draw().scene
    assert [fault for check in (overlaps, borders, ends, starts) for fault in check(scene)] == []
    assert wrong(recipe, "block") == []
    assert_every_edge(recipe.name, recipe.program, scene)
    return scene


@pytest.mark.parametrize(
    ("nodes", "kind", "words"),
    [
        (KL, "scalar, in: one", "summed over the last axis, mean over time and batch"),
        (KL, "scalar, in: one, weight: 0.5", "summed over the last axis, mean over time and batch · × 0.5"),
        ("  one: {type: mean, axis: [batch, time, last]}", "scalar, in: one", "mean of all numbers"),
        ("  one: whole", "scalar, in: one", "mean of all numbers"),
        (
            "  a: {type: sum, axis: last}\n  b: {type: sum, axis: last}\n  one: {type: sum, axis: last}",
            "scalar, in: one",
            "sum of all numbers",
        ),
        (
            "  most: {type: max, axis: last}\n  rows: {type: sum, axis: last}\n  one: {type: mean, axis: batch}",
            "scalar, in: one",
            "summed over time, mean over batch",
        ),
    ],
)
def test_sums_and_means_of_a_loss_stand_in_its_box(nodes: str, kind: str, words: str) -> None:
    """Also those of a block of the recipe that is nothing else; the description has what is set in each."""
    scene = checked(composer.load(text(nodes, kind=kind)))
    assert said(scene, "losses.size") == [words]
    (loss,) = (one for one in scene.boxes if one.about.path == "losses.size")
    assert loss.about.covers[-1:] == ("one",) and "one is " in loss.about.description
    assert shown_in(scene).isdisjoint(loss.about.covers)


@pytest.mark.parametrize(
    ("recipe", "shown"),
    [
        (text(more=", one: one"), {"nats", "one"}),
        (text(more=", rows: rows"), {"nats", "rows"}),
        (text("  rows: {type: mean, axis: last}", kind="mse, in: rows, target: rows"), {"rows"}),
        (text("  most: {type: max, axis: last}\n  rows: {type: max, axis: time}\n  one: {type: max, axis: batch}"), {"one"}),
        (text(KL, kind="scalar, in: [one, one]"), {"nats", "one"}),
    ],
)
def test_what_is_more_than_the_end_of_a_loss_stays(recipe: str, shown: set[str]) -> None:
    """A value that is read elsewhere too, one that is compared, maxima, and one of several that a loss reads."""
    scene = checked(composer.load(recipe))
    assert shown_in(scene) & {"nats", "rows", "one", "most"} == shown


def test_reductions_of_one_kind_are_one_box() -> None:
    """Its axes are those of all, as they are called before any is taken away; all of more than two are not told one by one."""
    nodes = "  a: {type: max, axis: last}\n  b: {type: max, axis: last}"
    scene = checked(composer.load(text(nodes, kind="mse, in: far, target: x", more=", most: b")))
    assert said(scene, "b") == ["over the last axis and time"]
    (box,) = (one for one in scene.boxes if one.about.path == "b")
    assert box.about.covers == ("a",) and box.about.description == "a is max (axis last); b is max (axis last)"
    scene = checked(
        composer.load(text(f"{nodes}\n  c: {{type: max, axis: last}}", kind="mse, in: far, target: x", more=", most: c"))
    )
    assert said(scene, "c") == ["over all axes"]


def test_those_in_a_block_of_a_paper_are_one_box() -> None:
    """PointNet sums the squares of a matrix over its rows and its columns."""
    recipe = composer.load(PAPERS / "pointnet.yaml")
    assert said(checked(recipe), "feature_transform.all") == ["over the last two axes"]


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (Options(labels={"nats": "Nats"}), {"nats", "one"}),
        (Options(labels={"rows": "Rows"}), {"nats", "rows", "one"}),
        (Options(highlight=["one"]), {"nats", "rows", "one"}),
        (Options(merge={"KL": ["square", "nats"]}), {"nats", "one"}),
        (Options(hide=["one"]), {"nats", "rows"}),
    ],
)
def test_what_an_option_names_is_a_box(options: Options, shown: set[str]) -> None:
    """A title, what is bright, merged or hidden."""
    scene = composer.load(text()).draw(**options).scene
    assert shown <= shown_in(scene), shown_in(scene)


@pytest.mark.parametrize(("level", "boxes"), [("overview", 0), ("block", 0), ("full", 3)])
def test_only_the_level_of_everything_has_a_box_for_each(level: str, boxes: int) -> None:
    """At a glance, nothing is described."""
    recipe = composer.load(text())
    scene = recipe.draw(level).scene  # type: ignore[arg-type]
    assert len(shown_in(scene) & {"nats", "rows", "one"}) == boxes
    (loss,) = (one for one in scene.boxes if one.about.path == "losses.size")
    assert bool(loss.about.description) == (level == "block")
    assert wrong(recipe, level) == []  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("there", "planted"),
    [
        ("summed over the last axis, mean over time and batch", "summed over the last axis, mean over time"),
        ("summed over the last axis, mean over time and batch", "mean over the last axis, mean over time and batch"),
        ("summed over the last axis, mean over time and batch", "mean of all numbers"),
        ("summed over the last axis, mean over time and batch", "MSE"),
    ],
)
def test_a_planted_fault_is_found(there: str, planted: str) -> None:
    """An axis that is left out, another kind, all as one, nothing."""
    recipe = composer.load(text())
    svg = recipe.draw().svg()
    assert there in svg and not [*misreduced(read(svg), recipe.program)]
    assert [*misreduced(read(svg.replace(there, planted)), recipe.program)]


PRIOR = """recipe: prior
inputs:
  x: "float[batch, 8]"
  wanted: {{type: "float[batch, 8]", default: 0}}
graph:
  far: {{type: linear, out: 8, in: x}}
  total: {{type: logsumexp, axis: last}}
  surprise: {{compute: "wanted * (total - far)", axes: {{wanted: b a, total: b, far: b a}}}}
  row: {{type: sum, axis: last}}
  one: {{type: mean, axis: last}}
outputs: {{far: far{more}}}
losses:
  policy: {{in: one}}
"""


@pytest.mark.parametrize(("more", "boxed"), [("", False), (", surprise: surprise", True)])
def test_an_input_that_only_a_loss_needs_stands_beside_what_reads_it(more: str, boxed: bool) -> None:
    """As the policy that AlphaZero is to imitate; one that an output depends on has a box."""
    scene = checked(composer.load(PRIOR.format(more=more)))
    assert ("wanted" in shown_in(scene)) is boxed
    assert [one.text.text for one in scene.references if one.source == "wanted"] == ([] if boxed else ["wanted (optional input)"])
