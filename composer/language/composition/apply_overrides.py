"""Overrides merged into a recipe, one after the other: each a recipe of one entry."""

from __future__ import annotations

from collections.abc import Iterable

from blocks.core import Library
from composer.diagnostics import Diagnostic
from composer.language.composition.locator import Locator, mapping
from composer.language.composition.merge import merge
from composer.language.composition.override import Override, OverrideError
from composer.language.recipe.free_names import CONTEXT, names_read
from composer.language.yaml.nodes import Document, YamlEntry, YamlMapping


def with_overrides(document: Document, overrides: Iterable[Override], library: Library) -> Document:
    """Return the document with each override merged into it, one after the other; what is wrong is in its diagnostics."""
    root, diagnostics = document.root, list(document.diagnostics)
    for override in overrides:
        diagnostics.extend(override.diagnostics)
        if root is None or override.value is None:
            continue
        try:
            root, wrong = merge(root, Locator(root, library).change(override.path, override.value), library)
            diagnostics.extend(wrong)
        except OverrideError as error:
            diagnostics.append(error.diagnostic)
    if root is not None and document.root is not None:
        root = _without_unused(root, names_read(document.root), diagnostics)
    return Document(document.source, root, tuple(diagnostics), document.ambiguous_blocks)


def without_unused(root: YamlMapping) -> YamlMapping:
    """Return the recipe without the params that nothing reads."""
    return _without_unused(root, frozenset(entry.key.text for entry in mapping(root.get("params"))) - {CONTEXT}, [])


def _without_unused(root: YamlMapping, before: frozenset[str], diagnostics: list[Diagnostic]) -> YamlMapping:
    """Return the recipe without the params that only the replaced values used."""
    params, now = mapping(root.get("params")), names_read(root)
    idle = [entry.key for entry in params if entry.key.text in before and entry.key.text not in now]
    if not idle:
        return root
    for key in idle:
        diagnostics.append(Diagnostic("unused-param", f"nothing uses `{key.text}` anymore", key.span, "warning"))
    kept = YamlMapping(tuple(entry for entry in params if entry.key not in idle), params.span)
    entries = (YamlEntry(entry.key, kept) if entry.key.text == "params" else entry for entry in root)
    return _without_unused(YamlMapping(tuple(entries), root.span), before, diagnostics)
