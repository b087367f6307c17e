"""What stops generation that its user can put right."""

from __future__ import annotations

from composer.errors import ComposerError


class DecodeError(ComposerError, ValueError):
    """A request for text that cannot be met, in one line."""
