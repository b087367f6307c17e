"""The base of all exceptions, in a module that imports nothing, since both packages use it."""


class ComposerError(Exception):
    """The base of all exceptions of Composer, such as for a recipe with errors or a run that cannot start."""
