"""What a file provides to a recipe that uses it: its blocks, and, if it is a recipe, the whole of it as one block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from composer.diagnostics import Diagnostic, Label, Source, Span
from composer.language.recipe.free_names import identifiers
from composer.language.recipe.keys import KEYS, is_text
from composer.language.yaml.nodes import AmbiguousBlocks, YamlEntry, YamlMapping, YamlNode, YamlScalar

_NOWHERE = Source("", "")


class RecipeAsBlock(YamlMapping):
    """A whole recipe as a block, in which what only its losses read stays behind."""


@dataclass(frozen=True, slots=True)
class UsedBlock:
    """A block of another file."""

    entry: YamlEntry
    file: YamlScalar
    """Where the file is named."""


def used_blocks(file: YamlScalar, root: YamlMapping) -> tuple[list[UsedBlock], list[Diagnostic]]:
    """Return the blocks that a file provides, and why it provides none."""
    strange = next((entry.key for entry in root if not _may_be_used(entry.key.text)), None)
    if strange is not None:
        message = f"{file.text} has `{strange.text}`, which a block cannot have"
        return [], [Diagnostic("not-used", message, file.span, labels=(Label(strange.span, "here"),))]
    params = _mapping(root.get("params"))
    found = [UsedBlock(_with_params(entry, params), file) for entry in _mapping(root.get("blocks"))]
    name = root.get("recipe")
    if "graph" in root and isinstance(name, YamlScalar):
        entries = tuple(_kept(entry, root) for entry in root if entry.key.text in KEYS["block"])
        found.append(UsedBlock(YamlEntry(name, RecipeAsBlock(entries, root.span)), file))
    if not found:
        hint = "a file of blocks has `blocks:`; a recipe has `recipe:` and `graph:`"
        return [], [Diagnostic("not-used", f"{file.text} is not a recipe and defines no blocks", file.span, hint=hint)]
    return found, []


def with_used_blocks(
    own: YamlEntry | None, used: Sequence[UsedBlock], place: Span
) -> tuple[YamlEntry, AmbiguousBlocks, list[Diagnostic]]:
    """Return the blocks of a recipe and of the files that it uses; a name that two files give to
    different blocks means neither.
    """
    kept: dict[str, UsedBlock] = {}
    ambiguous_blocks: dict[str, tuple[Span, Span]] = {}
    wrong: list[Diagnostic] = []
    mine = {entry.key.text: entry for entry in _mapping(own.value if own else None)}
    for one in used:
        name, span = one.entry.key.text, one.entry.key.span
        if name in mine:
            labels = (Label(span, f"defined in {one.file.text}"),)
            message = f"`{name}` is already a block of {one.file.text}"
            found = Diagnostic("name-taken", message, mine[name].key.span, labels=labels, hint="choose another name")
            wrong.append(found)
        elif name in kept and kept[name].entry.key.span != span:
            ambiguous_blocks[name] = (kept[name].entry.key.span, span)
        else:
            kept[name] = one
    entries = (*(one.entry for name, one in kept.items() if name not in ambiguous_blocks), *mine.values())
    key = own.key if own is not None else YamlScalar("blocks", place)
    return YamlEntry(key, YamlMapping(entries, own.value.span if own is not None else place)), ambiguous_blocks, wrong


def _may_be_used(key: str) -> bool:
    """Return whether a file that others use may have a key; what no block has, such as a task, is the file's own."""
    return key in KEYS["recipe"] and not KEYS["recipe"][key].whole_model


def _kept(entry: YamlEntry, root: YamlMapping) -> YamlEntry:
    """Return a part of a recipe as a part of a block: without params that nothing in it reads, and without defaults of inputs,
    which only the inputs of a whole model have.
    """
    if entry.key.text == "params":
        others = [each.value for each in root if each.key.text in KEYS["block"] and not is_text(each.key.text)]
        return _only(entry, identifiers(others))
    if entry.key.text == "inputs" and isinstance(entry.value, YamlMapping):
        inputs = tuple(YamlEntry(each.key, _without_default(each.value)) for each in entry.value)
        return YamlEntry(entry.key, YamlMapping(inputs, entry.value.span))
    return entry


def _without_default(value: YamlNode) -> YamlNode:
    if not isinstance(value, YamlMapping):
        return value
    return YamlMapping(tuple(entry for entry in value if entry.key.text != "default"), value.span)


def _with_params(entry: YamlEntry, params: YamlMapping) -> YamlEntry:
    """Return a block with those of its file's params that it reads, as params of its own."""
    root = entry.value
    if not isinstance(root, YamlMapping) or not params.entries:
        return entry
    own = _mapping(root.get("params"))
    read, waiting = frozenset[str](), identifiers([root])
    while waiting:
        read |= waiting
        waiting = identifiers(each.value for each in params if each.key.text in waiting) - read
    more = tuple(each for each in params if each.key.text in read and each.key.text not in own)
    if not more:
        return entry
    key = next((each.key for each in root if each.key.text == "params"), YamlScalar("params", entry.key.span))
    whole = YamlEntry(key, YamlMapping((*own, *more), own.span))
    return YamlEntry(entry.key, YamlMapping((whole, *(each for each in root if each.key.text != "params")), root.span))


def _only(entry: YamlEntry, read: frozenset[str]) -> YamlEntry:
    """Return the params without those that nothing reads."""
    params = _mapping(entry.value)
    return YamlEntry(entry.key, YamlMapping(tuple(each for each in params if each.key.text in read), params.span))


def _mapping(node: YamlNode | None) -> YamlMapping:
    if isinstance(node, YamlMapping):
        return node
    return YamlMapping((), node.span if node is not None else Span(_NOWHERE, 1, 1, 1, 1))
