"""What is said of a thing: what it stands for, what is set in it, and whose weights it has."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from blocks.core import fields
from blocks.core.weights import ParameterRole
from composer.diagnostics import Span
from composer.draw.about import TIP_SEPARATOR, About
from composer.draw.build.levels import Depth
from composer.draw.build.parameter_counts import ParameterCounts
from composer.draw.build.texts.descriptions import measured, settings, whole
from composer.draw.build.walks import by_place, model_inputs, vocabulary_inputs
from composer.draw.edges import OPTIONAL_INPUT, REQUIRED_INPUT
from composer.draw.paths import of_pass, plain
from composer.draw.style.looks import look
from composer.draw.wording import called
from composer.graph.passes.roll_layers.roll_layers import RolledProgram
from composer.graph.typed import TypedBlock, TypedNode
from composer.graph.visit import every_node, walk
from composer.language.recipe.ast import InputDecl
from composer.language.tasks import EACH_WORD, TASKS, Task
from composer.memo import lazy

PARTNER = re.compile(r"weights? = (.*)")
"""What a block says of the one whose weights it has."""
USUAL: Mapping[ParameterRole, float] = MappingProxyType({"bias": 0.0, "gain": 1.0})
"""The number at which parameters of some roles start in most models."""


@dataclass(frozen=True, slots=True)
class NodePlace:
    """Which nodes of the model a drawn thing stands for."""

    path: str = ""
    """In the drawing: that in the recipe, without the passes of folded repeats; nothing for the model itself."""
    all: tuple[str, ...] = ("",)
    """In the model, with passes: of each node that it stands for."""
    holder: Span | None = None
    """Where the block is written of which it is a part, for parts that are written in other files."""

    @property
    def first(self) -> str:
        """The path of the first node that it stands for."""
        return self.all[0]

    def inner(self, name: str) -> NodePlace:
        """Return the place of a node in it."""
        path, *places = (f"{one}.{name}" if one else name for one in (self.path, *self.all))
        return replace(self, path=path, all=tuple(places))

    def part_of(self, node: TypedNode) -> NodePlace:
        """Return the same place for what is written where a node is, the outermost one of such."""
        return replace(self, holder=self.holder or node.node.name_span)


class Captions:
    """Words about the nodes of a model."""

    def __init__(self, model: RolledProgram, depth: Depth) -> None:
        self.program, self.depth, self.starts = model.program, depth, model.starts
        self.counts = ParameterCounts(model.parameters, visible=depth.params)
        self.simplified = False
        """Whether what is drawn is not the graph of the model itself."""
        self.source = self.program.untyped.recipe.name_scalar.span.source

    @lazy
    def titles(self) -> dict[tuple[str, str], str]:
        """What every block is called, by its places in the model and in the drawing."""
        blocks = (visit for visit in walk(self.program.root, by_place, every_node) if not visit.in_slot)
        named = ((one.path, plain(one.path), one.node) for one in blocks if isinstance(one.node, TypedBlock))
        return {(path, short): look(node, inputs=self.inputs_of(short)).title for path, short, node in named}

    @lazy
    def inputs(self) -> Mapping[str, Mapping[str, str]]:
        """Which ports of blocks read an input of the model, and which, by the places of the blocks in the drawing."""
        return dict(model_inputs(self.program.root, {one.name: one.name for one in self.program.untyped.inputs}))

    @lazy
    def written(self) -> Mapping[str, TypedNode]:
        """What holds graphs, as its recipe has it, by its place in the drawing."""
        visits = (visit for visit in walk(self.program.root, by_place, every_node) if not visit.in_slot)
        return {plain(one.path): one.node for one in visits if not isinstance(one.node, TypedBlock)}

    @lazy
    def words(self) -> frozenset[str]:
        """Inputs of the model that are ids of a vocabulary."""
        return vocabulary_inputs(self.program)

    @lazy
    def names(self) -> frozenset[str]:
        """What outputs of the model and nodes are called."""
        blocks = (visit for visit in walk(self.program.root, by_place, every_node) if not visit.in_slot)
        nodes = (plain(one.path).rpartition(".")[2] for one in blocks if isinstance(one.node, TypedBlock))
        return frozenset([*nodes, *(name for name, _ in self.program.root.graph.outputs)])

    def called(self, name: str, part: object = None) -> str:
        """Return a name as a title, with the capitals that the texts of the recipe have, first that about a `part` of it."""
        recipe = self.program.untyped.recipe
        return called(name, (part.__doc__ or "" if part is not None else "", recipe.doc, recipe.paper))

    def inputs_of(self, path: str) -> Mapping[str, str]:
        """Return which ports of a block read an input of the model, and which."""
        known: Mapping[str, Mapping[str, str]] = self.inputs
        return known.get(path, {})

    def partner(self, place: str) -> str:
        """Return whose weights those of the block at a place are: another's by its title where no other has that, else by its
        path with the passes of repeats that are not around both; or nothing.
        """
        owner = self.counts.tied.get(place, "") if self.depth.params else ""
        if not owner:
            return ""
        holder, path = max((one for one in self.titles if owner.startswith(f"{one[0]}.")), key=lambda one: len(one[0]))
        title = self.titles[holder, path]
        named = of_pass(holder, place)
        alone = len({other for (_, other), called in self.titles.items() if called == title}) == 1 and named == path
        tied = [one for one in self.counts.tied if one.startswith(f"{place}.")]
        return f"{'weight' if tied == [f'{place}.weight'] else 'weights'} = {title.lower() if alone else named}"

    def about(self, node: TypedNode, place: NodePlace, said: Sequence[str], own: Sequence[str] = ()) -> About:
        """Return what a thing stands for; its parameters are those at `own` paths, by default those of the first node."""
        total = self.counts.total(place.all)
        tip = [part for part in said if part]
        if total and (each := self.counts.shown_of(own or (place.first,))):
            tip.append(each + (" parameter" if each == "1" else " parameters"))
        return About(place.path, TIP_SEPARATOR.join(tip), self.lines(node, place.holder), total)

    def description(self, node: TypedNode, place: NodePlace) -> str:
        """Return what is set in a block, of which values it only reads the sizes where no wire tells that, and how its parameters
        start; nothing at a glance.
        """
        if self.depth.level == "overview":
            return ""
        if not isinstance(node, TypedBlock):
            return whole(self.written.get(plain(place.path), node) if self.simplified else node)
        sizes_of = measured(node) if self.depth.level == "block" else ()
        return "; ".join(filter(None, [*settings(node), *sizes_of, self.starts.at(place.all)]))

    def start(self, node: TypedBlock, places: Sequence[str], maps: Sequence[str] = ()) -> str:
        """Return at which number parameters of a block, or of some of its `maps`, start that usually start otherwise, where they
        do so at all places: `starts at 0`.
        """
        if not self.starts.ruled and "init" not in fields(type(node.part)):
            return ""
        said = {self.start_at(node, place, maps) for place in places}
        return said.pop() if len(said) == 1 else ""

    def start_at(self, node: TypedBlock, place: str, maps: Sequence[str]) -> str:
        """Return the same at one place."""
        ruled, chosen = self.starts.ruled.get(place, {}), "init" in fields(type(node.part))
        own = [one for one in node.parameters if not maps or one.name in maps or one.name.rpartition(".")[0] in maps]
        own = [one for one in own if one.role != "adapter" and f"{place}.{one.name}" not in self.counts.tied]
        inits = {one.name: ruled.get(one.name, one.init) for one in own}
        at = {name: float(init.value) for name, init in inits.items() if init.how == "constant" and not init.formula}
        unusual = {
            one.name: at[one.name]
            for one in own
            if one.name in at and at[one.name] != USUAL.get(one.role) and (chosen or inits[one.name] != one.init)
        }
        if not unusual:
            return ""
        if len(at) == len(own) and len({*at.values()}) == 1:
            return f"starts at {next(iter(at.values())):g}"
        alike: dict[float, list[str]] = {}
        for name, value in unusual.items():
            alike.setdefault(value, []).append(name.removesuffix(".weight"))
        return ", ".join(f"{' and '.join(some)} start{'s' * (len(some) == 1)} at {value:g}" for value, some in alike.items())

    def lines(self, node: TypedNode, holder: Span | None) -> tuple[int, int] | None:
        """Return where a node stands in the recipe's text; what is inside of a block, where the block stands."""
        name, span = node.node.name_span, node.node.span
        if name.source != self.source:
            name = span = holder or name
        if name.source != self.source:
            return None
        return name.line, max(name.line, span.end_line if span.source == self.source else name.line)

    def input_suffix(self, input_: InputDecl) -> str:
        """Return what stands behind the name of an input; where there is little room, of one that an output or a node has too,
        alone.
        """
        if self.depth.level == "overview" or not (self.depth.notes or input_.name in self.names):
            return ""
        return OPTIONAL_INPUT if input_.optional or input_.default else REQUIRED_INPUT

    def head(self, path: str) -> str:
        """Return what a map is called that gives the model's logits, over classes or over the words that it reads; nothing for
        others.
        """
        outputs = dict(self.program.root.graph.outputs)
        if str(outputs.get("logits")) != path:
            return ""
        task = TASKS.get(self.program.untyped.recipe.task or "", Task())
        if task.classifies:
            return "Classifier"
        return "LM head" if task.outputs == EACH_WORD and self.words & task.inputs.keys() else ""
