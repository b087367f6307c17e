"""The command line: one file for each family of commands, loaded when it is asked for."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

import composer
from composer.cli.arguments import Parser, Problem, hints, misspelled

COMMANDS = {
    "list": ("zoo", "the recipes that come with the package"),
    "show": ("zoo", "the text of a recipe"),
    "check": ("check", "everything that is wrong or doubtful in recipes"),
    "explain": ("explain", "what an error means, with an example"),
    "blocks": ("blocks", "the reference of blocks, masks, norms and what else a recipe may name"),
    "schema": ("schema", "the JSON Schema of recipes, with which an editor completes and checks them"),
    "summary": ("summary", "what a model consists of and what it costs"),
    "expand": ("expand", "a recipe written out, without shorthands"),
    "diff": ("diff", "what differs between two models, whatever their parts are called"),
    "import": ("published", "the recipe and the settings for a published config.json"),
    "draw": ("draw", "the picture of a model: SVG, HTML, PNG, PDF, DOT or Mermaid"),
    "mask": ("mask", "a mask as a picture: which query sees which key"),
    "export": ("export", "a model as one Python file that needs nothing but torch"),
    "train": ("train", "train a model on a text"),
    "generate": ("generate", "let a trained model write"),
    "demo": ("demo", "check, summarize and train a small model, and let it write: about three minutes"),
    "plays": ("plays", "train six small models on the same plays, and compare them: about a quarter of an hour"),
}
"""Each command with the module that holds it, and what it gives."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns 0, 1 where a recipe is wrong, 2 where the usage is."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        return _run(words)
    except Problem as problem:
        print(problem, file=sys.stderr)
        return problem.code
    except SystemExit as end:  # argparse: after -h and --version, and where the usage is wrong
        return end.code if isinstance(end.code, int) else 2


def _run(words: list[str]) -> int:
    chosen = next((word for word in words if not word.startswith("-")), None)
    if chosen is not None and chosen not in COMMANDS:
        raise Problem(f"arco: there is no command called `{chosen}`", misspelled(chosen, COMMANDS) or "`arco -h` shows them all")
    parser = Parser(prog="arco", description="Compose neural networks from recipes: check, count, compile, train, write.")
    parser.add_argument("--version", action="version", version=f"arco {composer.__version__ if '--version' in words else ''}")
    commands = parser.add_subparsers(metavar="COMMAND", parser_class=Parser)
    for name, (module, gives) in COMMANDS.items():
        below = commands.add_parser(name, help=gives, description=f"{gives[0].upper()}{gives[1:]}.")
        if name == chosen:
            import_module(f"composer.cli.{module}").declare(below, name)
    arguments, unknown = parser.parse_known_args(words)
    if unknown:
        options = commands.choices[chosen]._option_string_actions if chosen else parser._option_string_actions
        raise Problem(f"arco{f' {chosen}' if chosen else ''}: {unknown[0]} is not understood", hints(unknown[0], options, chosen))
    if not hasattr(arguments, "run"):
        parser.print_help()
        return 0
    code: int = arguments.run(arguments)
    return code
