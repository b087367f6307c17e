"""Whether the batches of a run fit into memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from composer.train.errors import TrainingError
from composer.train.settings import TrainSettings

BYTES_PER_TOKEN = 16
"""A token and its target, in int64."""


def memory_of(device: torch.device) -> int | None:
    """Return the bytes of memory of a GPU, or else of the machine; None where the system does not tell."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf
        return None


def check_batch(settings: TrainSettings, *, windows: bool) -> None:
    """Raise `TrainingError` if the numbers of a batch alone take more than all memory, with which a system may end the process
    after minutes.

    Args:
        settings: The settings of the run.
        windows: Whether each sequence has the length of the settings, rather than that of its row.
    """
    memory = memory_of(torch.device("cpu"))  # where batches are drawn
    length = settings.seq_len if windows else 1
    if memory is not None and settings.batch_size * length * BYTES_PER_TOKEN > memory:
        raise lack(settings)


@contextmanager
def enough_memory(settings: TrainSettings) -> Iterator[None]:
    """Turn a lack of memory, and an index that is too large, into an error that a user can fix.

    Raises:
        TrainingError: The memory of the machine or of the device does not suffice, or an index has no row in a table.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in str(error):
            raise lack(settings) from None
        raise
    except IndexError as error:
        place = "".join(f", {note}" for note in getattr(error, "__notes__", ()))
        raise TrainingError(
            f"a number in the data is beyond the last row of a table of the model{place}: {error}",
            hint="set the size of the table in the recipe, such as the number of categories",
        ) from None


def lack(settings: TrainSettings) -> TrainingError:
    """Return the error of batches that are too large for the memory."""
    return TrainingError(
        f"there is not enough memory for batches of {settings.batch_size} sequences of {settings.seq_len} tokens",
        hint="lower --batch-size or --seq-len; --grad-accum makes up for a smaller batch",
    )
