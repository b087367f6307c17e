"""Recordings and transcripts: WAV files as numbers, what is refused, and a model that learns to write down tones."""

from __future__ import annotations

import functools
import itertools
import math
import random
import struct
import wave
from pathlib import Path

import numpy as np
import pytest
import torch

import composer
from composer.evaluate import TableEvaluation, edit_distance, error_rates, evaluate, transcribe
from composer.graph.alignments import frames_needed
from composer.train import MarkedTokenizer, TrainingError, TrainSettings, characters_of, examples_of, open_run, read_table, train
from composer.train.data.marks import BLANK
from composer.train.data.speech.recordings import read_recording, recording_length

RATE = 4000
PITCHES = {"a": 300, "b": 500, "c": 800, "d": 1200, "e": 1700}
"""The frequency of each letter, in Hz."""
TONES = """
recipe: tones
params: {vocab: 6, dim: 32}
inputs: {samples: "float[batch, time]", valid: "bool[batch, time]?", letters: "int[batch, length]?"}
graph:
  column: {type: new_axis, name: channel, in: samples}
  conv: {type: conv1d, out: dim, kernel_size: 64, stride: 32, padding: 0}
  gelu: gelu
  conv_2: {type: conv1d, out: dim, kernel_size: 8, stride: 4, padding: 0}
  gelu_2: gelu
  states: {type: gru, hidden: dim}
  logits: {type: linear, out: vocab}
  places: {type: arange, axis: time, in: {x: samples, valid: valid}}
  last: {type: select, axis: time, index: -1}
  frames: {compute: ((last + 1 - 64) // 32 + 1 - 8) // 4 + 1}
  frame: {type: arange, axis: time, in: conv_2}
  heard: {compute: frame < frames, axes: {frame: b t, frames: b}}
outputs: {logits: logits}
losses:
  ctc: {type: ctc, in: logits, target: letters, valid: heard, blank: vocab - 1}
"""


def write_wav(path: Path, samples: list[float], rate: int = RATE) -> None:
    """Write samples from -1 to 1 as 16 bits."""
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, rate, 0, "NONE", ""))
        file.writeframes(b"".join(struct.pack("<h", round(32767 * sample)) for sample in samples))


def write_tones(folder: Path, texts: list[str], chance: random.Random) -> Path:
    """Write a recording of each text, and a table of them."""
    for number, text in enumerate(texts):
        samples: list[float] = []
        for letter in text:
            samples += [0.5 * math.sin(2 * math.pi * PITCHES[letter] * i / RATE) for i in range(chance.randint(300, 400))]
            samples += [0.0] * chance.randint(150, 250)
        write_wav(folder / f"{number}.wav", [sample + 0.02 * chance.gauss(0, 1) for sample in samples])
    table = folder / "tones.csv"
    table.write_text("samples,letters\n" + "".join(f"{number}.wav,{text}\n" for number, text in enumerate(texts)))
    return table


def settings(**changes: object) -> TrainSettings:
    return TrainSettings(**{"batch_size": 16, "sample_rate": RATE, "seq_len": 16, "log_every": 100, **changes})  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_model_learns_to_write_down_tones(tmp_path: Path) -> None:
    """The held-out rows too, in batches and one by one; a row whose frames are too few is left out, and said where it stands."""
    chance = random.Random(0)
    texts = ["".join(chance.choices("abcde", k=chance.randint(2, 4))) for _ in range(120)]
    path = write_tones(tmp_path, texts, chance)
    write_wav(tmp_path / "short.wav", [0.1, -0.1] * 300)
    with path.open("a") as file:
        file.write("short.wav,aab\n")  # 600 samples are three frames, and it needs four
    table, tokenizer = read_table([path]), MarkedTokenizer(characters_of("abcde"), (BLANK,))
    recipe = composer.load(TONES)
    chosen = settings(steps=140, learning_rate=0.01, warmup_steps=5, weight_decay=0.0)
    data = examples_of(table, recipe.program, tokenizer, seq_len=16, sample_rate=RATE)
    assert data.too_short == (f"{path}, line 122",)
    assert (data.left_out, len(data.train) + len(data.validation)) == (0, 120)
    train(recipe.compile(seed=0), tokenizer, data, chosen, tmp_path / "run", recipe=recipe.text)
    found = evaluate(tmp_path / "run")
    assert isinstance(found, TableEvaluation)
    assert found.transcripts is not None
    assert found.transcripts.cer < 0.2
    assert found.transcripts.words == 12
    trained = open_run(tmp_path / "run")
    held_out = data.validation.tolist()
    written = transcribe(trained.model, trained.tokenizer, [tmp_path / f"{row}.wav" for row in held_out], sample_rate=RATE)
    assert error_rates(zip([texts[row] for row in held_out], written, strict=True)) == found.transcripts


