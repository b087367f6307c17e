"""`arco compare`: train variants of a model alike, and tell which differences are more than chance."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from composer.cli.arguments import Parser, StoreOnce, add_blocks, integer
from composer.cli.output import add_output, emit, say, write_file
from composer.cli.running import add_device, chosen_device, refusals
from composer.cost.units import in_flops
from composer.printable import json_text, printable

if TYPE_CHECKING:
    from composer.compare import Experiment, PlannedVariant

RUNS = Path("runs")


def declare(parser: Parser, name: str) -> None:
    """Declare an experiment, its folder, and what is written of the results."""
    from composer.train.settings import MAX_DATA_BYTES

    parser.add_argument("experiment", metavar="FILE", type=Path, help="Experiment to run: a .yaml file")
    parser.add_argument(
        "--runs",
        metavar="DIR",
        action=StoreOnce,
        type=Path,
        help="Folder with a run folder for each variant and seed (default: runs/NAME); finished runs are not trained again",
    )
    parser.add_argument("--plan", action="store_true", help="Print sizes, costs and steps of the variants, and train nothing")
    parser.add_argument(
        "--max-data-bytes",
        metavar="N",
        type=integer,
        default=MAX_DATA_BYTES,
        help="Largest size of all texts that are read, decompressed",
    )
    results = parser.add_argument_group("Results")
    results.add_argument(
        "--format",
        choices=("text", "csv", "json"),
        action=StoreOnce,
        help="Output format: a table of the variants, a line for each run, or all numbers (default: text)",
    )
    add_output(results, "Write the results to this file, replacing it, instead of standard output")
    results.add_argument(
        "--figure", metavar="PATH", action=StoreOnce, type=Path, help="Also draw the validation losses into this .svg file"
    )
    add_device(parser)
    add_blocks(parser)
    parser.examples = [
        ("See what will be trained", "arco compare depth.yaml --plan"),
        ("Train it, or what is left of it", "arco compare depth.yaml --figure depth.svg"),
        ("Keep the numbers", "arco compare depth.yaml --format json -o depth.json"),
    ]
    parser.notes = (
        "An experiment names texts, variants (recipes with what is set in them), seeds and a budget: steps, tokens, FLOPs or "
        "minutes. Runs with one seed see the same batches in the same order. Ctrl-C stops it; the same command continues."
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Train what is not yet trained, and print the results; progress is told on standard error."""
    from rich.console import Console

    from composer.compare import compare, read_experiment
    from composer.compare.curves import svg_of
    from composer.compare.runs import prepared
    from composer.train import TrainingError, display

    console = Console(stderr=True)
    with refusals():
        experiment = read_experiment(arguments.experiment)
        folder = arguments.runs or RUNS / experiment.name
        device = chosen_device(arguments.device)
        if arguments.figure is not None and arguments.figure.suffix != ".svg":
            raise TrainingError(f"{arguments.figure} does not end in .svg", hint="figures of a comparison are SVG files")
        given = {"blocks": arguments.blocks, "device": device, "max_data_bytes": arguments.max_data_bytes}
        if arguments.plan:
            say(planned_lines(experiment, prepared(experiment, folder, **given)[1]))
            return 0
        result = compare(experiment, folder, tell=tell, show=lambda: display(console), **given)
    match arguments.format:
        case "json":
            content = json_text(result.to_json(), indent=2)
        case "csv":
            content = result.to_csv().rstrip("\n")
        case _:
            content = str(result)
    emit(f"{content}\n", arguments.output)
    if arguments.figure is not None:
        write_file(arguments.figure, svg_of(result))
    return 0


def tell(text: str) -> None:
    """Print a line about the progress, which is no part of the results."""
    print(printable(text), file=sys.stderr, flush=True)


def planned_lines(experiment: Experiment, variants: Sequence[PlannedVariant]) -> str:
    """Return a table of what is going to be trained."""
    from composer.compare.results import aligned

    by = experiment.match.by if experiment.match is not None else ""
    rows = [["variant", "recipe", by, "parameters", "FLOPs per step", "steps"]]
    for each in variants:
        steps = "as measured" if each.steps is None else f"{each.steps:,}"
        width = "" if each.width is None else str(each.width)
        rows.append([each.variant.name, each.variant.recipe, width, f"{each.parameters:,}", in_flops(each.flops), steps])
    return "\n".join(
        [*aligned(rows, frozenset({2, 3, 4, 5})), "", f"each with the seeds {', '.join(map(str, experiment.seeds))}"]
    )
