"""What the commands share: their arguments, and how they end where something is wrong."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn

from composer.diagnostics import RecipeError, concise, report
from composer.language.suggestions import near

if TYPE_CHECKING:
    from blocks.core import Library
    from composer.recipe import Recipe


class Problem(Exception):
    """Why a command ends early: what is wrong, what to do about it, and the exit code."""

    def __init__(self, message: str, hint: str = "", *, code: int = 2) -> None:
        super().__init__(message)
        self.message, self.hint, self.code = message, hint, code

    def __str__(self) -> str:
        return f"{self.message}\n  = {self.hint}" if self.hint else self.message


class Parser(argparse.ArgumentParser):
    """Reports wrong usage in one line with a hint, and takes no abbreviations: they would change with the next option."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, **settings)

    def error(self, message: str) -> NoReturn:
        raise Problem(f"{self.prog}: {message}", f"`{self.prog} -h` shows how it is used")


def misspelled(word: str, known: Iterable[str]) -> str:
    """What a word may have meant, as a hint."""
    offered = near(word, known)
    return f"did you mean {' or '.join(offered)}?" if offered else ""


def hints(word: str, options: Iterable[str], command: str | None) -> str:
    """What to do about a word that no command takes."""
    meant = misspelled(word.partition("=")[0], options) if word.startswith("-") else ""
    return meant or f"`arco {command} -h` shows what it takes" if command else meant or "`arco -h` shows what it takes"


def add_recipe(parser: argparse.ArgumentParser, **settings: Any) -> None:
    """One recipe, and what changes it."""
    parser.add_argument("recipe", metavar="RECIPE", help="a name from `arco list`, or the path of a .yaml file", **settings)
    add_changes(parser)


def add_changes(parser: argparse.ArgumentParser) -> None:
    """`--set` and `--blocks`."""
    parser.add_argument(
        "--set",
        metavar="PATH=VALUE",
        action="append",
        default=[],
        help="change a param or any other value: n_layers=6, layers.attn.body.mask=full; null deletes; may be repeated",
    )
    add_blocks(parser)


def add_blocks(parser: argparse.ArgumentParser) -> None:
    """`--blocks` alone."""
    parser.add_argument(
        "--blocks", metavar="FILE.py", action="append", default=[], help="a Python file with blocks of your own; it is run"
    )


def library_of(arguments: argparse.Namespace) -> Library:
    """The standard library with the blocks that `--blocks` names.

    Raises:
        Problem: where they cannot be used.
    """
    from composer.own_blocks import library_with

    try:
        return library_with(arguments.blocks)
    except RecipeError as error:
        raise unusable(error) from None


def load_recipe(source: str, arguments: argparse.Namespace) -> Recipe:
    """The recipe with what the command line sets in it; it may be wrong.

    Raises:
        Problem: where there is none to read.
    """
    from composer.recipe import load

    try:
        return load(source, overrides=arguments.set, blocks=arguments.blocks)
    except RecipeError as error:
        raise unusable(error) from None


def unusable(error: RecipeError) -> Problem:
    """The problem of what cannot be read at all, in one line."""
    first = error.diagnostics[0]
    return Problem(concise(first) if first.span.source.text else f"arco: {first.span.source.name}: {first.message}", first.hint)


def sound_recipe(source: str, arguments: argparse.Namespace) -> Recipe:
    """The same, without mistakes.

    Raises:
        Problem: with everything that is wrong.
    """
    recipe = load_recipe(source, arguments)
    found = recipe.check()
    if any(diagnostic.severity == "error" for diagnostic in found):
        raise Problem(report(found), code=1)
    return recipe
