"""Models of run folders and of published folders, about to answer a prompt: its tokens, and how answers become text."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from composer.cli.arguments import Problem
from composer.cli.running import open_folder, rebuild
from composer.language.tasks import TASKS

if TYPE_CHECKING:
    from torch import nn

    from composer.decode import Draft, EncoderInputs
    from composer.published.opened import PublishedModel
    from composer.train import Trained


BREAK = "\n"
"""The prompt by default."""


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


def opened(arguments: argparse.Namespace) -> Callable[[str], Voice]:
    """Return the model of a run folder or of a published folder: what takes a prompt and is then about to answer it."""
    from composer.published.folder import is_published

    if not is_published(arguments.trained):
        from composer.train import open_run
        from composer.weights import to_int8

        build = rebuild(arguments.blocks, arguments.device)
        trained = open_run(arguments.trained, build=build, checkpoint=arguments.checkpoint)
        if arguments.int8:
            to_int8(trained.model)
        return partial(voice_of_run, trained)
    if arguments.checkpoint is not None:
        raise Problem("arco generate: --checkpoint is for run folders", "a published folder has one set of weights")
    return partial(voice_of_published, open_folder(arguments), chat=not arguments.no_chat)


def draft_of(arguments: argparse.Namespace, prompt: str, voice: Voice) -> Draft | None:
    """Return the model of `--draft`, if there is one, which drafts tokens for another.

    Raises:
        Problem: It has other tokens, or reads fewer of them.
    """
    from composer.decode import Draft

    if arguments.draft is None:
        return None
    named = argparse.Namespace(**{**vars(arguments), "trained": arguments.draft, "checkpoint": None})
    small = opened(named)(prompt)
    check_inputs(small)
    apart = small.tokens != voice.tokens or small.vocabulary != voice.vocabulary or small.stop != voice.stop
    if apart or any(small.decode([token]) != voice.decode([token]) for token in range(voice.vocabulary)):
        raise Problem("arco generate: --draft: its tokens are others than those of the model", "train both with one --tokenizer")
    if small.context is not None and (voice.context is None or small.context < voice.context):
        raise Problem(
            f"arco generate: --draft reads {small.context} tokens, and the model {voice.context or 'any number of them'}"
        )
    return Draft(small.model) if arguments.draft_tokens is None else Draft(small.model, arguments.draft_tokens)


def check_inputs(voice: Voice) -> None:
    """Raise `Problem` if a model that writes reads more than this command gives it."""
    from composer.decode import DecodeError
    from composer.decode.encoder_inputs import check_encoder_inputs

    if voice.hidden is not None:
        return
    try:
        check_encoder_inputs(voice.model, voice.encoder_inputs, 1)
    except DecodeError as error:
        hint = "arco generate gives a model a text alone; in Python, see composer.decode"
        raise Problem(f"arco: {error}", hint) from None


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
