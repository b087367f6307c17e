"""The error of training that a user can fix."""

from __future__ import annotations

from composer.errors import ComposerError


class TrainingError(ComposerError, ValueError):
    """A run cannot start or continue; the message says why in one line, and `hint` what to do."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(" ".join(message.splitlines()))  # one line, also if it quotes a stranger's file
        self.hint = hint
