"""Transcripts of speech: those of a model, and how far they are from what was said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from composer.decode.alignments import likeliest_tokens
from composer.graph.alignments import Alignment, alignments
from composer.graph.dims import Dim, names
from composer.graph.types import TensorType
from composer.lower.model import Model
from composer.train.data.speech.recordings import read_recording
from composer.train.data.tokenizers import Tokenizer
from composer.train.device import device_of
from composer.train.errors import TrainingError
from composer.train.losses import Batch
from composer.train.settings import TrainSettings
from composer.train.techniques.precision import autocast
from composer.train.validation import unchanged


@dataclass(frozen=True)
class ErrorRates:
    """How far transcripts are from what was said, all together.

    Examples:
        >>> from composer.evaluate import error_rates
        >>> print(error_rates([("the cat sat", "the bat sat on")]))
        WER         66.67% of 3 words
        CER         36.36% of 11 characters
    """

    words: int
    """Number of words that were said."""
    word_edits: int
    """Words to insert, to delete and to substitute."""
    characters: int
    """Number of characters that were said, spaces included."""
    character_edits: int
    """Characters to insert, to delete and to substitute."""

    @property
    def wer(self) -> float:
        """The word error rate, which may be above 1."""
        return self.word_edits / max(self.words, 1)

    @property
    def cer(self) -> float:
        """The character error rate, which may be above 1."""
        return self.character_edits / max(self.characters, 1)

    def __str__(self) -> str:
        return f"WER         {self.wer:.2%} of {self.words:,} words\nCER         {self.cer:.2%} of {self.characters:,} characters"


def error_rates(pairs: Iterable[tuple[str, str]]) -> ErrorRates:
    """Return the word and the character error rate of transcripts.

    Args:
        pairs: What was said, and its transcript, for each recording.

    Examples:
        >>> from composer.evaluate import error_rates
        >>> error_rates([("the cat sat", "the bat sat on"), ("on the mat", "on the mat")]).wer
        0.3333333333333333
    """
    words = word_edits = characters = character_edits = 0
    for said, written in pairs:
        words, characters = words + len(said.split()), characters + len(said)
        word_edits += edit_distance(said.split(), written.split())
        character_edits += edit_distance(said, written)
    return ErrorRates(words, word_edits, characters, character_edits)


def edit_distance(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the least number of items to insert, delete and substitute that make one sequence the other (Levenshtein).

    Args:
        one: A sequence.
        other: Another one.

    Examples:
        >>> from composer.evaluate import edit_distance
        >>> edit_distance("kitten", "sitting")
        3
    """
    row = list(range(len(other) + 1))
    for number, item in enumerate(one, 1):
        before, row = row, [number]
        for place, against in enumerate(other, 1):
            row.append(min(before[place] + 1, row[-1] + 1, before[place - 1] + (item != against)))
    return row[-1]


@dataclass(frozen=True)
class Hearing:
    """Where a model tells what it hears."""

    alignment: Alignment
    output: str
    """The output with the logits of each frame."""
    sound: str
    """The input along which the frames follow each other."""
    axis: Dim
    """The size of this input's axis."""
    flags: str | None
    """The input that tells real samples from padding; None without one."""

    def tokens(self, output: object, batch: Batch) -> list[list[int]]:
        """Return the tokens that a model tells for each row of a batch."""
        samples = batch[self.sound]
        flags = batch.get(self.flags or "")
        lengths = [samples.shape[1]] * len(samples) if flags is None else flags.sum(1).tolist()
        frames = [self.alignment.frames_of(self.axis, length) for length in lengths]
        return likeliest_tokens(getattr(output, self.output), frames, self.alignment.blank)


def hearing_of(model: nn.Module) -> Hearing | None:
    """Return where a model tells what it hears; None for one that is not trained with CTC, or does not return its logits."""
    found = alignments(model.program) if isinstance(model, Model) else ()
    if not found or not isinstance(model, Model):
        return None
    pairs = zip(model.module.outputs, model.program.root.graph.outputs, strict=True)
    fields = {ref: field for (field, _), (_, ref) in pairs}
    for each in found:
        for name, type_ in model.program.inputs.items():
            along = isinstance(type_, TensorType) and type_.dtype == "float" and len(type_.sizes) > 1
            if along and each.scores in fields and names(type_.sizes[1]) == names(each.frames) != frozenset():
                flags = next((flag for flag in (f"{name}_valid", "valid") if flag in model.program.inputs), None)
                return Hearing(each, fields[each.scores], name, type_.sizes[1], flags)
    return None


@torch.no_grad()
def transcribe(
    model: nn.Module, tokenizer: Tokenizer, paths: Iterable[Path], *, sample_rate: int = TrainSettings.sample_rate
) -> Iterator[str]:
    """Yield what a model hears in each recording, one after the other: the most probable token of each frame, of which equal
    neighbors are one and blanks are none.

    Args:
        model: A compiled recipe with a loss of the type `ctc`.
        tokenizer: The tokenizer of the transcripts.
        paths: The paths of WAV files.
        sample_rate: How many samples a second must have.

    Raises:
        TrainingError: The model does not transcribe, or a file cannot be read or is too short.
    """
    hearing = hearing_of(model)
    if hearing is None:
        raise TrainingError(
            "the model does not transcribe", hint="a recipe does with a loss of the type ctc whose logits are an output"
        )
    device = device_of(model)
    for path in paths:
        samples = torch.from_numpy(read_recording(path, sample_rate))[None].to(device)
        if hearing.alignment.frames_of(hearing.axis, samples.shape[1]) < 1:
            raise TrainingError(f"{path} has {samples.shape[1]:,} samples, which are too few for one frame")
        batch = {hearing.sound: samples}
        with unchanged(model), autocast(device):
            (tokens,) = hearing.tokens(model(**batch), batch)
        yield tokenizer.decode(tokens)
