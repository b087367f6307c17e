"""`arco evaluate`: measure how well a trained model predicts text."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from composer.cli.arguments import Parser, Problem, StoreOnce, add_blocks, integer
from composer.cli.measures.data import lengths_of
from composer.cli.output import add_output, emit, write_file
from composer.cli.running import add_device, add_int8, open_folder, rebuild, refusals
from composer.printable import json_text

if TYPE_CHECKING:
    from composer.evaluate import Evaluation, TableEvaluation


def declare(parser: Parser, name: str) -> None:
    """Declare a run folder, a text, and the format of the numbers."""
    from composer.train.settings import MAX_DATA_BYTES

    parser.add_argument("trained", metavar="RUN", type=Path, help="Run folder that `arco train` wrote, or a published folder")
    parser.add_argument(
        "--data",
        metavar="FILE",
        action="append",
        type=Path,
        help="UTF-8 text to read as a whole, also .gz or .zst; a folder of texts or a pattern in quotes; may be repeated "
        "(default: the text of the run, of which the held-out part is read). Or a table, for a model that was trained on one",
    )
    parser.add_argument(
        "--max-data-bytes",
        metavar="N",
        type=integer,
        default=MAX_DATA_BYTES,
        help="Largest size of all texts that are read, decompressed",
    )
    parser.add_argument("--checkpoint", metavar="NAME", help="Checkpoint of the run, such as step-000500 (default: the latest)")
    parser.add_argument(
        "--batch-size", metavar="N", type=integer, help="Sequences in one forward pass (default: as many as in training)"
    )
    parser.add_argument("--seq-len", metavar="N", type=integer, help="Length of a sequence, in tokens (default: as in training)")
    parser.add_argument(
        "--translate",
        action="store_true",
        help="With seq2seq_lm, also translate each source: exact matches, BLEU and chrF, for which the extra metrics is needed",
    )
    parser.add_argument(
        "--calibration",
        action="store_true",
        help="Also compare how sure the model is of classes or tokens with how often it is right: the expected "
        "calibration error, and a table by confidence",
    )
    parser.add_argument(
        "--season",
        metavar="N",
        type=integer,
        help="Of a model that forecasts, also measure the forecast that values repeat after so many rows, such as 24 hours",
    )
    questions = parser.add_argument_group("Synthetic task")
    questions.add_argument(
        "--task",
        choices=("copy", "recall", "arithmetic", "needle"),
        action=StoreOnce,
        help="Ask questions of a task of `arco data` instead, none of which is in its texts, and count right answers by length",
    )
    questions.add_argument(
        "--lengths", metavar="LENGTHS", type=lengths_of, help="Lengths of the questions (default: 2-8; of needle: 8,16,32)"
    )
    questions.add_argument(
        "--depths",
        metavar="DEPTHS",
        type=lengths_of,
        help="Depths of the needle, in percent of the hay (default: 0,25,50,75,100)",
    )
    questions.add_argument(
        "--examples", metavar="N", type=integer, help="Questions of each length (default: 200), or of each length and depth (20)"
    )
    questions.add_argument(
        "--figure",
        metavar="PATH",
        action=StoreOnce,
        type=Path,
        help="Also draw the needles that are found into this .svg file, by length and depth",
    )
    questions.add_argument("--seed", metavar="N", type=integer, help="Random seed of the questions (default: 0)")
    parser.add_argument("--format", choices=("text", "json"), action=StoreOnce, help="Output format (default: text)")
    add_output(parser)
    add_int8(parser)
    add_device(parser)
    add_blocks(parser)
    parser.examples = [
        ("Measure a model on the held-out part of its text", "arco evaluate runs/gpt_mini"),
        ("Count right answers by length, also beyond those of training", "arco evaluate runs/copy --task copy --lengths 2-12"),
        (
            "Look for a needle at any depth of a haystack",
            "arco evaluate runs/needle --task needle --lengths 8,16,32 --figure needle.svg",
        ),
        ("Compare forecasts of hours with those of a day before", "arco evaluate runs/nlinear --season 24"),
        ("Measure it on another text, for a program", "arco evaluate runs/gpt_mini --data input.txt --format json"),
    ]
    parser.notes = (
        "Perplexity and accuracy depend on the tokenizer; bits per character and per byte can be compared across tokenizers. "
        "Windows are adjacent, as in the validations of a run: a longer --seq-len gives each token more context."
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the numbers."""
    from composer.evaluate import evaluate
    from composer.published.folder import is_published

    if arguments.int8 and not is_published(arguments.trained):
        raise Problem("arco evaluate: --int8 is for published folders", "a run is measured as it was trained")
    if arguments.task != "needle":
        stray = next((name for name in ("depths", "figure") if getattr(arguments, name) is not None), None)
        if stray is not None:
            raise Problem(f"arco evaluate: --{stray} is for needles in haystacks", "add --task needle")
    if arguments.task is not None:
        return answer(arguments)
    stray = next((name for name in ("lengths", "examples", "seed") if getattr(arguments, name) is not None), None)
    if stray is not None:
        raise Problem(f"arco evaluate: --{stray} is for synthetic tasks", "add --task copy, recall, arithmetic or needle")
    if is_published(arguments.trained):
        return published(arguments)
    with refusals():
        found = evaluate(
            arguments.trained,
            arguments.data,
            build=rebuild(arguments.blocks, arguments.device),
            checkpoint=arguments.checkpoint,
            batch_size=arguments.batch_size,
            seq_len=arguments.seq_len,
            max_data_bytes=arguments.max_data_bytes,
            translate=arguments.translate,
            calibration=arguments.calibration,
            season=arguments.season,
        )
    return write(found, arguments)


