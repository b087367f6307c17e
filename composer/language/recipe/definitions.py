"""`blocks:` of a recipe: their params and ports first, since each may name the others, then their graphs."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import replace

from blocks.core import Library, Part
from composer.language.composition.uses import RecipeAsBlock
from composer.language.recipe.ast import Definition, GraphBody
from composer.language.recipe.base_parser import BaseParser
from composer.language.recipe.declarations import init, params, ports
from composer.language.recipe.defined_block import define_block, is_defined
from composer.language.recipe.graphs import GraphParser
from composer.language.recipe.keys import VALUE_WORDS, keys_of
from composer.language.yaml.nodes import AmbiguousBlocks, YamlEntry, YamlMapping, YamlNode

MAX_DEFINITIONS = 500
"""Definitions in one recipe, those of the files that it uses included."""
MAX_NESTING = 20
"""The nesting depth of definitions under one another's `blocks`."""


class DefinitionParser:
    """Reads the definitions of one recipe, and counts them."""

    def __init__(self, reader: BaseParser, ambiguous_blocks: AmbiguousBlocks) -> None:
        self.reader, self.ambiguous_blocks = reader, ambiguous_blocks
        self.count = 0

    @property
    def too_many(self) -> bool:
        """Whether there are more than a recipe may have, which has been reported."""
        return self.count > MAX_DEFINITIONS

    def under(
        self,
        node: YamlNode | None,
        library: Library,
        values: Set[str],
        outer: type[Part] | None = None,
        depth: int = 1,
    ) -> tuple[list[Definition], Library]:
        """Return every definition under a key `blocks`, with those that it makes for itself; and the library
        with the outer ones. `values` are the params around it.
        """
        if isinstance(node, YamlMapping) and not self._has_room(node):
            return [], library
        begun = list(_signatures(self.reader, node, library, outer, depth))
        library = library.shadowed_by(declared.part for declared in begun)
        found: list[Definition] = []
        for declared in begun:
            names = values | {param.name for param in declared.params}
            inside, known = self.under(declared.root.get("blocks"), library, names, declared.part, depth + 1)
            graph = declared.root.get("graph")
            assert graph is not None
            body = GraphParser(self.reader, known, self.ambiguous_blocks, names).body(graph, declared.root.entry("outputs"))
            found += [replace(declared, body=body, library=known), *inside]
        return found, library

    def _has_room(self, node: YamlMapping) -> bool:
        said = self.too_many
        self.count += len(node.entries)
        if self.too_many and not said:
            message = f"a recipe and what it uses define at most {MAX_DEFINITIONS:,} blocks"
            self.reader.error("too-many-nodes", node.span, message)
        return not self.too_many


def with_definitions(root: YamlMapping, library: Library) -> Library:
    """Return the library with what a recipe's `blocks` define, as far as their params and ports go."""
    found = [declared.part for declared in _signatures(BaseParser([]), root.get("blocks"), library, None, 1)]
    return library.shadowed_by(found) if found else library


def _signatures(
    reader: BaseParser, node: YamlNode | None, library: Library, outer: type[Part] | None, depth: int
) -> Iterator[Definition]:
    """Yield the definitions under a key, without their graphs."""
    for entry in reader.entries(node, "blocks"):
        if (declared := _signature(reader, entry, library, outer, depth)) is not None:
            yield declared


def _signature(reader: BaseParser, entry: YamlEntry, library: Library, outer: type[Part] | None, depth: int) -> Definition | None:
    """Return a definition without its graph; None where it is malformed, which is reported."""
    name, root = entry.key.text, entry.value
    if not reader.declares(entry.key, "a block", VALUE_WORDS):
        return None
    if name in library and not is_defined(library[name]):
        reader.error("name-taken", entry.key.span, f"`{name}` is already a block of the library", hint="choose another name")
        return None
    if not isinstance(root, YamlMapping):
        hint = f"{name}: {{inputs: {{x: …}}, graph: {{…}}}}, on lines of their own"
        reader.error("value-form", root.span, "a block is defined by a mapping", hint=hint)
        return None
    if depth > MAX_NESTING:
        reader.error("too-deep", entry.key.span, f"block definitions are nested more than {MAX_NESTING} deep")
        return None
    reader.keys(root, keys_of("block"), "a block")
    if "graph" not in root:
        hint = "write `graph:` with the block's nodes below it"
        reader.error("missing-key", entry.key.span, f"the block `{name}` needs a graph", hint=hint)
        return None
    declared = tuple(params(reader, root.get("params"), library))
    given = tuple(ports(reader, root.get("inputs")))
    outputs = root.get("outputs")
    returned = [each.key.text for each in outputs] if isinstance(outputs, YamlMapping) else []
    part = define_block(name, reader.text(root.get("doc")), declared, given, returned)
    part.whole_recipe = isinstance(root, RecipeAsBlock)
    nothing = GraphBody((), (), root.span)
    rules = tuple(init(reader, root.get("init")))
    return Definition(part, entry.key.span, declared, given, nothing, rules, library, outer, root)
