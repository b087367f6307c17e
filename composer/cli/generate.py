"""`arco generate`: a trained model writes."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from composer.cli.arguments import Problem, add_blocks
from composer.cli.running import add_device, rebuild, refusals
from composer.language.tasks import TASKS

if TYPE_CHECKING:
    from composer.decode import EncoderInputs, Sampling, Search
    from composer.train import Trained


def declare(parser: argparse.ArgumentParser, name: str) -> None:
    """A run, a prompt, and how to draw."""
    parser.add_argument("trained", metavar="RUN", type=Path, help="the folder of a run, as `arco train` printed it")
    parser.add_argument(
        "--prompt",
        metavar="TEXT",
        default="\n",
        help="what to go on from, or to translate; for a model of gaps, a text with <0>, <1> … where something is missing "
        "(default: an empty line)",
    )
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
    parser.add_argument("--beams", metavar="N", type=int, help="search for the likeliest text instead, following N at a time")
    parser.add_argument(
        "--length-penalty", metavar="X", type=float, default=1.0, help="of the search: 0 favors short texts (default: 1)"
    )
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="decides what is drawn (default: 0)")
    parser.add_argument("--checkpoint", metavar="NAME", help="one of the run's checkpoints (default: the latest)")
    add_device(parser)
    add_blocks(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write what follows the prompt, piece by piece; what a search finds, at once."""
    from composer.decode import Sampling, Search
    from composer.train import open_run

    with refusals():
        sampling = Sampling(temperature=arguments.temperature, top_k=arguments.top_k, top_p=arguments.top_p)
        trained = open_run(arguments.trained, build=rebuild(arguments.blocks, arguments.device), checkpoint=arguments.checkpoint)
        if arguments.beams is not None:
            search = Search(num_beams=arguments.beams, length_penalty=arguments.length_penalty, max_new_tokens=arguments.tokens)
            write_best(trained, arguments.prompt, search)
        else:
            write(trained, arguments.prompt, tokens=arguments.tokens, sampling=sampling, seed=arguments.seed)
    return 0


def write(trained: Trained, prompt: str, *, tokens: int, sampling: Sampling, seed: int) -> None:
    """Print what a trained model makes of a prompt, after the prompt where the model goes on from it; the window slides where
    the text outgrows the training's.
    """
    from composer.decode import Request, Slide, cached, stream
    from composer.train import text_as_it_comes

    begin = beginning(trained, prompt)
    request = Request(max_new_tokens=tokens, sampling=sampling, stop=begin.stop, vocabulary=trained.tokenizer.size)
    if not begin.encoder_inputs:
        print(prompt, end="")
        request = replace(request, limit=Slide(trained.settings.seq_len))
    ids = stream(trained.model, begin.tokens, request, encoder_inputs=begin.encoder_inputs, seed=seed, reading=cached)
    for piece in text_as_it_comes(trained.tokenizer, ids):
        print(piece, end="", flush=True)
    print()


def write_best(trained: Trained, prompt: str, search: Search) -> None:
    """Print the likeliest text that a search finds."""
    from composer.decode import Refuse, beam_search, cached

    begin = beginning(trained, prompt)
    search = replace(search, stop=begin.stop, vocabulary=trained.tokenizer.size)
    if not begin.encoder_inputs:
        search = replace(search, limit=Refuse(trained.settings.seq_len))
    ((best, *_),) = beam_search(trained.model, [begin.tokens], search, encoder_inputs=begin.encoder_inputs, reading=cached)
    print(("" if begin.encoder_inputs else prompt) + trained.tokenizer.decode(best.tokens))


@dataclass(frozen=True)
class Beginning:
    """Where a model starts to write."""

    tokens: list[int]
    """The first of its own text."""
    encoder_inputs: EncoderInputs
    stop: frozenset[int]


def beginning(trained: Trained, prompt: str) -> Beginning:
    """A prompt as what a model goes on from, or as the source that it reads.

    Raises:
        Problem: for a model that writes nothing.
    """
    import torch

    from composer.train import MarkedTokenizer, task_of
    from composer.train.data.objectives import END, START

    task, tokenizer = task_of(trained.model) or "", trained.tokenizer
    if not TASKS[task].text:
        writing = ", ".join(name for name, known in TASKS.items() if known.text)
        raise Problem(f"arco: a model for {task} writes nothing", f"those that write are for {writing}")
    if not isinstance(tokenizer, MarkedTokenizer):
        return Beginning(tokenizer.encode(prompt), {}, frozenset())
    start, end = tokenizer.mark(START), tokenizer.mark(END)
    return Beginning([start], {"source": torch.tensor([[*tokenizer.encode_marked(prompt), end]])}, frozenset({end}))
