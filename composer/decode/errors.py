"""The error of generation that a caller can fix."""

from __future__ import annotations

from composer.errors import ComposerError
from composer.language.tasks import TASKS


class DecodeError(ComposerError, ValueError):
    """Generation is not possible as requested; the message says why in one line."""


def writes_nothing(what: str, task: str | None) -> DecodeError:
    """Return the error of a model whose task is not generative."""
    writes = ", ".join(name for name, known in TASKS.items() if known.text)
    return DecodeError(f"{what} needs a generative task ({writes}); this recipe has {task or 'no task'}")
