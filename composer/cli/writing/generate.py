"""`arco generate`: generate text with a trained or a published model."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from composer.cli.arguments import Parser, Problem, StoreOnce, add_blocks, integer, number
from composer.cli.output import generated, say
from composer.cli.running import add_device, add_int8, refusals
from composer.cli.writing.beams import MOST, beams
from composer.cli.writing.prompt_caches import prompt_cache_of, tell_found
from composer.cli.writing.voices import BREAK, Voice, check_inputs, draft_of, opened

if TYPE_CHECKING:
    from composer.decode import Draft, Reading, Request, Sampling, Search


TOGETHER = 32
"""Prompts that are answered at a time by default."""
SAMPLING = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty", "no_repeat_ngram")
"""Options of sampling alone."""


def declare(parser: Parser, name: str) -> None:
    """Declare a run folder, a prompt, and how tokens are chosen."""
    parser.add_argument("trained", metavar="RUN", type=Path, help="Run folder that `arco train` wrote, or a published folder")
    parser.add_argument(
        "--prompt",
        metavar="TEXT",
        action="append",
        help="Text to continue, to translate, or to fill in at <mask>, or at <0>, <1> and so on (default: a line break; "
        "nothing, if the model learned with end tokens); may be repeated",
    )
    parser.add_argument(
        "--prompts", metavar="FILE", type=Path, action=StoreOnce, help="Answer each line of this file that is not blank"
    )
    parser.add_argument(
        "--batch-size", metavar="N", type=integer, help=f"Answer at most this many prompts at a time (default: {TOGETHER})"
    )
    parser.add_argument(
        "--image", metavar="FILE", type=Path, action=StoreOnce, help="The image to write about, of a model that writes captions"
    )
    parser.add_argument(
        "--input",
        metavar="NAME=N",
        action="append",
        dest="inputs",
        help="Value of another input of the model that is a number for each text, such as task=1 (repeatable)",
    )
    parser.add_argument("--no-chat", action="store_true", help="Continue the prompt as it is, without the folder's chat template")
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
    sampling.add_argument(
        "--min-p",
        metavar="P",
        type=number,
        help="Sample from the tokens at least P times as probable as the likeliest (default: 0)",
    )
    sampling.add_argument(
        "--repetition-penalty",
        metavar="X",
        type=number,
        help="Make tokens of the text so far less likely: divide their logits by X, or multiply negative ones (default: 1)",
    )
    sampling.add_argument(
        "--no-repeat-ngram", metavar="N", type=integer, help="Never repeat a sequence of N tokens, of the prompt neither"
    )
    sampling.add_argument(
        "--seed", metavar="N", type=integer, default=0, help="Random seed; each further prompt has the next one (default: 0)"
    )
    sampling.add_argument(
        "--n", metavar="N", type=integer, help="Generate N texts, with the random seeds from --seed on (default: 1)"
    )
    sampling.add_argument(
        "--next", metavar="N", type=integer, help="Print the N likeliest next tokens with their probabilities, and no text"
    )
    sampling.add_argument(
        "--strategies",
        action="store_true",
        help="Print what greedy decoding, sampling at several settings and beam search make of the prompt, side by side",
    )
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
    search.add_argument(
        "--list-beams",
        action="store_true",
        help="Print all texts that beam search finds, best first, each with its score",
    )
    parser.add_argument(
        "--draft",
        metavar="RUN",
        type=Path,
        help="A smaller model with the same tokens that drafts them, so that the model reads several in one call",
    )
    parser.add_argument("--draft-tokens", metavar="N", type=integer, help="Draft this many tokens at a time (default: 4)")
    parser.add_argument(
        "--prompt-cache",
        metavar="FILE",
        type=Path,
        help="File that keeps what the model has read of the prompt, so that the next time only what is new of it is read; it is "
        "made if it is not there",
    )
    parser.add_argument(
        "--prepack",
        action="store_true",
        help="On a CPU, keep copies of matrices in the layout that is faster for single tokens; takes up to their memory again",
    )
    parser.add_argument(
        "--compile",
        action="store_true",
        help="Compile a step with torch.compile, which takes up to minutes at first; needs a C++ compiler, or Triton on a GPU",
    )
    add_int8(parser)
    add_device(parser)
    add_blocks(parser)
    parser.examples = [
        ("Continue a text", 'arco generate runs/gpt_mini --prompt "To be"'),
        ("Sample likelier text", 'arco generate runs/gpt_mini --prompt "To be" --temperature 0.8 --top-k 50'),
        ("Generate three texts without repetition", "arco generate runs/gpt_mini --n 3 --no-repeat-ngram 4"),
        ("Continue several texts together", 'arco generate runs/gpt_mini --prompt "To be" --prompt "or not"'),
        (
            "Read a long prompt once, for several texts",
            'arco generate runs/gpt_mini --prompt "To be" --prompt-cache prompt.safetensors --seed 1',
        ),
        ("Show what may come next", 'arco generate runs/gpt_mini --prompt "To be" --next 5'),
        ("Ask a published model", 'arco generate SmolLM2-135M-Instruct --prompt "What is the capital of France?"'),
        ("Run a model that is large for the memory", 'arco generate Llama-3.2-1B --int8 --prompt "The capital of France is"'),
        ("Fill in hidden words", 'arco generate bert-base-uncased --prompt "Paris is the <mask> of France."'),
        (
            "Compare ways to choose tokens",
            'arco generate runs/gpt_mini --prompt "To be" --strategies --max-new-tokens 40',
        ),
        ("Find the likeliest continuation", 'arco generate runs/gpt_mini --prompt "To be" --num-beams 4 --max-new-tokens 100'),
    ]
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print what follows the prompts: of one token by token, of several when all are done."""
    from composer.decode import Sampling, cached, compiled, prepacked

    check_options(arguments)
    with refusals():
        given = {name: value for name in SAMPLING if (value := getattr(arguments, name)) is not None}
        sampling = Sampling(**given)
        prompts = prompts_of(arguments.prompt, arguments.prompts)
        voice_of = opened(arguments)
        voices = [voice_of(prompt) for prompt in prompts]
        for voice in voices:
            check_inputs(voice)
        draft = draft_of(arguments, prompts[0], voices[0])
        reading: Reading = compiled(voices[0].model) if arguments.compile else cached
        prompt_cache = prompt_cache_of(arguments, voices, reading)
        together = min(len(voices), arguments.batch_size or TOGETHER)
        alone = len(voices) == 1 or arguments.n is not None or arguments.next is not None
        alone = (
            alone or arguments.num_beams is not None or arguments.strategies or any(voice.hidden is not None for voice in voices)
        )
        with (
            prepacked(voices[0].model, arguments.num_beams or (1 if alone else together)) if arguments.prepack else nullcontext()
        ):
            if not alone:
                most = MOST if arguments.max_new_tokens is None else arguments.max_new_tokens
                write_all(
                    voices,
                    max_new_tokens=most,
                    sampling=sampling,
                    seed=arguments.seed,
                    batch_size=together,
                    reading=reading,
                    draft=draft,
                )
                tell(draft)
                return 0
            for index, voice in enumerate(voices):
                if len(voices) > 1:
                    say(f"--- prompt {index + 1}")
                answer(arguments, voice, sampling, prompt_cache or reading, draft)
        tell(draft)
        tell_found(prompt_cache)
    return 0


