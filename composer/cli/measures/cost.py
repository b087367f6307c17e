"""`arco cost`: the memory and the time that models are estimated to take."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from composer.cli.arguments import Parser, Problem, StoreOnce, add_changes, each_axis, integer, lengths, sound_recipe
from composer.cli.output import add_output, emit, write_file
from composer.cli.running import refusals
from composer.printable import json_text, printable

if TYPE_CHECKING:
    from composer.estimate import DeviceSpec, Estimate
    from composer.recipe import Recipe
    from composer.train import TrainSettings

UNITS = {"": 1} | {
    f"{letter}{ending}": base**power
    for ending, base in (("B", 1000), ("iB", 1024))
    for power, letter in enumerate(("K", "M", "G", "T"), 1)
}
"""Bytes by the unit of a memory."""


def declare(parser: Parser, name: str) -> None:
    """Declare the recipes, their lengths, the device and the settings of training."""
    from composer.estimate.devices import DEVICES
    from composer.train.settings import CHOICES

    parser.add_argument("recipes", metavar="RECIPE", nargs="+", help="Names from `arco list`, or paths to .yaml files")
    parser.add_argument(
        "--at",
        metavar="AXIS=LENGTH",
        action="append",
        default=[],
        help="Length of an axis, such as batch=8; several, such as time=512,1024,2048, give a row each",
    )
    parser.add_argument(
        "--device",
        metavar="DEVICE",
        help=f"Device that times are for: {', '.join(DEVICES)}, by their data sheets; cpu or cuda, measured at once; or a file "
        "from `arco bench -o FILE`",
    )
    parser.add_argument(
        "--budget",
        metavar="SIZE",
        action=StoreOnce,
        help="Also tell the largest batch that fits into so much memory, such as 80GB",
    )
    settings = parser.add_argument_group("Training")
    settings.add_argument("--optimizer", choices=tuple(CHOICES["optimizer"]), default="adamw", help="Optimizer")
    settings.add_argument("--grad-accum", metavar="N", type=integer, default=1, help="Forward passes of one step")
    settings.add_argument(
        "--precision",
        choices=tuple(CHOICES["precision"]),
        default="auto",
        help="Precision of matrix products; auto is bf16 on a GPU and fp32 on a CPU",
    )
    settings.add_argument(
        "--recompute",
        metavar="PATTERN",
        action="append",
        default=[],
        help="Modules that keep only their inputs, such as layers.*",
    )
    settings.add_argument(
        "--freeze", metavar="PATTERN", action="append", default=[], help="Names of parameters that are not trained"
    )
    settings.add_argument(
        "--logits-chunk",
        metavar="N",
        type=integer,
        action=StoreOnce,
        help="Positions whose logits are computed at a time, 0 for all",
    )
    results = parser.add_argument_group("Results")
    results.add_argument("--format", choices=("text", "csv", "json"), default="text", help="Output format")
    add_output(results, "Write the results to this file, replacing it, instead of standard output")
    results.add_argument(
        "--figure", metavar="PATH", action=StoreOnce, type=Path,
        help="Also draw memory and time over the axis of several lengths into this .svg file",
    )  # fmt: skip
    add_changes(parser)
    parser.examples = [
        ("See what a training step takes", "arco cost gpt2 --at batch=8"),
        ("On a GPU, with the largest batch that fits", "arco cost gpt2 --device h100 --budget 80GB"),
        ("Save memory", "arco cost gpt2 --device rtx4090 --recompute 'layers.*' --optimizer adafactor"),
        ("Compare models and lengths", "arco cost gpt2 opt --set n_layers=2 --at time=256,512 --device h100 --figure cost.svg"),
    ]
    parser.notes = (
        "The training step of `arco train` runs on tensors without storage: nothing is allocated, and what is told is what the "
        "program does. Times on a data sheet's rates are lower bounds; those on measured rates are estimates."
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Estimate each recipe at each length, and print one estimate whole, or a table of several."""
    from composer.cost.lengths import axes
    from composer.estimate import estimate

    budget = None if arguments.budget is None else size_of(arguments.budget)
    if arguments.figure is not None and arguments.figure.suffix != ".svg":
        raise Problem(f"arco cost: {arguments.figure} does not end in .svg", "figures of costs are SVG files")
    several = axes_of(arguments.at)
    if arguments.figure is not None and len(several) != 1:
        raise Problem("arco cost: --figure needs one axis with several lengths", "such as --at time=256,512,1024")
    with refusals():
        settings = settings_of(arguments)
        recipes = [sound_recipe(source, arguments) for source in arguments.recipes]
        places = [places_of(arguments.at, axes(recipe.program)) for recipe in recipes]
        device = device_of(arguments.device)
        found: list[Estimate] = []
        for recipe, at in ((recipe, at) for recipe, points in zip(recipes, places, strict=True) for at in points):
            one = estimate(recipe, at, device=device, settings=settings)
            found.append(one if budget is None else budgeted(one, recipe, at, budget, settings))
    match arguments.format:
        case "json":
            content = json_text([each.to_json() for each in found], indent=2)
        case "csv":
            content = csv_of(found)
        case _:
            content = str(found[0]).rstrip("\n") if len(found) == 1 else table(found)
    emit(f"{content}\n", arguments.output)
    if arguments.figure is not None:
        from composer.estimate.figure import svg_of

        write_file(arguments.figure, svg_of(found, several[0]))
    return 0


