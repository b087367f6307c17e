"""What the commands share: the parser, common arguments, and the exception that ends a command."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from composer.diagnostics import Diagnostic, RecipeError, concise, report
from composer.diagnostics.render import Painter, plain
from composer.language.suggestions import suggest
from composer.printable import printable

if TYPE_CHECKING:
    from blocks.core import Library
    from composer.recipe import Recipe

Number = TypeVar("Number", int, float)


class Problem(Exception):
    """A failure of a command: the message, a hint on what to do, diagnostics, and the exit code."""

    def __init__(self, message: str = "", hint: str = "", *, found: Sequence[Diagnostic] = (), code: int = 2) -> None:
        super().__init__(message)
        self.message, self.hint, self.found, self.code = message, hint, found, code

    def shown(self, paint: Painter) -> str:
        """Return the message, the diagnostics below it, and the hint."""
        command, colon, rest = self.message.partition(":")
        message = [paint(_lines(command + colon), "error") + _lines(rest)] if self.message else []
        text = "\n\n".join([*message, *([report(self.found, paint=paint)] if self.found else [])])
        return f"{text}\n{paint('  = ', 'dim')}{_lines(self.hint)}" if self.hint else text

    def __str__(self) -> str:
        return self.shown(plain)


def _lines(text: str) -> str:
    return printable(text, keep="\n")


def tell(problem: Problem) -> int:
    """Print a problem to standard error and return its exit code."""
    from composer.cli.color import painter

    print(problem.shown(painter(sys.stderr)), file=sys.stderr)
    return problem.code


class Parser(argparse.ArgumentParser):
    """A parser of one command.

    It reports usage errors in one line with a hint, and accepts no abbreviated options, since a new option could change their
    meaning.
    """

    examples: Sequence[tuple[str, str]] = ()
    """Pairs of a description and the command to type."""
    notes: str = ""
    """Text below the examples."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, add_help=False, **settings)

    def error(self, message: str) -> NoReturn:
        raise Problem(f"{self.prog}: {message.removeprefix('argument ')}", f"`{self.prog} -h` shows the usage")

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        if action.option_strings and "--" in arg_strings:  # argparse drops it in `--option=--`
            raise Problem(f"{self.prog}: {'/'.join(action.option_strings)}: `--` is not a value")
        return super()._get_values(action, arg_strings)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            offered = list(map(str, action.choices))
            name = "/".join(action.option_strings) or action.metavar
            hint = misspelled(str(value), offered) or f"choose from {', '.join(offered)}"
            raise Problem(f"{self.prog}: {name}: there is no `{value}`", hint)


