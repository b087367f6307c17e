"""Images as arrays of numbers: read, scaled, cut to the middle, and centered on zero."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from composer.train.errors import TrainingError
from composer.train.input_files import refuse_kind

Floats = npt.NDArray[np.float32]


def centered(pixels: npt.NDArray[Any]) -> Floats:
    """Return bytes from 0 to 255 as numbers from -1 to 1; other numbers stay as they are."""
    values = pixels.astype(np.float32)
    return values / 127.5 - 1 if pixels.dtype == np.uint8 else values


def read_image(path: Path, shape: tuple[int, int, int]) -> Floats:
    """Return an image file as numbers from -1 to 1, [channels, height, width].

    It is scaled so that it just covers the height and the width, and its middle is taken. One channel is gray, three are red,
    green and blue, four have the opacity too.

    Raises:
        TrainingError: Pillow is not installed, or the file is no image.
    """
    channels, height, width = shape
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise TrainingError("reading images needs the package Pillow", hint='pip install "arco-composer[images]"') from None
    modes = {1: "L", 3: "RGB", 4: "RGBA"}
    if channels not in modes:
        raise TrainingError(f"images have 1, 3 or 4 channels, and the model reads {channels}")
    try:
        refuse_kind(path, path.stat().st_mode)
        with Image.open(path) as image:
            picture = image.convert(modes[channels])
    except (OSError, ValueError, UnidentifiedImageError, Image.DecompressionBombError) as error:
        if isinstance(error, TrainingError):
            raise
        raise TrainingError(f"{path} cannot be read as an image: {str(error)[:80]}") from None
    scale = max(height / picture.height, width / picture.width)
    size = (max(width, round(picture.width * scale)), max(height, round(picture.height * scale)))
    picture = picture.resize(size, Image.Resampling.BICUBIC) if size != picture.size else picture
    left, top = (size[0] - width) // 2, (size[1] - height) // 2
    pixels = np.asarray(picture, dtype=np.uint8).reshape(size[1], size[0], channels)
    return centered(pixels[top : top + height, left : left + width].transpose(2, 0, 1))
