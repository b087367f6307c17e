"""Repeats with one set of weights: which module computes which pass, and whose weights it has."""

from __future__ import annotations

from collections.abc import Iterator

from composer.graph.anatomy import Region, regions
from composer.graph.typed import TypedBlock, TypedGraph, TypedRepeat
from composer.graph.visit import Visit, every_pass, walk


def modules_of(repeat: TypedRepeat) -> tuple[str, ...]:
    """Return the path of each pass's module. With one set of weights, equal passes have one module, called like the repeat;
    passes that differ, such as in their window, have a second one beside it.
    """
    if repeat.node.share is None:
        return tuple(f"{repeat.name}.{index}" for index in range(len(repeat.passes)))
    kinds = list(dict.fromkeys(repeat.passes))
    above, dot, last = repeat.name.rpartition(".")
    names = [repeat.name, *(f"{above}{dot}_{last}_{number}" for number in range(2, len(kinds) + 1))]
    return tuple(names[kinds.index(one)] for one in repeat.passes)


def passes_of(repeat: TypedRepeat) -> dict[str, TypedGraph]:
    """Return the graph of each module."""
    return dict(zip(modules_of(repeat), repeat.passes, strict=True))


def by_module(visit: Visit) -> Iterator[tuple[str, Region[TypedGraph]]]:
    """Yield the graphs inside a node, each under the path of its module."""
    if isinstance(visit.node, TypedRepeat):
        names = dict(zip(modules_of(visit.node), regions(visit.node), strict=True))
        yield from ((f"{visit.prefix}{name}.", region) for name, region in names.items())
    else:
        yield from every_pass(visit)


def copies(root: TypedGraph) -> Iterator[tuple[str, str]]:
    """Yield the parameters and buffers of further modules of a repeat, each with its name in the `state_dict`."""
    for visit in walk(root, by_module):
        if isinstance(visit.node, TypedBlock) and visit.path != (known := _in_state_dict(visit)):
            held = (*visit.node.parameters, *visit.node.buffers)
            yield from ((f"{visit.path}.{each.name}", f"{known}.{each.name}") for each in held)


def _in_state_dict(visit: Visit) -> str:
    """Return the path of a node in the `state_dict`."""
    name = visit.path.removeprefix(visit.prefix)
    if visit.holder is None:
        return name
    return f"{_in_state_dict(visit.holder)}.{visit.region.name if visit.region is not None else ''}{name}"


def shared_modules(root: TypedGraph) -> Iterator[str]:
    """Yield the paths of all modules that compute several passes."""
    for visit in walk(root, by_module):
        if isinstance(visit.node, TypedRepeat) and visit.node.node.share is not None:
            yield from (visit.prefix + module for module in passes_of(visit.node))
