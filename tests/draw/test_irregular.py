"""Parts that are neither in line nor side by side: what is found, against networkx, and how it is drawn."""

from __future__ import annotations

from collections import Counter
from random import Random

import networkx as nx
import pytest
from networkx.algorithms.approximation import treewidth_min_degree

import composer
from composer.draw.layout import irregular
from composer.draw.layout.beside import layered
from composer.draw.passes.series_parallel import cuts, irreducible, ranks
from composer.draw.scene import Scene
from tests.draw.cases import FORMS
from tests.draw.checks import overlaps
from tests.draw.edges import Readers, drawn
from tests.draw.processes import printed
from tests.draw.wired import mixed, ring

SEEDS = range(300)


def graph(seed: int) -> tuple[int, list[tuple[int, int]]]:
    """Return the edges at random, all of them upwards, so that every node lies on a way from the first to the last."""
    random = Random(seed)
    count = random.randrange(3, 12)
    edges = {(a, b) for a in range(count) for b in range(a + 1, count) if random.random() < 0.25}
    edges |= {(random.randrange(b), b) for b in range(1, count) if all(end != b for _, end in edges)}
    edges |= {(a, count - 1) for a in range(count - 1) if all(start != a for start, _ in edges)}
    return count, sorted(edges)


@pytest.mark.parametrize("seed", SEEDS)
def test_cuts_are_the_dominators_of_the_last(seed: int) -> None:
    """The nodes that all ways go through, as networkx finds them."""
    count, edges = graph(seed)
    immediate = nx.immediate_dominators(nx.DiGraph(edges), 0)
    chain = [count - 1]
    while chain[-1] != 0:
        chain.append(immediate[chain[-1]])
    assert cuts(count, edges) == chain[::-1]


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_series_parallel_is_of_width_two(seed: int) -> None:
    """A graph between two nodes is series-parallel where it has tree-width at most 2 together with an edge between these."""
    count, edges = graph(seed)
    whole = nx.Graph([*edges, (0, count - 1)])
    width, _ = treewidth_min_degree(whole)  # which is exact up to 2
    assert (irreducible(0, count - 1, edges) == {(0, count - 1)}) == (width <= 2)


def test_both_are_met() -> None:
    """The graphs of these tests are of either kind."""
    kinds = Counter(len(irreducible(0, count - 1, edges)) == 1 for count, edges in map(graph, SEEDS))
    assert min(kinds[True], kinds[False]) > 50


@pytest.mark.parametrize("seed", range(20))
def test_every_node_stands_above_what_it_reads(seed: int) -> None:
    """And the last above all."""
    count, edges = graph(seed)
    found = ranks(0, count - 1, edges)
    assert all(found[a] < found[b] for a, b in edges)
    assert max(found) == found[-1]


def form(name: str) -> composer.Recipe:
    return composer.load(next(path for path in FORMS if path.stem == name))


def side_by_side(scene: Scene) -> int:
    """Return how many boxes stand at most beside each other."""
    return max(Counter(round(box.y + box.height / 2) for box in scene.boxes).values())


def test_a_bridge_is_no_column() -> None:
    """The smallest irreducible graph: its two arms stand beside each other, no wire goes around."""
    scene = form("bridge").draw().scene
    boxes = {box.about.path: box for box in scene.boxes}
    assert boxes["a"].y == boxes["b"].y
    assert scene.width < 400


def test_a_cell_is_drawn_as_wide_as_it_is() -> None:
    """Six operations read what comes in, and stand in one row."""
    assert side_by_side(form("nasnet_cell").draw().scene) == 6


@pytest.mark.parametrize(("name", "most"), [("resnext", 4), ("inception", 4), ("nested_branches", 3)])
def test_branches_stand_side_by_side_whatever_goes_past_them(name: str, most: int) -> None:
    """Also those of a residual, or of another branch."""
    assert side_by_side(form(name).draw().scene) == most


def test_what_is_rather_a_line_stays_one() -> None:
    """Each layer of a dense block reads all before it: lanes beside a column."""
    lines, names = "", ["stem"]
    for number in range(1, 6):
        lines += f"  sum{number}: {{type: add, in: [{', '.join(names)}, stem]}}\n"
        lines += f"  map{number}: {{type: linear, out: 8}}\n  bend{number}: gelu\n"
        names.append(f"bend{number}")
    text = "recipe: dense\ninputs: {x: 'float[batch, time, 8]'}\ngraph:\n  stem: {type: linear, out: 8}\n" + lines
    scene = composer.load(text + "outputs: {y: bend5}\n").draw().scene
    assert len({box.x + box.width / 2 for box in scene.boxes}) == 1


@pytest.mark.parametrize("write", [ring, mixed])
def test_without_graphviz_there_are_lanes(write: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is refused: the same blocks and edges stand in one column."""
    for layout in (irregular, layered):
        monkeypatch.setattr(layout, "pure", lambda: None)
    for seed in range(4):
        recipe = composer.load(write(seed))  # type: ignore[operator]  # one of two functions
        scene = recipe.draw().scene
        assert len({box.x + box.width / 2 for box in scene.boxes}) == 1
        assert list(overlaps(scene)) == []
        truth = Readers(recipe.program, quiet=True)
        assert truth.pairs == set(drawn(scene, truth.blocks))


@pytest.mark.slow
def test_any_process_wires_alike() -> None:
    """Byte by byte, whatever order its sets have."""
    code = "import composer; from tests.draw.wired import ring; print(composer.load(ring(3)).draw().svg())"
    assert len(printed(code)) == 1


def test_large_parts_have_lanes() -> None:
    """Hundreds of blocks beside each other are no figure; they take seconds, not minutes."""
    scene = composer.load(ring(1, 150)).draw().scene
    assert scene.width < 3000
