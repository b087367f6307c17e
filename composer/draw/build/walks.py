"""Into which graphs inside a node a drawing looks, for `walk`."""

from __future__ import annotations

from collections.abc import Iterator

from composer.graph.anatomy import Region, regions
from composer.graph.typed import TypedGraph, TypedRepeat
from composer.graph.visit import Visit


def by_place(visit: Visit) -> Iterator[tuple[str, Region[TypedGraph]]]:
    """Yield every pass; the paths are the names of the `state_dict`, which passes with one set of weights share."""
    for region in regions(visit.node):
        yield f"{visit.path}.{region.name}", region


def first_pass(visit: Visit) -> Iterator[tuple[str, Region[TypedGraph]]]:
    """Yield the first graph inside; the paths are those of the drawing, without passes."""
    for region in regions(visit.node)[:1]:
        yield f"{visit.path}.", region


def outside_repeats(visit: Visit) -> Iterator[tuple[str, Region[TypedGraph]]]:
    """Yield the graph inside of what is no repeat."""
    if not isinstance(visit.node, TypedRepeat):
        yield from first_pass(visit)
