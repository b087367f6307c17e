"""`arco report`: the curves, settings and samples of a run, in the terminal or as a page."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from composer.cli.arguments import Parser, Problem, StoreOnce, add_blocks, integer
from composer.cli.output import WIDTH, emit, write_file
from composer.cli.running import add_device, rebuild, refusals
from composer.cli.voices import BREAK, voice_of_run
from composer.language.tasks import TASKS

if TYPE_CHECKING:
    from composer.report.page import Portrait, Sample

NEW_TOKENS = 200
"""Length of a sample, in tokens."""


def declare(parser: Parser, name: str) -> None:
    """Declare a run folder, the page, and its samples."""
    parser.add_argument("trained", metavar="RUN", type=Path, help="Run folder that `arco train` wrote, also while it trains")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        action=StoreOnce,
        help="Write a page to this .html file, instead of text to the terminal",
    )
    parser.add_argument(
        "--samples", metavar="N", type=integer, help="Texts on the page of a model that generates (default: 3; 0 for none)"
    )
    parser.add_argument("--prompt", metavar="TEXT", action=StoreOnce, help="Beginning of the samples (default: a line break)")
    add_device(parser)
    add_blocks(parser)
    parser.examples = [
        ("Look at the curve of a run", "arco report runs/gpt_mini"),
        ("Write a page with curves, samples and the model", "arco report runs/gpt_mini -o report.html"),
        ("Let the samples begin alike", 'arco report runs/gpt_mini -o report.html --prompt "To be" --samples 5'),
    ]
    parser.notes = (
        "A page is one file, which loads nothing and has no script. What `arco train --watch` measures is on it. Losses are "
        "averaged with exponential weights, and the band around them is one standard deviation."
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the facts and the curve, or write the page."""
    from composer.report.page import report_page, report_text
    from composer.report.record import read_record

    file = arguments.output
    if file is not None and Path(file).suffix not in (".html", ".htm"):
        raise Problem(f"arco report: {file} does not end in .html", "-o report.html writes a page; without -o, text is printed")
    if file is None:
        for name in ("samples", "prompt"):
            if getattr(arguments, name) is not None:
                raise Problem(f"arco report: --{name} is for a page", "-o report.html")
    if arguments.samples is not None and arguments.samples < 0:
        raise Problem(f"arco report: --samples is {arguments.samples}; it must be at least 0")
    with refusals():
        record = read_record(arguments.trained)
        model = portrait(record.recipe, arguments)
        if file is None:
            width = min(WIDTH, shutil.get_terminal_size().columns)
            emit(f"{report_text(record, model, width=width)}\n", None)
            return 0
        page = report_page(record, model, samples(arguments, model))
    write_file(Path(file), page)
    return 0


def portrait(recipe: str, arguments: argparse.Namespace) -> Portrait:
    """Return the model of a recipe, with its picture if there is to be a page."""
    from composer.loading import load
    from composer.report.page import Portrait

    found = load(recipe, blocks=arguments.blocks)
    svg = found.draw(theme="auto").svg() if arguments.output is not None else ""
    return Portrait(found.name, found.doc, found.task, found.summary().costs.parameters, svg)


def samples(arguments: argparse.Namespace, model: Portrait) -> list[Sample]:
    """Return texts that the latest checkpoint writes: none of a model that generates none, or before the first checkpoint."""
    from composer.decode import Request, Sampling, Slide, cached, stream
    from composer.report.page import Sample
    from composer.train import open_run
    from composer.train.run.reader import read_run

    continues = model.task is not None and bool(TASKS[model.task].text) and TASKS[model.task].continues
    count = 3 if arguments.samples is None else arguments.samples
    if not continues and (arguments.samples or arguments.prompt is not None):
        raise Problem(
            f"arco report: a model of the task {model.task or 'none'} continues no text", "leave out --samples, --prompt"
        )
    if not continues or not count or read_run(arguments.trained).manifest.latest is None:
        return []
    trained = open_run(arguments.trained, build=rebuild(arguments.blocks, arguments.device))
    voice = voice_of_run(trained, BREAK if arguments.prompt is None else arguments.prompt)
    found = []
    for seed in range(count):
        request = Request(
            max_new_tokens=NEW_TOKENS,
            sampling=Sampling(),
            stop=voice.stop,
            vocabulary=voice.vocabulary,
            limit=None if voice.context is None else Slide(voice.context),
        )
        ids = stream(trained.model, voice.tokens, request, seed=seed, reading=cached)
        text = "".join(voice.as_it_comes(ids, after=voice.before))
        found.append(Sample(f"step {trained.step:,}, temperature 1, random seed {seed}", voice.said, text))
    return found
