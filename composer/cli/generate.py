"""`arco generate`: generate text with a trained or a published model."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from composer.cli.arguments import Parser, Problem, StoreOnce, add_blocks, integer, number
from composer.cli.output import generated, say
from composer.cli.running import add_device, open_folder, rebuild, refusals
from composer.language.tasks import TASKS

if TYPE_CHECKING:
    from torch import nn

    from composer.decode import EncoderInputs, Sampling, Search
    from composer.published.opened import PublishedModel
    from composer.train import Trained


BREAK = "\n"
"""The prompt by default."""
MOST = 400
"""New tokens by default."""
SAMPLING = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty", "no_repeat_ngram")
"""Options of sampling alone."""


def declare(parser: Parser, name: str) -> None:
    """Declare a run folder, a prompt, and how tokens are chosen."""
    parser.add_argument("trained", metavar="RUN", type=Path, help="Run folder that `arco train` wrote, or a published folder")
    parser.add_argument(
        "--prompt",
        metavar="TEXT",
        action=StoreOnce,
        help="Text to continue, to translate, or to fill in at <mask>, or at <0>, <1> and so on (default: a line break; "
        "nothing, if the model learned with end tokens)",
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
    sampling.add_argument("--seed", metavar="N", type=integer, default=0, help="Random seed")
    sampling.add_argument(
        "--n", metavar="N", type=integer, help="Generate N texts, with the random seeds from --seed on (default: 1)"
    )
    sampling.add_argument(
        "--next", metavar="N", type=integer, help="Print the N likeliest next tokens with their probabilities, and no text"
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
    parser.add_argument(
        "--prepack",
        action="store_true",
        help="On a CPU, keep copies of matrices in the layout that is faster for single tokens; takes up to their memory again",
    )
    add_device(parser)
    add_blocks(parser)
    parser.examples = [
        ("Continue a text", 'arco generate runs/gpt_mini --prompt "To be"'),
        ("Sample likelier text", 'arco generate runs/gpt_mini --prompt "To be" --temperature 0.8 --top-k 50'),
        ("Generate three texts without repetition", "arco generate runs/gpt_mini --n 3 --no-repeat-ngram 4"),
        ("Show what may come next", 'arco generate runs/gpt_mini --prompt "To be" --next 5'),
        ("Ask a published model", 'arco generate SmolLM2-135M-Instruct --prompt "What is the capital of France?"'),
        ("Fill in hidden words", 'arco generate bert-base-uncased --prompt "Paris is the <mask> of France."'),
        ("Find the likeliest continuation", 'arco generate runs/gpt_mini --prompt "To be" --num-beams 4 --max-new-tokens 100'),
    ]
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the continuation of the prompt: token by token when sampling, all at once after a beam search."""
    from composer.decode import DecodeError, Sampling, Search, prepacked
    from composer.decode.encoder_inputs import check_encoder_inputs

    prompt = BREAK if arguments.prompt is None else arguments.prompt
    check_options(arguments)
    with refusals():
        given = {name: value for name in SAMPLING if (value := getattr(arguments, name)) is not None}
        sampling = Sampling(**given)
        voice = opened(arguments, prompt)
        if voice.hidden is not None:
            write_filled(voice, voice.hidden)
            return 0
        try:
            check_encoder_inputs(voice.model, voice.encoder_inputs, 1)
        except DecodeError as error:
            hint = "arco generate gives a model a text alone; in Python, see composer.decode"
            raise Problem(f"arco: {error}", hint) from None
        with prepacked(voice.model, arguments.num_beams or 1) if arguments.prepack else nullcontext():
            if arguments.num_beams is not None:
                penalty = {} if arguments.length_penalty is None else {"length_penalty": arguments.length_penalty}
                write_best(voice, Search(num_beams=arguments.num_beams, **penalty), arguments.max_new_tokens)
            elif arguments.next is not None:
                write_next(voice, sampling, arguments.next)
            else:
                most = MOST if arguments.max_new_tokens is None else arguments.max_new_tokens
                for seed in range(arguments.seed, arguments.seed + (arguments.n or 1)):
                    if arguments.n is not None:
                        say(f"--- seed {seed}")
                    write(voice, max_new_tokens=most, sampling=sampling, seed=seed)
    return 0