class StoreOnce(argparse.Action):
    """Store an option and reject a second value, which would silently replace the first."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, value: Any, name: str | None = None
    ) -> None:
        if getattr(namespace, self.dest) is not None:
            raise Problem(f"{parser.prog}: {name} is given twice", "give it once")
        setattr(namespace, self.dest, value)


def misspelled(word: str, known: Iterable[str]) -> str:
    """Return a "did you mean" hint for a misspelled word, or an empty string."""
    offered = suggest(word, known)
    return f"did you mean {' or '.join(offered)}?" if offered else ""


USUAL = {
    "--lr": "--learning-rate", "--epochs": "--steps", "--num-epochs": "--steps", "--num-train-epochs": "--steps",
    "--iters": "--steps", "--bs": "--batch-size", "--batch": "--batch-size", "--per-device-train-batch-size": "--batch-size",
    "--wd": "--weight-decay", "--block-size": "--seq-len", "--context-length": "--seq-len", "--output-dir": "--run",
    "--out-dir": "--run", "--optim": "--optimizer", "--scheduler": "--schedule", "--lr-scheduler-type": "--schedule",
    "--grad-clip": "--max-grad-norm", "--clip": "--max-grad-norm", "--gpu": "--device", "--max-length": "--max-new-tokens",
    "--n-predict": "--max-new-tokens", "--temp": "--temperature", "--dataset": "--data",
}  # fmt: skip
"""The options here by those of other tools for the same, or, for epochs, for what is counted in their place."""


LENGTH = re.compile(r"[A-Za-z_]\w*=[0-9,]+")
"""The length of an axis, or several."""
NEXT_AXIS = re.compile(r",(?=[A-Za-z_]\w*=)")
"""Between the lengths of two axes in one option."""


def not_taken(word: str, options: Sequence[str], command: str) -> Problem:
    """Return the problem of an option or argument that a command does not take."""
    if not word.startswith("-"):
        if "--at" in options and LENGTH.fullmatch(word):
            return Problem(f"{command}: unexpected argument {word}", f"each axis has an option of its own: --at {word}")
        return Problem(f"{command}: unexpected argument {word}", f"`{command} -h` lists its arguments")
    name = word.partition("=")[0]
    words = {*name.strip("-").split("-")}
    longer = [
        each for each in options if each.startswith(name) or words < {*each.strip("-").split("-")}
    ]  # --tokens: --max-new-tokens
    usual = USUAL.get(name.replace("_", "-"), "")
    if usual in options:
        return Problem(f"{command}: unknown option {word}", f"did you mean {usual}?")
    near = "" if len(name.strip("-")) < 2 else misspelled(name, options)
    meant = near or (f"did you mean {' or '.join(longer)}?" if 0 < len(longer) < 4 else "")
    return Problem(f"{command}: unknown option {word}", meant or f"`{command} -h` lists its arguments")


def integer(text: str) -> int:
    """Return a text as an integer."""
    return _parsed(text, int, "an integer")


def number(text: str) -> float:
    """Return a text as a number."""
    return _parsed(text, float, "a number")


def _parsed(text: str, kind: Callable[[str], Number], name: str) -> Number:
    try:
        return kind(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not {name}") from None


def each_axis(written: Iterable[str]) -> list[str]:
    """Return the lengths of axes one by one, of texts such as `time=512` and `time=512,batch=8`."""
    return [one for several in written for one in NEXT_AXIS.split(several)]


def lengths(written: Iterable[str], known: tuple[str, ...], command: str) -> Mapping[str, int]:
    """Return the lengths by axis of texts such as `time=512`, or `time=512,batch=8`.

    Raises:
        Problem: The model has no such axis, or the length is none.
    """
    from composer.cost.lengths import unknown_axis

    found = {}
    for each in each_axis(written):
        axis, _, length = each.partition("=")
        if axis not in known:
            wrong = unknown_axis(axis, known)
            raise Problem(f"arco {command}: --at {each}: {wrong.message}", wrong.hint)
        if not (length.isascii() and length.isdigit() and int(length[:18]) > 0 and len(length) < 16):
            raise Problem(f"arco {command}: --at {each}: a length is an integer of at least 1", f"for example, --at {axis}=512")
        found[axis] = int(length)
    return found


def add_recipe(parser: Parser, help: str = "Name from `arco list`, or path to a .yaml file", **settings: Any) -> None:
    """Declare the argument `RECIPE`."""
    parser.add_argument("recipe", metavar="RECIPE", help=help, **settings)


def add_changes(parser: Parser) -> None:
    """Declare `--set` and `--blocks`."""
    group = parser.add_argument_group("Recipe")
    group.add_argument(
        "--set",
        metavar="PATH=VALUE",
        action="append",
        default=[],
        help="Set a param or any other value, such as n_layers=6 or layers.attn.body.mask=full; null deletes it",
    )
    add_blocks(group)


def add_blocks(group: argparse._ActionsContainer) -> None:
    """Declare `--blocks`."""
    group.add_argument(
        "--blocks",
        metavar="FILE.py",
        action="append",
        default=[],
        help="Add the blocks defined in a Python file, which is executed",
    )


def library_of(arguments: argparse.Namespace) -> Library:
    """Return the standard library with the blocks of `--blocks` added.

    Raises:
        Problem: The blocks cannot be used.
    """
    from composer.own_blocks import library_with

    try:
        return library_with(arguments.blocks)
    except RecipeError as error:
        raise unusable(error) from None


def load_recipe(source: str, arguments: argparse.Namespace) -> Recipe:
    """Return the recipe with the overrides and blocks of the command line; it may have errors.

    Raises:
        Problem: The recipe cannot be read.
    """
    from composer.loading import load

    try:
        return load(source, overrides=arguments.set, blocks=arguments.blocks)
    except RecipeError as error:
        raise unusable(error) from None


def unusable(error: RecipeError) -> Problem:
    """Return the one-line problem of a source that cannot be read."""
    first = error.diagnostics[0]
    return Problem(concise(first) if first.span.source.text else f"arco: {first.span.source.name}: {first.message}", first.hint)


def sound_recipe(source: str, arguments: argparse.Namespace) -> Recipe:
    """Return what `load_recipe` returns, once it has passed all checks.

    Raises:
        Problem: The recipe cannot be read, or has errors.
    """
    return sound(load_recipe(source, arguments))


def sound(recipe: Recipe) -> Recipe:
    """Return the recipe, once it has passed all checks.

    Raises:
        Problem: The recipe has errors.
    """
    found = recipe.check()
    if any(diagnostic.severity == "error" for diagnostic in found):
        raise Problem(found=found, code=1)
    return recipe
