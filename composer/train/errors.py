"""What stops a run that its user can put right."""

from __future__ import annotations

from composer.errors import ComposerError


class TrainingError(ComposerError, ValueError):
    """A run that cannot start or go on: what is wrong in one line, and in `hint` what to do about it."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint
