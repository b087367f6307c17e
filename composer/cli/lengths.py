"""`--at AXIS=LENGTH`: lengths of axes that a recipe leaves open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from composer.cli.arguments import Problem


def lengths(written: Iterable[str], known: tuple[str, ...], command: str) -> Mapping[str, int]:
    """Return the lengths by axis of texts such as `time=512`.

    Raises:
        Problem: The model has no such axis, or the length is none.
    """
    from composer.cost.lengths import unknown_axis

    found = {}
    for each in written:
        axis, _, length = each.partition("=")
        if axis not in known:
            wrong = unknown_axis(axis, known)
            raise Problem(f"arco {command}: --at {each}: {wrong.message}", wrong.hint)
        if not (length.isascii() and length.isdigit() and int(length[:18]) > 0 and len(length) < 16):
            raise Problem(f"arco {command}: --at {each}: a length is an integer of at least 1", f"for example, --at {axis}=512")
        found[axis] = int(length)
    return found
