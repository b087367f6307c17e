"""The base of all exceptions, as `composer` offers it.

Blocks raise it too and cannot import this package, so it is defined in `blocks.errors`.
"""

from blocks.errors import ComposerError

__all__ = ["ComposerError"]
