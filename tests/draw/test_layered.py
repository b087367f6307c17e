"""Flows that no pattern fits, in layers: where blocks stand, against what papers do, and when layers are chosen."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise
from random import Random

import pytest

import composer
from composer.draw.layout.beside import layered
from composer.draw.layout.beside.measure import clearer, measured
from composer.draw.layout.fragment import Fragment
from composer.draw.passes.layers import links_of, streams
from composer.draw.scene import Scene, WirePath
from tests.draw.cases import FORMS, PAPERS
from tests.draw.checks import borders, ends, overlaps, starts
from tests.draw.edges import Readers, drawn
from tests.draw.flows import flow
from tests.draw.processes import printed

SHAPES = ["slowfast", "bifpn", "mixture_of_tasks", "high_resolution", "hypernetwork", "two_tracks"]
"""Two streams with exchanges, levels with several inputs and outputs, experts of two tasks, resolutions side by side, a
network that makes what another reads, and layers that carry two streams.
"""


def scene(name: str) -> Scene:
    return composer.load(next(path for path in FORMS if path.stem == name)).draw().scene


def middles(found: Scene) -> dict[str, tuple[float, float]]:
    """Return where the middle of each block is."""
    boxes = {box.about.path: (box.x + box.width / 2, box.y + box.height / 2) for box in found.boxes}
    return boxes | {one.about.path: (one.x, one.y) for one in found.merges}


@pytest.mark.parametrize("name", SHAPES)
def test_each_edge_is_drawn_and_nothing_lies_on_anything(name: str) -> None:
    """Every wire leads from what gives a value to what reads it."""
    recipe = composer.load(next(path for path in FORMS if path.stem == name))
    found = recipe.draw().scene
    assert [*overlaps(found), *borders(found), *ends(found), *starts(found)] == []
    truth = Readers(recipe.program, quiet=True)
    assert truth.pairs == set(drawn(found, truth.blocks))


@pytest.mark.parametrize("name", SHAPES)
def test_inputs_are_lowest_in_their_order_and_outputs_highest(name: str) -> None:
    """Whatever reads them, and however long the way to them is."""
    recipe = composer.load(next(path for path in FORMS if path.stem == name))
    found = middles(recipe.draw().scene)
    inputs = [found[one.name] for one in recipe.program.untyped.inputs]
    outputs = [place for path, place in found.items() if path.startswith("outputs")]
    assert {y for _, y in inputs} == {max(y for _, y in found.values())}
    assert {y for _, y in outputs} == {min(y for _, y in found.values())}
    assert inputs == sorted(inputs)


def test_two_streams_are_straight_columns() -> None:
    """Each of them, and what is led from one to the other stands between them."""
    found = middles(scene("slowfast"))
    slow = {found[path][0] for path in ("clip", "slow1", "fuse1", "slow2", "fuse2", "slow3", "both", "head")}
    fast = {found[path][0] for path in ("fast_clip", "fast1", "fast2", "fast3")}
    assert len(slow) == len(fast) == 1
    assert all(min(slow) < found[path][0] < min(fast) for path in ("lateral1", "lateral2"))


def test_what_two_tasks_share_stands_between_them() -> None:
    """Five blocks in a row, the shared one in the middle; a tower above each merge."""
    found = middles(scene("mixture_of_tasks"))
    row = ("expert1", "expert2", "expert3", "gate_a", "gate_b")
    assert len({found[path][1] for path in row}) == 1
    assert sorted(row, key=found.__getitem__)[2] == "expert2"
    assert found["stem"][0] == found["expert2"][0]
    for task in "ab":
        assert len({found[path][0] for path in (f"mix_{task}", f"tower_{task}1", f"bend_{task}", f"tower_{task}2")}) == 1


def paper(name: str, more: tuple[str, str] = ("", ""), details: Sequence[str] = ("auto",)) -> Scene:
    """Return the drawing of a model of a paper, of which the first text has some more behind it."""
    text = next(path for path in PAPERS if path.stem == name).read_text(encoding="utf-8")
    return composer.load(text.replace(more[0], "".join(more), 1)).draw(details=details).scene


MORE = {"hed": ("axis: -3, in: [", "stages(0), "), "retinanet": ("outputs: {", "first: class3, ")}
"""What makes it more than a trunk with a row for each level."""


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("hed", ("side1", "side2", "side3", "side4", "side5")),
        ("hed", tuple(f"outputs/side{n}" for n in range(1, 6))),
        ("retinanet", ("p3", "p4", "p5", "p7")),
        ("retinanet", ("box3", "box4", "box5", "box7")),
        ("retinanet", ("class4", "class5", "class7")),
    ],
)
def test_what_taps_a_trunk_stands_in_the_order_of_the_recipe(name: str, row: tuple[str, ...]) -> None:
    """From the left, though it would be nearer to the trunk around its middle."""
    found = middles(paper(name, MORE[name]))
    assert [*row] == sorted(row, key=found.__getitem__)


def test_no_value_goes_around_its_column() -> None:
    """All of a pyramid is read at its left, and leaves it there."""
    found = paper("raft", details=["none"])
    column = middles(found)["level3"][0]
    wires = [wire for wire in found.wires if wire.target == "updates"]
    assert max(x for wire in wires for x, _ in wire.points) == pytest.approx(column)


@pytest.mark.parametrize("name", ["gpt2", "t5"])
def test_what_patterns_draw_stays_as_it_is(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Byte by byte: a chain of layers, and an encoder beside a decoder."""
    usual = composer.load(name).draw().svg()
    monkeypatch.setattr(layered, "pure", lambda: None)
    assert composer.load(name).draw().svg() == usual


