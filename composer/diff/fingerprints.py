"""Structural fingerprints: numbers for what a node is, what it is computed from, and what is computed from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from composer.diff.flat_graph import SLOT_FEED, FlatModel, FlatNode, FlatSource, Read
from composer.memo import Numbering

SLOT_INPUT = "given"
"""What a part in a slot reads from the block that has the slot."""


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """Three fingerprints of each node of a model; equal ones mean equal structure, across both models."""

    up: Sequence[int]
    """The node and all that it is computed from."""
    down: Sequence[int]
    """The node and all that is computed from it."""
    both: Sequence[tuple[int, int]]


Label = Callable[[FlatNode], Any]
"""What a node is, apart from its edges."""


def whole_label(node: FlatNode) -> Any:
    """Return the type of a node with its fields, and how its parameters start, are trained and tied."""
    fields = tuple((name, form.key(lambda port: "")) for name, form in sorted(node.fields.items()))
    learned = tuple(
        (one.name, one.trainable, one.start if one.set_by_recipe else None, one.owner != one.full) for one in node.learned
    )
    return node.kind, node.slot_feed is not None, fields, learned


def kind_label(node: FlatNode) -> Any:
    """Return the type of a node, and whether it fills a slot."""
    return node.kind, node.slot_feed is not None


def fingerprints(model: FlatModel, label: Label, numbering: Numbering[Any], inputs: Mapping[int, int]) -> Fingerprints:
    """Return the fingerprints of every node by its label; `inputs` has a number for each input, the same in both models."""
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
    return Fingerprints(up, down, list(zip(up, down, strict=True)))


def _reads(node: FlatNode, up: Sequence[int], numbering: Numbering[Any]) -> tuple[Any, ...]:
    found = [(_port(node, read), *_from(node, read.source, up), read.expansion) for read in node.reads]
    return tuple(sorted(found, key=numbering.of) if node.commutes else found)


def _from(node: FlatNode, source: FlatSource, up: Sequence[int]) -> tuple[Any, ...]:
    if source != SLOT_FEED:
        return up[source.node], source.port
    if node.slot_feed is None or node.slot_feed == SLOT_FEED:
        return (SLOT_INPUT,)
    return SLOT_INPUT, up[node.slot_feed.node], node.slot_feed.port


def _port(node: FlatNode, read: Read) -> str:
    """Return the port of a read, with its index if the port reads several values in order."""
    if read.port in node.edges:
        return f"mask {read.port.partition('_')[0]}"
    several = [one for one in node.reads if one.port == read.port]
    return read.port if node.commutes or len(several) == 1 else f"{read.port} {[id(one) for one in several].index(id(read))}"
