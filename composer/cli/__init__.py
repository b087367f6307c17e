"""The command line: one file for each family of commands, loaded when it is asked for."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module

import composer
from composer.cli.arguments import Parser, Problem, misspelled, option_hint, tell

GROUPS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "Start": {
        "list": ("recipes", "List the recipes that come with the package"),
        "show": ("recipes", "Print the text of a recipe"),
        "demo": ("demo", "Check, train and sample a small model, in about three minutes"),
    },
    "Write a recipe": {
        "check": ("check", "Check recipes and show every mistake at its place"),
        "explain": ("reference", "Explain an error, with a recipe that has it"),
        "blocks": ("reference", "Look up blocks, masks, norms and whatever else a recipe can name"),
        "mask": ("mask", "Draw an attention mask in the terminal"),
        "expand": ("recipes", "Print a recipe in full, without shorthands"),
        "schema": ("reference", "Print the JSON Schema of recipes, for editors"),
    },
    "Look at a model": {
        "summary": ("summary", "Show the layers of a model with shapes, parameters, FLOPs and memory"),
        "draw": ("draw", "Draw a model as a figure: SVG, HTML, PNG, PDF, DOT or Mermaid"),
        "diff": ("diff", "Compare two models, whatever their nodes are called"),
    },
    "Run": {
        "export": ("recipes", "Print a model as one Python file that needs only torch"),
        "train": ("train", "Train a model on a text, into a run folder"),
        "generate": ("generate", "Generate text with a trained model"),
    },
    "Published models": {
        "import": ("published", "Turn a published config.json into a recipe"),
    },
    "Shell": {
        "completion": ("completion", "Print the completion script for a shell"),
    },
}
"""Each command, in the order in which one meets them, with the module that holds it and what it does."""
COMMANDS = {name: command for commands in GROUPS.values() for name, command in commands.items()}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return 0, 1 where a recipe is wrong, 2 where the usage is."""
    try:
        return _run(list(sys.argv[1:] if argv is None else argv))
    except Problem as problem:
        tell(problem)
        return problem.code


def declare(parser: Parser, name: str) -> Parser:
    """Return a command's parser with everything that the command takes."""
    module, does = COMMANDS[name]
    parser.description = f"{does}."
    import_module(f"composer.cli.{module}").declare(parser, name)
    parser.add_argument("-h", "--help", action="store_true", help="Show this help")
    return parser


def _run(words: list[str]) -> int:
    if words[:1] == ["help"]:
        words = [*words[1:2], "--help"]
    match words:
        case [] | ["-h" | "--help", *_]:
            _print_overview()
            return 0
        case ["--version", *_]:
            print(f"arco {composer.__version__}")
            return 0
    name, *rest = words
    if name.startswith("-"):
        raise Problem(f"arco: {name} is not understood", option_hint(name, ["--help", "--version"], "arco"))
    if name not in COMMANDS:
        hint = misspelled(name, [*COMMANDS, "help"]) or "`arco -h` shows them all"
        raise Problem(f"arco: there is no command called `{name}`", hint)
    return _run_command(name, rest)


def _run_command(name: str, words: list[str]) -> int:
    parser = declare(Parser(prog=f"arco {name}"), name)
    options = words[: words.index("--")] if "--" in words else words
    if {"-h", "--help"} & {*options}:
        _print_help(parser)
        return 0
    arguments, unknown = parser.parse_known_args(words)
    if unknown:
        known = list(parser._option_string_actions)
        raise Problem(f"arco {name}: {unknown[0]} is not understood", option_hint(unknown[0], known, f"arco {name}"))
    code: int = arguments.run(arguments)
    return code


def _print_help(parser: Parser) -> None:
    from composer.cli.color import painter
    from composer.cli.help import help_of

    print(help_of(parser, painter(sys.stdout)), end="")


def _print_overview() -> None:
    from composer.cli.color import painter
    from composer.cli.help import overview

    groups = {title: {name: does for name, (_, does) in commands.items()} for title, commands in GROUPS.items()}
    print(overview(groups, painter(sys.stdout)), end="")
