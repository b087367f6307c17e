"""A drawing as one HTML page without a network: every level, what is in each block, and the recipe beside it."""

from __future__ import annotations

import gzip
import hashlib
import re
from base64 import b64encode
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from composer.draw.arrange.foot import KINDS
from composer.draw.arrange.shares import COUNTED, STEPS, TRAINED
from composer.draw.build.levels import LEVELS, Level
from composer.draw.build.source_files import File, elsewhere, files, source
from composer.draw.export.node_facts import facts, implied
from composer.draw.export.paint import BORDERS, COVERS, SHADED
from composer.draw.export.views import Openable, View, all_views, view_data
from composer.draw.paths import plain
from composer.draw.style.palette import DARK, LIGHT
from composer.draw.style.themes import ThemeName, detail_rules, picture_rules, rules
from composer.graph.passes.roll_layers.roll_layers import RolledProgram
from composer.printable import json_text, markup

PAGE_FILES = Path(__file__).parent / "web"
SCRIPTS = ("page.js", "size.js", "hide.js", "merge.js", "look.js")


@dataclass(frozen=True, slots=True)
class Pictures:
    """The pictures of a page."""

    views: Sequence[View]
    first: Level
    """What is shown at first."""
    theme: ThemeName
    unwritten: Mapping[str, Sequence[str]]
    """Ports of blocks for which the recipe writes nothing, by the blocks' paths."""


def html(figure: Openable) -> str:
    """Return the page; the figure's own level is what it shows first."""
    views = all_views(figure)
    inputs = figure.model.program.untyped.inputs
    data = {
        "sides": [""],
        "direction": figure.scene.direction,
        "facts": facts(figure.model),
        "color": figure.color,
        "highlight": [*dict.fromkeys(map(plain, figure.highlight))],
        "optional": [one.name for one in inputs if one.optional or one.default],
        "legend": {
            "kind": list(KINDS.items()),
            "trainable": list(TRAINED.items()),
            "share": [said for _, said in STEPS],
            "of": COUNTED,
        },
    }
    pictures = Pictures(views, figure.level, figure.theme, implied(figure.model))
    return document(figure.scene.name, pictures, {"": figure.model}, data, style=shade_rules())


def document(
    title: str,
    pictures: Pictures,
    models: Mapping[str, RolledProgram],
    data: Mapping[str, Any],
    *,
    changed: Mapping[File, Container[int]] = MappingProxyType({}),
    panel: str = "",
    hint: str = "",
    style: str = "",
    scripts: Sequence[str] = SCRIPTS,
) -> str:
    """Return a page of some pictures, with the files in which their models are written beside them.

    Args:
        title: the title of the page.
        pictures: what it shows.
        models: what the pictures show, by what its paths begin with.
        data: what else the script needs.
        changed: lines of files that are highlighted.
        panel: HTML above what is said of the chosen block.
        hint: a sentence more about how to use the page.
        style: CSS after that of the page.
        scripts: the files of the page's script.
    """
    sources = files(list(models.values()))
    where = [(side, *one) for side, model in models.items() for one in elsewhere(model).items()]
    views, first = pictures.views, pictures.first
    data = {
        **data,
        "files": [one.name for one in sources],
        "own": [sources.index(source(model.program)) for model in models.values()],
        "written": {side + path: [sources.index(file), first, last] for side, path, (file, first, last) in where},
        "first": first,
        "views": {view.key: view_data(view, pictures.unwritten) for view in views},
    }
    script = "".join(map(page_file, scripts)) + "start();"
    dark = rules(DARK) + detail_rules(DARK) + picture_rules(DARK)
    parts = {
        "policy": policy(script),
        "title": markup(title),
        "style": page_file("page.css") + f"@media screen{{html[data-theme=dark] #stage{{{dark}}}}}" + style,
        "levels": "".join(f'<button type="button" data-level="{level}">{level.capitalize()}</button>' for level in LEVELS),
        "panel": panel,
        "hint": hint,
        "recipes": "".join(recipe(one, changed.get(one, ())) for one in sources),
        "picture": next(view for view in views if view.key == first).figure.svg(),
        "data": as_json({"packed": compressed(data)}),
        "script": script,
        "theme": "dark" if pictures.theme == "dark" else "",
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], page_file("page.html"))


def page_file(name: str) -> str:
    """Return a file of the page."""
    return (PAGE_FILES / name).read_text(encoding="utf-8")


def policy(script: str) -> str:
    """Return what a page may do: run its own script, and load nothing but pictures that it made itself, to save them as PNG.
    What a recipe says is only text; this holds even if it became markup.
    """
    digest = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    rules = ("default-src 'none'", f"script-src 'sha256-{digest}'", "style-src 'unsafe-inline'", "img-src blob:")
    return "; ".join((*rules, "base-uri 'none'", "form-action 'none'"))


def recipe(file: File, changed: Container[int]) -> str:
    """Return a file as a list of its lines."""
    name, lines = markup(file.name), file.text.split("\n")
    items = "".join(
        f"<li{' class=changed' * (number in changed)}>{markup(line) or ' '}</li>"
        for number, line in enumerate(lines[: len(lines) - (lines[-1] == "")], 1)
    )
    return f'<h2>{name}</h2><ol class="recipe" tabindex="0" aria-label="{name}">{items}</ol>'


def as_json(data: Any) -> str:
    """Return JSON that a script may hold: it neither ends there nor turns into a comment."""
    return re.sub("<(?=[!/s])", r"\\u003c", json_text(data, separators=(",", ":")), flags=re.IGNORECASE)


def compressed(data: Any) -> str:
    """Return data as JSON in gzip in base64, which `DecompressionStream` reads: pictures of a model have most text in common."""
    return b64encode(gzip.compress(json_text(data).encode(), mtime=0)).decode()


def shade_rules() -> str:
    """Return the looks of boxes whose color tells a size, as CSS."""
    color = LIGHT.hues[SHADED].stroke, DARK.hues[SHADED].stroke
    found = [f":root{{--shade:{color[0]}}}@media screen{{html[data-theme=dark]{{--shade:{color[1]}}}}}"]
    for step, (cover, border) in enumerate(zip(COVERS, BORDERS, strict=True)):
        fill = f"color-mix(in srgb,var(--shade) {cover:.0%},var(--paper))"
        found.append(f".shade{step}>.s{{fill:{fill}!important;stroke:var(--shade)!important}}")
        found.append(f":where(.shade{step})>.s{{stroke-width:{border}}}")
    return "".join(found) + ".shade .i{stroke:var(--shade)!important}.shade :is(.on,.half){fill:var(--shade)!important}"