def tell(draft: Draft | None) -> None:
    """Print how many of the drafted tokens were accepted, beside the text."""
    if draft is not None and draft.proposed:
        share = f"{draft.accepted} of {draft.proposed} drafted tokens accepted ({draft.accepted / draft.proposed:.0%})"
        each = (draft.accepted + draft.rounds) / draft.rounds
        print(f"{share}, {each:.1f} tokens for each call of the model", file=sys.stderr)


def answer(arguments: argparse.Namespace, voice: Voice, sampling: Sampling, reading: Reading, draft: Draft | None) -> None:
    """Print what a model answers to one prompt, as the options say."""
    from composer.cli.writing.strategies import compared
    from composer.decode import Search

    if voice.hidden is not None:
        write_filled(voice, voice.hidden)
    elif arguments.strategies:
        say(compared(voice, seed=arguments.seed, most=arguments.max_new_tokens))
    elif arguments.num_beams is not None:
        penalty = {} if arguments.length_penalty is None else {"length_penalty": arguments.length_penalty}
        search = Search(num_beams=arguments.num_beams, **penalty)
        write_best(voice, search, arguments.max_new_tokens, every=arguments.list_beams)
    elif arguments.next is not None:
        write_next(voice, sampling, arguments.next)
    else:
        most = MOST if arguments.max_new_tokens is None else arguments.max_new_tokens
        for seed in range(arguments.seed, arguments.seed + (arguments.n or 1)):
            if arguments.n is not None:
                say(f"--- seed {seed}")
            write(voice, max_new_tokens=most, sampling=sampling, seed=seed, reading=reading, draft=draft)


