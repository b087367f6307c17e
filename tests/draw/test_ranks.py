"""Things in ranks: their order, against all others of a few, and hubs in the middle of their rows."""

from __future__ import annotations

from itertools import combinations, pairwise, permutations, product
from random import Random

import pytest

import composer
from composer.draw.layout.beside.middle import Middle
from composer.draw.layout.beside.order import Name, Ordering, Ranks, columns_of, turned
from composer.draw.layout.beside.tracks import Pin, RankNode, assigned
from composer.draw.passes.layers import Fan, fans, links_of
from composer.draw.scene import Scene
from tests.draw.flows import flow

TASKS = """
recipe: tasks
inputs: {x: "float[batch, 8]"}
blocks:
  expert:
    inputs: {in: "float[batch, 8]"}
    graph: {map: {type: linear, out: 8, in: in}, bend: relu}
  gate:
    inputs: {in: "float[batch, 8]", a: "float[batch, 8]", b: "float[batch, 8]", s: "float[batch, 8]"}
    graph: {all: {type: add, in: [in, a, b, s]}}
graph:
  a1: {type: expert, in: x}
  a2: {type: expert, in: x}
  shared: {type: expert, in: x}
  b1: {type: expert, in: x}
  b2: {type: expert, in: x}
  gate_a: {type: gate, in: {in: x, a: a1, b: a2, s: shared}}
  gate_b: {type: gate, in: {in: x, a: b1, b: b2, s: shared}}
  left: {type: linear, out: 3, in: gate_a}
  right: {type: linear, out: 3, in: gate_b}
outputs: {first: left, second: right}
"""
EXITS = """
recipe: exits
inputs:
  image: float[batch, 3, 64, 64]
  label: int[batch]?
blocks:
  stage:
    doc: Two convolutions, the first of which halves the image.
    params: {out: {type: int, required: true}}
    inputs: {x: "float[batch, channels, high, wide]"}
    graph:
      down: {type: conv2d, out: out, kernel_size: 3, stride: 2, padding: 1}
      bend: relu
  exit:
    doc: The mean over the pixels, and a classifier.
    inputs: {x: "float[batch, channels, high, wide]"}
    graph:
      flat: {type: rearrange, pattern: b c h w -> b (h w) c}
      mean: {type: pool, mode: mean}
      classify: {type: linear, out: 100}
graph:
  s1: {type: stage, out: 32}
  s2: {type: stage, out: 64}
  s3: {type: stage, out: 128}
  s4: {type: stage, out: 256}
  e1: {type: exit, in: s1}
  e2: {type: exit, in: s2}
  e3: {type: exit, in: s3}
  e4: {type: exit, in: s4}
outputs: {one: e1, two: e2, three: e3, four: e4}
losses:
  one: {type: cross_entropy, in: e1, target: label, weight: 0.25}
  two: {type: cross_entropy, in: e2, target: label, weight: 0.5}
  three: {type: cross_entropy, in: e3, target: label, weight: 0.75}
  four: {type: cross_entropy, in: e4, target: label}
"""


def middles(found: Scene) -> dict[str, float]:
    """Return how far to the right the middle of each block is."""
    return {box.about.path: box.x + box.width / 2 for box in found.boxes} | {one.about.path: one.x for one in found.merges}


def test_experts_stand_in_the_order_of_the_recipe_and_their_input_below_the_middle() -> None:
    """What each task alone reads at its side; and each output above its task."""
    found = middles(composer.load(TASKS).draw().scene)
    row = [found[path] for path in ("a1", "a2", "shared", "b1", "b2")]
    assert row == sorted(row)
    assert row[1] < found["x"] < row[3]
    assert (
        found["left"] == found["gate_a"] == found["outputs/first"] < found["outputs/second"] == found["gate_b"] == found["right"]
    )


def test_outputs_stand_straight_above_what_gives_them() -> None:
    """Each of several exits, whatever stands beside it."""
    found = middles(composer.load(EXITS).draw().scene)
    for number, name in enumerate(("one", "two", "three", "four"), 1):
        assert found[f"e{number}"] == found[f"outputs/{name}"]


