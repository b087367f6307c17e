"""Concatenations in frames that a split outside undoes: each value goes out of the frame by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

import composer
from composer.draw.options import Options
from composer.draw.scene import Scene
from tests.draw.checks import borders, ends, overlaps, starts
from tests.draw.edges import shown_in
from tests.draw.test_drawings import assert_every_edge
from tests.draw.test_read_back import wrong

PLANET = Path(__file__).parent / "papers" / "planet.yaml"
SCAN = """recipe: pieces
inputs: {{x: "float[batch, time, 8]"}}
graph:
  start: {{type: zeros, shape: [6], in: x}}
  steps:
    scan: time
    in: {{seen: x, h: start}}
    graph:
      both: {{type: concat, in: [seen, h]}}
      new: {{type: linear, out: 6}}
      mean: {{type: linear, out: 3}}
      raw: {{type: linear, out: 3, in: new}}
      std: {{compute: softplus(raw) + 0.1}}
      y: {{type: concat, in: [{order}]}}
    outputs: {{y: y, h: new}}
  parts: {{type: split, into: [state, mean, std], sizes: [{sizes}], in: steps}}
  out: {{type: linear, out: 5, in: parts.state}}
  far: {{type: linear, out: 3, in: parts.mean}}
  ends: {{type: concat, in: [out, far, parts.std]}}
outputs: {{ends: ends{more}}}
"""
GROUP = """recipe: pieces
inputs: {{x: "float[batch, time, 8]"}}
graph:
  trunk:
    in: x
    graph:
      a: {{type: linear, out: 6}}
      relu: relu
      b: {{type: linear, out: 3}}
      c: {{type: linear, out: 3, in: relu}}
      y: {{type: concat, in: [{order}]}}
  parts: {{type: split, into: [state, mean, std], sizes: [{sizes}], in: trunk}}
  out: {{type: linear, out: 5, in: parts.state}}
  far: {{type: linear, out: 3, in: parts.mean}}
  ends: {{type: concat, in: [out, far, parts.std]}}
