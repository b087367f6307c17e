"""Settings merged into a recipe, one after the other: each a recipe of one entry."""

from __future__ import annotations

from collections.abc import Iterable

from blocks.core import Library
from composer.diagnostics import Diagnostic, Source
from composer.language.composition.locator import Locator, mapping
from composer.language.composition.merge import merge
from composer.language.composition.override_syntax import Unsettable, read_assignment
from composer.language.recipe.free_names import names_read
from composer.language.yaml.nodes import Document, YamlEntry, YamlMapping


def assign(document: Document, arguments: Iterable[str], library: Library, *, name: str = "--set") -> Document:
    """The document with each `PATH=VALUE` merged into it, one after the other; what is wrong is in its diagnostics."""
    root, diagnostics = document.root, list(document.diagnostics)
    for argument in arguments:
        try:
            one = read_assignment(Source(name, argument), diagnostics)
            if root is not None and one is not None:
                change = Locator(root, library).change(one)
                root, wrong = merge(root, change, library)
                diagnostics.extend(wrong)
        except Unsettable as error:
            diagnostics.append(error.diagnostic)
    if root is not None and document.root is not None:
        root = _without_unused(root, names_read(document.root), diagnostics)
    return Document(document.source, root, tuple(diagnostics), document.clashes)


def _without_unused(root: YamlMapping, before: frozenset[str], diagnostics: list[Diagnostic]) -> YamlMapping:
    """The recipe without the params that only what was replaced made use of."""
    params, now = mapping(root.get("params")), names_read(root)
    idle = [entry.key for entry in params if entry.key.text in before and entry.key.text not in now]
    if not idle:
        return root
    for key in idle:
        diagnostics.append(Diagnostic("unused-param", f"nothing uses `{key.text}` any more", key.span, "warning"))
    kept = YamlMapping(tuple(entry for entry in params if entry.key not in idle), params.span)
    entries = (YamlEntry(entry.key, kept) if entry.key.text == "params" else entry for entry in root)
    return _without_unused(YamlMapping(tuple(entries), root.span), before, diagnostics)
