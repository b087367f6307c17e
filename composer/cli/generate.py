"""`arco generate`: generate text with a trained model."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from composer.cli.arguments import Parser, Problem, StoreOnce, add_blocks, integer, number
from composer.cli.output import generated
from composer.cli.running import add_device, rebuild, refusals
from composer.language.tasks import TASKS

if TYPE_CHECKING:
    from composer.decode import EncoderInputs, Sampling, Search
    from composer.train import Trained


MOST = 400
"""New tokens by default."""
SAMPLING = ("temperature", "top_k", "top_p")
"""Options of sampling alone."""


def declare(parser: Parser, name: str) -> None:
    """Declare a run folder, a prompt, and how tokens are chosen."""
    parser.add_argument("trained", metavar="RUN", type=Path, help="Run folder that `arco train` wrote")
    parser.add_argument(
        "--prompt",
        metavar="TEXT",
        action=StoreOnce,
        help="Text to continue, to translate, or to fill in at <0>, <1> and so on (default: a line break)",
    )
    parser.add_argument(
        "--max-new-tokens",
        metavar="N",
        type=integer,
        help=f"Stop after this many new tokens (default: {MOST}; in beam search, as many of them as the context has room for)",
    )
    parser.add_argument("--checkpoint", metavar="NAME", help="Checkpoint of the run, such as step-000500 (default: the latest)")
    sampling = parser.add_argument_group("Sampling")
    sampling.add_argument(
        "--temperature",
        metavar="X",
        type=number,
        help="Sampling temperature: lower values favor likely tokens, and 0 always takes the likeliest (default: 1)",
    )
    sampling.add_argument("--top-k", metavar="N", type=integer, help="Sample from the N likeliest tokens")
    sampling.add_argument(
        "--top-p", metavar="P", type=number, help="Sample from the fewest tokens whose probabilities sum to P (default: 1)"
    )
    sampling.add_argument("--seed", metavar="N", type=integer, default=0, help="Random seed")
    search = parser.add_argument_group("Beam search")
    search.add_argument(
        "--num-beams", metavar="N", type=integer, help="Search for the likeliest text with this many beams, instead of sampling"
    )
    search.add_argument(
        "--length-penalty",
        metavar="X",
        type=number,
        help="Divide the score of a text by its length to the power X (default: 1)",
    )
    add_device(parser)
    add_blocks(parser)
    parser.examples = [
        ("Continue a text", 'arco generate runs/gpt_mini --prompt "To be"'),
        ("Sample likelier text", 'arco generate runs/gpt_mini --prompt "To be" --temperature 0.8 --top-k 50'),
        ("Find the likeliest continuation", 'arco generate runs/gpt_mini --prompt "To be" --num-beams 4 --max-new-tokens 100'),
    ]
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the continuation of the prompt: token by token when sampling, all at once after a beam search."""
    from composer.decode import Sampling, Search
    from composer.train import open_run

    prompt = "\n" if arguments.prompt is None else arguments.prompt
    check_options(arguments)
    with refusals():
        given = {name: value for name in SAMPLING if (value := getattr(arguments, name)) is not None}
        sampling = Sampling(**given)
        trained = open_run(arguments.trained, build=rebuild(arguments.blocks, arguments.device), checkpoint=arguments.checkpoint)
        if arguments.num_beams is not None:
            penalty = {} if arguments.length_penalty is None else {"length_penalty": arguments.length_penalty}
            write_best(trained, prompt, Search(num_beams=arguments.num_beams, **penalty), arguments.max_new_tokens)
        else:
            most = MOST if arguments.max_new_tokens is None else arguments.max_new_tokens
            write(trained, prompt, max_new_tokens=most, sampling=sampling, seed=arguments.seed)
    return 0