outputs: {{ends: ends{more}}}
"""
RIGHT = {"scan": (SCAN, "new, mean, std"), "group": (GROUP, "a, b, c")}


def text(name: str, order: str = "", sizes: str = "6, 3, 3", more: str = "") -> str:
    """Return a recipe in which a frame gives three values as one."""
    recipe, usual = RIGHT[name]
    return recipe.format(order=order or usual, sizes=sizes, more=more)


def drawn(source: str, **options: object) -> Scene:
    """Return a drawing of a recipe in which nothing is wrong."""
    recipe = composer.load(source)
    scene = recipe.draw(**options).scene  # type: ignore[arg-type]  # any of the options
    assert [fault for check in (overlaps, borders, ends, starts) for fault in check(scene)] == []
    assert_every_edge(source, recipe.program, scene)
    return scene


LOOKS: list[Options] = [{}, {"direction": "right"}, {"theme": "slide"}, {"width": "240pt"}]


@pytest.mark.parametrize("options", LOOKS)
@pytest.mark.parametrize("name", RIGHT)
def test_pieces_leave_a_frame_by_themselves(name: str, options: Options) -> None:
    """Neither of both is a box; the frame tells of them."""
    scene = drawn(text(name), **options)
    assert shown_in(scene).isdisjoint({"parts", "steps.y", "trunk.y"})
    said = [frame.about.description for frame in scene.frames]
    assert "state, mean, std are concatenated and split" in said
    assert wrong(composer.load(text(name)), "block") == []


@pytest.mark.parametrize("options", LOOKS)
def test_states_and_distributions_leave_the_steps_of_a_world_model(options: Options) -> None:
    """As its paper draws them."""
    recipe = composer.load(PLANET)
    scene = recipe.draw(**options).scene
    narrow = "width" in options  # a column of a paper has room for an overview
    assert ("parts" in shown_in(scene)) == narrow
    assert "steps.y" not in shown_in(scene)
    assert [fault for check in (overlaps, borders, ends, starts) for fault in check(scene)] == []
    assert_every_edge("planet", recipe.program, scene)


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize(
    "planted",
    [
        {"sizes": "4, 4, 4"},
        {"more": {"scan": ", whole: steps", "group": ", whole: trunk"}},
        {"more": {"scan": ", last: steps.h", "group": ", made: trunk.a"}},
        {"order": {"scan": "mean, new, std", "group": "b, a, c"}, "sizes": "4, 4, 4"},
    ],
)
def test_what_does_not_cancel_out_is_drawn(name: str, planted: dict[str, object]) -> None:
    """Pieces of other sizes, another reader of the whole or of the inside, one value twice."""
    chosen = {key: value[name] if isinstance(value, dict) else value for key, value in planted.items()}
    scene = drawn(text(name, **chosen))  # type: ignore[arg-type]  # all are texts
    assert "parts" in shown_in(scene)


@pytest.mark.parametrize(("name", "order"), [("scan", "new, std, mean"), ("group", "a, c, b")])
def test_a_piece_is_what_it_takes_apart_whatever_it_is_called(name: str, order: str) -> None:
    """In the order of the recipe."""
    assert "parts" not in shown_in(drawn(text(name, order)))


def test_a_pair_that_does_not_cancel_out_is_missed_where_it_is_left_out() -> None:
    """A split in another order or of other sizes, planted behind a drawing that leaves it out."""
    scene = drawn(text("scan"))
    for planted in (text("scan", "new, std, mean"), text("scan", sizes="4, 4, 4"), text("scan", "mean, new, std", "4, 4, 4")):
        with pytest.raises(AssertionError):
            assert_every_edge("planted", composer.load(planted).program, scene)


@pytest.mark.parametrize("option", ["highlight", "open"])
def test_what_an_option_names_is_drawn(option: str) -> None:
    """Both, whichever it names; a split alone may be hidden, too."""
    for path, other in (("parts", "steps.y"), ("steps.y", "parts")):
        scene = composer.load(text("scan")).draw(**{option: [path]}).scene  # type: ignore[arg-type]  # any of these
        assert other in shown_in(scene)
    assert "steps.y" in shown_in(composer.load(text("scan")).draw(labels={"parts": "Some words"}).scene)
    assert "steps.y" in shown_in(composer.load(text("scan")).draw(hide=["parts"]).scene)


def test_all_is_drawn_at_the_level_full() -> None:
    """With each single map."""
    assert {"parts", "steps.y"} <= shown_in(composer.load(text("scan")).draw("full").scene)


def test_two_frames_in_a_row_are_both_drawn_so() -> None:
    """The second one reads a piece of the first."""
    whole = text("group")
    second = whole[whole.index("  trunk:") : whole.index("  out:")].replace("trunk", "more").replace("parts", "others")
    second = second.replace("in: x", "in: parts.state")
    whole = whole.replace("  out:", f"{second}  out:").replace("in: parts.state}", "in: others.state}", 1)
    whole = whole.replace("[out, far, parts.std]", "[out, far, parts.std, others.mean, others.std]")
    assert shown_in(drawn(whole)).isdisjoint({"parts", "others", "trunk.y", "more.y"})


def test_the_first_value_that_leaves_is_named_where_others_are() -> None:
    """A reader sees which of the wires that leave the steps of a recurrence is which."""
    scene = drawn(PLANET.read_text(encoding="utf-8"))
    (frame,) = (one for one in scene.frames if one.about.path == "steps")
    said = [one for one in scene.texts if one.role == "port" and one.text in ("h", "s")]
    above = [one for one in said if one.area.bottom <= frame.area.top]
    assert [one.text for one in above] == ["h"]
    assert "s" in {one.text for one in said if one.area.right < frame.area.left + 1}
