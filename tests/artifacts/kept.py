"""What is kept of one recipe, and of two."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, TypeAlias

import networkx as nx

import composer
from composer.diagnostics import Diagnostic, as_json, report
from composer.draw.build.levels import LEVELS
from composer.draw.export.formats import written
from composer.graph.parameters import parameters

Artifact: TypeAlias = tuple[str, Callable[[], str | bytes]]
"""The name of a file, and what makes its content."""
Artifacts: TypeAlias = Iterator[Artifact]
STYLES: dict[str, dict[str, Any]] = {
    "auto": {"theme": "auto"},
    "slide": {"theme": "slide"},
    "narrow": {"width": "240pt"},
    "bare": {"params": False, "shapes": False},
    "unrolled": {"unroll": True},
    "graphviz": {"engine": "dot"},
}
"""Drawings of the zoo that are no plain ones."""


def data(value: Any) -> str:
    """Return JSON that can be read and compared line by line."""
    return json.dumps(value, indent=1, ensure_ascii=False, default=str) + "\n"


def rows(values: Iterable[Any]) -> str:
    """Return JSON with a line for each value of a list."""
    return "[\n" + ",\n".join(json.dumps(value, ensure_ascii=False, default=str) for value in values) + "\n]\n"


def diagnosed(found: Sequence[Diagnostic]) -> Artifacts:
    """Yield the diagnostics, as data and as text."""
    yield "diagnostics.json", lambda: as_json(found)
    yield "diagnostics.txt", lambda: report(found)


def whole(recipe: composer.Recipe, levels: Sequence[Any] = LEVELS) -> Artifacts:
    """Yield all artifacts of a recipe but its numbers; of a wrong one, what is wrong."""
    yield "recipe.yaml", lambda: recipe.source.text
    found = recipe.check()
    yield from diagnosed(found)
    if not any(each.severity == "error" for each in found):
        yield from of_sound(recipe, levels)


def of_sound(recipe: composer.Recipe, levels: Sequence[Any]) -> Artifacts:
    """Yield what a recipe without errors gives."""
    yield "resolved.yaml", lambda: recipe.text
    yield "expanded.yaml", recipe.expand
    yield "model.py", recipe.export
    yield "summary.txt", lambda: str(recipe.summary())
    yield "summary.json", lambda: data(recipe.summary().to_json())
    yield "graph.json", lambda: data(nx.node_link_data(recipe.to_networkx(), edges="edges"))
    yield "types.json", lambda: data(types(recipe))
    yield "parameters.json", lambda: rows(map(asdict, parameters(recipe.program)))
    for level in levels:
        yield f"{level}.svg", lambda level=level: recipe.draw(level).svg()
        yield f"{level}.dot", lambda level=level: written(recipe.draw(level), "dot")
        yield f"{level}.mmd", lambda level=level: written(recipe.draw(level), "mermaid")


def of_zoo(name: str) -> Artifacts:
    """Yield the artifacts of a recipe of the zoo: also its page, its files for print, and other ways to draw it."""
    recipe = composer.load(name)
    yield from whole(recipe)
    yield "page.html", lambda: recipe.draw().html()
    yield "block.png", lambda: written(recipe.draw(), "png")
    yield "block.pdf", lambda: written(recipe.draw(), "pdf")
    for style, options in STYLES.items():
        yield f"{style}.svg", lambda options=options: recipe.draw(**options).svg()
    for node in recipe.program.root.nodes:
        opened: dict[str, Any] = {"expand": [node.name], "highlight": [node.name]}
        yield f"opened-{node.name}.svg", lambda opened=opened: recipe.draw("overview", **opened).svg()


def types(recipe: composer.Recipe) -> dict[str, dict[str, str]]:
    """Return what goes in and what comes out."""
    root = recipe.program.root
    return {
        side: {name: str(type_) for name, type_ in ports.items()} for side, ports in (("in", root.inputs), ("out", root.outputs))
    }


def difference(before: composer.Recipe, after: composer.Recipe, *, drawn: bool = False, page: bool = False) -> Artifacts:
    """Yield the artifacts of what two models differ in."""
    yield "difference.txt", lambda: str(before.diff(after))
    yield "difference.json", lambda: data(before.diff(after).to_json())
    if drawn:
        for level in LEVELS:
            yield f"{level}.svg", lambda level=level: before.diff(after).draw(level).svg()
    if page:
        yield "page.html", lambda: before.diff(after).draw().html()
