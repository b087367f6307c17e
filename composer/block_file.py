"""Files of blocks, without a recipe that uses them: each block is checked at the inputs that it declares.

A YAML file of blocks has `blocks:` and is no model. For each of its blocks a small recipe is made in memory that gives it inputs
of the declared types, and what is wrong inside of the block is found as in any recipe. An axis that the block computes with is
given a number that many others divide; what is reported is what remains for the most favorable of a few choices.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from blocks.core import Library, Part
from blocks.core.fields import Boolean, Field, Integer, OneOf, Real, SlotOf
from blocks.masks.mask import Mask
from composer.block_declarations import declaration_mistakes
from composer.diagnostics import Diagnostic, Label, RecipeError, Source
from composer.graph.passes import compile_graph
from composer.graph.type_patterns import TypePattern, pattern
from composer.language.composition.uses import used_blocks
from composer.language.expressions.ast import Expression, RefPath
from composer.language.expressions.evaluator import evaluate
from composer.language.expressions.parser import ExpressionError, names
from composer.language.recipe.definitions import with_definitions
from composer.language.recipe.free_names import identifiers
from composer.language.yaml.nodes import YamlEntry, YamlMapping, YamlScalar
from composer.language.yaml.reader import read
from composer.own_blocks import library_with, parts_of, with_own
from composer.recipe import Recipe

WIDTH = 20160
"""Length of an axis that a block computes with; all numbers to 10, and many more, divide it."""
LEADING = (("batch",), ("batch", "time"), ())
"""What `...` may stand for."""
UNUSED = 'inputs: {x: "float[batch, 8]"}\ngraph: {used: {type: identity, in: x}}'
"""What stands around blocks of which none can be used, since the head of the block is wrong."""
MADE = "<check>"
"""The name of the source of what stands around a block."""


def python_blocks(file: Path, others: Iterable[str]) -> tuple[int, list[Diagnostic]]:
    """Return how many blocks a Python file defines, and what is wrong with them; the file is executed, so it must be trusted.

    Args:
        file: The Python file.
        others: Further files of blocks, whose names are taken.

    Raises:
        RecipeError: The file cannot be read, or one of the others cannot be used.
    """
    library = library_with([each for each in others if Path(each).resolve() != file.resolve()])
    try:
        parts = parts_of(file)
    except RecipeError as error:
        if not error.diagnostics[0].span.source.text:  # there is nothing to point at
            raise
        return 0, list(error.diagnostics)
    found = [wrong for part in parts for wrong in declaration_mistakes(part)]
    try:
        with_own(library, parts)
    except RecipeError as clash:
        found += clash.diagnostics
    return len(parts), found


def is_block_file(recipe: Recipe) -> bool:
    """Return whether a text holds blocks and no model."""
    root = recipe.document.root
    return root is not None and "blocks" in root and not any(key in root for key in ("recipe", "graph", "inputs"))


def defined_blocks(recipe: Recipe) -> tuple[int, list[Diagnostic]]:
    """Return how many blocks a file of blocks defines, and what is wrong with them.

    Args:
        recipe: The file, read as a recipe.
    """
    document, file = recipe.document, recipe.source
    root = document.root
    assert root is not None
    used, refused = used_blocks(YamlScalar(file.name, root.span), root)
    if refused:
        return 0, [replace(each, span=each.labels[0].span, labels=()) if each.labels else each for each in refused]
    blocks = YamlMapping(tuple(one.entry for one in used), root.span)
    own = [entry for entry in blocks if entry.key.span.source.name == file.name]
    found = [*document.diagnostics, *_unused_params(root)]
    library = with_definitions(YamlMapping((_entry(root, "blocks", blocks),), root.span), recipe.library)
    for entry in own:
        found += _of_block(entry, blocks, library, recipe)
    outer = {str(entry.key.span) for entry in blocks}
    kept: dict[tuple[str, str], Diagnostic] = {}
    for each in found:
        if _is_written(each) and not (each.code == "unused-block" and str(each.span) in outer):
            kept.setdefault((each.code, str(each.span)), replace(each, labels=tuple(filter(_is_written, each.labels))))
    return len(own), list(kept.values())


def _is_written(place: Diagnostic | Label) -> bool:
    """Return whether a diagnostic or a label is at something that the user has written."""
    return place.span.source.name != MADE


def _of_block(entry: YamlEntry, blocks: YamlMapping, library: Library, recipe: Recipe) -> list[Diagnostic]:
    """Return what is wrong in one block: the fewest errors of all choices of lengths, and the warnings that all give."""
    name = entry.key.text
    uses = [*_uses(library[name], entry)] if name in library and library[name].declared is not None else []
    tries = [_compiled(text, entry, blocks, recipe) for text in uses or [UNUSED]]
    fewest = min(tries, key=lambda found: sum(each.severity == "error" for each in found))
    common = set.intersection(*({(each.code, str(each.span)) for each in found} for found in tries))
    return [each for each in fewest if each.severity == "error" or (each.code, str(each.span)) in common]


def _compiled(around: str, entry: YamlEntry, blocks: YamlMapping, recipe: Recipe) -> list[Diagnostic]:
    """Return what is found in a recipe of a block, given what stands around it."""
    made = read(Source(MADE, f"{around}\n")).root
    assert made is not None
    name = YamlEntry(YamlScalar("recipe", made.span), YamlScalar("blocks", entry.key.span))  # so that it is of this file
    key = YamlEntry(YamlScalar("blocks", made.span), blocks)
    whole = YamlMapping((name, key, *made), made.span)
    state = compile_graph(replace(recipe.document, root=whole, diagnostics=()), recipe.library)
    return list(state.diagnostics)


@dataclass(frozen=True, slots=True)
class _Choice:
    """What axes of the inputs are: numbers by name, and the axes in place of `...`."""

    numbers: Mapping[str, Any]
    leading: tuple[str, ...]

    def written(self, type_: TypePattern, *, optional: bool) -> str:
        axes = [*(self.leading if type_.leading else ()), *map(self._axis, type_.axes)]
        return f'"{type_.dtype}[{", ".join(axes)}]{"?" if optional else ""}"'

    def _axis(self, axis: Expression) -> str:
        if isinstance(axis, RefPath) and axis.text not in self.numbers:
            return axis.text
        return str(evaluate(axis, self.numbers))


def _uses(part: type[Part], entry: YamlEntry) -> Iterator[str]:
    """Yield recipes around a block, without the block: inputs of the declared types, and values for params without a default."""
    types = {port: pattern(text) for port, text in part.inputs.items()}
    required = {name: _value(field) for name, field in (part.declared or {}).items() if field.required}
    params = {**dict(_defaults(entry)), **required}
    places = [(type_, axis) for type_ in types.values() for axis in type_.axes]
    axes = [name for name in dict.fromkeys(name for _, axis in places for name in names(axis)) if name not in params]
    root = entry.value
    inside = [each.value for each in root if each.key.text != "inputs"] if isinstance(root, YamlMapping) else []
    computed = {name for _, axis in places if not isinstance(axis, RefPath) for name in names(axis)}
    last = {name for type_, axis in places if type_.dtype == "float" and axis is type_.axes[-1] for name in names(axis)}
    some = [name for name in axes if name in identifiers(inside) | computed | last]
    every = [name for name in axes if name != "batch"]
    for numbered in dict.fromkeys(map(tuple, (some, every))):
        numbers = {**params, **{name: WIDTH * (place + 1) for place, name in enumerate(numbered)}}
        for leading in LEADING if any(type_.leading for type_ in types.values()) else ((),):
            choice = _Choice({name: value for name, value in numbers.items() if isinstance(value, int | float)}, leading)
            try:
                yield _recipe(part, types, choice)
            except (ExpressionError, KeyError):
                return  # the length of an axis is computed from what only a use can tell


def _recipe(part: type[Part], types: Mapping[str, TypePattern], choice: _Choice) -> str:
    inputs = [f"  {port.rstrip('?')}: {choice.written(type_, optional=port.endswith('?'))}" for port, type_ in types.items()]
    wires = ", ".join(f"{port.rstrip('?')}: {port.rstrip('?')}" for port in types)
    given = "".join(f", {name}: {_value(field)}" for name, field in (part.declared or {}).items() if field.required)
    if not types:  # a model has inputs
        inputs, wires = ['  x: "float[batch, 8]"'], ""
    return "\n".join(["inputs:", *inputs, "graph:", f"  used: {{type: {part.kind}, in: {{{wires}}}{given}}}"])


def _defaults(entry: YamlEntry) -> Iterator[tuple[str, int]]:
    """Yield the params of a block whose default is a whole number."""
    params = entry.value.get("params") if isinstance(entry.value, YamlMapping) else None
    for each in params if isinstance(params, YamlMapping) else ():
        value = each.value.get("default") if isinstance(each.value, YamlMapping) else each.value
        if isinstance(value, YamlScalar) and value.text.isdigit():
            yield each.key.text, int(value.text)


def _value(field: Field) -> Any:
    """Return a value for a param that has no default."""
    match field.form:
        case Integer(minimum=least, maximum=most):
            return max(least or 0, min(8, most if most is not None else 8))
        case Real(minimum=least, maximum=most):
            return max(least or 0, min(8, most if most is not None else 8))
        case Boolean():
            return "true"
        case OneOf(of=words):
            return words[0]
        case SlotOf(family=family):
            return "full" if family is Mask else "identity"
    return "none"


def _unused_params(root: YamlMapping) -> Iterator[Diagnostic]:
    """Yield the params of the whole file that no block reads."""
    params = root.get("params")
    if not isinstance(params, YamlMapping):
        return
    for each in params:
        others = [entry.value for entry in root if entry.key.text != "params"] + [one.value for one in params if one is not each]
        if each.key.text not in identifiers(others):
            message = f"nothing uses `{each.key.text}`"
            yield Diagnostic("unused-param", message, each.key.span, hint="remove it, or use it in a block")


def _entry(root: YamlMapping, name: str, value: YamlMapping) -> YamlEntry:
    found = root.entry(name)
    return YamlEntry(found.key if found is not None else YamlScalar(name, root.span), value)
