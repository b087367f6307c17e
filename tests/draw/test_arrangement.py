"""Where things stand: side by side, or above each other, as figures in papers have them."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

import composer
from composer.draw.fitting import MAX_PAGE_HEIGHT, MAX_PAGE_WIDTH
from composer.draw.geometry import Area
from tests.bench.bench_draw import large
from tests.draw.cases import FORMS, scenes
from tests.draw.checks import overlaps
from tests.operations import at_most


def places(case: str) -> dict[str, Area]:
    """Return the area of every box and frame of a drawing, by its path."""
    ((_, _, scene),) = scenes(case, "block")
    return {thing.about.path: thing.area for thing in (*scene.frames, *scene.boxes, *scene.merges)}


def beside(one: Area, other: Area) -> bool:
    """Return whether the first is left of the second, at a height that both have."""
    return one.right < other.left and one.top < other.bottom and other.top < one.bottom


def test_two_towers_stand_side_by_side() -> None:
    """Each from its own input up to the block where they meet, which stands above both."""
    at = places("form clip")
    assert beside(at["vision"], at["text"])
    assert beside(at["image"], at["tokens"])
    assert at["both"].bottom < min(at["image_out"].top, at["text_out"].top)


def test_encoder_stands_left_of_its_decoder() -> None:
    """With everything that the encoder reads."""
    at = places("zoo transformer")
    assert max(at[path].right for path in ("source", "embed", "encoder")) < at["decoder"].left


def test_branches_of_a_parallel_block_stand_side_by_side() -> None:
    """Attention and the feed-forward network of GPT-J read one norm."""
    at = places("form gptj")
    attention, ffn = (at[path] for path in at if path.endswith((".attn", ".ffn")))
    assert beside(attention, ffn)


def test_skips_of_a_u_go_straight_across() -> None:
    """From the way down on the left to the merge on the way up, and what turns stands below everything."""
    at = places("form unet")
    ((_, _, scene),) = scenes("form unet", "block")
    assert all(at[f"down_{stage}"].right < at[f"up_{stage}"].left for stage in (1, 2, 3))
    skips = [wire.points for wire in scene.wires if wire.target in ("join_1", "join_2")]
    across = [points for points in skips if points[0][0] < at["up_1"].left]
    assert len(across) == 2
    assert all(points[-2][1] == points[-1][1] for points in across)
    assert at["middle"].bottom == max(area.bottom for area in at.values())


def test_heads_stand_side_by_side_with_their_ends_in_a_row() -> None:
    """Each above the trunk, in the order in which they are written; outputs and losses are level, and wires straight."""
    at = places("form heads")
    ((_, _, scene),) = scenes("form heads", "block")
    row = [at[path] for path in ("outputs/logits", "losses.after", "losses.about", "losses.rating")]
    assert all(beside(one, other) for one, other in pairwise(row))
    assert len({area.bottom for area in row}) == 1
    assert max(area.bottom for area in row) < at["layers"].top
    assert at["head"].bottom == at["after"].bottom == at["pool"].bottom
    assert at["about"].bottom == at["rating"].bottom
    ends = [wire.points for wire in scene.wires if wire.target in ("outputs/logits", "losses.after") and wire.style != "far"]
    assert [len(points) for points in ends] == [2, 2]
    assert {wire.style for wire in scene.wires if wire.source == "after"} == {"loss"}


def test_attention_of_nodes_has_its_maps_level() -> None:
    """Queries, keys and values, from the left, though the scores of the first two are a branch beside the third."""
    at = places("form attention_of_nodes")
    assert beside(at["q"], at["k"]) and beside(at["k"], at["v"])
    assert at["q"].bottom == at["k"].bottom == at["v"].bottom
    assert at["scores"].bottom < at["q"].top and at["mix"].bottom < at["weights"].top


def test_towers_of_one_kind_stand_side_by_side() -> None:
    """Though each reads an input of the model alone: neither is something from the side."""
    at = places("form siamese")
    assert beside(at["a"], at["b"]) and beside(at["left"], at["right"])
    assert at["left"].bottom == at["right"].bottom
    middle = (at["product"].left + at["product"].right) / 2
    assert middle - at["left"].left == pytest.approx(at["right"].right - middle, abs=8)


def test_many_inputs_stand_in_their_order() -> None:
    """Twelve columns of a table in a row, each with what it becomes straight above it."""
    at = places("form columns_of_a_table")
    ((_, typed, scene),) = scenes("form columns_of_a_table", "block")
    names = list(typed.inputs)
    assert all(beside(at[one], at[other]) for one, other in pairwise(names))
    assert len({at[name].bottom for name in names}) == len({at[f"{name}_e"].bottom for name in names}) == 1
    assert [wire.source for wire in scene.wires if wire.target == "join"] == [f"{name}_e" for name in names]
    assert all(len(wire.points) == 2 for wire in scene.wires)


def test_what_reads_another_by_name_stands_above_it() -> None:
    """The end of a model that reads all layers is no head beside them."""
    at = places("form dense_layers")
    assert at["join"].bottom < at["layers"].top


def test_long_tower_is_wrapped_into_columns() -> None:
    """Sixty blocks on one page, in letters of the usual size; the stream goes on from each top to the next bottom."""
    at = places("form tower")
    ((_, _, scene),) = scenes("form tower", "block")
    assert scene.width <= MAX_PAGE_WIDTH and scene.height <= MAX_PAGE_HEIGHT
    columns: list[list[Area]] = []
    for node in range(60):
        area = at[f"n{node}"]
        if columns and area.left == columns[-1][0].left:
            assert area.bottom < columns[-1][-1].top
            columns[-1].append(area)
        else:
            columns.append([area])
    assert len(columns) == 3
    assert all(one[0].right < other[0].left for one, other in pairwise(columns))
    led = [wire.points for wire in scene.wires if len(wire.points) > 2]
    assert len(led) == 2
    assert all(points[-1][0] == points[-2][0] and points[-1][1] < points[-2][1] for points in led)  # up from below


def test_branches_may_be_outputs_too() -> None:
    """Each with an arrow to its name, beside the wire that goes on."""
    at = places("form vae")
    ((_, _, scene),) = scenes("form vae", "block")
    assert beside(at["mean"], at["logvar"])
    assert {wire.source for wire in scene.wires if wire.target in ("outputs/mean", "outputs/logvar")} == {"mean", "logvar"}


@pytest.mark.parametrize("count", [pytest.param(300, marks=pytest.mark.slow), pytest.param(1000, marks=pytest.mark.exhaustive)])
def test_many_tangled_nodes_are_drawn_soon(count: int) -> None:
    """In fifteen thousand calls each: a chain of maps with a sum of two near values at every seventh node, and more at random."""
    random = Random(1)
    lines = ["recipe: tangle", "inputs: {signal: 'float[batch, time, 8]'}", "graph:", "  n0: {type: linear, out: 8}"]
    for n in range(1, count):
        near = n - 3 if n % 7 == 3 else random.randrange(max(0, n - 15), n - 1) if n > 20 and n % 11 == 5 else None
        lines.append(f"  n{n}: {{type: linear, out: 8}}" if near is None else f"  n{n}: {{type: add, in: [n{n - 1}, n{near}]}}")
    recipe = composer.load("\n".join([*lines, f"outputs: {{y: n{count - 1}}}"]))
    assert recipe.program.root.nodes
    with at_most(count * 15_000):
        assert recipe.draw().svg()


@pytest.mark.slow
def test_heads_are_not_looked_for_behind_each_node_anew() -> None:
    """In about seven thousand calls each: nodes of which every third reads two before it, up to an end that is no output; six of
    them read a value twice, beside whose arrowhead there must be room for that.
    """
    recipe = composer.load(large(300))
    assert recipe.program.root.nodes
    with at_most(300 * 7_100):
        assert recipe.draw().svg()


def test_any_name_that_a_node_may_have_is_drawn() -> None:
    """Also those of the recipe's own sections, whose things stand on the page too."""
    names = ("outputs", "inputs", "losses", "graph", "params")
    nodes = "".join(f"\n  {name}: {{type: linear, out: 8}}" for name in names)
    recipe = f'recipe: names\ninputs: {{x: "float[batch, time, 8]"}}\ngraph:{nodes}\noutputs: {{y: params, outputs: outputs}}'
    scene = composer.load(recipe).draw().scene
    assert [*overlaps(scene)] == []
    assert {*names, "outputs/y"} <= {box.about.path for box in scene.boxes}


def test_a_scan_may_return_what_a_cell_gives_second() -> None:
    """The cell's memory, at every step."""
    path = next(path for path in FORMS if path.stem == "lstm_cell")
    recipe = path.read_text(encoding="utf-8").replace("{y: cell,", "{every: cell.c,")
    scene = composer.load(recipe).draw().scene
    assert [*overlaps(scene)] == []
    (cell,) = (box for box in scene.boxes if box.about.path == "layer.cell")
    (wire,) = (wire for wire in scene.wires if (wire.source, wire.target) == ("layer.cell", "layer"))
    assert wire.points[0][0] == cell.area.right  # where what is not given first leaves
