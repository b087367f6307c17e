"""The case files: recipes with a mistake, and the diagnostics that each must give."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import chdir
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import composer
from composer.cost.budget import budget
from composer.diagnostics import Diagnostic, RecipeError, Span
from composer.diff.edge_changes import changed_edges
from composer.graph.parameters import parameters
from composer.weights.mapping import mapping
from tests.docs.pages import Example, examples

FOLDER = Path(__file__).parent
FILES = sorted(FOLDER.glob("*.md"))


@dataclass(frozen=True)
class Case:
    """One broken recipe, under the code that it illustrates."""

    code: str
    meaning: str
    """The section's first sentence: what the code means, and what is right."""
    recipe: Example
    settings: tuple[str, ...]
    """`PATH=VALUE`, one for each line of a block `set` above the recipe."""
    config: str
    """A `config.json` above the recipe; nothing where there is none."""
    expected: Example
    before: str = ""
    """What the recipe was, in a block `before` above it; nothing where that is not asked."""

    @property
    def context(self) -> str:
        """Where the mistake stands: the first word after `yaml`."""
        return self.recipe.words[0]

    @property
    def text(self) -> str:
        """The recipe; where its fence says `escapes`, `\\u0009` in it is a tab, and so on."""
        if "escapes" not in self.recipe.words:
            return self.recipe.text
        return re.sub(r"\\u([0-9a-f]{4})", lambda match: chr(int(match[1], 16)), self.recipe.text)

    def __str__(self) -> str:
        return f"{self.code}-{self.context}-{self.recipe.line}"


def cases(file: Path) -> Iterator[Case]:
    """Yield the cases of a file: each a recipe with the text below it, in the section of its code."""
    lines = file.read_text(encoding="utf-8").splitlines()
    titles = [number for number, line in enumerate(lines, 1) if line.startswith("## ")]
    settings: tuple[str, ...] = ()
    config = ""
    recipe: Example | None = None
    before = ""
    for example in examples(file):
        match example.language:
            case "set":
                settings = tuple(example.text.splitlines())
            case "json":
                config = example.text
            case "before":
                before = example.text
            case "yaml":
                recipe = example
            case "text":
                assert recipe is not None, f"{example}: no recipe stands above these diagnostics"
                title = max(number for number in titles if number < recipe.line)
                yield Case(
                    lines[title - 1].removeprefix("## "), _paragraph(lines[title:]), recipe, settings, config, example, before
                )
                settings, config, recipe, before = (), "", None, ""
    assert recipe is None, f"{recipe}: no diagnostics stand below this recipe"


def _paragraph(lines: list[str]) -> str:
    text = "\n".join(lines).strip()
    return " ".join(text.partition("\n\n")[0].split())


@cache
def diagnose(case: Case) -> list[Diagnostic]:
    """Return what is found, what a recipe extends lying in `recipes`.

    Where the fence says `build` or `weights`, or a `config.json` stands above, by what comes after a check without errors.
    """
    with chdir(FOLDER):
        recipe = composer.load(case.text, overrides=case.settings)
        found = recipe.check()
    if case.before:
        found.extend(changed_edges(composer.load(case.before).program, recipe.program))
    if "build" in case.recipe.words:
        found.extend(budget(recipe.program))
    if case.config and not found:
        try:
            recipe.with_config(json.loads(case.config))
        except RecipeError as error:
            found.extend(error.diagnostics)
    if "checkpoints" in case.recipe.words and not found:
        rules = recipe.program.untyped.recipe.checkpoints
        assert rules is not None
        try:
            mapping(rules, None, {one.name: one.parameter.shape for one in parameters(recipe.program) if not one.tied_to})
        except RecipeError as error:
            found.extend(error.diagnostics)
    return found


def shown(diagnostic: Diagnostic) -> str:
    """Return `6:5-9 error[unknown-node] there is no node called …`, the hint on a line below."""
    line = f"{_place(diagnostic.span)} {diagnostic.severity}[{diagnostic.code}] {diagnostic.message}\n"
    return line + (f"  = {diagnostic.hint}\n" if diagnostic.hint else "")


def _place(span: Span) -> str:
    name = span.source.name
    start = "set:" if name == "--set" else f"{Path(name).name}:" if name.endswith((".yaml", ".json")) else ""
    end = "" if span.end_line == span.line else f"{span.end_line}:"
    return f"{start}{span.line}:{span.column}-{end}{span.end_column}"
