"""The base of all exceptions, in a module that imports nothing: both packages raise it, and most commands need no block."""


class ComposerError(Exception):
    """Anything that Composer refuses to do: a wrong recipe, a run that cannot start, a drawing that cannot be made."""
