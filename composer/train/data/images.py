"""Images as arrays of numbers: read, scaled, cut to the middle, and centered on zero."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from composer.cost.lengths import USUAL_LENGTHS
from composer.graph.dims import Dim
from composer.train.errors import TrainingError
from composer.train.input_files import refuse_kind

if TYPE_CHECKING:
    from PIL.Image import Image

Floats = npt.NDArray[np.float32]


def centered(pixels: npt.NDArray[Any]) -> Floats:
    """Return bytes from 0 to 255 as numbers from -1 to 1; other numbers stay as they are."""
    values = pixels.astype(np.float32)
    return values / 127.5 - 1 if pixels.dtype == np.uint8 else values


def file_shape(sizes: Sequence[Dim], paths: Iterable[Path]) -> tuple[int, int, int] | None:
    """Return channels, height and width at which a model reads image files; None if it leaves the channels open.

    A side that the model leaves open is the one that all files have, else 224 pixels, the usual one.

    Args:
        sizes: Those of the model's input, without the batch.
        paths: The files, none of which is opened where no side is open.

    Raises:
        TrainingError: Pillow is not installed, or a file is no image.
    """
    channels, *sides = sizes
    if not isinstance(channels, int):
        return None
    height, width = (side if isinstance(side, int) else None for side in sides)
    if height is None or width is None:
        own = _own_sides(paths)
        height, width = height or own[0], width or own[1]
        if sides[0] == sides[1]:
            height = width = min(height, width)
    return channels, height, width


def _own_sides(paths: Iterable[Path]) -> tuple[int, int]:
    """Return the height and the width of all files, or the usual ones where these differ."""
    found = {}
    for path in paths:
        with _opened(path) as image:
            found[image.height, image.width] = path
        if len(found) > 1:
            break
    return next(iter(found)) if len(found) == 1 else (USUAL_LENGTHS["height"], USUAL_LENGTHS["width"])


def read_image(path: Path, shape: tuple[int, int, int]) -> Floats:
    """Return an image file as numbers from -1 to 1, [channels, height, width].

    It is scaled so that it just covers the height and the width, and its middle is taken. One channel is gray, three are red,
    green and blue, four have the opacity too.

    Raises:
        TrainingError: Pillow is not installed, or the file is no image.
    """
    channels, height, width = shape
    modes = {1: "L", 3: "RGB", 4: "RGBA"}
    if channels not in modes:
        raise TrainingError(f"images have 1, 3 or 4 channels, and the model reads {channels}")
    with _opened(path) as image:
        picture = image.convert(modes[channels])
    from PIL.Image import Resampling

    scale = max(height / picture.height, width / picture.width)
    size = (max(width, round(picture.width * scale)), max(height, round(picture.height * scale)))
    picture = picture.resize(size, Resampling.BICUBIC) if size != picture.size else picture
    left, top = (size[0] - width) // 2, (size[1] - height) // 2
    pixels = np.asarray(picture, dtype=np.uint8).reshape(size[1], size[0], channels)
    cut = pixels[top : top + height, left : left + width].transpose(2, 0, 1)
    # With channels last in memory, gradients of narrow convolutions crash torch's CPU kernels.
    return centered(np.ascontiguousarray(cut))


@contextmanager
def _opened(path: Path) -> Iterator[Image]:
    """Open an image file, of which only the header is read until its pixels are asked for.

    Raises:
        TrainingError: Pillow is not installed, or the file is no image; also of what the body of the `with` finds wrong with it.
    """
    try:
        import PIL.Image
    except ImportError:
        raise TrainingError("reading images needs the package Pillow", hint='pip install "arco-composer[images]"') from None
    try:
        refuse_kind(path, path.stat().st_mode)
        with PIL.Image.open(path) as image:
            yield image
    except (OSError, ValueError, PIL.UnidentifiedImageError, PIL.Image.DecompressionBombError) as error:
        if isinstance(error, TrainingError):
            raise
        raise TrainingError(f"{path} cannot be read as an image: {str(error)[:80]}") from None
