"""`arco transcribe`: write down what a trained or a published model hears."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from composer.cli.arguments import Parser, Problem, add_blocks, integer
from composer.cli.output import generated
from composer.cli.running import add_device, open_folder, rebuild, refusals


def declare(parser: Parser, name: str) -> None:
    """Declare a run folder and recordings."""
    parser.add_argument("trained", metavar="RUN", type=Path, help="Run folder that `arco train` wrote, or a published folder")
    parser.add_argument("recordings", metavar="FILE", nargs="+", type=Path, help="WAV file to transcribe; may be repeated")
    parser.add_argument("--checkpoint", metavar="NAME", help="Checkpoint of the run, such as step-000500 (default: the latest)")
    parser.add_argument(
        "--sample-rate",
        metavar="N",
        type=integer,
        help="Samples per second of the recordings; others are refused (default: as in training; 16000 for a published folder)",
    )
    add_device(parser)
    add_blocks(parser)
    parser.examples = [
        ("Transcribe a recording", "arco transcribe runs/wav2vec2 hello.wav"),
        ("Transcribe several, a line each", "arco transcribe runs/wav2vec2 one.wav two.wav"),
    ]
    parser.notes = (
        "For models with a loss of the type `ctc`: the most probable token of each frame is taken, equal neighbors are joined, "
        "and blanks are left out."
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print a line for each recording, with the name of its file if there are several."""
    from composer.evaluate import transcribe
    from composer.published.folder import is_published
    from composer.train import TrainSettings, open_run

    with refusals():
        if is_published(arguments.trained):
            if arguments.checkpoint is not None:
                raise Problem("arco transcribe: --checkpoint is for run folders", "a published folder has one set of weights")
            opened, rate = open_folder(arguments), arguments.sample_rate or TrainSettings.sample_rate
            texts = transcribe(opened.model, opened.tokenizer.to_train(), arguments.recordings, sample_rate=rate)
        else:
            trained = open_run(
                arguments.trained, build=rebuild(arguments.blocks, arguments.device), checkpoint=arguments.checkpoint
            )
            rate = arguments.sample_rate or trained.settings.sample_rate
            texts = transcribe(trained.model, trained.tokenizer, arguments.recordings, sample_rate=rate)
        for path, text in zip(arguments.recordings, texts, strict=True):
            before = f"{path}: " if len(arguments.recordings) > 1 else ""
            print(generated(before + text, sys.stdout), flush=True)
    return 0
