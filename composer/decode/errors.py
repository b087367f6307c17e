"""What stops generation that its user can put right."""

from __future__ import annotations


class DecodeError(ValueError):
    """A request for text that cannot be met, in one line."""