def test_without_graphviz_there_is_a_column(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same edges."""
    monkeypatch.setattr(layered, "pure", lambda: None)
    found = scene("hypernetwork")
    assert list(overlaps(found)) == []
    assert len({x for path, (x, _) in middles(found).items() if path != "layer1"}) == 1


@pytest.mark.slow
def test_any_process_makes_the_same_layers() -> None:
    """Byte by byte, whatever order its sets have."""
    path = next(path for path in FORMS if path.stem == "bifpn")
    assert len(printed(f"import composer; from pathlib import Path; print(composer.load(Path({str(path)!r})).draw().svg())")) == 1


def test_streams_go_through_what_a_residual_connection_goes_around() -> None:
    """The sum goes on from the last block of its body, though it reads first what comes in."""
    chain = flow("a: x", "b: a", "c: b", "d: a, c", "e: d")
    assert streams(chain, links_of(chain)) == [["a", "b", "c", "d", "e"]]


def test_what_all_heads_read_stands_below_what_they_share() -> None:
    """In the middle between heads that are alike, each with what they share at its inner side."""
    found = paper("mmoe")
    places = middles(found)
    trunk = {round(places[path][0], 1) for path in ("x", "experts.fc", "all_experts")}
    assert trunk == {round((places["gate_income.mix"][0] + places["gate_married.mix"][0]) / 2, 1)}
    (middle,) = trunk
    inner = [wire for wire in found.wires if wire.source == "all_experts"]
    assert len(inner) == 2
    assert all(abs(wire.points[-1][0] - middle) < abs(places[wire.target][0] - middle) for wire in inner)


def test_alike_blocks_that_read_one_value_are_a_row() -> None:
    """Above it, whatever the heights of what they lead to; and the inputs of a block from inside are one too."""
    (detail,) = paper("neural_turing_machine").details
    places = {path.rpartition(".")[2]: place for path, place in middles(detail.inside).items()}
    assert len({places[name][1] for name in ("key", "strength", "gate", "shifts", "sharpness")}) == 1
    assert len({places[name][1] for name in ("memory", "before", "controller")}) == 1


def test_streams_that_exchange_values_stay_apart() -> None:
    """Two merges read both, in the same order; each goes on from one of them."""
    both = flow("a: x", "b: y", "c: a, b", "d: a, b", "e: c", "f: d")
    assert streams(both, links_of(both)) == [["a", "c", "e"], ["b", "d", "f"]]


def random_wires(seed: int) -> list[WirePath]:
    """Return wires of one or two corners, no two of which share a height or a place."""
    random = Random(seed)
    xs, ys = random.sample(range(1000), 24), random.sample(range(1000), 24)
    wires = []
    for number in range(8):
        (a, b), (c, d) = xs[3 * number : 3 * number + 2], ys[3 * number : 3 * number + 2]
        wires.append(WirePath(f"s{number}", f"t{number}", ((a, c), (a, d), (b, d))))
    return wires


def sided(p: tuple[float, float], q: tuple[float, float], r: tuple[float, float]) -> bool:
    """Return whether three points turn left."""
    return (q[0] - p[0]) * (r[1] - p[1]) > (q[1] - p[1]) * (r[0] - p[0])


@pytest.mark.parametrize("seed", range(20))
def test_crossings_are_counted_as_orientations_tell(seed: int) -> None:
    """Two pieces cross where the ends of each lie at both sides of the other, and nothing else is counted."""
    found = Fragment(right=1.0, height=1.0)
    found.pieces.wires = random_wires(seed)
    count = 0
    for one, other in combinations(found.pieces.wires, 2):
        for a, b in pairwise(one.points):
            for c, d in pairwise(other.points):
                count += sided(a, b, c) != sided(a, b, d) and sided(c, d, a) != sided(c, d, b)
    assert measured(found).crossings == count


def test_a_drawing_has_to_be_clearly_better_to_be_taken() -> None:
    """Equal ones are not, nor such as save one corner of ten."""

    def bent(corners: int) -> Fragment:
        found = Fragment(right=1.0, height=1.0)
        found.pieces.wires = [WirePath("a", "b", tuple((0.01 * n, 0.0) for n in range(corners + 2)))]
        return found

    assert not clearer(bent(10), bent(10))
    assert not clearer(bent(10), bent(9))
    assert clearer(bent(10), bent(5))
