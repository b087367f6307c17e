"""Params and blocks that a recipe defines and does not use."""

from __future__ import annotations

from typing import Any

from blocks.core import Part
from composer.diagnostics import Diagnostic, Span
from composer.graph.passes.compilation import Compilation
from composer.graph.passes.expand.params import Params
from composer.language.expressions.ast import Number, RefPath
from composer.language.recipe.ast import BlockChoice, ParsedRecipe, UseDecl
from composer.language.yaml.nodes import YamlList, YamlMapping, YamlScalar


def check_unused(state: Compilation) -> Compilation:
    """Report params that their definition does not use, and warn of blocks of this recipe that nothing uses.

    Before:
        blocks:
          mlp: {inputs: {x: "float[..., dim]"}, graph: {up: {type: linear, out: 8}}}
        graph:
          up: {type: linear, out: 8}
    After:
        warning[unused-block]: nothing uses the block `mlp`
    """
    parsed, expansion = state.parsed, state.expansion
    assert parsed is not None
    assert expansion is not None
    sound, own = expansion.sound, parsed.name_scalar.span.source
    used = expansion.used
    if sound and not used.issuperset(parsed.definitions):
        used = used | _named(parsed)
    for definition in parsed.definitions.values():
        Params(definition.params, expansion.values).unused(definition.root, own)
        if sound and definition.part not in used and definition.span.source == own:
            message = f"nothing uses the block `{definition.part.kind}`"
            expansion.report.add(Diagnostic("unused-block", message, definition.span, "warning"))
    return state.reported()


def _named(recipe: ParsedRecipe) -> set[type[Part]]:
    """Return the blocks that a recipe's graph names, itself or through one of these, also where a condition takes another."""
    kinds = {part.kind: part for part in recipe.definitions}
    found: set[type[Part]] = set()
    waiting: list[tuple[Any, bool]] = [(recipe.body, False)]
    while waiting:
        piece, choice = waiting.pop()
        part = None
        match piece:
            case None | str() | int() | float() | type() | Span() | Number() | YamlScalar() | YamlMapping() | YamlList():
                continue
            case tuple():
                waiting += ((each, choice) for each in piece)
                continue
            case UseDecl():
                part = piece.part
            case RefPath(steps=steps) if choice:
                part = kinds.get(steps[0].name)
        if part is not None and part in recipe.definitions and part not in found:
            found.add(part)
            waiting.append((recipe.definitions[part].body, False))
        inside = choice or isinstance(piece, BlockChoice)
        waiting += ((getattr(piece, name), inside) for name in getattr(type(piece), "__slots__", ()))
    return found
