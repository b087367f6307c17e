"""`arco data`: write a text of a synthetic task."""

from __future__ import annotations

import argparse
import re

from composer.cli.arguments import Parser, integer
from composer.cli.output import add_output, emit
from composer.cli.running import refusals

MOST_LENGTHS = 1000


def declare(parser: Parser, name: str) -> None:
    """Declare the task, the lengths and the number of lines."""
    from composer.evaluate.synthetic import SYNTHETIC_TASKS

    parser.add_argument("task", metavar="TASK", choices=tuple(SYNTHETIC_TASKS), help="Task of which examples are written")
    parser.add_argument(
        "--lengths", metavar="LENGTHS", type=lengths_of, default="2-8", help="Lengths of the examples, such as 4,8,16 or 1-8"
    )
    parser.add_argument("--lines", metavar="N", type=integer, default=20_000, help="Number of lines, each an example")
    parser.add_argument("--seed", metavar="N", type=integer, default=0, help="Random seed")
    add_output(parser)
    parser.examples = [
        ("Write words to be copied", "arco data copy --lengths 1-8 -o copy.txt"),
        ("Look at a few sums", "arco data arithmetic --lengths 2,3 --lines 5"),
    ]
    parser.notes = (
        "; ".join(f"{task}: {row.doc}" for task, row in SYNTHETIC_TASKS.items()).replace("`", "")
        + ". One question in ten is in no "
        "text, and `arco evaluate RUN --task TASK` asks only these."
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the text."""
    from composer.evaluate import synthetic_text

    with refusals():
        text = synthetic_text(arguments.task, arguments.lengths, lines=arguments.lines, seed=arguments.seed)
    emit(text, arguments.output)
    return 0


def lengths_of(text: str) -> list[int]:
    """Return the lengths of `4,8,16` or `1-8`."""
    found: list[int] = []
    for piece in text.split(","):
        if not re.fullmatch(r"[0-9]{1,9}(-[0-9]{1,9})?", piece.strip()):
            raise argparse.ArgumentTypeError(f"{text} is not a list of lengths such as 4,8,16 or 1-8")
        first, _, last = piece.partition("-")
        low, high = int(first), int(last or first)
        if high < low or high - low >= MOST_LENGTHS:
            raise argparse.ArgumentTypeError(f"{piece} is no range of 1 to {MOST_LENGTHS} lengths")
        found += range(low, high + 1)
    return found
