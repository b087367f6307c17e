"""`arco summary`: what a model consists of and what it costs."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping

from composer.cli.arguments import Problem, add_recipe, misspelled, sound_recipe


def declare(parser: argparse.ArgumentParser, name: str) -> None:
    """A recipe, and the lengths of its axes."""
    add_recipe(parser)
    parser.add_argument(
        "--at",
        metavar="AXIS=LENGTH",
        action="append",
        default=[],
        help="measure at this length: time=512, batch=8; may be repeated",
    )
    parser.add_argument("--json", action="store_true", help="the same as JSON")
    parser.set_defaults(run=summary)


def summary(arguments: argparse.Namespace) -> int:
    """Print it."""
    from composer.cost.lengths import axes

    recipe = sound_recipe(arguments.recipe, arguments)
    told = recipe.summary(lengths(arguments.at, axes(recipe.program)))
    print(json.dumps(told.to_json(), indent=2, ensure_ascii=False) if arguments.json else told)
    return 0


def lengths(written: Iterable[str], known: tuple[str, ...]) -> Mapping[str, int]:
    """`time=512` as an axis and its length."""
    found = {}
    for each in written:
        axis, _, length = each.partition("=")
        if axis not in known:
            there = f"the axes are {', '.join(known)}" if known else "every axis of this model has a fixed length"
            raise Problem(f"arco summary: --at {each}: there is no axis called `{axis}`", misspelled(axis, known) or there)
        if not (length.isascii() and length.isdigit() and int(length[:18]) > 0 and len(length) < 16):
            raise Problem(f"arco summary: --at {each}: a length is a whole number of at least 1", f"such as --at {axis}=512")
        found[axis] = int(length)
    return found
