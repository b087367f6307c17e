"""`arco draw`: a figure of a model, in any format."""

from __future__ import annotations

import argparse
from pathlib import Path

from composer.cli.arguments import Parser, Problem, add_changes, add_recipe, sound_recipe
from composer.cli.output import STANDARD, add_output, emit, keep_off_terminal, say, unwritable

LEVELS = ("overview", "block", "full")
THEMES = ("light", "dark", "auto", "slide")


def declare(parser: Parser, name: str) -> None:
    """Declare a recipe, the level of detail, the style and the output."""
    from composer.draw.export.formats import FORMATS

    add_recipe(parser)
    content = parser.add_argument_group("Content")
    content.add_argument(
        "--level",
        choices=LEVELS,
        default="block",
        help="Level of detail: a box for each repeat, the inside of each repeat, or every linear map",
    )
    content.add_argument(
        "--open", metavar="PATH", action="append", default=[], help="Also show the inside of this node, whatever the level"
    )
    content.add_argument("--unroll", action="store_true", help="Draw every pass of a repeat, unless there are too many")
    content.add_argument(
        "--highlight", metavar="PATH", nargs="+", action="extend", default=[], help="Fade everything but these nodes"
    )
    content.add_argument("--no-params", action="store_true", help="Leave out the parameter counts")
    content.add_argument("--no-shapes", action="store_true", help="Leave out the tensor shapes")
    style = parser.add_argument_group("Style")
    style.add_argument(
        "--theme", choices=THEMES, default="light", help="Colors; auto follows the light or dark mode of the viewer"
    )
    style.add_argument("--width", metavar="LENGTH", default="", help="Fit the figure into this width, such as 240pt")
    style.add_argument("--title", metavar="TEXT", default="", help="Title of the figure (default: the name of the recipe)")
    style.add_argument(
        "--engine",
        choices=("structured", "dot"),
        default="structured",
        help="Layout by the structure of the recipe, or by Graphviz",
    )
    output = parser.add_argument_group("Output")
    *endings, last = (row.endings[0] for row in FORMATS.values())
    add_output(output, f"Write to this file, replacing it; its extension selects the format: {', '.join(endings)} or {last}")
    output.add_argument(
        "--format",
        choices=tuple(FORMATS),
        help="Output format (default: by the extension of the file, else svg)",
    )
    add_changes(parser)
    parser.examples = [
        ("Draw a model", "arco draw llama3 -o llama3.svg"),
        ("Make an interactive page", "arco draw mixtral -o mixtral.html"),
        ("Fit a figure into the column of a paper", "arco draw gpt2 --width 240pt -o gpt2.svg"),
        (
            "Show the inside of one attention, and fade everything else",
            "arco draw llama3 --open layers.attn.body --highlight layers.attn -o attention.svg",
        ),
        ("Print Mermaid for a README", "arco draw gpt_mini --format mermaid"),
    ]
    parser.notes = "Without -o, the figure goes to standard output; to a terminal, only DOT and Mermaid are printed."
    parser.set_defaults(run=draw)


def draw(arguments: argparse.Namespace) -> int:
    """Print the figure, or write it to a file."""
    from composer.draw.export.formats import FORMATS, NotDrawn, written
    from composer.draw.graphviz_programs import Missing

    recipe = sound_recipe(arguments.recipe, arguments)
    format = arguments.format or "svg"
    row = FORMATS[format]
    if not row.source:
        keep_off_terminal("draw", format, arguments.output, f"{recipe.name}{row.endings[0]}")
    try:
        figure = recipe.draw(
            arguments.level,
            theme=arguments.theme,
            open=arguments.open,
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
            emit(content if row.binary else content.decode(), arguments.output)
            return 0
        figure.save(Path(arguments.output), arguments.format)
    except (Missing, NotDrawn) as no:
        raise Problem(f"arco draw: {no.message}", no.hint) from None
    except OSError as error:
        raise unwritable(arguments.output, error) from None
    say(f"wrote {arguments.output}")
    return 0
