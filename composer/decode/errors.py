"""The error of generation that a caller can fix."""

from __future__ import annotations

from composer.errors import ComposerError
from composer.language.tasks import TASKS


class DecodeError(ComposerError, ValueError):
    """Generation is not possible as requested; the message says why in one line."""


class PromptCacheError(DecodeError):
    """A prompt cache cannot be written, or not be gone on from: it is damaged, or of another model; `hint` says what to do."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def writes_nothing(what: str, task: str | None) -> DecodeError:
    """Return the error of a model whose task is not generative."""
    writes = ", ".join(name for name, known in TASKS.items() if known.text)
    return DecodeError(f"{what} needs a generative task ({writes}); this recipe has {task or 'no task'}")