def published(arguments: argparse.Namespace) -> int:
    """Print the numbers of a published model."""
    from composer.evaluate import evaluate_published

    if arguments.data is None:
        raise Problem("arco evaluate: --data is missing", "a published folder has no text of its own")
    for name in ("translate", "checkpoint", "season"):
        if getattr(arguments, name):
            raise Problem(f"arco evaluate: --{name} is for run folders", "remove it")
    sizes = {"batch_size": arguments.batch_size, "seq_len": arguments.seq_len}
    with refusals():
        found = evaluate_published(
            open_folder(arguments),
            arguments.data,
            **sizes,
            max_data_bytes=arguments.max_data_bytes,
            calibration=arguments.calibration,
        )
    return write(found, arguments)


def write(found: Evaluation | TableEvaluation, arguments: argparse.Namespace) -> int:
    """Print numbers in the format that is asked for."""
    text = json_text(found.to_json(), indent=2) if arguments.format == "json" else str(found)
    emit(f"{text}\n", arguments.output)
    return 0


def answer(arguments: argparse.Namespace) -> int:
    """Print how many questions of a synthetic task are answered rightly, by length."""
    from composer.evaluate import evaluate_answers

    for name in ("data", "translate", "calibration", "season", "batch_size", "seq_len"):
        if getattr(arguments, name):
            raise Problem(
                f"arco evaluate: --task asks questions, and --{name.replace('_', '-')} is for texts and tables",
                "remove one of them",
            )
    given = {"examples": arguments.examples, "seed": arguments.seed}
    if arguments.task == "needle":
        return find_needles(arguments, {name: value for name, value in given.items() if value is not None})
    with refusals():
        scores = evaluate_answers(
            arguments.trained,
            arguments.task,
            lengths_of("2-8") if arguments.lengths is None else arguments.lengths,
            build=rebuild(arguments.blocks, arguments.device),
            checkpoint=arguments.checkpoint,
            **{name: value for name, value in given.items() if value is not None},
        )
    if arguments.format == "json":
        rows = [asdict(score) | {"accuracy": score.accuracy} for score in scores]
        text = json_text({"run": str(arguments.trained), "task": arguments.task, "lengths": rows}, indent=2)
    else:
        lines = [f"{score.length:>6}  {score.accuracy:>7.1%}  {score.right:>5} of {score.examples}" for score in scores]
        text = "\n".join(["length    right", *lines])
    emit(f"{text}\n", arguments.output)
    return 0


def find_needles(arguments: argparse.Namespace, given: dict[str, int]) -> int:
    """Print which needles are found, by length and depth, and draw them if there is to be a figure."""
    from composer.evaluate import evaluate_needle

    if arguments.figure is not None and arguments.figure.suffix != ".svg":
        raise Problem(f"arco evaluate: {arguments.figure} does not end in .svg", "the figure of needles is an SVG file")
    with refusals():
        found = evaluate_needle(
            arguments.trained,
            lengths_of("8,16,32") if arguments.lengths is None else arguments.lengths,
            [percent / 100 for percent in arguments.depths or (0, 25, 50, 75, 100)],
            build=rebuild(arguments.blocks, arguments.device),
            checkpoint=arguments.checkpoint,
            **given,
        )
    text = json_text(found.to_json(), indent=2) if arguments.format == "json" else str(found)
    emit(f"{text}\n", arguments.output)
    if arguments.figure is not None:
        write_file(arguments.figure, found.svg())
    return 0
