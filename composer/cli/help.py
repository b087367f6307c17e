"""The help texts: what a command does, its usage, its options in groups, and examples to copy."""

from __future__ import annotations

import argparse
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Mapping

from composer.cli.arguments import Parser
from composer.diagnostics.render import Painter

WIDEST = 100
"""Widest line of help: longer ones are tiring to read."""
TERM_WIDTH = 26
"""Columns for an option with its value; if it is longer, its help starts on the next line."""
EXIT_CODES = {
    0: "success",
    1: "a recipe has errors; for `arco diff`: the models differ",
    2: "usage error, or something cannot be read, written or run",
    130: "interrupted",
    143: "terminated",
}


def help_of(parser: Parser, paint: Painter) -> str:
    """Return the help of one command."""
    sections = [
        _wrapped(parser.description or ""),
        f"{paint('Usage:', 'strong')} {_usage(parser)}",
        *(_section(group.title or "", map(_entry, group._group_actions), paint) for group in _groups(parser)),
        _examples(parser, paint),
        "\n\n".join(map(_wrapped, parser.notes.split("\n\n"))),
    ]
    return "\n\n".join(filter(None, sections)) + "\n"


def overview(groups: Mapping[str, Mapping[str, str]], paint: Painter) -> str:
    """Return the help of `arco` itself: the commands in groups, each with its description."""
    width = max(len(name) for commands in groups.values() for name in commands)
    sections = [
        _wrapped("Compose neural networks from recipes: check, count, draw, compile, train, generate."),
        f"{paint('Usage:', 'strong')} arco COMMAND [OPTIONS]",
        *(_section(title, commands.items(), paint, width) for title, commands in groups.items()),
        _section("Options", [("-h, --help", "Show this help"), ("--version", "Show the version")], paint, width),
        _section("Exit codes", ((str(code), means) for code, means in EXIT_CODES.items()), paint, width),
        _wrapped("`arco COMMAND -h` or `arco help COMMAND` shows the options of a command, with examples."),
    ]
    return "\n\n".join(sections) + "\n"


def _groups(parser: Parser) -> list[argparse._ArgumentGroup]:
    """Return the positional arguments, then the command's own groups, then all other options."""
    positionals, rest, *own = parser._action_groups
    positionals.title, rest.title = "Arguments", "Options"
    return [group for group in (positionals, *own, rest) if group._group_actions]


def _usage(parser: Parser) -> str:
    """Return the parser's own usage lines, or else the command with its arguments."""
    if parser.usage:
        return parser.usage.replace("\n", "\n       ")
    positionals = [action for action in parser._actions if not action.option_strings]
    return " ".join([parser.prog, "[OPTIONS]", *map(_positional, positionals)])


def _positional(action: argparse.Action) -> str:
    match action.nargs:
        case "+":
            return f"{action.metavar}..."
        case "?":
            return f"[{action.metavar}]"
    return str(action.metavar)


def _entry(action: argparse.Action) -> tuple[str, str]:
    """Return an argument as it is typed, and its help."""
    if not action.option_strings:
        return _positional(action), _meaning(action)
    value = "" if action.nargs == 0 else f" {action.metavar or action.dest.upper()}{'...' * (action.nargs == '+')}"
    indent = "" if len(action.option_strings[0]) == 2 else " " * 4  # long names stand below each other
    return f"{indent}{', '.join(action.option_strings)}{value}", _meaning(action)


def _meaning(action: argparse.Action) -> str:
    """Return the help of an argument, with its choices, its default and whether it may be repeated."""
    choices = f": {{{'|'.join(map(str, action.choices))}}}" if action.choices else ""
    facts = []
    if action.default not in (None, False, "") and action.default != [] and action.nargs != 0:
        facts.append(f"default: {action.default}")
    if isinstance(action, argparse._AppendAction | argparse._ExtendAction):
        facts.append("repeatable")
    return f"{action.help}{choices}" + (f" ({', '.join(facts)})" if facts else "")


def _section(title: str, entries: Iterable[tuple[str, str]], paint: Painter, width: int = TERM_WIDTH) -> str:
    """Return a heading, followed by terms and their meanings in two columns."""
    lines = [paint(f"{title}:", "strong")]
    for term, meaning in entries:
        first, *more = textwrap.wrap(meaning, _columns() - width - 4, break_on_hyphens=False) or [""]
        shown = paint(term, "accent")
        if len(term) > width:
            lines += [f"  {shown}", " " * (width + 4) + first]
        else:
            lines.append(f"  {shown}{' ' * (width - len(term))}  {first}")
        lines += [" " * (width + 4) + line for line in more]
    return "\n".join(lines)


def _examples(parser: Parser, paint: Painter) -> str:
    """Return the example commands, each below its description."""
    if not parser.examples:
        return ""
    return "\n".join([paint("Examples:", "strong"), *_example_lines(parser, paint)])


def _example_lines(parser: Parser, paint: Painter) -> Iterator[str]:
    for does, command in parser.examples:
        yield f"  {paint(f'# {does}', 'dim')}"
        yield f"  {paint('$', 'dim')} {command}"


def _wrapped(text: str) -> str:
    return "\n".join(textwrap.wrap(text, _columns(), break_on_hyphens=False))


def _columns() -> int:
    return max(60, min(WIDEST, shutil.get_terminal_size().columns))
