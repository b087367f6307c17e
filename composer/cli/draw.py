"""`arco draw`: the figure of a model, in any format."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from composer.cli.arguments import Parser, Problem, add_changes, add_recipe, sound_recipe
from composer.cli.output import STANDARD, add_output, emit, keep_off_terminal, unwritable

if TYPE_CHECKING:
    from composer.draw.export.formats import Format

LEVELS = ("overview", "block", "full")
THEMES = ("light", "dark", "auto", "slide")
TEXTS = ("dot", "mermaid")
"""Formats that people read and paste, so that a terminal shows them."""


def declare(parser: Parser, name: str) -> None:
    """Declare a recipe, how deep it is shown, and how it looks."""
    add_recipe(parser)
    content = parser.add_argument_group("Content")
    content.add_argument(
        "--level",
        choices=LEVELS,
        default="block",
        help="Show a box for each repeat, the inside of each repeat, or every linear map",
    )
    content.add_argument(
        "--open", metavar="PATH", action="append", default=[], help="Show this node from inside, whatever the level"
    )
    content.add_argument("--unroll", action="store_true", help="Draw every pass of a repeat, where there are not too many")
    content.add_argument(
        "--highlight", metavar="PATH", nargs="+", action="extend", default=[], help="Fade everything but these nodes"
    )
    content.add_argument("--no-params", action="store_true", help="Leave out the numbers of parameters")
    content.add_argument("--no-shapes", action="store_true", help="Leave out the shapes beside the wires")
    style = parser.add_argument_group("Style")
    style.add_argument("--theme", choices=THEMES, default="light", help="Choose the colors; auto follows the reader's screen")
    style.add_argument("--width", metavar="LENGTH", default="", help="Fit the figure into this width, such as 240pt")
    style.add_argument("--title", metavar="TEXT", default="", help="Write this in place of the recipe's name")
    style.add_argument(
        "--engine",
        choices=("structured", "dot"),
        default="structured",
        help="Lay the figure out by the structure of the recipe, or let Graphviz do it",
    )
    output = parser.add_argument_group("Output")
    add_output(output, "Write to this file, replacing it; its ending chooses the format: .svg, .html, .png, .pdf, .dot or .mmd")
    output.add_argument(
        "--format",
        choices=("svg", "html", "png", "pdf", "dot", "mermaid"),
        help="Choose the format where no ending does; without either it is svg",
    )
    add_changes(parser)
    parser.examples = [
        ("Draw a model", "arco draw llama3 -o llama3.svg"),
        ("Make a page to click through", "arco draw mixtral -o mixtral.html"),
        ("Fit a figure into a column of a paper", "arco draw gpt2 --width 240pt -o gpt2.svg"),
        (
            "Show one attention from inside, and fade the rest",
            "arco draw llama3 --open layers.attn.body --highlight layers.attn -o attention.svg",
        ),
        ("Print Mermaid for a README", "arco draw gpt_mini --format mermaid"),
    ]
    parser.notes = "Without -o the figure goes to standard output, for a pipe; a terminal shows DOT and Mermaid only."
    parser.set_defaults(run=draw)


def draw(arguments: argparse.Namespace) -> int:
    """Print the figure, or write it to a file."""
    from composer.draw.export.formats import BINARY, SUFFIXES, NotDrawn, written
    from composer.draw.graphviz_programs import Missing

    recipe = sound_recipe(arguments.recipe, arguments)
    format: Format = arguments.format or "svg"
    if format not in TEXTS:
        ending = next(ending for ending, known in SUFFIXES.items() if known == format)
        keep_off_terminal("draw", format, arguments.output, f"{recipe.name}{ending}")
    try:
        figure = recipe.draw(
            arguments.level,
            theme=arguments.theme,
            expand=arguments.open,
            unroll=arguments.unroll,
            highlight=arguments.highlight,
            width=arguments.width,
            title=arguments.title,
            params=not arguments.no_params,
            shapes=not arguments.no_shapes,
            engine=arguments.engine,
        )
        if arguments.output in (None, STANDARD):
            content = written(figure, format)
            emit(content if format in BINARY else content.decode(), arguments.output)
            return 0
        figure.save(Path(arguments.output), arguments.format)
    except (Missing, NotDrawn) as no:
        raise Problem(f"arco draw: {no.message}", no.hint) from None
    except OSError as error:
        raise unwritable(arguments.output, error) from None
    print(f"wrote {arguments.output}")
    return 0