def settings_of(arguments: argparse.Namespace) -> TrainSettings:
    """Return the settings of training that count."""
    from composer.train import TrainSettings

    return TrainSettings(
        optimizer=arguments.optimizer,
        grad_accum=arguments.grad_accum,
        precision=arguments.precision,
        recompute=tuple(arguments.recompute),
        freeze=tuple(arguments.freeze),
        logits_chunk=arguments.logits_chunk,
    )


def size_of(text: str) -> int:
    """Return bytes of a text such as `80GB` or `24 GiB`.

    Raises:
        Problem: It is none.
    """
    found = re.fullmatch(r"([0-9]{1,12}(?:\.[0-9]{1,6})?) ?([KMGT]i?B|)", text.strip(), re.ASCII)
    if found is None or not float(found[1]):
        raise Problem(f"arco cost: --budget {text}: this is no memory", "for example, --budget 80GB or --budget 24GiB")
    return int(float(found[1]) * UNITS[found[2]])


def axes_of(written: Sequence[str]) -> list[str]:
    """Return the axes that have several lengths."""
    return [axis for axis, _, values in (each.partition("=") for each in each_axis(written)) if "," in values]


def places_of(written: Sequence[str], known: tuple[str, ...]) -> list[Mapping[str, int]]:
    """Return the lengths of every combination of texts such as `time=512,1024`.

    Raises:
        Problem: The model has no such axis, a length is none, or an axis is given twice.
    """
    apart = each_axis(written)
    given = [one.partition("=")[0] for one in apart]
    if twice := [axis for axis in given if given.count(axis) > 1]:
        raise Problem(f"arco cost: --at {twice[0]} is given twice", f"several lengths are written --at {twice[0]}=256,512")
    each = [[f"{axis}={value}" for value in values.split(",")] for axis, _, values in (one.partition("=") for one in apart)]
    return [lengths(point, known, "cost") for point in product(*each)]


