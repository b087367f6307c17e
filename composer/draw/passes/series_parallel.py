"""What is series-parallel in a graph, and what is left when that is taken away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

Edges = Sequence[tuple[int, int]]
"""From a lower number to a higher one."""


def cuts(count: int, edges: Edges) -> list[int]:
    """Return the nodes that every way from below to above goes through: no edge jumps over them."""
    reach, found = 0, []
    furthest = [0] * count
    for a, b in edges:
        furthest[a] = max(furthest[a], b)
    for node in range(count):
        if reach <= node:
            found.append(node)
        reach = max(reach, furthest[node])
    return found


def segments(count: int, edges: Edges) -> Iterator[tuple[int, int]]:
    """Yield neighboring cuts with something between them."""
    yield from ((a, b) for a, b in pairwise(cuts(count, edges)) if b > a + 1)


def irreducible(start: int, end: int, edges: Edges) -> set[tuple[int, int]]:
    """Return what is left of the edges between two nodes after every node with one way in and one way out has become an
    edge, and edges between the same nodes are one (Valdes, Tarjan and Lawler 1982): the one edge from start to end
    where all is series-parallel.
    """
    after: dict[int, set[int]] = {}
    before: dict[int, set[int]] = {}
    for a, b in edges:
        after.setdefault(a, set()).add(b)
        before.setdefault(b, set()).add(a)
    waiting = [node for node in before if node not in (start, end)]
    while waiting:
        node = waiting.pop()
        if len(before.get(node, ())) != 1 or len(after.get(node, ())) != 1:
            continue
        (a,), (b,) = before.pop(node), after.pop(node)
        after[a].remove(node)
        before[b].remove(node)
        after[a].add(b)
        before[b].add(a)
        waiting += [one for one in (a, b) if one not in (start, end)]
    return {(a, b) for a, several in after.items() for b in several}


def ranks(start: int, end: int, edges: Edges) -> list[int]:
    """Return how high each node from `start` to `end` stands: above all that it reads, and near its readers
    where these are more, or where nothing of the start goes through it.
    """
    reads: dict[int, set[int]] = {}
    readers: dict[int, set[int]] = {}
    for a, b in edges:
        reads.setdefault(b, set()).add(a)
        readers.setdefault(a, set()).add(b)
    found = dict.fromkeys(range(start, end + 1), 0)
    for node in range(start + 1, end + 1):
        found[node] = 1 + max((found[one] for one in reads.get(node, ())), default=found[start])
    apart: set[int] = set()
    for node in range(start + 1, end):
        if reads.get(node, set()) <= apart:
            apart.add(node)
    for node in reversed(range(start + 1, end)):
        if node in readers and (node in apart or len(readers[node]) > len(reads.get(node, ()))):
            found[node] = min(found[one] for one in readers[node]) - 1
    return list(found.values())


def longest(count: int, edges: Edges) -> list[int]:
    """Return the nodes of the longest way from the first to the last; of several, that along lower numbers."""
    best: list[list[int]] = [[0], *([] for _ in range(count - 1))]
    for a, b in sorted(edges, key=lambda edge: (edge[1], edge[0])):
        if best[a] and len(best[a]) + 1 > len(best[b]):
            best[b] = [*best[a], b]
    return best[-1]