def prompts_of(given: list[str] | None, file: Path | None) -> list[str]:
    """Return the prompts on the command line and those in a file, one in each line."""
    if file is None:
        return given or [BREAK]
    from composer.train import read_text

    return [*(given or []), *(line for line in read_text(file).splitlines() if line.strip())]  # a blank file is refused


def check_options(arguments: argparse.Namespace) -> None:
    """Raise `Problem` if options of sampling and of beam search are combined."""
    if arguments.num_beams is None and arguments.length_penalty is not None:
        raise Problem("arco generate: --length-penalty is for beam search", "add --num-beams N")
    if arguments.num_beams is None and arguments.list_beams:
        raise Problem("arco generate: --list-beams is for beam search", "add --num-beams N")
    if arguments.strategies:
        others = (*SAMPLING, "n", "next", "num_beams", "draft")
        given = next((name for name in others if getattr(arguments, name) is not None), None)
        if given is not None:
            option = f"--{given.replace('_', '-')}"
            raise Problem(f"arco generate: --strategies has settings of its own, and {option} is another", "remove one of them")
    for name in ("n", "next"):
        if getattr(arguments, name) is not None and getattr(arguments, name) < 1:
            raise Problem(f"arco generate: --{name.replace('_', '-')} is {getattr(arguments, name)}; it must be at least 1")
    if arguments.batch_size is not None and arguments.batch_size < 1:
        raise Problem(f"arco generate: --batch-size is {arguments.batch_size}; it must be at least 1")
    if arguments.draft is None and arguments.draft_tokens is not None:
        raise Problem("arco generate: --draft-tokens is for a draft", "add --draft RUN")
    if arguments.draft is not None and (arguments.num_beams is not None or arguments.next is not None):
        other = "--next" if arguments.num_beams is None else "--num-beams"
        raise Problem(f"arco generate: a draft saves nothing with {other}", "remove one of them")
    uncompiled = next((name for name in ("draft", "num_beams", "next") if getattr(arguments, name) is not None), None)
    uncompiled = uncompiled or next((name for name in ("strategies", "prepack") if getattr(arguments, name)), None)
    if arguments.compile and uncompiled is not None:
        raise Problem(f"arco generate: --{uncompiled.replace('_', '-')} runs no compiled step", "remove it or --compile")
    if arguments.int8 and arguments.prepack:
        raise Problem("arco generate: --prepack keeps copies of matrices, and --int8 none of them whole", "remove one of them")
    if arguments.n is not None and arguments.next is not None:
        raise Problem("arco generate: --next prints no text, of which --n prints several", "remove one of them")
    if arguments.n is not None and arguments.temperature == 0:
        raise Problem(f"arco generate: at temperature 0 all {arguments.n} texts are the same", "remove --n or --temperature")
    used = next((name for name in (*SAMPLING, "n", "next") if getattr(arguments, name) is not None), None)
    if arguments.num_beams is not None and used is not None:
        option = f"--{used.replace('_', '-')}"
        raise Problem(f"arco generate: --num-beams searches for the likeliest text, and {option} samples", "remove one of them")


