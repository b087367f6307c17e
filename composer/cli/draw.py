"""`arco draw`: the picture of a model, in any format."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from composer.cli.arguments import Problem, add_recipe, sound_recipe


def declare(parser: argparse.ArgumentParser, name: str) -> None:
    """A recipe, how deep it is shown, and how it looks."""
    add_recipe(parser)
    parser.add_argument(
        "--level",
        choices=("overview", "block", "full"),
        default="block",
        help="overview: a box for each repeat; block (default): a repeat opened once; full: every linear map",
    )
    parser.add_argument(
        "--expand", metavar="PATH", action="append", default=[], help="show this node from inside; may be repeated"
    )
    parser.add_argument("--unroll", action="store_true", help="draw every pass of repeats, where there are not too many")
    parser.add_argument(
        "--highlight", metavar="PATH", nargs="+", action="extend", default=[], help="let everything but these nodes fade"
    )
    parser.add_argument(
        "--theme", choices=("light", "dark", "auto", "slide"), default="light", help="auto follows the reader's screen"
    )
    parser.add_argument("--width", metavar="LENGTH", default="", help="of the picture, such as 240pt (default: its natural size)")
    parser.add_argument("--title", metavar="TEXT", default="", help="in place of the recipe's name")
    parser.add_argument("--no-params", action="store_true", help="leave out the numbers of parameters")
    parser.add_argument("--no-shapes", action="store_true", help="leave out the shapes beside wires")
    parser.add_argument(
        "--engine",
        choices=("structured", "dot"),
        default="structured",
        help="who lays it out: we, by the recipe's structure (default), or Graphviz",
    )
    parser.add_argument(
        "--format",
        choices=("svg", "html", "png", "pdf", "dot", "mermaid"),
        help="where the file's name does not tell (default: svg)",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        default="",
        help="a file whose ending says what it is: .svg, .html, .png, .pdf, .dot, .mmd (default: NAME.svg); - prints it",
    )
    parser.set_defaults(run=draw)


def draw(arguments: argparse.Namespace) -> int:
    """Write it."""
    from composer.draw.export.formats import BINARY, SUFFIXES, NotDrawn, written
    from composer.draw.graphviz_programs import Missing

    recipe = sound_recipe(arguments.recipe, arguments)
    try:
        figure = recipe.draw(
            arguments.level,
            theme=arguments.theme,
            expand=arguments.expand,
            unroll=arguments.unroll,
            highlight=arguments.highlight,
            width=arguments.width,
            title=arguments.title,
            params=not arguments.no_params,
            shapes=not arguments.no_shapes,
            engine=arguments.engine,
        )
    except (Missing, NotDrawn) as no:
        raise Problem(f"arco draw: {no.message}", no.hint) from None
    ending = next(ending for ending, format in SUFFIXES.items() if format == (arguments.format or "svg"))
    output = Path(arguments.output or f"{recipe.name}{ending}")
    try:
        if arguments.output == "-":
            content = written(figure, arguments.format or "svg")
            if arguments.format in BINARY:
                sys.stdout.buffer.write(content)
            else:
                sys.stdout.write(content.decode())
            return 0
        figure.save(output, arguments.format)
    except (Missing, NotDrawn) as no:
        raise Problem(f"arco draw: {no.message}", no.hint) from None
    except OSError as error:
        raise Problem(f"arco draw: {output}: {error.strerror}") from None
    print(output)
    return 0