def test_steps_stand_from_left_to_right_though_the_first_gives_the_first_output() -> None:
    """A cell in each column, which reads the state of the one before."""
    inputs = ", ".join(f"x{n}: 'float[batch, 4]'" for n in (1, 2, 3))
    lines = "  h1: {type: rnn_cell, hidden: 8, in: {x: x1, h: h0}}\n  y1: {type: linear, out: 3, in: h1}\n"
    for n in (2, 3):
        lines += (
            f"  h{n}: {{type: rnn_cell, hidden: 8, in: {{x: x{n}, h: h{n - 1}}}}}\n  y{n}: {{type: linear, out: 3, in: h{n}}}\n"
        )
    text = f"recipe: steps\ninputs: {{{inputs}, h0: 'float[batch, 8]'}}\ngraph:\n{lines}outputs: {{a: y1, b: y2, c: y3}}\n"
    found = middles(composer.load(text).draw().scene)
    assert found["h1"] < found["h2"] < found["h3"]
    assert all(found[f"h{n}"] == found[f"y{n}"] for n in (1, 2, 3))


def random_ranks(seed: int) -> tuple[Ranks, list[tuple[Name, Name]]]:
    """Return three ranks of two to four things, and some wires between them."""
    random = Random(seed)
    ranks = [[(f"{'abc'[rank]}{number}", rank) for number in range(random.choice([2, 3, 4]))] for rank in range(3)]
    hops = [hop for low, high in pairwise(ranks) for hop in product(low, high) if random.random() < 0.5]
    for rank in ranks:
        random.shuffle(rank)
    return ranks, hops


def crossings(ranks: Ranks, hops: list[tuple[Name, Name]]) -> int:
    """Count pairs of wires that change sides, one by one."""
    place = {name: number for rank in ranks for number, name in enumerate(rank)}
    pairs = [(one, other) for one, other in combinations(hops, 2) if one[0][1] == other[0][1]]
    return sum((place[a] - place[c]) * (place[b] - place[d]) < 0 for (a, b), (c, d) in pairs)


def ordering(hops: list[tuple[Name, Name]], names: list[Name]) -> Ordering:
    return Ordering(hops, {name: number for number, name in enumerate(sorted(names))}, columns_of(names, []), (), {}, {})


@pytest.mark.parametrize("seed", range(30))
def test_an_order_has_no_more_crossings_and_is_rather_that_of_the_recipe(seed: int) -> None:
    """Nothing is lost or added; no exchange of two in a rank has as many crossings and more of the recipe's order."""
    ranks, hops = random_ranks(seed)
    names = [name for rank in ranks for name in rank]
    known = ordering(hops, names)
    better = known.in_recipe_order(ranks)
    assert [sorted(rank) for rank in better] == [sorted(rank) for rank in ranks]
    known_crossings = sum(known.crossings_below(rank, better) for rank in range(len(better)))
    assert known_crossings == crossings(better, hops) <= crossings(ranks, hops)
    for rank, row in enumerate(better):
        for a, b in combinations(row, 2):
            other = [[{a: b, b: a}.get(one, one) for one in row] if at == rank else row for at, row in enumerate(better)]
            assert a < b or (crossings(other, hops), known.inverted(other)) >= (crossings(better, hops), known.inverted(better))


@pytest.mark.parametrize("seed", range(12))
def test_what_a_change_of_an_order_costs_is_what_all_ranks_cost_after_it_and_before(seed: int) -> None:
    """Though only ranks that it changes are looked at; and equal questions have one answer."""
    ranks, hops = random_ranks(seed)
    names = [name for rank in ranks for name in rank]
    known, same = ordering(hops, names), ordering([*hops], [*names])
    found = [*known.gains(ranks)]
    assert found
    for gain, other in found:
        assert gain == tuple(after - before for after, before in zip(known.cost(other), known.cost(ranks), strict=True))
    assert known == same and hash(known) == hash(same)
    assert known != ordering(hops[1:], names)
    assert known.in_recipe_order(ranks) == same.best_order(ranks)


def test_things_with_equal_wires_stand_in_the_order_of_the_recipe() -> None:
    """Whichever order they are found in."""
    hops = [((one, 0), ("hub", 1)) for one in "abcd"]
    names: list[Name] = [*((one, 0) for one in "abcd"), ("hub", 1)]
    for order in permutations("abcd"):
        found = ordering(hops, names).in_recipe_order([[(one, 0) for one in order], [("hub", 1)]])
        assert found[0] == [(one, 0) for one in "abcd"]


