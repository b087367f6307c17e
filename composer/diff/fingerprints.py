"""Structural signs of nodes: what a node is, what it is computed from, and what is computed from it, each as one number."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from composer.diff.flat_graph import HELD, FlatModel, FlatNode, FlatSource, Read
from composer.memo import Numbering

GIVEN = "given"
"""What is read where a slot is fed by its holder."""


@dataclass(frozen=True, slots=True)
class Signs:
    """For each node of one model three numbers; equal numbers mean equal structure, in the other model too."""

    up: Sequence[int]
    """The node and all that it is computed from."""
    down: Sequence[int]
    """The node and all that is computed from it."""
    both: Sequence[tuple[int, int]]


Label = Callable[[FlatNode], Any]
"""What a node is by itself."""


def whole(node: FlatNode) -> Any:
    """Return a node's block with its fields and what is said of its parameters."""
    fields = tuple((name, form.key(lambda port: "")) for name, form in sorted(node.fields.items()))
    learned = tuple((one.name, one.trainable, one.start if one.ruled else None, one.owner != one.full) for one in node.learned)
    return node.kind, node.fed is not None, fields, learned


def kind(node: FlatNode) -> Any:
    """Return a node's block alone, and whether it fills a slot."""
    return node.kind, node.fed is not None


def signs(model: FlatModel, label: Label, numbering: Numbering[Any], inputs: Mapping[int, int]) -> Signs:
    """Return the signs of every node, by what it is labeled; `inputs` says which input of the other model each one is."""
    own_label = {index: ("input", inputs[index]) for index in model.inputs}
    labels = [numbering.of(("label", own_label.get(index) or label(node))) for index, node in enumerate(model.nodes)]
    up: list[int] = []
    for node, own in zip(model.nodes, labels, strict=True):
        masks = sorted((port.partition("_")[0], up[source.node], source.port) for port, source in node.edges.items())
        up.append(numbering.of(("up", own, _reads(node, up, numbering), tuple(masks))))
    returned: dict[int, list[Any]] = {}
    for place, sources in enumerate(model.outputs.values()):
        returned.setdefault(sources[0].node, []).append((place, sources[0].port))
    for sources in model.losses.values():
        returned.setdefault(sources[0].node, []).append(("loss", sources[0].port))
    down = [0] * len(labels)
    for index in reversed(range(len(labels))):
        read = sorted(
            numbering.of((_port(model.nodes[who], one), one.source.port, down[who])) for who, one in model.readers[index]
        )
        down[index] = numbering.of(("down", labels[index], tuple(read), tuple(returned.get(index, ()))))
    return Signs(up, down, list(zip(up, down, strict=True)))


def _reads(node: FlatNode, up: Sequence[int], numbering: Numbering[Any]) -> tuple[Any, ...]:
    found = [(_port(node, read), *_from(node, read.source, up), read.way) for read in node.reads]
    return tuple(sorted(found, key=numbering.of) if node.commutes else found)


def _from(node: FlatNode, source: FlatSource, up: Sequence[int]) -> tuple[Any, ...]:
    if source != HELD:
        return up[source.node], source.port
    return (GIVEN,) if node.fed is None or node.fed == HELD else (GIVEN, up[node.fed.node], node.fed.port)


def _port(node: FlatNode, read: Read) -> str:
    """Return the port of a read, and its place among several where the order means something."""
    if read.port in node.edges:
        return f"mask {read.port.partition('_')[0]}"
    several = [one for one in node.reads if one.port == read.port]
    return read.port if node.commutes or len(several) == 1 else f"{read.port} {[id(one) for one in several].index(id(read))}"
