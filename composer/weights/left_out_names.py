"""Names in what a recipe writes and the model does not have: which components of a pattern can be no name there.

What is left out has no types, so its parameters are known from the class of its block alone. What cannot be known is taken for
right: a rule for a node that is left out is no mistake.
"""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from blocks.core import Library, LinearWeights, Part, Slot, fields, ports
from blocks.core.per_class import per_class
from composer.diagnostics import Span
from composer.language.suggestions import suggest
from composer.language.yaml.nodes import YamlMapping, YamlNode, YamlScalar

WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)
LINEAR = ("weight", "bias")


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


class LeftOutNames:
    """Looks for misspelled names in nodes that are written and left out."""

    def __init__(self, library: Library, blocks: YamlMapping) -> None:
        self.library, self.blocks = library, blocks
        """The blocks that may be named, and those that the recipe defines."""

    def misspelled(self, written: YamlNode | None, steps: Sequence[PatternComponent]) -> Misspelled | None:
        """Return the first component that is no name in a written node; None where all may be, or where nothing is known.

        Args:
            written: the node.
            steps: the components of a pattern below it.
        """
        if not steps:
            return None
        match written:
            case YamlScalar(text=kind):
                return self._block(kind, None, steps)
            case YamlMapping() if "if" in written:
                return _of_all(self.misspelled(written.get(key), steps) for key in ("then", "else"))
            case YamlMapping() if "repeat" in written:
                counted = steps[0].text.isdecimal() or steps[0].text.startswith("<")
                return self._graph(written.get("graph"), steps[1:]) if counted else None
            case YamlMapping() if "graph" in written:
                return self._graph(written.get("graph"), steps)
            case YamlMapping() if isinstance(named := written.get("type"), YamlScalar):
                return self._block(named.text, written, steps)
        return None

    def _graph(self, graph: YamlNode | None, steps: Sequence[PatternComponent]) -> Misspelled | None:
        if not isinstance(graph, YamlMapping) or not steps:
            return None
        inner = {entry.key.text: partial(self.misspelled, entry.value, steps[1:]) for entry in graph}
        return _below(steps[0], inner)

    def _block(self, kind: str, written: YamlMapping | None, steps: Sequence[PatternComponent]) -> Misspelled | None:
        if isinstance(own := self.blocks.get(kind), YamlMapping):
            return self._graph(own.get("graph"), steps)
        if kind not in self.library or not (weights := _weights(part := self.library[kind])):
            return None
        inner: dict[str, Any] = {}
        for name, weight in weights.items():
            match weight:
                case LinearWeights():
                    inner[name] = partial(_parameter, steps[1:])
                case Slot(field=slot):
                    inner[name] = partial(self.misspelled, None if written is None else written.get(slot), steps[1:])
                case _:
                    inner[name] = lambda: None
        return None if _may_name(part, steps[0], weights) else _below(steps[0], inner)


def _below(step: PatternComponent, inner: Mapping[str, Any]) -> Misspelled | None:
    """Return what is misspelled at a component, or in everything that it names."""
    if found := [look for name, look in inner.items() if step.expression.fullmatch(name)]:
        return _of_all(look() for look in found)
    offered = suggest(step.text, inner)
    return Misspelled(step, offered) if offered else None


def _of_all(found: Iterable[Misspelled | None]) -> Misspelled | None:
    """Return the first of what is misspelled, unless something is not."""
    every = list(found)
    return None if None in every else every[0]


def _parameter(steps: Sequence[PatternComponent]) -> Misspelled | None:
    return _below(steps[0], {name: lambda: None for name in LINEAR}) if steps else None


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