def check_options(arguments: argparse.Namespace) -> None:
    """Raise `Problem` if options of sampling and of beam search are combined."""
    if arguments.num_beams is None and arguments.length_penalty is not None:
        raise Problem("arco generate: --length-penalty is for beam search", "add --num-beams N")
    used = next((name for name in SAMPLING if getattr(arguments, name) is not None), None)
    if arguments.num_beams is not None and used is not None:
        option = f"--{used.replace('_', '-')}"
        raise Problem(f"arco generate: --num-beams searches for the likeliest text, and {option} samples", "remove one of them")


def write(trained: Trained, prompt: str, *, max_new_tokens: int, sampling: Sampling, seed: int) -> None:
    """Print the text that a trained model samples, after the prompt if the model continues it.

    Beyond the length of training, the context window slides.
    """
    from composer.decode import Request, Slide, cached, stream
    from composer.train import text_as_it_comes

    begin = beginning(trained, prompt)
    request = Request(max_new_tokens=max_new_tokens, sampling=sampling, stop=begin.stop, vocabulary=trained.tokenizer.size)
    if not begin.encoder_inputs:
        print(generated(prompt, sys.stdout), end="")
        request = replace(request, limit=Slide(trained.settings.seq_len))
    ids = stream(trained.model, begin.tokens, request, encoder_inputs=begin.encoder_inputs, seed=seed, reading=cached)
    for piece in text_as_it_comes(trained.tokenizer, ids):
        print(generated(piece, sys.stdout), end="", flush=True)
    print()


def write_best(trained: Trained, prompt: str, search: Search, max_new_tokens: int | None) -> None:
    """Print the likeliest text that beam search finds, of up to `max_new_tokens` or as many as the context has room for."""
    from composer.decode import Refuse, beam_search, cached

    begin = beginning(trained, prompt)
    room = MOST if begin.encoder_inputs else min(MOST, max(1, trained.settings.seq_len - len(begin.tokens)))
    most = room if max_new_tokens is None else max_new_tokens
    search = replace(search, stop=begin.stop, vocabulary=trained.tokenizer.size, max_new_tokens=most)
    if not begin.encoder_inputs:
        search = replace(search, limit=Refuse(trained.settings.seq_len))
    ((best, *_),) = beam_search(trained.model, [begin.tokens], search, encoder_inputs=begin.encoder_inputs, reading=cached)
    text = ("" if begin.encoder_inputs else prompt) + trained.tokenizer.decode(best.tokens)
    print(generated(text, sys.stdout))


@dataclass(frozen=True)
class Beginning:
    """What generation starts from."""

    tokens: list[int]
    """The first tokens of the generated text."""
    encoder_inputs: EncoderInputs
    stop: frozenset[int]


def beginning(trained: Trained, prompt: str) -> Beginning:
    """Return a prompt as the tokens that a decoder continues, or as the source that an encoder reads.

    Raises:
        Problem: The model does not generate text, or reads more than a text.
    """
    import torch

    from composer.decode import DecodeError
    from composer.decode.encoder_inputs import check_encoder_inputs
    from composer.train import MarkedTokenizer, task_of
    from composer.train.data.objectives import END, START

    task, tokenizer = task_of(trained.model) or "", trained.tokenizer
    if not TASKS[task].text:
        generating = ", ".join(name for name, known in TASKS.items() if known.text)
        raise Problem(f"arco: a model of the task {task} generates no text", f"tasks that generate text: {generating}")
    if isinstance(tokenizer, MarkedTokenizer):
        start, end = tokenizer.mark(START), tokenizer.mark(END)
        begin = Beginning([start], {"source": torch.tensor([[*tokenizer.encode_marked(prompt), end]])}, frozenset({end}))
    else:
        begin = Beginning(tokenizer.encode(prompt), {}, frozenset())
    try:
        check_encoder_inputs(trained.model, begin.encoder_inputs, 1)
    except DecodeError as error:
        raise Problem(f"arco: {error}", "arco generate gives a model a text alone; in Python, see composer.decode") from None
    return begin
