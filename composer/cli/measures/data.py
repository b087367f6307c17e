"""`arco data`: write a text of a synthetic task, or the tokens of a text."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

from composer.cli.arguments import Parser, Problem, integer
from composer.cli.output import STANDARD, add_output, emit, say
from composer.cli.running import refusals, tokenizer_at
from composer.train.data.tokenizer_kinds import SIZED, TOKENIZER_KINDS

if TYPE_CHECKING:
    from composer.train import Tokenizer

MOST_LENGTHS = 1000
PREPARE = "prepare"
OF_TASKS = ("lengths", "lines", "seed")
OF_TEXTS = ("files", "tokenizer", "vocab_size", "max_data_bytes")
"""What only works with the synthetic tasks, and with texts."""


def declare(parser: Parser, name: str) -> None:
    """Declare the task with its lengths and lines, and the texts with their tokenizer."""
    from composer.evaluate.synthetic import SYNTHETIC_TASKS
    from composer.train.settings import MAX_DATA_BYTES

    parser.usage = "arco data [OPTIONS] TASK\narco data prepare [OPTIONS] FILE... -o FOLDER"
    parser.add_argument(
        "task", metavar="TASK", choices=(*SYNTHETIC_TASKS, PREPARE), help="Task of which examples are written; or prepare"
    )
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="*",
        type=Path,
        help="With prepare: texts, folders and patterns, as for `arco train`",
    )
    synthetic = parser.add_argument_group("Synthetic tasks")
    synthetic.add_argument(
        "--lengths", metavar="LENGTHS", type=lengths_of, help="Lengths of the examples, such as 4,8,16 or 1-8 (default: 2-8)"
    )
    synthetic.add_argument("--lines", metavar="N", type=integer, help="Number of lines, each an example (default: 20000)")
    synthetic.add_argument("--seed", metavar="N", type=integer, help="Random seed (default: 0)")
    texts = parser.add_argument_group("Prepared texts")
    texts.add_argument(
        "--tokenizer",
        metavar="NAME",
        help=f"How text becomes tokens: {', '.join(TOKENIZER_KINDS)}; or a run or published folder, for its own "
        "(default: characters)",
    )
    sizes = ", ".join(f"{name} (default: {TOKENIZER_KINDS[name].size})" for name in SIZED)
    texts.add_argument("--vocab-size", metavar="N", type=integer, help=f"Vocabulary size of {sizes}")
    texts.add_argument(
        "--max-data-bytes",
        metavar="N",
        type=integer,
        help=f"Largest size of all texts that are read, decompressed (default: {MAX_DATA_BYTES})",
    )
    add_output(parser, "Write to this file, replacing it, instead of standard output; with prepare, the new folder to write")
    parser.examples = [
        ("Make the tokens of texts once", "arco data prepare input.txt --tokenizer bpe --vocab-size 300 -o tokens"),
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
    """Print the text of a task, or write the tokens of texts."""
    prepares = arguments.task == PREPARE
    for option in OF_TASKS if prepares else OF_TEXTS:
        if getattr(arguments, option) not in (None, []):
            name = "FILE" if option == "files" else f"--{option.replace('_', '-')}"
            raise Problem(f"arco data: {name} does not work with {arguments.task}", "`arco data -h` shows what does")
    with refusals():
        if prepares:
            return prepared(arguments)
        return synthetic(arguments)


def synthetic(arguments: argparse.Namespace) -> int:
    """Print the text of a synthetic task."""
    from composer.evaluate import synthetic_text

    lines = 20_000 if arguments.lines is None else arguments.lines
    text = synthetic_text(arguments.task, arguments.lengths or lengths_of("2-8"), lines=lines, seed=arguments.seed or 0)
    emit(text, arguments.output)
    return 0


def prepared(arguments: argparse.Namespace) -> int:
    """Write the tokens of texts into a folder."""
    from composer.train import MarkedTokenizer, prepare
    from composer.train.settings import MAX_DATA_BYTES

    if not arguments.files or arguments.output in (None, STANDARD):
        missing = "-o" if arguments.files else "FILE"
        raise Problem(f"arco data: {missing} is missing", "arco data prepare FILE... -o FOLDER")
    tokenizer: Tokenizer | str = arguments.tokenizer or "characters"
    if tokenizer not in SIZED and arguments.vocab_size is not None:
        raise Problem(f"arco data: --vocab-size only works with --tokenizer {' or '.join(SIZED)}")
    if tokenizer not in TOKENIZER_KINDS:
        tokenizer = tokenizer_at(arguments.tokenizer, "arco data")
    if isinstance(tokenizer, MarkedTokenizer):
        tokenizer = tokenizer.text
    limit = MAX_DATA_BYTES if arguments.max_data_bytes is None else arguments.max_data_bytes
    size, folder = arguments.vocab_size, Path(arguments.output)
    found = prepare(arguments.files, tokenizer, vocab_size=size, folder=folder, max_bytes=limit)
    train, held_out = len(found.data.train), len(found.data.validation)
    say(f"wrote {folder}: {train:,} tokens to train on, {held_out:,} held out, of a vocabulary of {found.tokenizer.size:,}")
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