def test_the_tokens_of_a_blank_that_is_a_letter_are_refused(tmp_path: Path) -> None:
    """Before anything is trained, with the number to write."""
    path = write_tones(tmp_path, ["ab"] * 10, random.Random(0))
    program = composer.load(TONES.replace("blank: vocab - 1", "blank: 2")).program
    tokenizer = MarkedTokenizer(characters_of("abcde"), (BLANK,))
    with pytest.raises(TrainingError, match="the blank of the loss is class 2, which is 'c'") as refused:
        examples_of(read_table([path]), program, tokenizer, seq_len=16, sample_rate=RATE)
    assert "`blank: 5`" in refused.value.hint


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_samples_of_every_width_are_one_channel_of_mean_0_and_variance_1(width: int, tmp_path: Path) -> None:
    """The mean of both channels, each sample spelled out byte by byte."""
    values = np.array([[-90, 70], [3, -5], [100, 120], [0, 1]])
    path = tmp_path / "two.wav"
    with wave.open(str(path), "wb") as file:
        file.setparams((2, width, 8000, 0, "NONE", ""))
        scaled = (values * 256 ** (width - 1)).ravel().tolist()
        signed = width > 1
        file.writeframes(b"".join((one + 128 * (not signed)).to_bytes(width, "little", signed=signed) for one in scaled))
    mixed = values.mean(1) / 128
    expected = (mixed - mixed.mean()) / np.sqrt(mixed.var() + 1e-7)
    assert recording_length(path, 8000) == 4
    np.testing.assert_allclose(read_recording(path, 8000), expected, atol=1e-6)


def test_a_file_that_is_no_whole_recording_is_refused(tmp_path: Path) -> None:
    """Cut at any place, changed at any place of its header, empty, of another rate, or no file at all."""
    path, other = tmp_path / "whole.wav", tmp_path / "other.wav"
    write_wav(path, [0.1, 0.2, -0.3, 0.4])
    whole = path.read_bytes()
    for end in range(len(whole)):
        other.write_bytes(whole[:end])
        with pytest.raises(TrainingError, match=r"other\.wav"):
            read_recording(other, RATE)
    for place, value in itertools.product(range(44), (0, 1, 127, 255)):
        other.write_bytes(whole[:place] + bytes([value]) + whole[place + 1 :])
        try:
            assert np.isfinite(read_recording(other, RATE)).all()
        except TrainingError as refused:
            assert "other.wav" in str(refused)
    with pytest.raises(TrainingError, match="has 4,000 samples per second, and the model reads 16,000"):
        recording_length(path, 16000)
    with pytest.raises(TrainingError, match="folder"):
        recording_length(tmp_path, RATE)


def test_edits_are_the_fewest_of_all_ways() -> None:
    """Against the definition, case by case; and of several recordings all words together."""

    @functools.cache
    def fewest(one: str, other: str) -> int:
        if not one or not other:
            return len(one) + len(other)
        kept = fewest(one[1:], other[1:]) + (one[0] != other[0])
        return min(kept, fewest(one[1:], other) + 1, fewest(one, other[1:]) + 1)

    chance = random.Random(0)
    for _ in range(50):
        one, other = ("".join(chance.choices("abc", k=chance.randint(0, 6))) for _ in range(2))
        assert edit_distance(one, other) == fewest(one, other)
    found = error_rates([("a b c", "a c"), ("d", "e f")])
    assert (found.wer, found.cer) == (3 / 4, 5 / 6)


def test_as_many_frames_are_needed_as_the_loss_says() -> None:
    """With one frame less, no alignment is left."""
    for tokens in ([1], [1, 2], [1, 1], [2, 2, 2, 1]):
        needed = frames_needed(tokens)
        for frames in (needed - 1, needed):
            logs = torch.zeros(frames, 1, 3).log_softmax(-1)
            lengths = torch.tensor([frames]), torch.tensor([len(tokens)])
            nats = torch.nn.functional.ctc_loss(logs, torch.tensor([tokens]), *lengths) if frames else torch.tensor(math.inf)
            assert bool(nats.isinf()) == (frames < needed)
