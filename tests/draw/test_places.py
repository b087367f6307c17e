"""Which value is which of those that a block reads in an order: numbers at arrowheads, where these do not come in it."""

from __future__ import annotations

from pathlib import Path

import pytest

import composer
from composer.draw.layout.ends.places import in_order, is_told
from composer.draw.scene import Scene, WirePath
from tests.draw.checks import borders, overlaps
from tests.draw.read_back import from_the_left, read
from tests.draw.read_marks import misplaced, read_in_order

PAPERS = Path(__file__).parent / "papers"
JOINED = """recipe: joined
inputs: {{x: "float[batch, 8]"}}
graph:
  left: {{type: linear, out: 8, in: x}}
  right: {{type: linear, out: 8, in: x}}
  middle: {{type: linear, out: 8, in: x}}
  y: {{type: {kind}, in: [{names}]}}
outputs: {{y: y}}
"""


def numbers(scene: Scene) -> list[str]:
    """Return the numbers in a drawing and its details."""
    texts = (text for one in scene.drawings for text in one.texts if text.role == "port")
    return sorted(text.text for text in texts if text.text.replace(", ", "").isdigit())


@pytest.mark.parametrize(
    ("paper", "box", "count"),
    [
        ("neural_turing_machine", "steps.write_head.rolled", 3),
        ("wide_and_deep", "deep.features", 10),
        ("hed", "", 0),
        ("retinanet", "", 0),
        ("googlenet", "", 0),
    ],
)
def test_arrowheads_have_numbers_where_they_come_in_another_order(paper: str, box: str, count: int) -> None:
    """All of a block, each its own, with nothing on them; in a detail, too."""
    recipe = composer.load(PAPERS / f"{paper}.yaml")
    figure = recipe.draw()
    ends = [wire for one in figure.scene.drawings for wire in one.wires if wire.target == box and wire.arrow]
    assert sorted(int(wire.place) for wire in ends) == [*range(1, count + 1)]
    found = numbers(figure.scene)
    assert {wire.place for wire in ends} <= {*found}
    assert found or not count
    assert [*overlaps(figure.scene), *borders(figure.scene), *misplaced(read(figure.svg()), recipe.program)] == []


def test_numbers_stand_at_arrowheads_of_turned_drawings() -> None:
    """Where these are once the stream runs to the right."""
    recipe = composer.load(PAPERS / "wide_and_deep.yaml")
    figure = recipe.draw(direction="right")
    assert len(numbers(figure.scene)) == 10
    assert [*overlaps(figure.scene), *misplaced(from_the_left(read(figure.svg())), recipe.program)] == []


@pytest.mark.parametrize(
    ("kind", "names", "told"),
    [
        ("concat", "left, right, middle", []),
        ("concat", "left, right", []),
        ("concat", "x, left, right, middle", ["1", "2", "3", "4"]),
        ("stack", "left, x, right", []),
        ("stack", "left, right, left", ["1, 3", "2"]),
        ("add", "x, left, right, middle", []),
    ],
)
def test_numbers_stand_only_where_an_order_is_not_seen(kind: str, names: str, told: list[str]) -> None:
    """Not at two values in their order, nor at what a sum reads."""
    unread = {"left", "right", "middle"} - {*names.split(", ")}
    text = JOINED.format(kind=kind, names=names)
    recipe = composer.load(text.replace("{y: y}", "{y: y" + "".join(f", {one}: {one}" for one in sorted(unread)) + "}"))
    figure = recipe.draw()
    assert numbers(figure.scene) == told
    assert [*overlaps(figure.scene), *misplaced(read(figure.svg()), recipe.program)] == []


def test_wrong_numbers_are_found() -> None:
    """One in place of another; and one that is missing."""
    recipe = composer.load(JOINED.format(kind="concat", names="x, left, right, middle"))
    svg = recipe.draw().svg()
    assert {number: sorted(made) for number, made in read_in_order(recipe.program)["y"].items()} == {
        1: ["x"],
        2: ["left"],
        3: ["right"],
        4: ["middle"],
    }
    assert [*misplaced(read(svg.replace(">2<", ">3<")), recipe.program)] == ["left → y: it is not number 3 there"]
    assert [*misplaced(read(svg.replace(">2<", "><")), recipe.program)] == ["y: some of what comes in has no number"]


@pytest.mark.parametrize(
    ("places", "ordered"),
    [(["1", "2", "3"], True), (["1", "3", "2"], False), (["2", "1"], True), (["1, 2", "3"], False), (["", "", ""], True)],
)
def test_order_is_that_of_the_recipe(places: list[str], ordered: bool) -> None:
    """One value at each arrowhead."""
    assert in_order(places) == ordered


def test_an_order_is_seen_at_one_side() -> None:
    """From the left, or from above; around a circle from its left."""

    def wire(place: str, *points: tuple[float, float]) -> WirePath:
        return WirePath(place, "y", points, place=place)

    below = [wire("1", (0, 20), (0, 0)), wire("2", (20, 20), (20, 0)), wire("3", (40, 20), (40, 0))]
    beside = [wire("1", (90, -30), (60, -30)), wire("2", (90, -20), (60, -20)), wire("3", (90, -10), (60, -10))]
    assert is_told(below, around=False)
    assert is_told(beside, around=False)
    assert not is_told([*below[:2], beside[2]], around=False)
    assert is_told([*below[:2], beside[2]], around=True)
    assert not is_told([beside[0], wire("1", (90, -10), (60, -10)), wire("2", (90, -40), (60, -40))], around=False)
    beneath, left, right = ((0, 30), (0, 10)), ((-30, 0), (-10, 0)), ((30, 0), (10, 0))
    assert is_told([wire("1", *beneath), wire("2", *right)], around=True)
    assert is_told([wire("2", *beneath), wire("1", *left)], around=True)
    assert not is_told([wire("1", *beneath), wire("2", *left)], around=True)
    assert not is_told([wire("1", *right), wire("2", *left)], around=True)


def test_what_a_recurrence_returns_has_the_number_of_what_it_starts_with() -> None:
    """At a box that reads one more value, whose name comes first: both come in by one wire."""
    recipe = composer.load(PAPERS / "planet.yaml")
    figure = recipe.draw()
    told = {(end.source, end.place) for end in figure.scene.wires if end.target == "steps.s_a" and end.arrow}
    assert told == {("steps.sample", "1"), ("action", "2")}
    assert [*overlaps(figure.scene), *misplaced(read(figure.svg()), recipe.program)] == []


def test_a_circle_has_numbers_where_what_is_at_its_left_is_not_the_first() -> None:
    """Of two values, too: what a map does with them depends on it."""
    recipe = composer.load(PAPERS / "planet.yaml")
    scene = recipe.draw().scene
    ends = [wire for wire in scene.wires if wire.arrow and wire.target in ("steps.h_o", "state")]
    assert {(wire.target, wire.place) for wire in ends} == {(path, one) for path in ("steps.h_o", "state") for one in ("1", "2")}
    for wire in ends:
        x, y = wire.points[-1]
        assert any(text.text == wire.place and abs(text.x - x) < 20 and abs(text.y - y) < 20 for text in scene.texts)
