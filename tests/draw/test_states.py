"""States of recurrences that several blocks read: boxes, into which one wire back leads."""

from __future__ import annotations

from random import Random

import pytest

import composer
from composer.draw.scene import Box, Scene
from tests.draw.cases import PAPERS
from tests.draw.checks import borders, ends, overlaps, starts
from tests.draw.test_drawings import assert_every_edge
from tests.draw.test_read_back import wrong

COUNT, MORE = 12, 400
"""Recipes with recurrences, in the usual tests and in the exhaustive ones."""
HEADS = """recipe: heads
inputs: {signal: "float[batch, time, 16]"}
graph:
  start: {type: parameter, shape: [16]}
  steps:
    scan: time
    in: {x: signal, memory: start, seen: start}
    graph:
      look: {type: linear, out: 16, in: READ}
      found: {compute: look * x + seen}
      write: {compute: memory + found}
    outputs: {y: found, memory: write, seen: found}
  head: {type: linear, out: 3, in: steps}
outputs: {logits: head}
"""


def states(scene: Scene) -> dict[str, Box]:
    """Return the boxes that stand for states, by their paths."""
    return {one.about.path: one for one in scene.boxes if one.hue == "state"}


def led(scene: Scene, path: str) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return what leads into a box and what it leads to, with the styles of the wires."""
    into = sorted((one.source, one.style) for one in scene.wires if one.target == path)
    return into, sorted((one.target, one.style) for one in scene.wires if one.source == path and one.target)


def test_a_state_that_two_blocks_read_is_a_box() -> None:
    """With its name and its shape; what it starts with joins the wire back, and plain wires lead to what reads it."""
    scene = composer.load(HEADS.replace("READ", "memory")).draw().scene
    (memory,) = states(scene).values()
    assert [text.text for text in memory.texts] == ["memory", "B × 16"] and memory.dashed
    into, read = led(scene, "steps.memory")
    assert into == [("start", "far"), ("steps.write", "loop")]
    assert read == [("steps.look", "main"), ("steps.write", "main")]
    (start,) = (one for one in scene.references if one.target == "steps.memory")
    assert start.text.text == "start (16, learned) at first"


def test_into_the_only_reader_of_a_state_the_wire_back_leads_itself() -> None:
    """A box would only be one more."""
    scene = composer.load(HEADS.replace("READ", "x")).draw().scene
    assert not states(scene)
    assert {one.target for one in scene.wires if one.style == "loop"} == {"steps.found", "steps.write"}


def test_a_value_that_two_states_start_with_at_one_wire_stays_there() -> None:
    """That wire is of both, so none of them is a box without it."""
    both = HEADS.replace("READ", "memory").replace("{compute: look * x + seen}", "{type: concat, in: [look, memory, seen]}")
    both = both.replace("  write: {compute: memory + found}", "  write: {type: linear, out: 16, in: found}")
    both = both.replace("seen: found}", "seen: write}")
    recipe = composer.load(both)
    assert not states(recipe.draw().scene)
    assert wrong(recipe, "block") == []


def test_the_memory_of_a_turing_machine_is_an_object() -> None:
    """Its write head and what writes read the same one, and the heads still stand beside the maps of what is written."""
    scene = composer.load(next(path for path in PAPERS if path.stem == "neural_turing_machine")).draw(details=["none"]).scene
    assert states(scene).keys() == {"steps.memory"}
    assert led(scene, "steps.memory")[1] == [("steps.new_memory", "main"), ("steps.write_head", "main")]
    assert [one.source for one in scene.wires if one.target == "steps.memory"].count("steps.new_memory") == 1
    feet = {one.about.path: one.area.bottom for one in scene.boxes}
    assert feet["steps.write_head"] == feet["steps.erase"] == feet["steps.write"]


def test_what_a_loop_into_a_circle_starts_with_joins_that() -> None:
    """At the same side, where it is no third value that is joined."""
    scene = composer.load(next(path for path in PAPERS if path.stem == "neural_turing_machine")).draw(details=["none"]).scene
    (loop,) = (one for one in scene.wires if one.target == "steps.seen" and one.style == "loop")
    (start,) = (one for one in scene.wires if one.target == "steps.seen" and one.source == "start_read")
    assert loop.arrow and not start.arrow
    assert start.points[-1][1] == loop.points[-1][1] and start.points[-1] in {(dot.x, dot.y) for dot in scene.dots}


def recurrence(seed: int) -> str:
    """Return the text of a scan with up to three states, each of which any blocks of a step read and give."""
    random = Random(seed)
    names = [f"s{number}" for number in range(random.choice([1, 1, 2, 2, 3]))]
    outer, given, graph = ["  nothing: {type: zeros, shape: [16], in: signal}"], {}, []
    for name in names:
        made = [f"  pool_{name}: {{type: mean, axis: time, in: signal}}", f"  at_{name}: {{type: linear, out: 16}}"]
        kinds = [(f"at_{name}", made), ("nothing", []), (f"at_{name}", [f"  at_{name}: {{type: parameter, shape: [16]}}"])]
        given[name], more = random.choice(kinds)
        outer += more
    known = ["x"]
    for number in range(random.choice([3, 4, 5, 6, 7])):
        one, two = random.sample([*names, *known], 2)
        forms = [
            f"n{number}: {{type: linear, out: 16, in: {one}}}",
            f"n{number}: {{type: add, in: [{one}, {two}]}}",
            f"n{number}: {{type: gru_cell, hidden: 16, in: {{x: {one}, h: {random.choice(names)}}}}}",
            f"n{number}: {{compute: tanh({one}) * {two}}}",
            f"n{number}: {{type: residual, in: {one}, body: {{type: ffn, hidden: 32}}}}",
            f"a{number}: {{type: linear, out: 16, in: {one}}}|b{number}: {{type: linear, out: 16, in: {two}}}"
            f"|n{number}: {{compute: a{number} * b{number} + {random.choice(names)}}}",
            f"a{number}: {{type: concat, in: [{one}, {two}]}}|n{number}: {{type: linear, out: 16}}",
        ]
        graph += random.choice(forms).split("|")
        known.append(f"n{number}")
    graph.append(f"last: {{compute: {' + '.join([*names, *known])}}}")
    outputs = {"y": "last", **{name: random.choice([*known[1:], "last"]) for name in names}}
    wired = ", ".join(f"{name}: {start}" for name, start in {"x": "signal", **given}.items())
    if "nothing" not in given.values():
        outer.pop(0)
    steps = ["  steps:", "    scan: time", f"    in: {{{wired}}}", "    graph:", *(f"      {line}" for line in graph)]
    steps.append(f"    outputs: {{{', '.join(f'{name}: {value}' for name, value in outputs.items())}}}")
    head = ["recipe: recurrence", 'inputs: {signal: "float[batch, time, 16]"}', "graph:", *outer, *steps]
    return "\n".join([*head, "  head: {type: linear, out: 3, in: steps}", "outputs: {logits: head}", ""])


@pytest.mark.parametrize(
    "seed", [*range(COUNT), *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(COUNT, MORE))]
)
def test_recurrences_are_told_as_they_are(seed: int) -> None:
    """Every edge once, through boxes of states too; nothing lies on anything."""
    recipe = composer.load(recurrence(seed))
    scene = recipe.draw().scene
    assert wrong(recipe, "block") == []
    assert [fault for check in (overlaps, borders, ends, starts) for fault in check(scene)] == []
    assert_every_edge(f"recurrence {seed}", recipe.program, scene)
