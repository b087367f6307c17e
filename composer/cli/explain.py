"""`arco explain`: what an error means, with the shortest recipe that has it."""

from __future__ import annotations

import argparse
import textwrap

from composer.cli.arguments import Problem, misspelled
from composer.package_data import errors_page

WIDTH = 100


def declare(parser: argparse.ArgumentParser, name: str) -> None:
    """A code, or none for a list of all."""
    parser.add_argument(
        "code", metavar="CODE", nargs="?", help="what stands between brackets in an error; without it, all of them"
    )
    parser.set_defaults(run=explain)


def explain(arguments: argparse.Namespace) -> int:
    """Print the section of a code, or every code with what it means."""
    known = sections(errors_page().read_text(encoding="utf-8"))
    if arguments.code is None:
        widest = max(map(len, known))
        for code, section in known.items():
            meaning = section.strip().partition("\n")[0]
            print(f"{code:<{widest}}  {textwrap.shorten(meaning, WIDTH - widest - 2, placeholder=' …')}")
        return 0
    code = arguments.code.strip("[]").removeprefix("error[").removeprefix("warning[")
    if code not in known:
        raise Problem(
            f"arco explain: there is no error called `{arguments.code}`",
            misspelled(code, known) or "`arco explain` lists them all",
        )
    print(f"{code}\n\n{plain(known[code])}")
    return 0


def sections(page: str) -> dict[str, str]:
    """The text below each heading of the index, by its code."""
    _, *parts = page.split("\n## ")
    return {code: text for code, _, text in (part.partition("\n") for part in parts)}


def plain(section: str) -> str:
    """Markdown as it reads in a terminal: paragraphs wrapped, examples indented."""
    lines: list[str] = []
    fenced = False
    for line in section.strip().splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif fenced:
            lines.append(f"    {line}".rstrip())
        else:
            lines.extend(textwrap.wrap(line, WIDTH) or [""])
    return "\n".join(lines)
