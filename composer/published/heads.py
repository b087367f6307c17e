"""A checkpoint that ends before the recipe does, or goes on beside it: which nodes are left out, and which tensors.

Nothing in a checkpoint says what its head is. A part is one if it lies at the end: the checkpoint has nothing of it, its names
have a first word of their own, and all the rest of the model is complete without it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from composer.graph.anatomy import wires_of
from composer.graph.typed import TypedProgram
from composer.language.name_patterns import escaped
from composer.language.recipe.writer import data_of
from composer.language.tasks import TASKS
from composer.language.yaml.nodes import YamlMapping, YamlNode
from composer.weights.mapping import Match, WeightMap

HIDDEN = "hidden"
"""The output of a model without its head."""
WITH_HEAD = {
    "causal_lm": r"For(CausalLM|ConditionalGeneration)$|LMHeadModel$",
    "masked_lm": r"For(MaskedLM|PreTraining)$",
    "seq2seq_lm": r"ForConditionalGeneration$|MTModel$",
    "denoising": r"ForConditionalGeneration$",
    "image_classification": r"ForImageClassification$",
    "speech_to_text": r"For(SpeechSeq2Seq|ConditionalGeneration)$",
    "image_to_text": r"EncoderDecoderModel$|For(Vision2Seq|ImageTextToText|ConditionalGeneration)$",
}
"""How the classes are called that have the head of a task."""


@dataclass(frozen=True)
class Cut:
    """What a recipe loses so that it ends where a checkpoint does."""

    output: str
    """The node that is the last one then."""
    nodes: tuple[str, ...]
    inputs: tuple[str, ...]
    """Inputs that nothing reads anymore."""
    losses: tuple[str, ...]
    """Losses of what is left out."""
    tensors: tuple[str, ...]
    """The published tensors that the checkpoint lacks."""


def without_head(typed: TypedProgram, made: WeightMap, match: Match) -> Cut | None:
    """Return what is left out so that a checkpoint without a head fits; None if what it lacks is no head.

    Args:
        typed: The model.
        made: Its rules.
        match: What the checkpoint has and lacks.
    """
    homes, graph = _homes(made), _Top(typed)
    words = {_first(name) for name in match.missing}
    if len(words) != 1 or words & {_first(name) for name in match.found if name in made.published}:
        return None
    bare = {homes[name] for name in match.missing}
    gone = bare | {node for node in graph.nodes if graph.above(node) & bare}
    held = {homes[name] for name in match.found if name in homes}
    if gone & held or not any(ref.node in gone for _, ref in typed.root.graph.outputs):
        return None
    ends = [node for node in graph.nodes if node not in gone and any(node in graph.reads[each] for each in gone)]
    whole = [end for end in ends if held <= graph.above(end) | {end}]
    last = [end for end in whole if not any(end in graph.above(other) for other in whole)]
    if len(last) != 1:
        return None
    kept = graph.above(last[0]) | {last[0]}
    idle = tuple(name for name in typed.inputs if name not in kept)
    writes = TASKS[typed.untyped.recipe.task].text if typed.untyped.recipe.task in TASKS else ""
    if not bare & {ref.node for _, ref in typed.root.graph.outputs} and writes not in idle:
        return None  # the outermost node has its own, so the middle is missing: unless the whole decoder is
    root = typed.untyped.recipe.root.get("graph")
    written = {entry.key.text: entry.value for entry in root} if isinstance(root, YamlMapping) else {}
    lost = [node for node in graph.nodes if node in written and node not in kept]
    idle_readers = _readers({name: node for name, node in written.items() if name not in graph.nodes}, lost)
    losses = tuple(name for name, node in typed.untyped.losses.items() if not graph.reads.get(node, frozenset()) <= kept)
    return Cut(last[0], (*lost, *idle_readers), idle, losses, match.missing)


def _readers(left_out: Mapping[str, YamlNode], lost: Collection[str]) -> list[str]:
    """Return the nodes, of those that `when` leaves out, that are wired to lost ones: their names are checked all the same."""
    found: list[str] = []
    for name, node in left_out.items():
        edges = node.get("in") if isinstance(node, YamlMapping) else None
        if edges is not None and {*re.findall(r"\w+", str(data_of(edges)))} & {*lost, *found}:
            found.append(name)
    return found


def promised(architectures: object, task: str | None) -> str:
    """Return the class in a `config.json` that has the head of a task; nothing if none of them has."""
    pattern = WITH_HEAD.get(task or "")
    names = [name for name in architectures if isinstance(name, str)] if isinstance(architectures, list) else []
    return next((name for name in names if pattern and re.search(pattern, name)), "")


def other_heads(typed: TypedProgram, made: WeightMap, match: Match) -> tuple[str, ...]:
    """Return the names that belong to heads which the recipe does not have, all of a first word of their own.

    Only a body that has a first word of its own too shows that they lie beside it; without one, every tensor may be part of it.
    """
    homes, graph = _homes(made), _Top(typed)
    ours = {theirs: homes[name] for name, theirs in match.found.items() if name in homes}
    if not ours:
        return ()
    ((body, _),) = Counter(map(_first, ours)).most_common(1)
    inside = {node for name, node in ours.items() if _first(name) == body}
    outside = {node for name, node in ours.items() if _first(name) != body} - inside
    if any(outside & graph.above(node) for node in inside):
        return ()
    known = set(map(_first, ours))
    return tuple(name for name in match.strange if _first(match.found[name]) not in known)


def patterns(names: Collection[str]) -> list[str]:
    """Return the patterns of `ignore` for tensors by the first words of their names."""
    return list(dict.fromkeys(escaped(name) if "." not in name else f"{escaped(_first(name))}.*" for name in names))


class _Top:
    """The outermost graph of a model: who reads whom."""

    def __init__(self, typed: TypedProgram) -> None:
        self.nodes = tuple(node.name for node in typed.root.nodes)
        self.reads: Mapping[str, frozenset[str]] = {
            node.name: frozenset(ref.node for wire in wires_of(node) for ref in wire.refs) for node in typed.root.nodes
        }
        self._above: dict[str, frozenset[str]] = {}

    def above(self, node: str) -> frozenset[str]:
        """Return everything that a node depends on: nodes and inputs."""
        if node not in self._above:
            read = self.reads.get(node, frozenset()) - {node}
            self._above[node] = frozenset()  # a state may be read by what it depends on
            self._above[node] = read.union(*map(self.above, read))
        return self._above[node]


def _homes(made: WeightMap) -> Mapping[str, str]:
    """Return the outermost node that each published tensor belongs to."""
    return {name: _first(move.ours[0]) for move in made.moves for name in move.theirs}


def _first(name: str) -> str:
    return name.partition(".")[0]
