"""`arco blocks`: the reference of blocks, masks and what else fills a slot, from their declarations."""

from __future__ import annotations

import argparse
import inspect
import textwrap
from collections.abc import Iterator
from itertools import groupby

from blocks.core import Library, Part
from composer.cli.arguments import Problem, add_blocks, library_of, misspelled

WIDTH = 100
INDENT = " " * 4


def declare(parser: argparse.ArgumentParser, name: str) -> None:
    """A name, or none for a list of all."""
    parser.add_argument("name", metavar="NAME", nargs="?", help="a block, a mask, a norm …; without it, all of them")
    add_blocks(parser)
    parser.set_defaults(run=show)


def show(arguments: argparse.Namespace) -> int:
    """Print one entry of the reference, or every name with its first sentence."""
    library = library_of(arguments)
    if arguments.name is None:
        print("\n".join(_list(library)))
        return 0
    if arguments.name not in library:
        raise Problem(
            f"arco blocks: there is no block called `{arguments.name}`",
            misspelled(arguments.name, library) or "`arco blocks` lists them all",
        )
    print("\n".join(_entry(library[arguments.name])))
    return 0


def _list(library: Library) -> Iterator[str]:
    widest = max(map(len, library))
    parts = sorted((library[name] for name in library), key=lambda part: (_package(part), part.kind))
    for package, members in groupby(parts, _package):
        yield f"{package}:"
        for part in members:
            first = _sentence(part)
            yield f"  {part.kind:<{widest}}  {textwrap.shorten(first, WIDTH - widest - 4, placeholder=' …')}"
        yield ""


def _package(part: type[Part]) -> str:
    return part.__module__.rpartition(".")[0].rpartition(".")[2].replace("_", " ") or "of your own"


def _sentence(part: type[Part]) -> str:
    """The first sentence of what a part says of itself, without its formula."""
    return " ".join(inspect.cleandoc(part.__doc__ or "").split("\n\n")[0].split()).partition(": `")[0]


def _entry(part: type[Part]) -> Iterator[str]:
    from composer.block_reference import docs_of, facts, field_rows

    yield part.kind
    for paragraph in inspect.cleandoc(part.__doc__ or "").split("\n\n"):
        yield ""
        yield from textwrap.wrap(" ".join(paragraph.split()), WIDTH)
    if part.paper is not None:
        yield f"\n{part.paper.title}, {part.paper.reference}"
    rows, docs = list(field_rows(part)), docs_of(part)
    if rows:
        yield "\nfields"
    for name, takes, default in rows:
        shown = "required" if default == "required" else f"default: {default}"
        yield f"  {name}: {takes}; {shown}".replace("`", "")
        yield from textwrap.wrap(" ".join(docs.get(name, "").split()), WIDTH - 4, initial_indent=INDENT, subsequent_indent=INDENT)
    for title, items in facts(part):
        if items:
            yield f"\n{title}"
            yield from (f"  {item}".replace("`", "") for item in items)