def device_of(name: str | None) -> DeviceSpec | None:
    """Return a device by its name, measured, or from a file.

    Raises:
        Problem: There is none of this name.
        EstimateError: The file does not describe a device.
    """
    from composer.cli.arguments import misspelled
    from composer.estimate import DEVICES, measure_device, read_device

    if name is None or name in DEVICES:
        return None if name is None else DEVICES[name]
    if re.fullmatch(r"(cpu|cuda|mps|xpu)(:[0-9]+)?", name):
        print(f"measuring {name}; `arco bench -o FILE` keeps the rates", file=sys.stderr, flush=True)
        return measure_device(name)
    if not Path(name).is_file():
        hint = misspelled(name, DEVICES) or f"one of {', '.join(DEVICES)}, cpu, or a file from `arco bench -o FILE`"
        raise Problem(f"arco cost: there is no device {printable(name)}", hint)
    return read_device(name)


def budgeted(one: Estimate, recipe: Recipe, at: Mapping[str, int], budget: int, settings: TrainSettings) -> Estimate:
    """Return an estimate with the largest batch that fits into the budget."""
    from dataclasses import replace

    from composer.estimate import largest_batch

    on_gpu = one.device is None or one.device.overlaps
    found = largest_batch(recipe, budget, at, settings=replace(settings, precision=one.precision), on_gpu=on_gpu)
    return replace(one, largest_batch=found, budget=budget)


def _cells(one: Estimate) -> Iterator[tuple[str, str, object]]:
    """Yield the columns of a row: the title, its text and its value."""
    from composer.cost.units import in_bytes, short
    from composer.estimate.estimates import in_seconds

    yield "model", one.name, one.name
    for axis, length in one.lengths.items():
        yield axis, f"{length:,}", length
    yield "parameters", short(one.parameters), one.parameters
    memory = one.training
    yield "activations", "" if memory is None else in_bytes(memory.activations), None if memory is None else memory.activations
    yield "peak", "" if memory is None else in_bytes(memory.peak), None if memory is None else memory.peak
    if one.budget is not None:
        yield "largest batch", f"{one.largest_batch:,}", one.largest_batch
    if one.device is not None:
        step, token = one.step, one.token
        rate = one.tokens_per_second or one.rows_per_second
        yield "step", "" if step is None else in_seconds(step.seconds), None if step is None else step.seconds
        unit = "tokens/s" if one.tokens is not None else "rows/s"
        yield unit, "" if rate is None else f"{rate:,.0f}" if rate >= 1000 else f"{rate:,.3g}", rate
        yield "bottleneck", "" if step is None else step.bottleneck, None if step is None else step.bottleneck
        yield "token", "" if token is None else in_seconds(token.seconds), None if token is None else token.seconds


def _rows(found: Sequence[Estimate]) -> tuple[list[str], list[dict[str, tuple[str, object]]]]:
    """Return the titles of all columns, in the order of the first rows that have them, and the cells of each row by title."""
    rows = [{title: (text, value) for title, text, value in _cells(each)} for each in found]
    titles: list[str] = []
    for row in rows:
        after = 0
        for title in row:
            if title in titles:
                after = titles.index(title) + 1
            else:
                titles.insert(after, title)
                after += 1
    return titles, rows


def table(found: Sequence[Estimate]) -> str:
    """Return a table with a row for each estimate."""
    from composer.compare.results import aligned

    titles, rows = _rows(found)
    words = frozenset({"model", "bottleneck"})
    right = frozenset(place for place, title in enumerate(titles) if title not in words)
    cells = [titles, *([row.get(title, ("", None))[0] for title in titles] for row in rows)]
    first = found[0]
    memory = f"{first.optimizer}, matrix products in {first.precision}"
    device = first.device
    where = (
        ""
        if device is None
        else f", on {device.name}" + ("" if device.measured else " at the rates of its data sheet, or slower")
    )
    return "\n".join([*aligned(cells, right), "", memory + where])


def csv_of(found: Sequence[Estimate]) -> str:
    """Return the table as CSV, in bytes and seconds."""
    import csv
    import io

    titles, rows = _rows(found)
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(titles)
    for row in rows:
        values = [row.get(title, ("", None))[1] for title in titles]
        writer.writerow(["" if value is None else value for value in values])
    return written.getvalue().rstrip("\n")
