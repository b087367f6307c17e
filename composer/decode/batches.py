"""Which prompts are continued together, though they differ in length."""

from __future__ import annotations

from collections.abc import Sequence


def batches(lengths: Sequence[int], *, new: int, aligned: int | None, most: int | None) -> list[list[int]]:
    """Return batches of prompts, as indices.

    Prompts of different lengths are read together as far as the shortest goes; from there on, a longer one is given its own next
    tokens in place of drawn ones. A batch then takes `new` steps, and one for each token that its longest prompt has beyond its
    shortest. So a prompt joins the next shorter one where that is fewer steps than a batch of its own.

    Args:
        lengths: The number of tokens of each prompt.
        new: The number of new tokens of each.
        aligned: The length up to which prompts of different lengths may be together; None for any.
        most: The maximum number of prompts in a batch; None for any.
    """
    found: list[list[int]] = []
    for row in sorted(range(len(lengths)), key=lambda row: lengths[row]):
        length = lengths[row]
        gap = length - lengths[found[-1][-1]] if found else 0
        together = bool(found) and (gap == 0 or (gap < new and (aligned is None or length <= aligned)))
        if together and (most is None or len(found[-1]) < most):
            found[-1].append(row)
        else:
            found.append([row])
    return found
