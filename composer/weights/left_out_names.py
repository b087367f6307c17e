"""Names in what a recipe writes and the model does not have: which components of a pattern can be no name there.

What is left out has no types, so its parameters are known from the class of its block alone. What cannot be known is taken for
right, unless the node is there in other passes: a rule for a node that is left out is no mistake.
"""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, TypeAlias

from blocks.core import Library, LinearWeights, Part, Slot, Tensor, fields, ports
from blocks.core.per_class import per_class
from composer.diagnostics import Span
from composer.graph.passes.expand.composite_blocks import declared_graph
from composer.language.suggestions import suggest
from composer.language.yaml.nodes import YamlMapping, YamlNode, YamlScalar

WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)
LINEAR = ("weight", "bias")
ANYTHING_THERE = "*"


@dataclass(frozen=True)
class PatternComponent:
    """A component of a pattern."""

    text: str
    expression: re.Pattern[str]
    span: Span


@dataclass(frozen=True)
class Misspelled:
    """A component of a pattern that is no name, with the names that were probably meant."""

    step: PatternComponent
    offered: list[str]


class Names(Enum):
    """What a pattern is about in a node that is left out, where it is not misspelled."""

    RIGHT = "a parameter of the node as it would be"
    UNKNOWN = "what cannot be known"


Outcome: TypeAlias = Misspelled | Names


class LeftOutNames:
    """Looks for misspelled names in nodes that are written and left out."""

    def __init__(self, library: Library, blocks: YamlMapping) -> None:
        self.library, self.blocks = library, blocks
        """The blocks that may be named, and those that the recipe defines."""

    def misspelled(self, written: YamlNode | None, steps: Sequence[PatternComponent]) -> Outcome:
        """Return the first component that is no name in a written node, or whether all are names.

        Args:
            written: the node.
            steps: the components of a pattern below it.
        """
        if not steps:
            return Names.UNKNOWN
        match written:
            case YamlScalar(text=kind):
                return self._block(kind, None, steps)
            case YamlMapping() if "if" in written:
                return _of_all(self.misspelled(written.get(key), steps) for key in ("then", "else"))
            case YamlMapping() if "repeat" in written:
                counted = steps[0].text.isdecimal() or steps[0].text.startswith("<")
                return self._graph(written.get("graph"), steps[1:]) if counted else Names.UNKNOWN
            case YamlMapping() if "graph" in written:
                return self._graph(written.get("graph"), steps)
            case YamlMapping() if isinstance(named := written.get("type"), YamlScalar):
                return self._block(named.text, written, steps)
        return Names.UNKNOWN

    def _graph(self, graph: YamlNode | None, steps: Sequence[PatternComponent]) -> Outcome:
        if not isinstance(graph, YamlMapping) or not steps:
            return Names.UNKNOWN
        inner = {entry.key.text: partial(self.misspelled, entry.value, steps[1:]) for entry in graph}
        return _below(steps[0], inner, every=True)

    def _block(self, kind: str, written: YamlMapping | None, steps: Sequence[PatternComponent]) -> Outcome:
        if isinstance(own := self.blocks.get(kind), YamlMapping):
            return self._graph(own.get("graph"), steps)
        if kind not in self.library:
            return Names.UNKNOWN
        part = self.library[kind]
        if part.graph:
            return self._composite(part, written, steps)
        if not (weights := _weights(part)):
            return Names.UNKNOWN
        inner: dict[str, Any] = {}
        for name, weight in weights.items():
            match weight:
                case LinearWeights():
                    inner[name] = partial(_parameter, steps[1:])
                case Slot(field=slot):
                    inner[name] = partial(self.misspelled, None if written is None else written.get(slot), steps[1:])
                case Tensor(when=field) if field and _is_off(part, written, field):
                    inner[name] = partial(Misspelled, steps[0], [])
                case _:
                    inner[name] = lambda: Names.UNKNOWN if steps[1:] else Names.RIGHT
        return Names.UNKNOWN if _may_name(part, steps[0], weights) else _below(steps[0], inner)

    def _composite(self, part: type[Part], written: YamlMapping | None, steps: Sequence[PatternComponent]) -> Outcome:
        """Return the outcome in the graph that a block declares, where a node that is a slot is what is written for the slot."""
        inner = {}
        for entry in declared_graph(part):
            value: YamlNode | None = entry.value
            if isinstance(value, YamlScalar) and value.text in fields(part):
                value = None if written is None else written.get(value.text)
            inner[entry.key.text] = partial(self.misspelled, value, steps[1:])
        return _below(steps[0], inner, every=True)


def _is_off(part: type[Part], written: YamlMapping | None, field: str) -> bool:
    """Return whether a boolean field of a written block is false, as far as that is known without its params."""
    value = None if written is None else written.get(field)
    return not fields(part)[field].default if value is None else isinstance(value, YamlScalar) and value.text == "false"


def _below(step: PatternComponent, inner: Mapping[str, Any], *, every: bool = False) -> Outcome:
    """Return the outcome at a component, or in everything that it names.

    Args:
        step: the component.
        inner: how to look into what is there, by name.
        every: whether these are all names that there can be.
    """
    if step.text == ANYTHING_THERE:
        return Names.RIGHT if inner else Names.UNKNOWN
    if found := [look for name, look in inner.items() if step.expression.fullmatch(name)]:
        return _of_all(look() for look in found)
    offered = suggest(step.text, inner)
    return Misspelled(step, offered) if offered or every else Names.UNKNOWN


def _of_all(found: Iterable[Outcome]) -> Outcome:
    """Return the first of what is misspelled, unless something is not."""
    every = list(found)
    if Names.RIGHT in every:
        return Names.RIGHT
    return Names.UNKNOWN if Names.UNKNOWN in every else every[0]


def _parameter(steps: Sequence[PatternComponent]) -> Outcome:
    return _below(steps[0], {name: lambda: Names.RIGHT for name in LINEAR}, every=True) if steps else Names.UNKNOWN


def _may_name(part: type[Part], step: PatternComponent, weights: Mapping[str, Any]) -> bool:
    """Return whether a name that is not found may be one with other fields: it is written in the class, or has another number."""
    if not callable(part.weights) or any(step.expression.fullmatch(name) for name in weights):
        return False
    numbered = {re.sub(r"\d+", "0", name) for name in weights}
    return not WORD.fullmatch(step.text) or re.sub(r"\d+", "0", step.text) in numbered or step.text in _words(part)


@per_class
def _words(part: type[Part]) -> frozenset[str]:
    """Return every word in the source of a block's class and of those that it is made from."""
    return frozenset(word for text in _sources(part) for word in WORD.findall(text))


def _sources(part: type[Part]) -> Iterator[str]:
    for one in part.__mro__:
        if one is not Part and issubclass(one, Part):
            yield inspect.getsource(one)


@per_class
def _weights(part: type[Part]) -> Mapping[str, Any]:
    """Return what a block learns with the defaults of its fields, whichever ports are wired; nothing where that needs more."""
    if not callable(part.weights):
        return part.weights
    alone = part.model_construct(**{field.name: field.default for field in fields(part).values()})
    found: dict[str, Any] = {}
    required = frozenset(port for port, mark in ports(part).items() if mark != "?")
    try:
        _words(part)
        for wired in (required, frozenset(ports(part))):
            found |= alone.weights(defaultdict(lambda: 1), wired)  # type: ignore[operator]  # callable, as is checked
    except Exception:  # the block's own code, which may read any field
        return {}
    return found