def opened(arguments: argparse.Namespace, prompt: str) -> Voice:
    """Return the model of a run folder or of a published folder, about to answer a prompt."""
    from composer.published.folder import is_published

    if not is_published(arguments.trained):
        from composer.train import open_run

        build = rebuild(arguments.blocks, arguments.device)
        return voice_of_run(open_run(arguments.trained, build=build, checkpoint=arguments.checkpoint), prompt)
    if arguments.checkpoint is not None:
        raise Problem("arco generate: --checkpoint is for run folders", "a published folder has one set of weights")
    return voice_of_published(open_folder(arguments), prompt, chat=not arguments.no_chat)


def check_options(arguments: argparse.Namespace) -> None:
    """Raise `Problem` if options of sampling and of beam search are combined."""
    if arguments.num_beams is None and arguments.length_penalty is not None:
        raise Problem("arco generate: --length-penalty is for beam search", "add --num-beams N")
    for name in ("n", "next"):
        if getattr(arguments, name) is not None and getattr(arguments, name) < 1:
            raise Problem(f"arco generate: --{name.replace('_', '-')} is {getattr(arguments, name)}; it must be at least 1")
    if arguments.n is not None and arguments.next is not None:
        raise Problem("arco generate: --next prints no text, of which --n prints several", "remove one of them")
    if arguments.n is not None and arguments.temperature == 0:
        raise Problem(f"arco generate: at temperature 0 all {arguments.n} texts are the same", "remove --n or --temperature")
    used = next((name for name in (*SAMPLING, "n", "next") if getattr(arguments, name) is not None), None)
    if arguments.num_beams is not None and used is not None:
        option = f"--{used.replace('_', '-')}"
        raise Problem(f"arco generate: --num-beams searches for the likeliest text, and {option} samples", "remove one of them")


@dataclass(frozen=True)
class Voice:
    """A model about to answer a prompt."""

    model: nn.Module
    tokens: list[int]
    """The first tokens of the generated text, or those of a text to fill in."""
    encoder_inputs: EncoderInputs
    stop: frozenset[int]
    said: str
    """What is printed before the generated text."""
    vocabulary: int
    context: int | None
    """The number of tokens that it reads at most."""
    decode: Callable[[list[int]], str]
    as_it_comes: Callable[..., Iterator[str]]
    """Takes tokens, and those after which they stand."""
    hidden: int | None = None
    """The token that stands for hidden ones, which are filled in."""

    @property
    def before(self) -> list[int]:
        """The tokens of what is printed before the generated text."""
        return self.tokens if self.said else []


def write(voice: Voice, *, max_new_tokens: int, sampling: Sampling, seed: int) -> None:
    """Print the text that a model samples, after the prompt if the model continues it.

    Beyond the length of training, the context window slides.
    """
    from composer.decode import Request, Slide, cached, stream

    request = Request(max_new_tokens=max_new_tokens, sampling=sampling, stop=voice.stop, vocabulary=voice.vocabulary)
    print(generated(voice.said, sys.stdout), end="")
    if not voice.encoder_inputs and voice.context is not None:
        request = replace(request, limit=Slide(voice.context))
    ids = stream(voice.model, voice.tokens, request, encoder_inputs=voice.encoder_inputs, seed=seed, reading=cached)
    for piece in voice.as_it_comes(ids, after=voice.before):
        print(generated(piece, sys.stdout), end="", flush=True)
    print()


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


def write_best(voice: Voice, search: Search, max_new_tokens: int | None) -> None:
    """Print the likeliest text that beam search finds, of up to `max_new_tokens` or as many as the context has room for."""
    from composer.decode import Refuse, beam_search, cached

    limited = not voice.encoder_inputs and voice.context is not None
    room = min(MOST, max(1, (voice.context or MOST) - len(voice.tokens))) if limited else MOST
    most = room if max_new_tokens is None else max_new_tokens
    search = replace(search, stop=voice.stop, vocabulary=voice.vocabulary, max_new_tokens=most)
    if not voice.encoder_inputs and voice.context is not None:
        search = replace(search, limit=Refuse(voice.context))
    ((best, *_),) = beam_search(voice.model, [voice.tokens], search, encoder_inputs=voice.encoder_inputs, reading=cached)
    found = voice.decode([*voice.before, *best.tokens])[len(voice.decode(voice.before)) :]
    print(generated(voice.said + found, sys.stdout))


def write_filled(voice: Voice, mask: int) -> None:
    """Print a text with the likeliest tokens in the places of hidden ones."""
    from composer.decode import fill

    found = fill(voice.model, voice.tokens, mask, vocabulary=voice.vocabulary)
    print(generated(voice.decode(found), sys.stdout))


