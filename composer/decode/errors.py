"""The error of generation that a caller can fix."""

from __future__ import annotations

from composer.errors import ComposerError


class DecodeError(ComposerError, ValueError):
    """Generation is not possible as requested; the message says why in one line."""
