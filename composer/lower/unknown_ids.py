"""An id without a row in an embedding table, said in the words of the recipe once torch has refused it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from composer.lower.model_inputs import InputError


class UnknownIdError(InputError, IndexError):
    """A call of a model gives an id that an embedding has no row for; the message names the input, the id and the node."""


def unknown_id(error: BaseException, given: Mapping[str, Any], node: str) -> UnknownIdError | None:
    """Return the error of a call that was refused for an id beyond a table; None if it was refused for something else.

    Nothing is looked at before torch refuses, so that a call without mistakes costs nothing. A GPU refuses in its own words, and
    later.

    Args:
        error: The error of the call.
        given: The inputs of the call by name.
        node: Where the node is that was running, such as `embed (gpt2.yaml:20)`.
    """
    looked_up = next(_lookups(error.__traceback__), None) if isinstance(error, IndexError) else None
    if looked_up is None:
        return None
    ids, rows = looked_up
    wrong = ((ids < 0) | (ids >= rows)).nonzero()
    if not len(wrong):
        return None
    place = wrong[0].tolist()
    what = f"{_named(ids, given)} has the id {int(ids[tuple(place)])} at {place}"
    several = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
    return UnknownIdError(f"{what}{several}, and {node or 'an embedding'} has a vocabulary of {rows}: ids from 0 to {rows - 1}")


def _lookups(traceback: TracebackType | None) -> Iterator[tuple[Tensor, int]]:
    """Yield the ids and the number of rows of each look-up in a table that was running."""
    while traceback is not None:
        frame = traceback.tb_frame
        if frame.f_code is F.embedding.__code__:
            yield frame.f_locals["input"], len(frame.f_locals["weight"])
        traceback = traceback.tb_next


def _named(ids: Tensor, given: Mapping[str, Any]) -> str:
    """Return which input some ids are, or are a part of, as they lie in memory."""
    inputs = {name: value for name, value in given.items() if isinstance(value, Tensor)}
    for name, value in inputs.items():
        if value is ids or (value.numel() == ids.numel() and value.data_ptr() == ids.data_ptr()):
            return name
    for name, value in inputs.items():
        if value.untyped_storage().data_ptr() == ids.untyped_storage().data_ptr():
            return f"a part of {name}"
    return "an index that the model computes"