def voice_of_run(trained: Trained, prompt: str) -> Voice:
    """Return a trained model with a prompt as the tokens that a decoder continues, or as the source that an encoder reads.

    Raises:
        Problem: The model does not generate text.
    """
    import torch

    from composer.lower.model import Model
    from composer.train import MarkedTokenizer, task_of, text_as_it_comes
    from composer.train.data.objectives import END, MASK, START
    from composer.train.data.prefixes import prefix_input
    from composer.train.data.tokenizers import PiecesTokenizer

    task, tokenizer = task_of(trained.model) or "", trained.tokenizer

    def voice(
        tokens: list[int], encoder_inputs: EncoderInputs, stop: frozenset[int], said: str, hidden: int | None = None
    ) -> Voice:
        context = None if hidden is not None else trained.settings.seq_len
        vocabulary = tokenizer.size
        if hidden is not None and isinstance(tokenizer, MarkedTokenizer):
            vocabulary = tokenizer.text.size  # marks that are behind it are never an answer
        pieces = partial(text_as_it_comes, tokenizer)
        return Voice(trained.model, tokens, encoder_inputs, stop, said, vocabulary, context, tokenizer.decode, pieces, hidden)

    if task == "masked_lm" and isinstance(tokenizer, MarkedTokenizer) and MASK in prompt:
        return voice(tokenizer.encode_marked(prompt), {}, frozenset(), "", tokenizer.mark(MASK))
    if task not in TASKS or not TASKS[task].text:
        raise silent(task)
    if TASKS[task].text == "tokens" and not TASKS[task].continues:
        raise Problem(
            f"arco: a model of the task {task} writes about more than a text, which this command does not read",
            "in Python: composer.decode.generate with `encoder_inputs`",
        )
    if not isinstance(tokenizer, MarkedTokenizer) or TASKS[task].continues:
        stop = frozenset[int]()
        if isinstance(tokenizer, MarkedTokenizer) and END in tokenizer.marks:
            stop = frozenset({tokenizer.mark(END)})
        elif isinstance(tokenizer, PiecesTokenizer) and END in tokenizer.special:
            stop = frozenset({tokenizer.special[END]})
        if trained.settings.end_tokens != "none":  # a text begins where another one has ended
            prompt = "" if prompt == BREAK else prompt
            return voice([*stop, *tokenizer.encode(prompt)], {}, stop, prompt)
        tokens = tokenizer.encode(prompt)
        name = prefix_input(trained.model.program) if isinstance(trained.model, Model) else None
        return voice(tokens, {} if name is None else {name: torch.tensor([len(tokens)])}, stop, prompt)
    start, end = tokenizer.mark(START), tokenizer.mark(END)
    return voice([start], {"source": torch.tensor([[*tokenizer.encode_marked(prompt), end]])}, frozenset({end}), "")


def voice_of_published(published: PublishedModel, prompt: str, *, chat: bool) -> Voice:
    """Return a published model with a prompt, as `voice_of_run` does; one with a chat template answers what a user says.

    Raises:
        Problem: The model does not generate text.
    """
    import torch

    tokenizer, task = published.tokenizer, published.model.recipe.task or ""

    def voice(tokens: list[int], encoder_inputs: EncoderInputs, said: str, hidden: int | None = None) -> Voice:
        return Voice(
            published.model, tokens, encoder_inputs, tokenizer.stop, said, tokenizer.size, published.context, tokenizer.decode,
            tokenizer.as_it_comes, hidden,
        )  # fmt: skip

    if task == "masked_lm" and (mask := tokenizer.id_of("mask_token")) is not None:
        tokens = tokenizer.encode(prompt.replace("<mask>", tokenizer.special["mask_token"]))
        if mask in tokens:
            return voice(tokens, {}, "", mask)
    if task not in TASKS or TASKS[task].text not in ("tokens", "target") or "image" in TASKS[task].inputs:
        raise silent(task)
    if TASKS[task].text == "target":
        return voice([published.start], {"source": torch.tensor([tokenizer.encode(prompt)])}, "")
    if chat and tokenizer.chat_template is not None:
        return voice(tokenizer.encode(tokenizer.chat(prompt), special=False), {}, "")
    return voice(tokenizer.encode(prompt), {}, prompt)


def silent(task: str) -> Problem:
    """Return the problem of a model that generates no text."""
    generating = ", ".join(name for name, known in TASKS.items() if known.text)
    hint = f"tasks that generate text: {generating}"
    if task == "masked_lm":
        hint += "; this one fills in `<mask>` in the prompt"
    elif task == "encoder":
        hint += "; `arco embed` gives the vectors of texts"
    return Problem(f"arco: a model of the task {task or 'none'} generates no text", hint)
