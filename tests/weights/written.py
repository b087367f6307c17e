"""Rules for tests, from their text."""

from __future__ import annotations

from composer.diagnostics import Source
from composer.language.name_patterns import NamePattern, pattern
from composer.language.yaml.nodes import YamlMapping, YamlScalar
from composer.language.yaml.reader import read
from composer.weights import WeightMap, mapping


def written(text: str) -> YamlMapping:
    """Return what stands under `weights:`."""
    root = read(Source("<text>", text)).root
    assert root is not None
    return root


def named(text: str) -> NamePattern:
    """Return a pattern that is known to be one."""
    (entry,) = written(f"{text}: x").entries
    assert isinstance(entry.key, YamlScalar)
    made = pattern(entry.key)
    assert isinstance(made, NamePattern), made
    return made


def rules(text: str, **ours: tuple[int, ...]) -> WeightMap:
    """Return the map of rules, one a line, over parameters `a__b` for `a.b`."""
    body = "\n".join(f"    {line}" for line in text.strip().splitlines())
    return mapping(written(f"model:\n  rules:\n{body}"), None, {name.replace("__", "."): shape for name, shape in ours.items()})
