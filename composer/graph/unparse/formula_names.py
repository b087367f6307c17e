"""Formulas in the text of a recipe: what each calls a value, and where the full path can stand in the formula itself."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set

from blocks.formulas.functions import CALLABLE
from composer.graph.unparse.inner_names import INDEX
from composer.language.expressions.functions import FUNCTIONS
from composer.language.expressions.lexer import KEYWORDS, MAX_CHARACTERS
from composer.language.recipe.keys import WORDS
from composer.language.recipe.writer import YamlData


def local_names(names: Sequence[str]) -> list[str]:
    """Return a name without dots and brackets for each value of a formula, which no function and no other value has."""
    found: list[str] = []
    for name in names:
        word = re.sub(r"\W+", "_", name).strip("_") or "value"
        while word in found or word in {*WORDS, *KEYWORDS, *CALLABLE, *FUNCTIONS} or not word[:1].isalpha():
            word = f"v_{word}" if not word[:1].isalpha() else f"{word}_"
        found.append(word)
    return found


def with_paths(text: YamlData, values: Set[str], fields: Mapping[str, str]) -> YamlData:
    """Return the text of a node or a graph in which formulas name what they read by its path, unless that may be taken for a
    function or one of the `values` that are in sight; `fields` has the field with the formula of each block that has one.
    """
    if not isinstance(text, Mapping):
        return text
    each = text.get("each")
    if "repeat" in text:
        values = values | {str(text.get("as", INDEX))} | ({*each} if isinstance(each, Mapping) else set())
    inner = {key: with_paths(value, values, fields) for key, value in text.items()}
    field = fields.get(str(inner.get("type")), "")
    formula, moved = inner.get(field), inner.get("in")
    if not isinstance(formula, str) or not isinstance(moved, Mapping):
        return inner
    read = list(moved.values())  # two names of one value stay two
    paths = {
        name: path for name, path in moved.items() if isinstance(path, str) and _is_clear(path, values) and read.count(path) == 1
    }
    whole = re.sub(r"(?<![\w.])[A-Za-z_]\w*(?![\w(])", lambda found: str(paths.get(found[0], found[0])), formula)
    axes = inner.get("axes")
    if len(whole) > MAX_CHARACTERS or {*paths.values()} & ({*moved} - {*paths}) or _is_taken(paths, axes):
        return inner
    if isinstance(axes, Mapping):
        inner["axes"] = {str(paths.get(name, name)): letters for name, letters in axes.items()}
    rest = {name: path for name, path in moved.items() if name not in paths}
    return {key: value for key, value in {**inner, field: whole, "in": rest}.items() if key != "in" or rest}


def _is_clear(path: str, values: Set[str]) -> bool:
    """Return whether a path can only mean what it names."""
    root = re.split(r"[.(]", path)[0]
    called = path.startswith(f"{root}(") and "." not in path
    return path.count("(") == path.count(")") and " if " not in path and root not in values and not (called and root in CALLABLE)


def _is_taken(paths: Mapping[str, YamlData], axes: YamlData | None) -> bool:
    """Return whether an axis has the name of a value."""
    letters = {word for text in axes.values() for word in str(text).split()} if isinstance(axes, Mapping) else set()
    return not letters.isdisjoint({str(path) for path in paths.values()})
