"""Repeats with one set of weights: which module serves which pass, and whose weights it has."""

from __future__ import annotations

from collections.abc import Iterator

from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedRepeat, TypedScan


def modules_of(repeat: TypedRepeat) -> tuple[str, ...]:
    """The path of each pass's module. With one set of weights, passes that are alike are one module, which has the repeat's own
    name; those of another kind, such as another window, are a second one beside it.
    """
    if repeat.node.share is None:
        return tuple(f"{repeat.name}.{index}" for index in range(len(repeat.passes)))
    kinds = list(dict.fromkeys(repeat.passes))
    above, dot, last = repeat.name.rpartition(".")
    names = [repeat.name, *(f"{above}{dot}_{last}_{number}" for number in range(2, len(kinds) + 1))]
    return tuple(names[kinds.index(one)] for one in repeat.passes)


def passes_of(repeat: TypedRepeat) -> dict[str, TypedGraph]:
    """The graph of each module."""
    return dict(zip(modules_of(repeat), repeat.passes, strict=True))


def copies(graph: TypedGraph, path: str = "", owner: str = "") -> Iterator[tuple[str, str]]:
    """Parameters of modules beside the first one of a repeat, each with the parameter that it is; `owner` is the path by which
    the `state_dict` knows what is at `path`.
    """
    for node in graph.nodes:
        if not node.node.dropped:
            yield from _below(node, node.name, path, owner)


def _below(node: TypedNode, name: str, path: str, owner: str) -> Iterator[tuple[str, str]]:
    match node:
        case TypedBlock(parameters=own, slots=slots):
            if path != owner:
                yield from ((f"{path}{name}.{each.name}", f"{owner}{name}.{each.name}") for each in own)
            for slot, filled in slots.items():
                if filled is not None:
                    yield from _below(filled, slot, f"{path}{name}.", f"{owner}{name}.")
        case TypedGroup(graph=inner) | TypedScan(graph=inner):
            yield from copies(inner, f"{path}{name}.", f"{owner}{name}.")
        case TypedRepeat():
            for module, one in passes_of(node).items():
                known = module if node.node.share is None else node.name
                yield from copies(one, f"{path}{module}.", f"{owner}{known}.")


def shared_modules(graph: TypedGraph, path: str = "") -> Iterator[str]:
    """The paths of all modules that serve several passes."""
    for node in graph.nodes:
        match node:
            case TypedGroup(graph=inner) | TypedScan(graph=inner) if not node.node.dropped:
                yield from shared_modules(inner, f"{path}{node.name}.")
            case TypedRepeat():
                for module, one in passes_of(node).items():
                    yield from [f"{path}{module}"] * (node.node.share is not None)
                    yield from shared_modules(one, f"{path}{module}.")
            case TypedBlock(slots=slots):
                filled = (slot for slot in slots.values() if slot is not None)
                for slot in filled:
                    yield from shared_modules(TypedGraph(graph.graph, {}, (slot,), {}), f"{path}{node.name}.")
