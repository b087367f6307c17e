"""`arco draw`: a figure of a model, in any format."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from composer.cli.arguments import Parser, Problem, add_changes, add_recipe, sound_recipe, unusable
from composer.cli.output import STANDARD, add_output, emit, keep_off_terminal, say, unwritable
from composer.printable import printable

if TYPE_CHECKING:
    from composer.draw.figure import Figure
    from composer.draw.options import Options

LEVELS = ("overview", "block", "full")
DIRECTIONS = ("up", "right")
THEMES = ("light", "dark", "auto", "slide")
COLORINGS = ("kind", "params", "flops", "cache", "trainable")
LEFT_OUT = {
    "params": "the parameter counts",
    "shapes": "the tensor shapes",
    "names": "the names of nodes",
    "dropout": "dropout",
    "optional_inputs": "inputs that may be absent, such as `valid`",
}
"""What a figure tells unless `--no-…` is given, by the names of the options in Python."""


def declare(parser: Parser, name: str) -> None:
    """Declare a recipe, the level of detail, the style and the output."""
    from composer.draw.export.formats import FORMATS

    add_recipe(parser)
    content = parser.add_argument_group("Content")
    content.add_argument(
        "--level",
        choices=LEVELS,
        help="Level of detail: a box for each repeat, the inside of each repeat, or every linear map (default: block)",
    )
    content.add_argument("--open", metavar="PATH", action="append", help="Also show the inside of this node, whatever the level")
    content.add_argument(
        "--unroll",
        metavar="PATH[=PASSES]",
        nargs="?",
        const=True,
        action="append",
        type=some_passes,
        help="Draw every pass of all repeats, unless there are too many; or of one: layers; or some, and the others as one box: "
        "layers=0:2",
    )
    content.add_argument("--highlight", metavar="PATH", nargs="+", action="extend", help="Fade everything but these nodes")
    content.add_argument(
        "--hide", metavar="PATH", nargs="+", action="extend", help="Leave out these nodes or inputs; wires go on"
    )
    content.add_argument(
        "--merge",
        metavar="TITLE=PATHS",
        action="append",
        type=titled_paths,
        help="Draw several nodes as one box: Sublayer=layers.attn.norm,layers.attn.body",
    )
    content.add_argument(
        "--label",
        metavar="PATH=TEXT",
        dest="labels",
        action="append",
        type=label,
        help="Title of a block, a frame or an input, in place of its own",
    )
    content.add_argument(
        "--details",
        metavar="NAME",
        nargs="+",
        action="extend",
        help="Draw these closed blocks from inside beside the figure: paths or names of blocks; auto or none (default: auto)",
    )
    shown = parser.add_argument_group("What boxes and wires tell")
    for name, said in LEFT_OUT.items():
        shown.add_argument(
            f"--no-{name.replace('_', '-')}", dest=name, action="store_const", const=False, help=f"Leave out {said}"
        )
    shown.add_argument("--flops", action="store_const", const=True, help="Show the FLOPs of each block")
    shown.add_argument("--cache", action="store_const", const=True, help="Show what each block caches per token")
    style = parser.add_argument_group("Style")
    style.add_argument(
        "--sheet", metavar="FILE", help="Take options from this figure sheet, a .yaml file with their names as keys"
    )
    style.add_argument(
        "--direction", choices=DIRECTIONS, help="Where the data flows; right suits slides and landscape pages (default: up)"
    )
    style.add_argument(
        "--theme", choices=THEMES, help="Colors; auto follows the light or dark mode of the viewer (default: light)"
    )
    style.add_argument(
        "--color",
        choices=COLORINGS,
        help="What colors tell: the kind of a block, or its share of parameters, FLOPs or cache, or what is trained "
        "(default: kind)",
    )
    style.add_argument("--legend", action="store_const", const=True, help="Explain the colors below the figure")
    style.add_argument("--caption", metavar="TEXT", help="Text below the figure")
    style.add_argument(
        "--break-after", metavar="PATH", nargs="+", action="extend", help="Go on in another column after these nodes"
    )
    style.add_argument("--width", metavar="LENGTH", help="Fit the figure into this width, such as 240pt")
    style.add_argument("--title", metavar="TEXT", help="Title of the figure (default: the name of the recipe)")
    style.add_argument(
        "--engine",
        choices=("structured", "dot"),
        help="Layout by the structure of the recipe, or by Graphviz (default: structured)",
    )
    output = parser.add_argument_group("Output")
    *endings, last = (row.endings[0] for row in FORMATS.values())
    add_output(output, f"Write to this file, replacing it; its extension selects the format: {', '.join(endings)} or {last}")
    output.add_argument(
        "--steps",
        action="store_true",
        help="Build the figure up, a picture for each subject: into a folder, a .pdf or an .html file",
    )
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
        (
            "Tell a story: no norms, one box for the feed-forward part, attention in full color",
            "arco draw gpt2 --hide norm layers.attn.norm --merge MLP=layers.ffn --highlight layers.attn -o story.svg",
        ),
        ("Draw the first two layers, and the others as one box", "arco draw gpt2 --unroll layers=0:2 -o layers.svg"),
        ("See where the parameters are", "arco draw mixtral --color params --legend -o sizes.svg"),
        ("Let it run to the right, for a slide", "arco draw gpt2 --direction right --theme slide -o slide.svg"),
        ("Build it up for a lecture", "arco draw gpt2 --steps --theme slide -o slides.pdf"),
        ("Print Mermaid for a README", "arco draw gpt_mini --format mermaid"),
    ]
    parser.notes = "Without -o, the figure goes to standard output; to a terminal, only DOT and Mermaid are printed."
    parser.set_defaults(run=draw)


def options(arguments: argparse.Namespace) -> Options:
    """Return the options of the figure that are given, by their names in Python and in a sheet."""
    from composer.draw.options import DEFAULTS, Options

    found = {name: given for name in DEFAULTS if (given := getattr(arguments, name)) is not None}
    for name in ("merge", "labels", "unroll"):
        if name in found:
            found[name] = True if True in found[name] else dict(found[name])
    return Options(**found)  # type: ignore[typeddict-item, no-any-return]  # by their names


def titled_paths(text: str) -> tuple[str, list[str]]:
    """Return the title of a box and the nodes that it stands for."""
    title, sign, paths = text.rpartition("=")
    if not sign or not title.strip() or not paths.strip():
        raise argparse.ArgumentTypeError(f"`{text}` is not TITLE=PATH,PATH")
    return title, [path.strip() for path in paths.split(",")]


def some_passes(text: str) -> tuple[str, str]:
    """Return the path of a repeat and a range of its passes, of all without one."""
    from composer.draw.options import ALL_PASSES

    path, sign, said = text.partition("=")
    if not path.strip() or (sign and not said.strip()):
        raise argparse.ArgumentTypeError(f"`{text}` is neither PATH nor PATH=PASSES, such as layers=0:2")
    return path.strip(), said.strip() or ALL_PASSES


def label(text: str) -> tuple[str, str]:
    """Return a path and the words for what is there."""
    path, sign, said = text.partition("=")
    if not sign or not path:
        raise argparse.ArgumentTypeError(f"`{text}` is not PATH=TEXT")
    return path, said


def tell_closed(paths: Sequence[str]) -> None:
    """Print what a figure does not show from inside, since the page has no room for it."""
    if paths:
        opened = " ".join(f"--open {path}" for path in paths)
        hint = f"`{opened}` draws {'it' if len(paths) == 1 else 'them'} from inside"
        print(printable(f"arco draw: closed to fit a page: {', '.join(paths)} ({hint})"), file=sys.stderr)


def tell_large(figure: Figure) -> None:
    """Print that a figure is much larger than a page."""
    from composer.draw.fitting import MAX_EXCESS

    if figure.excess > MAX_EXCESS:
        less = "" if figure.width else {"full": "block", "block": "overview"}.get(figure.level, "")
        hint = f"`--level {less}` draws less" if less else "`--hide` and `--merge` leave nodes out"
        print(printable(f"arco draw: {figure.excess:.1f} times as large as a page ({hint})"), file=sys.stderr)


def tell_inside(paths: Sequence[str]) -> None:
    """Print what options name and a figure does not show, since it is inside of a box."""
    if paths:
        holder = paths[0].rpartition(".")[0]
        hint = f"`--open {holder}` draws {paths[0]}" if holder else "a deeper `--level` draws it"
        print(printable(f"arco draw: not changed, since inside of a box: {', '.join(paths)} ({hint})"), file=sys.stderr)


def tell_undetailed(names: Sequence[str], possible: Sequence[str]) -> None:
    """Print whose details are asked for and not drawn, and whose could be."""
    if names:
        hint = f"`--details {' '.join(possible)}` draws others" if possible else "details are of closed boxes of upright figures"
        print(printable(f"arco draw: no details, since inside of a box or open: {', '.join(names)} ({hint})"), file=sys.stderr)


def draw(arguments: argparse.Namespace) -> int:
    """Print the figure, or write it to a file."""
    from composer.diagnostics import RecipeError
    from composer.draw.export.formats import FORMATS, NotDrawn, written
    from composer.draw.graphviz_programs import Missing

    if arguments.steps and arguments.output in (None, STANDARD):
        raise Problem("arco draw: --steps are several pictures", "give a folder, or a .pdf or .html file, with -o")
    recipe = sound_recipe(arguments.recipe, arguments)
    format = arguments.format or "svg"
    row = FORMATS[format]
    if not row.source and not arguments.steps:
        keep_off_terminal("draw", format, arguments.output, f"{recipe.name}{row.endings[0]}")
    try:
        figure = recipe.draw(arguments.level, sheet=arguments.sheet, **options(arguments))
        tell_closed(figure.closed)
        tell_large(figure)
        tell_inside(figure.inside)
        tell_undetailed(figure.undetailed, figure.possible_details)
        if arguments.steps:
            from composer.draw.steps import save_steps

            say("\n".join(f"wrote {path}" for path in save_steps(figure, Path(arguments.output), arguments.format)))
            return 0
        if arguments.output in (None, STANDARD):
            content = written(figure, format)
            emit(content if row.binary else content.decode(), arguments.output)
            return 0
        figure.save(Path(arguments.output), arguments.format)
    except RecipeError as error:  # of the sheet
        if not error.diagnostics[0].span.source.text:
            raise unusable(error) from None
        raise Problem(found=error.diagnostics, code=1) from None
    except (Missing, NotDrawn) as no:
        raise Problem(f"arco draw: {no.message}", no.hint) from None
    except OSError as error:
        raise unwritable(arguments.output, error) from None
    say(f"wrote {arguments.output}")
    return 0
