"""`arco generate`: a trained model writes."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from composer.cli.arguments import add_blocks
from composer.cli.running import add_device, rebuild, refusals


def declare(parser: argparse.ArgumentParser, name: str) -> None:
    """A run, a prompt, and how to draw."""
    parser.add_argument("trained", metavar="RUN", type=Path, help="the folder of a run, as `arco train` printed it")
    parser.add_argument("--prompt", metavar="TEXT", default="\n", help="what to go on from (default: an empty line)")
    parser.add_argument("--tokens", metavar="N", type=int, default=400, help="how many tokens to write (default: 400)")
    parser.add_argument(
        "--temperature",
        metavar="X",
        type=float,
        default=1.0,
        help="below 1 likelier, above 1 stranger, 0 always the best (default: 1)",
    )
    parser.add_argument("--top-k", metavar="N", type=int, help="draw from this many of the best tokens")
    parser.add_argument(
        "--top-p",
        metavar="P",
        type=float,
        default=1.0,
        help="draw from the fewest tokens that have this probability (default: 1)",
    )
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="decides what is drawn (default: 0)")
    parser.add_argument("--checkpoint", metavar="NAME", help="one of the run's checkpoints (default: the latest)")
    add_device(parser)
    add_blocks(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the prompt and what follows, piece by piece."""
    from composer.decode import Sampling
    from composer.train import open_run

    with refusals():
        sampling = Sampling(temperature=arguments.temperature, top_k=arguments.top_k, top_p=arguments.top_p)
        trained = open_run(arguments.trained, build=rebuild(arguments.blocks, arguments.device), checkpoint=arguments.checkpoint)
        write(trained, arguments.prompt, tokens=arguments.tokens, sampling=sampling, seed=arguments.seed)
    return 0


def write(trained: Any, prompt: str, *, tokens: int, sampling: Any, seed: int) -> None:
    """Print the prompt and what a trained model makes of it; the window slides where the text outgrows the training's."""
    from composer.decode import Request, Slide, cached, stream
    from composer.train import text_as_it_comes

    tokeniser = trained.tokeniser
    request = Request(max_new_tokens=tokens, sampling=sampling, limit=Slide(trained.settings.context), vocabulary=tokeniser.size)
    ids = stream(trained.model, tokeniser.encode(prompt), request, seed=seed, reading=cached)
    print(prompt, end="")
    for piece in text_as_it_comes(tokeniser, ids):
        print(piece, end="", flush=True)
    print()