def write(
    voice: Voice, *, max_new_tokens: int, sampling: Sampling, seed: int, reading: Reading, draft: Draft | None = None
) -> None:
    """Print the text that a model samples, after the prompt if the model continues it.

    Beyond the length of training, the context window slides.
    """
    from composer.decode import stream

    request = request_of(voice, max_new_tokens, sampling)
    print(generated(voice.said, sys.stdout), end="")
    given = voice.encoder_inputs
    ids = stream(voice.model, voice.tokens, request, encoder_inputs=given, seed=seed, reading=reading, draft=draft)
    for piece in voice.as_it_comes(ids, after=voice.before):
        print(generated(piece, sys.stdout), end="", flush=True)
    print()


def request_of(voice: Voice, max_new_tokens: int, sampling: Sampling) -> Request:
    """Return how a prompt is continued: beyond the length of training, the context window slides."""
    from composer.decode import Request, Slide

    limit = Slide(voice.context) if not voice.encoder_inputs and voice.context is not None else None
    return Request(max_new_tokens=max_new_tokens, sampling=sampling, stop=voice.stop, limit=limit, vocabulary=voice.vocabulary)


def write_all(
    voices: Sequence[Voice],
    *,
    max_new_tokens: int,
    sampling: Sampling,
    seed: int,
    batch_size: int,
    reading: Reading,
    draft: Draft | None,
) -> None:
    """Print the texts that a model samples for several prompts, each as if it were alone, with its own random seed.

    Prompts are answered a batch at a time and printed in order. Sources that a model reads are in one batch if they are equally
    long, so that they need no padding.
    """
    import torch

    from composer.decode import generate

    for start in range(0, len(voices), batch_size):
        some = list(enumerate(voices[start : start + batch_size], start))
        alike: dict[tuple[object, ...], list[tuple[int, Voice]]] = {}
        for index, voice in some:
            shapes = tuple((name, tuple(value.shape)) for name, value in voice.encoder_inputs.items())
            alike.setdefault(shapes, []).append((index, voice))
        answers: dict[int, list[int]] = {}
        for group in alike.values():
            first = group[0][1]
            inputs = {name: torch.cat([voice.encoder_inputs[name] for _, voice in group]) for name in first.encoder_inputs}
            found = generate(
                first.model,
                [voice.tokens for _, voice in group],
                request_of(first, max_new_tokens, sampling),
                encoder_inputs=inputs,
                seed=[seed + index for index, _ in group],
                reading=reading,
                draft=draft,
            )
            answers |= {index: tokens for (index, _), tokens in zip(group, found, strict=True)}
        for index, voice in some:
            say(f"--- prompt {index + 1}")
            text = voice.decode([*voice.before, *answers[index]])[len(voice.decode(voice.before)) :]
            print(generated(voice.said + text, sys.stdout), flush=True)


def write_next(voice: Voice, sampling: Sampling, count: int) -> None:
    """Print a table of the likeliest next tokens: rank, probability, and text as in Python."""
    from composer.decode import Slide, next_token

    limit = Slide(voice.context) if not voice.encoder_inputs and voice.context is not None else None
    chances = next_token(
        voice.model, voice.tokens, sampling, encoder_inputs=voice.encoder_inputs, limit=limit, vocabulary=voice.vocabulary
    )
    order = chances.sort(descending=True, stable=True).indices[:count].tolist()
    width = len(str(len(order)))
    for rank, token in enumerate(order, 1):
        if chances[token] > 0:
            ending = "  (ends the text)" if token in voice.stop else ""
            say(f"{rank:>{width}}  {float(chances[token]):.4f}  {voice.decode([token])!r}{ending}")


def write_best(voice: Voice, search: Search, max_new_tokens: int | None, *, every: bool) -> None:
    """Print the likeliest text that beam search finds, or every text with its rank and score, in quotes as in Python."""
    found = beams(voice, search, max_new_tokens)
    if not every:
        print(generated(voice.said + found[0][1], sys.stdout))
        return
    width = len(str(len(found)))
    for rank, (score, text) in enumerate(found, 1):
        say(f"{rank:>{width}}  {score:>8.4f}  {text!r}")


def write_filled(voice: Voice, mask: int) -> None:
    """Print a text with the likeliest tokens in the places of hidden ones."""
    from composer.decode import fill

    found = fill(voice.model, voice.tokens, mask, vocabulary=voice.vocabulary)
    print(generated(voice.decode(found), sys.stdout))
