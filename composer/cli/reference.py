"""`arco explain`, `blocks` and `schema`: the reference of error codes, blocks and the recipe language."""

from __future__ import annotations

import argparse
import inspect
import sys
import textwrap
from collections.abc import Iterator
from itertools import groupby

from blocks.core import Library, Part, standard
from composer.cli.arguments import Parser, Problem, add_blocks, library_of, misspelled
from composer.cli.color import painter
from composer.cli.output import add_output, emit, rows
from composer.diagnostics.render import Painter
from composer.package_data import errors_page
from composer.printable import json_text

WIDTH = 100
INDENT = " " * 4
TRIED_AT = "docs/verify.md shows a block with each of five such mistakes, and lists all that is tried."


def declare(parser: Parser, name: str) -> None:
    """Declare the arguments of one of the three commands."""
    match name:
        case "explain":
            parser.add_argument(
                "code",
                metavar="CODE",
                nargs="?",
                help="The code in brackets after `error` or `warning`, also of `arco verify` (default: list all codes)",
            )
            parser.examples = [
                ("Explain what `arco check` reports as error[indivisible]", "arco explain indivisible"),
                ("List every code", "arco explain"),
            ]
            parser.set_defaults(run=explain)
        case "blocks":
            parser.add_argument(
                "name", metavar="BLOCK", nargs="?", help="Name of a block, mask, norm or other part (default: list all)"
            )
            add_blocks(parser)
            parser.examples = [
                ("Look up the fields, ports and weights of a block", "arco blocks attention"),
                ("List everything that a recipe can name", "arco blocks"),
            ]
            parser.set_defaults(run=show)
        case "schema":
            add_blocks(parser)
            add_output(parser)
            parser.examples = [("Write the schema to a file", "arco schema -o recipe.schema.json")]
            parser.notes = "Editors with a YAML language server use it to complete and check recipes."
            parser.set_defaults(run=print_schema)


def explain(arguments: argparse.Namespace) -> int:
    """Print the explanation of a code, or every code with its first line."""
    known = sections(errors_page().read_text(encoding="utf-8"))
    if arguments.code is None:
        for line in rows({code: section.strip().partition("\n")[0] for code, section in known.items()}, painter(sys.stdout)):
            print(line)
        return 0
    code = arguments.code.strip("[]").removeprefix("error[").removeprefix("warning[")
    tried = {} if code in known else _tried()
    if code not in known and code not in tried:
        raise Problem(
            f"arco explain: there is no error called `{arguments.code}`",
            misspelled(code, [*known, *tried]) or "`arco explain` lists all codes",
        )
    print(f"{painter(sys.stdout)(code, 'strong')}\n\n{plain(known[code] if code in known else tried[code])}")
    return 0


def _tried() -> dict[str, str]:
    """Return what `arco verify` tries, by the names that its errors have; loaded only for these, since it loads torch."""
    from composer.verify.declarations import TESTS
    from composer.verify.properties import PROPERTIES

    found = {each.name: ["`arco verify` tries this.", f"Of every model: {each.says}."] for each in PROPERTIES}
    for test in TESTS:
        lines = found.setdefault(test.name, ["`arco verify` tries this."])
        lines += [f"Of a block alone: {test.says}. Where it is not true: {test.hint}."]
    return {name: "\n\n".join([*lines, TRIED_AT]) for name, lines in found.items()}


def sections(page: str) -> dict[str, str]:
    """Return the sections of the index of errors by code."""
    _, *parts = page.split("\n## ")
    return {code: text for code, _, text in (part.partition("\n") for part in parts)}


def plain(section: str) -> str:
    """Return Markdown formatted for a terminal: paragraphs wrapped, examples indented."""
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


def show(arguments: argparse.Namespace) -> int:
    """Print one entry of the reference, or every name with its first sentence."""
    library, paint = library_of(arguments), painter(sys.stdout)
    if arguments.name is None:
        print("\n".join(_list(library, paint)))
        return 0
    if arguments.name not in library:
        raise Problem(
            f"arco blocks: there is no block called `{arguments.name}`",
            misspelled(arguments.name, library) or "`arco blocks` lists all names",
        )
    print("\n".join(_entry(library[arguments.name], paint)))
    return 0


def _list(library: Library, paint: Painter) -> Iterator[str]:
    widest = max(map(len, library))
    parts = sorted((library[name] for name in library), key=lambda part: (_package(part), part.kind))
    for package, members in groupby(parts, _package):
        yield paint(f"{package}:", "strong")
        yield from rows({part.kind: _sentence(part) for part in members}, paint, width=widest, indent="  ")
        yield ""


def _package(part: type[Part]) -> str:
    return part.__module__.rpartition(".")[0].rpartition(".")[2].replace("_", " ") or "of your own"


def _sentence(part: type[Part]) -> str:
    """Return the first sentence of a part's docstring, without its formula."""
    return " ".join(inspect.cleandoc(part.__doc__ or "").split("\n\n")[0].split()).partition(": `")[0].removesuffix(".")


def _entry(part: type[Part], paint: Painter) -> Iterator[str]:
    from composer.block_reference import docs_of, example, facts, field_rows
    from composer.zoo_examples import zoo_examples

    yield paint(part.kind, "strong")
    for paragraph in inspect.cleandoc(part.__doc__ or "").split("\n\n"):
        yield ""
        if paragraph.startswith("```"):  # an example
            yield from textwrap.indent("\n".join(paragraph.splitlines()[1:-1]), INDENT).splitlines()
        else:
            yield from textwrap.wrap(" ".join(paragraph.split()), WIDTH)
    if part.paper is not None:
        yield f"\n{part.paper.title}, {part.paper.reference}"
    rows, docs = list(field_rows(part)), docs_of(part)
    if rows:
        yield "\n" + paint("fields", "strong")
    for name, takes, default in rows:
        shown = "required" if default == "required" else f"default: {default}"
        yield f"  {paint(name, 'accent')}: {takes}; {shown}".replace("`", "")
        yield from textwrap.wrap(" ".join(docs.get(name, "").split()), WIDTH - 4, initial_indent=INDENT, subsequent_indent=INDENT)
    for title, items in facts(part):
        if items:
            yield "\n" + paint(title, "strong")
            yield from (f"  {item}".replace("`", "") for item in items)
    if part.example:
        yield "\n" + paint("example", "strong")
        yield textwrap.indent(example(part).rstrip(), "  ")
    if part.kind in standard():
        yield "\n" + paint("in the zoo", "strong")
        yield f"  {', '.join(zoo_examples(part.kind)) or 'no recipe uses it as it is'}"


def print_schema(arguments: argparse.Namespace) -> int:
    """Print the JSON Schema."""

    from composer.json_schema import schema

    emit(json_text(schema(library_of(arguments)), indent=2) + "\n", arguments.output)
    return 0
