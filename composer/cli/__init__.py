"""The command line: one module per family of commands, imported on first use."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module

import composer
from composer.cli.arguments import Parser, Problem, misspelled, not_taken, tell
from composer.errors import ComposerError

GROUPS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "Start": {
        "list": ("recipes", "List the recipes that come with the package"),
        "show": ("recipes", "Print the text of a recipe"),
        "demo": ("demo", "Check, train and sample from a small model in about three minutes"),
    },
    "Write a recipe": {
        "check": ("check", "Check recipes and show where each mistake is"),
        "verify": ("verify", "Run a model in small, and test that it and its blocks do what they declare"),
        "explain": ("reference", "Explain an error code, with an example"),
        "blocks": ("reference", "Look up blocks, masks, norms and everything else a recipe can name"),
        "mask": ("mask", "Draw an attention mask in the terminal"),
        "expand": ("recipes", "Print a recipe with every shorthand written out"),
        "schema": ("reference", "Print the JSON Schema of recipes, for editors"),
    },
    "Look at a model": {
        "summary": ("summary", "Show the layers of a model with shapes, parameters, FLOPs and memory"),
        "cost": ("measures.cost", "Estimate the memory and time of training steps and of generated tokens on a device"),
        "draw": ("draw", "Draw a model as a figure: SVG, HTML, PNG, PDF, DOT or Mermaid"),
        "diff": ("diff", "Compare two models, ignoring the names of nodes"),
    },
    "Run": {
        "export": ("published", "Print a model as one Python file, or write it as a published folder for transformers"),
        "data": ("measures.data", "Write a text of a synthetic task, or prepare texts: their tokens, for many runs"),
        "tokens": ("measures.tokens", "Show the tokens of a text, and compare vocabularies"),
        "train": ("training.train", "Train a model on a text file"),
        "generate": ("writing.generate", "Generate text with a trained or published model"),
        "transcribe": ("writing.transcribe", "Write down what a trained or published model hears in recordings"),
        "evaluate": ("measures.evaluate", "Measure how well a trained or published model predicts text"),
        "inspect": ("measures.inspect", "Show which tokens attend to which, and what each layer would say"),
        "report": ("measures.report", "Show the curves of a run, or write a page with its curves, settings and samples"),
        "bench": ("measures.bench", "Measure the rates of this machine, by which times are estimated"),
        "compare": ("measures.compare", "Train variants of a model alike, and tell which differences are more than chance"),
    },
    "Published models": {
        "import": ("published", "Turn a published folder or config.json into a recipe, with its weights and tokenizer"),
        "embed": ("published", "Print the vectors that a published sentence encoder gives texts"),
    },
    "Shell": {
        "completion": ("completion", "Print the completion script for a shell"),
    },
}
"""The commands in the order of the overview, each with its module and a one-line description."""
COMMANDS = {name: command for commands in GROUPS.values() for name, command in commands.items()}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code, one of `composer.cli.help.EXIT_CODES`."""
    try:
        return _run(list(sys.argv[1:] if argv is None else argv))
    except Problem as problem:
        return tell(problem)
    except ComposerError as error:  # one that no command expects, such as two installed blocks of one name
        return tell(Problem(f"arco: {error}"))


def declare(parser: Parser, name: str) -> Parser:
    """Return the parser with the description and arguments of the command added."""
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
        raise not_taken(name, ["--help", "--version"], "arco")
    if name not in COMMANDS:
        hint = misspelled(name, [*COMMANDS, "help"]) or "`arco -h` lists all commands"
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
        raise not_taken(unknown[0], list(parser._option_string_actions), f"arco {name}")
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
