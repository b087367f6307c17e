"""The names of a model's parameters and buffers, and of what its recipe leaves out, for rules to be held against."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from blocks.core import Part, fields
from blocks.core.fields import SlotOf
from composer.diagnostics import Source, Span
from composer.graph.anatomy import Region
from composer.graph.parameters import parameters
from composer.graph.passes.expand.composite_blocks import declared_graph
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedProgram, TypedRepeat
from composer.graph.visit import Visit, every_node, every_pass, owned, walk
from composer.language.expressions.parser import names, parse_expression
from composer.language.yaml.nodes import YamlEntry, YamlList, YamlMapping, YamlNode, YamlScalar
from composer.weights.left_out_names import WORD, LeftOutNames
from composer.weights.tensor_maps import TensorShape

NOTHING = YamlMapping((), Span(Source("", ""), 1, 1, 1, 1))
ALIKE = 2
"""The passes of each kind that are enough to tell equal indices from different ones."""


@dataclass(frozen=True)
class ModelNames:
    """What a model has, under the names of its `state_dict`."""

    owned: Mapping[str, TensorShape]
    """Every parameter and buffer with its shape, without adapters."""
    tied: Mapping[str, str]
    """Every name of a tensor that another one owns, with that one."""
    absent: Mapping[str, YamlNode | None]
    """The paths of nodes that are left out, with what is written there, and of slots that are empty."""
    left_out: LeftOutNames
    """What may be a name in these nodes."""
    choices: Mapping[str, YamlNode] = field(default_factory=dict)
    """The paths of nodes of which params decide what they are, with what is written there: the block that is there and others."""


def names_of(typed: TypedProgram, passes: Collection[int] | None = None) -> ModelNames:
    """Return the names of a model, of repeats only in some passes if these are given."""
    found: dict[str, TensorShape] = {}
    ties = False
    left_out = _LeftOut(typed, passes)
    for visit in walk(typed.root, left_out.entered, every_node):
        ties = ties or bool(visit.node.node.ties)
        if isinstance(visit.node, TypedBlock):
            kept = (each for each in (*visit.node.parameters, *visit.node.buffers) if each.role != "adapter")
            found |= {f"{visit.path}.{each.name}": each.shape for each in kept}
            left_out.slots(visit, visit.node)
    tied = {row.name: row.tied_to for row in parameters(typed) if row.tied_to and row.name in found} if ties else {}
    return ModelNames(
        {name: shape for name, shape in found.items() if name not in tied},
        tied,
        left_out.paths,
        LeftOutNames(typed.untyped.recipe.library, left_out.blocks),
        left_out.choices,
    )


class _LeftOut:
    """Collects the paths of what a recipe writes and the model does not have: dropped nodes, nodes of empty slots, and slots."""

    def __init__(self, typed: TypedProgram, passes: Collection[int] | None) -> None:
        self.passes = passes
        self.paths: dict[str, YamlNode | None] = {}
        self.root = root = typed.untyped.recipe.root
        self.blocks = _mapping(root.get("blocks"))
        self.written = {"": _mapping(root.get("graph"))}
        """What is written in each graph, by the path of the node that holds it."""
        self.choices: dict[str, YamlNode] = {}
        self.filled: dict[str, Mapping[str, YamlNode]] = {"": {entry.key.text: entry.value for entry in self.written[""]}}
        """What each node of a graph is, by its name, where the slots of a block are what fills them."""
        self._in_graph("", "", typed.root)

    def entered(self, visit: Visit) -> Iterator[tuple[str, Region[TypedGraph]]]:
        """Yield the graphs below a node that have names of their own, for `walk`."""
        node = visit.node
        beside = self.written.get("" if visit.holder is None else visit.holder.path, NOTHING)
        written = _mapping(_mapping(beside.get(node.name)).get("graph"))
        if isinstance(node, TypedGroup) and node.node.part is not None:
            whole = _mapping(beside.get(node.name))
            written = _mapping(_mapping(self.blocks.get(node.node.part.kind)).get("graph"))
            absent = (slot for slot in _slots(node.node.part) if slot not in node.graph.by_name)
            slots = [slot for slot in absent if not self._never(whole, node.node.part, slot)]
            self.paths |= dict.fromkeys(f"{visit.path}.{slot}" for slot in slots)
            for entry in declared_graph(node.node.part) if node.node.part.graph else ():
                if isinstance(entry.value, YamlMapping) and entry.key.text not in node.graph.by_name:
                    self.paths[f"{visit.path}.{entry.key.text}"] = entry.value
        self.written[visit.path] = written
        self.filled[visit.path] = self._filled(visit)
        for prefix, region in owned(visit):
            if self.passes is None or region.number is None or region.number in self.passes or not region.name:
                self._in_graph(visit.path, prefix, region.graph)
                yield prefix, region

    def slots(self, visit: Visit, block: TypedBlock) -> None:
        """Collect the empty slots of a block."""
        slots = (slot for slot in _slots(type(block.part)) if getattr(block.part, slot) is None)
        self.paths |= dict.fromkeys(f"{visit.path}.{slot}" for slot in slots)

    def _never(self, written: YamlMapping, part: type[Part], slot: str) -> bool:
        """Return whether an empty slot of a block with a graph stays empty whatever the params are and a `config` sets."""
        value = declared_graph(part).get(slot) if part.graph else None
        if "type" not in written or not isinstance(value, YamlScalar):
            return False
        needed = {slot, *(names(parse_expression(value)) & fields(part).keys())}
        return not needed & self.set_by_config and not any(self._varies(written.get(field)) for field in needed)

    def _varies(self, value: YamlNode | None) -> bool:
        """Return whether params decide what a slot or a word of a block is."""
        match value:
            case YamlMapping():
                return "if" in value or "when" in value or self._varies(value.get("type"))
            case YamlScalar(text=text):
                return any(word in self.variable for word in WORD.findall(text))
        return value is not None

    @cached_property
    def variable(self) -> frozenset[str]:
        """The names of params, and of values and indices of repeats, in the whole recipe."""
        indices = (entry.value.text for entry in _entries(self.root, "as") if isinstance(entry.value, YamlScalar))
        found = (
            one.key.text for key in ("params", "each") for entry in _entries(self.root, key) for one in _mapping(entry.value)
        )
        return frozenset({"layer", *indices, *found})

    @cached_property
    def set_by_config(self) -> frozenset[str]:
        """The last names of the paths that a `config` sets."""
        maps = _entries(_mapping(self.root.get("checkpoints")), "params")
        return frozenset(one.key.text.rpartition(".")[2] for entry in maps for one in _mapping(entry.value))

    def _in_graph(self, holder: str, prefix: str, graph: TypedGraph) -> None:
        """Collect the nodes that are written in a graph and are not in it."""
        for entry in self.written[holder]:
            if entry.key.text not in graph.by_name:
                self.paths[prefix + entry.key.text] = entry.value
        for name, value in self.filled[holder].items():
            if name in graph.by_name and self._is_choice(value):
                self.choices[prefix + name] = value

    def _filled(self, visit: Visit) -> Mapping[str, YamlNode]:
        """Return what each node in a node is, by its name."""
        beside = self.filled.get("" if visit.holder is None else visit.holder.path, {})
        whole, part = _mapping(beside.get(visit.node.name)), getattr(visit.node.node, "part", None)
        if part is None:
            return {entry.key.text: entry.value for entry in _mapping(whole.get("graph"))}
        graph = declared_graph(part) if part.graph else _mapping(_mapping(self.blocks.get(part.kind)).get("graph"))
        found = {entry.key.text: entry.value for entry in graph}
        words = {name: value.text for name, value in found.items() if isinstance(value, YamlScalar)}
        given = {name: whole.get(word) for name, word in words.items() if word in fields(part)}
        return {name: given.get(name) or value for name, value in found.items()}

    def _is_choice(self, value: YamlNode | None) -> bool:
        """Return whether params decide which block a node is, or one in its slots. What `each` lists is there in some pass."""
        match value:
            case YamlScalar(text=text):
                words = WORD.findall(text)
                return "if" in words or any(entry.key.text in words for entry in _mapping(self.root.get("params")))
            case YamlMapping():
                slots = (entry.value for entry in value if isinstance(entry.value, YamlMapping) and entry.key.text != "graph")
                return "if" in value or self._is_choice(value.get("type")) or any("if" in each for each in slots)
        return False


def _entries(root: YamlNode, key: str) -> Iterator[YamlEntry]:
    """Yield every entry of a name in a node, at any depth."""
    left = [root]
    while left:
        node = left.pop()
        left += node.items if isinstance(node, YamlList) else ()
        for entry in node if isinstance(node, YamlMapping) else ():
            left.append(entry.value)
            if entry.key.text == key:
                yield entry


def _mapping(node: YamlNode | None) -> YamlMapping:
    return node if isinstance(node, YamlMapping) else NOTHING


def typical_passes(typed: TypedProgram, also: Collection[int]) -> frozenset[int] | None:
    """Return the passes that stand for all: of those in which every repeat has the same graph, the first two.

    A rule tells passes apart by their graphs and by the numbers that it names, given as `also`. Two passes that differ in neither
    are covered alike, and their published names differ in the number alone.

    Returns:
        The passes; None if they would be all.
    """
    repeats = list(dict.fromkeys(visit.node for visit in walk(typed.root, every_pass, every_node, once=True)
                                 if isinstance(visit.node, TypedRepeat) and visit.node.node.share is None))  # fmt: skip
    longest = max((len(repeat.passes) for repeat in repeats), default=0)
    if longest <= ALIKE:
        return None
    seen: Counter[tuple[TypedGraph | None, ...]] = Counter()
    kept = set(also)
    for index in range(longest):
        kind = tuple(repeat.passes[index] if index < len(repeat.passes) else None for repeat in repeats)
        if seen[kind] < ALIKE:
            kept.add(index)
        seen[kind] += 1
    return frozenset(kept)


def _slots(part: type[Part]) -> Iterator[str]:
    return (name for name, field in fields(part).items() if isinstance(field.form, SlotOf))
