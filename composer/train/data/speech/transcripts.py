"""Recordings and their transcripts as entries of a batch, for losses that align the one with the other (CTC)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from composer.graph.alignments import Alignment, alignments, frames_needed
from composer.graph.dims import Dim, names
from composer.graph.typed import TypedProgram
from composer.train.data.marks import BLANK
from composer.train.data.speech.recordings import read_recording
from composer.train.data.tokenizers import MarkedTokenizer, PiecesTokenizer, Tokenizer
from composer.train.errors import TrainingError

Lengths = Mapping[Dim, Sequence[int]]
"""The length of an axis of the inputs in each row."""


def is_transcript(program: TypedProgram, name: str) -> bool:
    """Return whether an input of a model is what its losses align with frames.

    Args:
        program: The model.
        name: The name of the input.
    """
    return any(each.target == name for each in alignments(program))


def names_recordings(cells: Sequence[Any] | npt.NDArray[Any]) -> bool:
    """Return whether the values of a column are paths of files rather than numbers."""
    if isinstance(cells, np.ndarray) or not isinstance(first := cells[0], str):
        return False
    try:
        float(first)
    except ValueError:
        return bool(first.strip())
    return False


def recordings(paths: Sequence[Path], rows: Sequence[int], sample_rate: int) -> tuple[Tensor, Tensor]:
    """Return the recordings of some rows, [B, T] with zeros behind the shorter ones, and which samples are real."""
    sounds = [read_recording(paths[row], sample_rate) for row in rows]
    samples = torch.zeros(len(sounds), max(map(len, sounds)))
    for place, sound in enumerate(sounds):
        samples[place, : len(sound)] = torch.from_numpy(sound)
    lengths = torch.tensor([len(sound) for sound in sounds])
    return samples, torch.arange(samples.shape[1]) < lengths[:, None]


def check_blank(alignment: Alignment, tokenizer: Tokenizer) -> None:
    """Raise `TrainingError` if the blank of a loss is not that of the tokenizer."""
    if not isinstance(tokenizer, MarkedTokenizer) or BLANK not in (*tokenizer.marks, *tokenizer.known):
        raise TrainingError(
            f"the tokenizer has no token {BLANK}", hint=f'wrap it: composer.train.MarkedTokenizer(tokenizer, ("{BLANK}",))'
        )
    if alignment.blank != (own := tokenizer.mark(BLANK)):
        read = tokenizer.decode([alignment.blank]) if alignment.blank < tokenizer.size else "no token"
        raise TrainingError(
            f"the blank of the loss is class {alignment.blank}, which is {read!r} to the tokenizer, whose blank is {own}",
            hint=f"write `blank: {own}` in the loss, or `blank: blank` and a param `blank`, which `arco train` sets",
        )


def check_known(tokens: Sequence[int], tokenizer: Tokenizer, text: str) -> None:
    """Raise `TrainingError` if a published tokenizer reads a character of a text as its token for all that it does not know."""
    plain = tokenizer.text if isinstance(tokenizer, MarkedTokenizer) else tokenizer
    if not isinstance(plain, PiecesTokenizer) or (word := plain.words.get("unk_token")) is None:
        return
    if (unknown := plain.pieces.token_to_id(word)) in tokens:
        character = next((each for each in text if unknown in plain.encode(each)), text)
        raise TrainingError(
            f"the tokenizer has no token for {character!r:.40}", hint="write transcripts in its letters, which may be upper case"
        )


def too_short(program: TypedProgram, transcripts: Mapping[str, Sequence[list[int]]], lengths: Lengths) -> list[bool]:
    """Return for each row whether it has fewer frames than one of its transcripts needs.

    Args:
        program: The model.
        transcripts: The tokens of each row, by the name of the input.
        lengths: The lengths of axes in each row.
    """
    found = [False] * len(next(iter(transcripts.values()), ()))
    for each in alignments(program):
        known = [axis for axis in lengths if names(axis) and names(axis) == names(each.frames)]
        for axis in known[:1]:
            if each.target in transcripts:
                pairs = zip(transcripts[each.target], lengths[axis], strict=True)
                short = [each.frames_of(axis, length) < frames_needed(tokens) for tokens, length in pairs]
                found = [a or b for a, b in zip(found, short, strict=True)]
    return found
