"""`arco check`: errors and warnings in recipes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from composer.cli.arguments import Parser, Problem, add_changes, load_recipe, sound, sound_recipe, tell, unusable
from composer.cli.color import painter
from composer.cli.output import say
from composer.cli.revision import revision_of
from composer.diagnostics import Diagnostic, RecipeError, as_github, as_json, concise, report
from composer.diagnostics.render import Painter, in_order
from composer.language.composition.override import read_overrides
from composer.language.source_file import ENDINGS, form_of
from composer.language.wording import counted

if TYPE_CHECKING:
    from composer.recipe import Recipe

FORMATS: dict[str, Callable[[list[Diagnostic], Painter], str]] = {
    "full": lambda found, paint: report(found, paint=paint),
    "concise": lambda found, paint: report(found, concise, paint=paint),
    "json": lambda found, _: as_json(found),
    "github": lambda found, _: "\n".join(map(as_github, found)),
}
FOR_PROGRAMS = ("json", "github")
"""Formats that print nothing for a recipe without problems."""


def declare(parser: Parser, name: str) -> None:
    """Declare the recipes and the format of the report."""
    parser.add_argument(
        "recipes",
        metavar="RECIPE",
        nargs="+",
        help="Names from `arco list`, or paths to recipes and files of blocks (.yaml, .py)",
    )
    add_changes(parser)
    parser.add_argument(
        "--format",
        choices=tuple(FORMATS),
        default="full",
        help="Quote the source of each mistake, print one line for each, or print JSON or GitHub annotations",
    )
    parser.add_argument(
        "--against",
        metavar="RECIPE|REVISION",
        help="Warn about edges that differ from another recipe, or from a Git revision of the same file",
    )
    parser.examples = [
        ("Check a recipe", "arco check small.yaml"),
        ("Check a change before making it", "arco check small.yaml --set n_layers=12"),
        ("Annotate the lines of a pull request", "arco check --format github small.yaml"),
        ("Check a file of blocks without a recipe", "arco check blocks.yaml my_blocks.py"),
        ("List the edges that differ from another recipe's", "arco check small.yaml --against gpt_mini"),
    ]
    parser.notes = (
        "The exit code is 1 if a recipe or a file of blocks has errors, and 2 if one cannot be read. Warnings do not change it."
    )
    parser.set_defaults(run=check)


def check(arguments: argparse.Namespace) -> int:
    """Report the problems of all recipes."""
    paint, found, code = painter(sys.stdout), [], 0
    unreadable = []
    for source in arguments.recipes:
        try:
            if source.endswith(".py"):
                clean, diagnostics = python_file(source, arguments)
                recipe = None
            else:
                recipe = load_recipe(source, arguments)
                clean, diagnostics = checked(recipe, source, arguments)
        except Problem as problem:
            unreadable.append(problem)
            continue
        wrong = any(diagnostic.severity == "error" for diagnostic in diagnostics)
        code = max(code, int(wrong))
        if arguments.against is not None and not wrong and recipe is not None:
            diagnostics += against(recipe, source, arguments)
        found.extend(diagnostics)
        if not diagnostics and arguments.format not in FOR_PROGRAMS:
            say(clean)
    if found or arguments.format == "json":
        print(FORMATS[arguments.format](in_order(found), paint))
    for each in unreadable:
        tell(each)
    return 2 if unreadable else code


def checked(recipe: Recipe, source: str, arguments: argparse.Namespace) -> tuple[str, list[Diagnostic]]:
    """Return what is said of a recipe or a file of blocks without problems, and its problems.

    Raises:
        Problem: A file of blocks is compared.
    """
    from composer.block_file import defined_blocks, is_block_file

    if not is_block_file(recipe):
        return f"{source}: no problems found", recipe.check()
    refuse_against(source, arguments)
    count, found = defined_blocks(recipe)
    return clean_blocks(source, count), found


def python_file(source: str, arguments: argparse.Namespace) -> tuple[str, list[Diagnostic]]:
    """Return what is said of a Python file of blocks without problems, and its problems.

    Raises:
        Problem: The file cannot be read, or it is compared or changed.
    """
    from composer.block_file import python_blocks

    refuse_against(source, arguments)
    try:
        count, found = python_blocks(Path(source), arguments.blocks)
    except RecipeError as error:
        raise unusable(error) from None
    return clean_blocks(source, count), found


def clean_blocks(source: str, count: int) -> str:
    """Return what is said of a file of blocks without problems."""
    return f"{source}: {counted(count, 'block')}, no problems found"


def refuse_against(source: str, arguments: argparse.Namespace) -> None:
    """Raise `Problem` for a file of blocks that is compared with something."""
    if arguments.against is not None:
        raise Problem(
            f"arco check: --against {arguments.against}: {source} is a file of blocks, and edges of models are compared"
        )


def against(recipe: Recipe, source: str, arguments: argparse.Namespace) -> list[Diagnostic]:
    """Return a warning for each edge that differs from the recipe or revision of `--against`; `--set` applies to both.

    Raises:
        Problem: That recipe or revision cannot be read, or has errors.
    """
    from composer.diff.edge_changes import changed_edges

    return changed_edges(_earlier(source, arguments).program, recipe.program)


def _earlier(source: str, arguments: argparse.Namespace) -> Recipe:
    """Return the recipe of `--against`, or a file as it was at the revision of `--against`."""
    from composer.recipe import Recipe

    try:
        if names_recipe(arguments.against):
            return sound_recipe(arguments.against, arguments)
        file = Path(source)
        if not file.is_file():
            raise Problem(
                f"arco check: --against {arguments.against}: {source} is not a file, so Git has no revisions of it",
                "compare it with another recipe",
            )
        revision = revision_of(file, arguments.against)
        text = revision.open(file.resolve().name, source)
        return sound(Recipe(text, read_overrides(arguments.set), arguments.blocks, revision))
    except RecipeError as error:
        raise unusable(error) from None
    except Problem as problem:
        if not problem.found:
            raise
        message = f"arco check: --against {arguments.against}: that recipe has errors itself"
        raise Problem(message, problem.hint, found=problem.found) from None


def names_recipe(word: str) -> bool:
    """Return whether a word names a recipe rather than a Git revision, which may also contain slashes."""
    from composer.recipe import zoo_names

    match form_of(word):
        case "name":
            return word in zoo_names()
        case "path":
            return word.endswith(ENDINGS) or Path(word).is_file()
        case "text":
            return False
