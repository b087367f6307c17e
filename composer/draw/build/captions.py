"""What is said of a thing: what it stands for, what is set in it, and whose weights it has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from composer.diagnostics import Span
from composer.draw.build.descriptions import settings, whole
from composer.draw.build.levels import Depth
from composer.draw.build.parameter_counts import ParameterCounts
from composer.draw.scene import About
from composer.draw.style.looks import look
from composer.graph.passes.roll_layers.roll_layers import RolledProgram
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedRepeat, TypedScan
from composer.language.recipe.ast import InputDecl
from composer.language.tasks import TASKS
from composer.memo import lazy


class Caption:
    """Words about the nodes of a model. Paths are those of the recipe, without the passes of folded repeats; `places` are the
    paths of all places that a drawn thing stands for, with their passes.
    """

    def __init__(self, model: RolledProgram, depth: Depth) -> None:
        self.program, self.depth, self.starts = model.program, depth, model.starts
        self.counts = ParameterCounts(model.parameters, said=depth.params)
        self.source = self.program.program.recipe.name_scalar.span.source
        self.holder: Span | None = None
        """Where the block is written of which nodes from another file are parts."""

    @contextmanager
    def written_in(self, node: TypedNode) -> Iterator[None]:
        """While parts of a node are told: what of them is written in another file is written where the outermost node is."""
        holder, self.holder = self.holder, self.holder or node.node.name_span
        yield
        self.holder = holder

    @lazy
    def titles(self) -> dict[tuple[str, str], str]:
        """What every block is called, by its places in the model and in the drawing."""
        return dict(titles(self.program.root))

    def partner(self, place: str) -> str:
        """Whose weights those of the block at a place are: another's by its title where no other has that; or nothing."""
        owner = self.counts.tied.get(place, "") if self.depth.params else ""
        if not owner:
            return ""
        holder, path = max((one for one in self.titles if owner.startswith(f"{one[0]}.")), key=lambda one: len(one[0]))
        title = self.titles[holder, path]
        alone = len({other for (_, other), called in self.titles.items() if called == title}) == 1
        return f"{'weight' if f'{place}.weight' in self.counts.tied else 'weights'} = {title.lower() if alone else path}"

    def about(self, node: TypedNode, path: str, places: Sequence[str], said: Sequence[str]) -> About:
        """What a thing stands for."""
        total = self.counts.total(places)
        tip = [part for part in said if part]
        if total and (each := self.counts.shown(places[0])):
            tip.append(f"{each} parameters")
        return About(path, " — ".join(tip), self.lines(node), total)

    def description(self, node: TypedNode, places: Sequence[str]) -> str:
        """What is set in a block, and how its parameters start; nothing at a glance."""
        if self.depth.level == "overview":
            return ""
        return "; ".join(filter(None, [*settings(node), self.starts.at(places)])) if isinstance(node, TypedBlock) else whole(node)

    def lines(self, node: TypedNode) -> tuple[int, int] | None:
        """Where a node stands in the recipe's text; what is inside of a block, where the block stands."""
        name, span = node.node.name_span, node.node.span
        if name.source != self.source:
            name = span = self.holder or name
        if name.source != self.source:
            return None
        return name.line, max(name.line, span.end_line if span.source == self.source else name.line)

    def word(self, input_: InputDecl) -> str:
        """What stands behind the name of an input; nothing at a glance."""
        shown = self.depth.level != "overview" and self.depth.spacious
        return "" if not shown else " (optional input)" if input_.optional or input_.default else " (input)"

    def head(self, path: str) -> str:
        """What a map is called that gives the model's logits; nothing for others."""
        outputs = dict(self.program.root.graph.outputs)
        if str(outputs.get("logits")) != path:
            return ""
        task = self.program.program.recipe.task
        return "Classifier" if task and TASKS[task].classifies else "LM head"


def titles(graph: TypedGraph, place: str = "", path: str = "") -> Iterator[tuple[tuple[str, str], str]]:
    """The titles of all blocks, by their places with passes of repeats, and without."""
    for node in graph.nodes:
        match node:
            case TypedBlock():
                yield (place + node.name, path + node.name), look(node).title
            case TypedGroup() | TypedScan():
                yield from titles(node.graph, f"{place}{node.name}.", f"{path}{node.name}.")
            case TypedRepeat(passes=passes):
                for index, inner in enumerate(passes):
                    yield from titles(inner, f"{place}{node.name}.{node.prefix(index)}", f"{path}{node.name}.")
