"""Models of run folders and of published folders, about to answer a prompt: its tokens, and how answers become text."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from composer.cli.arguments import Problem
from composer.cli.running import open_folder, rebuild
from composer.language.tasks import TASKS
from composer.printable import printable

if TYPE_CHECKING:
    from torch import nn

    from composer.decode import Draft, EncoderInputs
    from composer.graph.dims import Dim
    from composer.graph.types import TensorType
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
        given = given_inputs(trained, arguments.image, arguments.inputs or [])
        tell_defaults(trained, given)
        return partial(voice_of_run, trained, given=given)
    if arguments.checkpoint is not None:
        raise Problem("arco generate: --checkpoint is for run folders", "a published folder has one set of weights")
    for option, value in (("image", arguments.image), ("input", arguments.inputs)):
        if value is not None:
            raise Problem(
                f"arco generate: --{option} is for run folders", "in Python: composer.decode.generate with `encoder_inputs`"
            )
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


def voice_of_run(trained: Trained, prompt: str, given: EncoderInputs | None = None) -> Voice:
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
    given = given or {}
    if task not in TASKS or not TASKS[task].text:
        raise silent(task)
    if "features" in TASKS[task].inputs:
        raise Problem(
            f"arco: a model of the task {task} writes about a sound, which this command does not read",
            "in Python: composer.decode.generate with `encoder_inputs`",
        )
    if "image" in TASKS[task].inputs:
        if "image" not in given:
            raise Problem(f"arco: a model of the task {task} writes about an image", "name it: arco generate RUN --image FILE")
        if not isinstance(tokenizer, MarkedTokenizer) or not {START, END} <= {*tokenizer.marks}:
            raise Problem("arco: the tokenizer of the run has no tokens that begin and end a text", "train it with `arco train`")
        said = "" if prompt == BREAK else prompt
        return voice([tokenizer.mark(START), *tokenizer.encode(said)], given, frozenset({tokenizer.mark(END)}), said)
    if not isinstance(tokenizer, MarkedTokenizer) or TASKS[task].continues:
        stop = frozenset[int]()
        if isinstance(tokenizer, MarkedTokenizer) and END in tokenizer.marks:
            stop = frozenset({tokenizer.mark(END)})
        elif isinstance(tokenizer, PiecesTokenizer) and END in tokenizer.special:
            stop = frozenset({tokenizer.special[END]})
        if trained.settings.end_tokens != "none":  # a text begins where another one has ended
            prompt = "" if prompt == BREAK else prompt
            return voice([*stop, *tokenizer.encode(prompt)], given, stop, prompt)
        tokens = tokenizer.encode(prompt)
        name = prefix_input(trained.model.program) if isinstance(trained.model, Model) else None
        return voice(tokens, given if name is None else {name: torch.tensor([len(tokens)]), **given}, stop, prompt)
    start, end = tokenizer.mark(START), tokenizer.mark(END)
    source = torch.tensor([[*tokenizer.encode_marked(prompt), end]])
    return voice([start], {"source": source, **given}, frozenset({end}), "")


def given_inputs(trained: Trained, image: Path | None, inputs: Sequence[str]) -> EncoderInputs:
    """Return what `--image` and `--input` give a trained model, by the names of its inputs.

    Raises:
        Problem: The model has no such input, or the value is none of its type.
        TrainingError: The image cannot be read.
    """
    import torch

    from composer.train.data.images import file_shape, read_image

    found: dict[str, torch.Tensor] = {}
    single = single_inputs(trained)
    for text in inputs:
        name, _, value = text.partition("=")
        if name not in single:
            known = ", ".join(single) or "none"
            raise Problem(
                f"arco generate: --input {text}: the model reads no number for a whole text of this name", f"it reads {known}"
            )
        try:
            read: float = {"int": int, "float": float, "bool": int}[single[name].dtype](value)
        except ValueError:
            raise Problem(f"arco generate: --input {text}: {value!r} is no {single[name].dtype}") from None
        dtype = {"int": torch.int64, "float": torch.float32, "bool": torch.bool}[single[name].dtype]
        found[name] = torch.tensor([read]).to(dtype)
    if image is not None:
        sizes = image_sizes(trained)
        shape = None if sizes is None else file_shape(sizes, [image])
        if shape is None:
            raise Problem(
                "arco generate: --image: the model reads no image of a fixed number of channels",
                "it is for models of image_to_text",
            )
        found["image"] = torch.from_numpy(read_image(image, shape))[None]
    return found


def image_sizes(trained: Trained) -> tuple[Dim, ...] | None:
    """Return the sizes of the images about which a model writes: channels, height and width; None if it writes about none."""
    from composer.lower.model import Model
    from composer.train import task_of

    if task_of(trained.model) != "image_to_text" or not isinstance(trained.model, Model):
        return None
    return trained.model.program.inputs["image"].sizes[1:]


def single_inputs(trained: Trained) -> Mapping[str, TensorType]:
    """Return the inputs of a model that have a number for each text, without the length of a prompt."""
    from composer.lower.model import Model
    from composer.train.data.prefixes import prefix_input

    if not isinstance(trained.model, Model):
        return {}
    program = trained.model.program
    prefix = prefix_input(program)
    return {name: type for name, type in program.inputs.items() if len(type.axes) == 1 and name != prefix}


def tell_defaults(trained: Trained, given: EncoderInputs) -> None:
    """Print which inputs have their default values, for the model may have learned from others too."""
    from composer.lower.model import Model

    if isinstance(trained.model, Model):
        defaults = trained.model.program.defaults
        for name in single_inputs(trained):
            if name in defaults and name not in given:
                told = f"`{name}` is {defaults[name]}, its default; --input {name}=N gives another"
                print(printable(told), file=sys.stderr)


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
    generating = ", ".join(name for name, known in TASKS.items() if known.text and "features" not in known.inputs)
    hint = f"tasks of which this command writes texts: {generating}"
    if task == "masked_lm":
        hint += "; this one fills in `<mask>` in the prompt"
    elif task == "encoder":
        hint += "; `arco embed` gives the vectors of texts"
    elif task in TASKS and TASKS[task].classifies:
        hint = (
            "in Python, composer.train.open_run(RUN) has the model, which gives a score for each class, the tokenizer, and "
            "in `labels` the names of the classes; `arco evaluate RUN` counts right answers"
        )
    return Problem(f"arco: a model of the task {task or 'none'} generates no text", hint)
