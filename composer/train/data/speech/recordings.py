"""Recordings of sound as arrays of numbers: WAV files, mixed to one channel, of mean 0 and variance 1."""

from __future__ import annotations

import os
import struct
import wave
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from composer.train.errors import TrainingError
from composer.train.input_files import opened
from composer.train.settings import MAX_DATA_BYTES

Floats = npt.NDArray[np.float32]

LOUDNESS_EPS = 1e-7
"""Added to the variance of a recording before it is divided by it, as the feature extractor of wav2vec 2.0 does."""


def recording_length(path: Path, sample_rate: int) -> int:
    """Return the number of samples of a WAV file, from its header.

    Args:
        path: The path of the file.
        sample_rate: How many samples a second must have.

    Raises:
        TrainingError: The file cannot be read as PCM, is cut off, has another sample rate, or no samples.
    """
    with _opened(path, sample_rate) as file:
        return file.getnframes()


def read_recording(path: Path, sample_rate: int) -> Floats:
    """Return the samples of a WAV file of 8, 16, 24 or 32 bits, [T]: the mean of its channels, less its mean over time, and
    divided by its standard deviation.

    Args:
        path: The path of the file.
        sample_rate: How many samples a second must have.

    Raises:
        TrainingError: The file cannot be read as PCM, is cut off, has another sample rate, or no samples.

    Examples:
        >>> import wave
        >>> from pathlib import Path
        >>> from composer.train.data.speech.recordings import read_recording
        >>> with wave.open("click.wav", "wb") as file:
        ...     file.setparams((1, 2, 8000, 0, "NONE", ""))
        ...     file.writeframes(bytes([0, 0, 0, 64]))
        >>> read_recording(Path("click.wav"), 8000).round(3).tolist()
        [-1.0, 1.0]
    """
    with _opened(path, sample_rate) as file:
        width, channels, count = file.getsampwidth(), file.getnchannels(), file.getnframes()
        content = file.readframes(count)
    if len(content) != count * width * channels:
        raise TrainingError(f"{path} is cut off: its header promises {count:,} samples")
    values: npt.NDArray[Any]
    if width == 1:
        values = np.frombuffer(content, np.uint8).astype(np.float32) - 128
    elif width == 3:
        bytes_ = np.frombuffer(content, np.uint8).reshape(-1, 3)
        values = np.pad(bytes_, ((0, 0), (1, 0))).copy().view("<i4")[:, 0].astype(np.float32) / 2**8
    else:
        values = np.frombuffer(content, f"<i{width}").astype(np.float32)
    sound = values.reshape(count, channels).mean(1) / np.float32(2 ** (8 * width - 1))
    found: Floats = ((sound - sound.mean()) / np.sqrt(sound.var() + LOUDNESS_EPS)).astype(np.float32)
    return found


@contextmanager
def _opened(path: Path, sample_rate: int) -> Iterator[wave.Wave_read]:
    """Open a WAV file whose header tells the truth about its size."""
    convert = f"convert it: ffmpeg -i {path.name} -c:a pcm_s16le -ar {sample_rate} OTHER.wav"
    with opened(path) as raw:
        if (size := os.fstat(raw.fileno()).st_size) > MAX_DATA_BYTES:
            raise TrainingError(f"{path} has more than {MAX_DATA_BYTES:,} bytes", hint="cut it into several recordings")
        try:
            with wave.open(raw, "rb") as file:
                width, channels, count = file.getsampwidth(), file.getnchannels(), file.getnframes()
                if width not in (1, 2, 3, 4):
                    raise TrainingError(f"{path} has samples of {8 * width} bits, not of 8, 16, 24 or 32", hint=convert)
                if file.getframerate() != sample_rate:
                    raise TrainingError(
                        f"{path} has {file.getframerate():,} samples per second, and the model reads {sample_rate:,}",
                        hint=f"{convert}; or train with --sample-rate {file.getframerate()}",
                    )
                if count < 1:
                    raise TrainingError(f"{path} has no samples")
                if count * width * channels > size:
                    raise TrainingError(f"{path} is cut off: its header promises {count:,} samples")
                yield file
        except (wave.Error, EOFError, struct.error, ValueError, OverflowError, RuntimeError, ZeroDivisionError) as error:
            if isinstance(error, TrainingError):
                raise
            raise TrainingError(
                f"{path} cannot be read as a WAV file: {str(error)[:80] or 'it is too short'}", hint=convert
            ) from None