def test_taps_of_a_trunk_stand_at_one_side_in_the_order_of_the_recipe() -> None:
    """Wherever they were, since no exchange of two of them alone leads there without a crossing."""
    rows = [[("t", 0)], [("t1", 1), ("a", 1)], [("t2", 2), ("b", 2), ("a", 2)], [("e", 3), ("c", 3), ("b", 3), ("a", 3)]]
    hops = [(("t", 0), ("t1", 1)), (("t1", 1), ("t2", 2)), (("t2", 2), ("e", 3)), (("t2", 2), ("c", 3))]
    hops += [(("t", 0), ("a", 1)), (("a", 1), ("a", 2)), (("a", 2), ("a", 3)), (("t1", 1), ("b", 2)), (("b", 2), ("b", 3))]
    names = [name for row in rows for name in row]
    columns = columns_of(names, [hop for hop in hops if hop[1][0] in (hop[0][0], "t1", "t2", "e")])
    kin = {(one, 3): ("tap", number) for number, one in enumerate("abce")}
    known = Ordering(hops, {name: number for number, name in enumerate(names)}, columns, (), {}, {}, kin)
    assert turned(rows, kin) == 6
    assert known.in_recipe_order(rows)[-1] == [(one, 3) for one in "abce"]


def test_values_that_turn_off_to_one_side_do_not_cross() -> None:
    """The one that goes farthest around the others turns lowest, at either side, also where that is the longest."""
    start = {"a": 0.0, "b": 30.0, "c": 60.0}
    for sign, order in ((-1, "abc"), (1, "cba")):
        pins = [Pin(net, sign * 400.0 + x, None) for net, x in start.items()]
        heights = assigned(start, pins)
        assert sorted(start, key=heights.__getitem__) == [*order]


def test_the_lowest_rank_keeps_its_order() -> None:
    """Though another has fewer crossings: that is the order of the inputs."""
    hops = [(("a", 0), ("d", 1)), (("b", 0), ("c", 1))]
    known = Ordering(hops, {("a", 0): 0, ("b", 0): 1, ("c", 1): 2, ("d", 1): 3}, {}, [("a", 0), ("b", 0)], {}, {})
    assert known.keeps_first([[("a", 0), ("b", 0)]]) and not known.keeps_first([[("b", 0), ("a", 0)]])


def test_a_hub_stands_in_the_middle_of_two_and_leaves_others_room() -> None:
    """Exactly, unless something is in the way: then as near as that may be."""
    hub, left, right, other = ("h", 0), ("l", 1), ("r", 1), ("o", 0)
    for beside, at in ((-300.0, 0.0), (-100.0, 21.6)):
        nodes = {hub: RankNode("h", 100, x=100), left: RankNode("l", 100, x=-100), right: RankNode("r", 100, x=100)}
        nodes[other] = RankNode("o", 100, x=beside)
        hops = {(hub, left): 1, (hub, right): 1}
        Middle(nodes, [[other, hub], [left, right]], hops, columns_of(nodes, [])).center([(hub, [left, right])])
        assert nodes[hub].x == pytest.approx(at)
        assert (nodes[left].x, nodes[right].x) == (-100, 100) or at != 0


def test_fans_are_of_a_kind_and_feed_equally_long_ways() -> None:
    """Those that read each other's givers are an exchange."""
    apart = flow("a: x", "b: a", "c: a", "d: b", "e: c")
    rank = {"a": 0, "b": 1, "c": 1, "d": 2, "e": 2}
    assert [*fans(apart, links_of(apart), rank)] == [Fan("a", ("b", "c"))]
    exchange = flow("a: x", "b: x", "c: a, b", "d: a, b")
    assert [*fans(exchange, links_of(exchange), {"a": 0, "b": 0, "c": 1, "d": 1})] == []
    long = flow("a: x", "b: a", "c: a", "d: b", "e: d")
    assert [*fans(long, links_of(long), {"a": 0, "b": 1, "c": 1, "d": 2, "e": 3})] == []
