"""What stands side by side: blocks between a fork and a join."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from composer.draw.diagram import Branches, Flow
from composer.draw.edges import DiagramSource, FrameInput, NodeOutput
from composer.draw.passes.branches import MAX_BESIDE_BRANCH, MAX_BRANCHES, group_branches
from composer.draw.passes.ladder import split_ladder
from composer.draw.passes.order import sort_topologically, split_u
from composer.draw.passes.pyramid import split_pyramid
from tests.draw.flows import flow


def paths(of: Flow) -> list[str]:
    return [item.about.path for item in of.items]


def test_two_ways_from_a_fork_to_a_join_are_branches() -> None:
    """Each a flow of its own, in the order in which they are written."""
    found = group_branches(flow("a: x", "b: a", "c: a", "d: c", "e: b, d"))
    branches = found.items[-1]
    assert paths(found) == ["a", "e"]
    assert isinstance(branches, Branches)
    assert [paths(one) for one in branches.flows] == [["b"], ["c", "d"]]
    assert branches.fork == DiagramSource(NodeOutput("a"))


def test_chain_has_no_branches() -> None:
    """It stays the very same."""
    chain = flow("a: x", "b: a", "c: b")
    assert group_branches(chain) is chain


def test_skip_around_one_block_is_no_branch() -> None:
    """One way has no block of its own, so that it is a wire beside the column."""
    assert paths(group_branches(flow("a: x", "b: a", "c: a, b"))) == ["a", "b", "c"]


def test_what_goes_past_two_branches_leads_up_between_them() -> None:
    """A gate that mixes a layer with its own input; around three, the wire is one beside the column."""
    found = group_branches(flow("a: x", "b: a", "c: a", "d: b, c, a"))
    branches = found.items[-1]
    assert isinstance(branches, Branches) and branches.bypass is not None
    assert paths(found) == ["a", "d"] and branches.bypass.source.path == "a"
    assert [edge.forks for edge in found.edges_into("d")] == [True]
    found = group_branches(flow("a: x", "b: a", "c: a", "d: a", "e: b, c, d, a"))
    branches = found.items[-1]
    assert isinstance(branches, Branches) and branches.bypass is None
    assert [edge.forks for edge in found.edges_into("e")] == [False, True]


def test_branch_that_another_block_reads_stays_in_the_column() -> None:
    """Its value would have to leave the branch halfway."""
    found = group_branches(flow("a: x", "b: a", "c: a", "d: b, c", "e: d, b"))
    assert paths(found) == ["a", "b", "c", "d", "e"]


def test_branch_with_a_box_beside_it_stays_in_the_column() -> None:
    """Where it would stand in the way of the other branch: at the left of a short first one there is room."""
    forked = flow("a: x", "b: a", "c: a", "d: b, c")
    assert paths(group_branches(forked, {"c"})) == paths(forked)
    assert paths(group_branches(forked, {"b"})) == paths(group_branches(forked, {"a", "d"})) == ["a", "d"]
    names = [f"b{number}" for number in range(MAX_BESIDE_BRANCH + 1)]
    long = ("a: x", "b0: a", *(f"{name}: {before}" for before, name in pairwise(names)), "c: a")
    assert paths(group_branches(flow(*long, f"d: {names[-1]}, c"), {"b0"})) == ["a", *names, "c", "d"]


def test_values_of_elsewhere_stand_beside_several_of_a_frame() -> None:
    """The former first, at the border from where their wire comes in; the latter fork where the frame begins."""
    found = group_branches(_fed("frame"))
    (branches,) = found.items
    assert isinstance(branches, Branches)
    assert [paths(one) for one in branches.flows] == [["far"], ["b"], ["c"]]
    assert branches.fork == DiagramSource(FrameInput("frame"))


def _fed(owner: str) -> Flow:
    """Return a frame in which a block reads two that are made of what the frame is given, and one of another column."""
    inside = flow(f"b: {owner}", f"c: {owner}", "far: b", "d: b, c, far", owner=owner)
    return inside.map_edges(lambda e: e.reading(DiagramSource(NodeOutput("other"))) if e.target == "far" else e)


def test_more_branches_than_a_page_is_wide_stay_a_column() -> None:
    """One more than there may be."""
    names = [f"b{number}" for number in range(MAX_BRANCHES + 1)]
    one_too_many = flow("a: x", *(f"{name}: a" for name in names), f"end: {', '.join(names)}")
    assert len(group_branches(one_too_many).items) == MAX_BRANCHES + 3
    fewer = flow("a: x", *(f"{name}: a" for name in names[1:]), f"end: {', '.join(names[1:])}")
    assert len(group_branches(fewer).items) == 2


def test_block_follows_what_it_reads_as_directly_as_can_be() -> None:
    """The way of `b` is finished before that of `c` begins."""
    assert paths(sort_topologically(flow("a: x", "b: a", "c: a", "d: b", "e: c", "f: d, e"))) == ["a", "b", "d", "c", "e", "f"]


def test_line_with_nested_skips_is_a_u() -> None:
    """Down to the last block that is read again, and up from there."""
    halves = split_u(flow("a: x", "b: a", "c: b", "d: c, b", "e: d, a"))
    assert halves is not None
    assert [paths(half) for half in halves] == [["a", "b"], ["c", "d", "e"]]
    crossed = flow("a: x", "b: a", "c: b", "d: c, a", "e: d, b")
    assert split_u(crossed) is None
    assert split_u(replace(crossed, edges=crossed.edges[:-1])) is None


def test_sums_with_values_of_a_trunk_in_reverse_order_are_a_pyramid() -> None:
    """Not where two levels cross, where another block reads inside of a row, or where a row is longer than one block."""
    trunk = ("a: x", "b: a", "c: b", "d: c", "top: d")
    found = split_pyramid(flow(*trunk, "p: c", "s: p, top", "q: b", "t: q, s", "r: a", "u: r, t", "end: top"))
    assert found is not None
    assert paths(found.trunk) == ["a", "b", "c", "d"]
    assert [paths(rung) for rung in found.rungs] == [["top"], ["p"], ["q"], ["r"]]
    assert [paths(drop) for drop in found.drops] == [["s"], ["t"], ["u"]]
    assert [paths(end) for end in found.ends] == [["end"], [], [], []]
    assert split_pyramid(flow(*trunk, "p: b", "s: p, top", "q: c", "t: q, s", "end: top")) is None
    assert split_pyramid(flow(*trunk, "p: c", "s: p, top", "q: b", "t: q, s", "end: top", "more: t, p")) is None
    assert split_pyramid(flow(*trunk, "p: c", "s: p, top", "q: b", "o: q", "t: o, s", "end: top")) is None


TRUNK, SIDES = ("a: x", "b: a", "c: b"), ("p: a", "q: b", "r: c")


def test_values_of_a_trunk_that_are_read_beside_it_and_meet_are_a_ladder() -> None:
    """The trunk ends where the levels are alike, though the last one would be a part of it, too."""
    found = split_ladder(flow(*TRUNK, *SIDES, "m: p, q, r", "n: m"))
    assert found is not None
    assert paths(found.trunk) == ["a", "b", "c"]
    assert [(rung.tap, rung.line) for rung in found.rungs] == [("a", ("p",)), ("b", ("q",)), ("c", ("r",))]
    assert [paths(part) for part in found.meetings] == [["m", "n"]]


def test_levels_of_a_ladder_part_in_heads_and_read_the_level_above() -> None:
    """By one block or by several; what is read twice there stands in one column with where it ends."""
    down = ("r: c", "up: r", "q0: b", "q: q0, up", "p0: a", "p: p0, q")
    heads = (f"{head}{level}: {level}" for head in "hk" for level in "pqr")
    found = split_ladder(flow(*TRUNK, *down, *heads, "m: hr, hp, hq", "n: kp, kq, kr"))
    assert found is not None
    assert [rung.heads for rung in found.rungs] == [("hp", "kp"), ("hq", "kq"), ("hr", "kr")]
    assert [rung.line for rung in found.rungs] == [("p0", "p"), ("q0", "q"), ("r",)]
    assert [rung.drop for rung in found.rungs] == [("q", (), "p"), ("r", ("up",), "q"), None]
    assert [rung.columns for rung in found.rungs] == [(0, 1), (0, 1), (0,)]


@pytest.mark.parametrize(
    "rest",
    [
        ("m: a, b, c",),  # nothing beside the trunk
        (*SIDES, "m: p, q, r, a"),  # it meets what the trunk gives
        (*SIDES, "m: p, q, r, x"),  # and what comes from elsewhere
        (*SIDES, "m: p, q, r", "n: m, p"),  # a level goes around the meeting
        ("p: a", "q: b, p", "r: c", "m: p, q, r"),  # a level reads the one below
        (*SIDES, "s: r, p", "m: s, q, r"),  # what leads down passes a level
        ("p: a", "q: b", "m: p, q, c"),  # too few
    ],
)
def test_other_ways_beside_a_trunk_are_no_ladder(rest: tuple[str, ...]) -> None:
    """What is drawn of them is as before."""
    assert split_ladder(flow(*TRUNK, *rest)) is None
