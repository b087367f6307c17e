"""`extends: BASE`: a recipe that is laid over another, which may itself be laid over a third."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath, PurePosixPath, PureWindowsPath

from blocks.core import Library
from composer.diagnostics import Diagnostic, Label, RecipeError, Source
from composer.language.document import Document, Entry, Mapping, Scalar
from composer.language.merge import merge
from composer.language.read import read

CHAIN = 20
"""Recipes that may stand over one another."""

Opener = Callable[[str], Source]
"""The text of a recipe, by its name in the zoo or by its path from the folder of the outermost recipe."""


def extend(document: Document, library: Library, opener: Opener) -> Document:
    """The document with what it extends below it; every key and value keeps the place where it was written.

    Paths lead from the recipe that they stand in, to files below the folder of the outermost one.
    """
    extension = _Extension(library, opener)
    entry = document.root.entry("extends") if document.root is not None else None
    if entry is not None and is_path(document.source.name) and isinstance(entry.value, Scalar):
        extension.way[PurePath(document.source.name).name] = entry.value
    return extension.document(document, PurePosixPath())


class _Extension:
    """One run of `extend`: the recipes on the way to the one that extends none."""

    def __init__(self, library: Library, opener: Opener) -> None:
        self.library, self.opener = library, opener
        self.way: dict[str, Scalar] = {}
        """What is extended so far, each with the place that says so."""

    def document(self, document: Document, folder: PurePosixPath) -> Document:
        """A recipe of the folder, with all that is below it."""
        root = document.root
        entry = root.entry("extends") if root is not None else None
        if root is None or entry is None:
            return document
        own = Mapping(tuple(each for each in root if each is not entry), root.span)
        try:
            if "recipe" not in own:
                message = "a recipe starts with its name, also where it extends another"
                raise _Refused(
                    Diagnostic("missing-key", message, entry.key.span, hint="write `recipe: my_model` as the first line")
                )
            source, below = self._opened(entry, folder)
        except _Refused as refused:
            return Document(document.source, None, (*document.diagnostics, refused.diagnostic))
        base = self.document(read(source), below)
        diagnostics = (*document.diagnostics, *base.diagnostics)
        if base.root is None:
            return Document(document.source, None, diagnostics)
        merged, wrong = merge(
            Mapping(tuple(each for each in base.root if each.key.text != "recipe"), root.span), own, self.library
        )
        first = [each for each in merged if each.key.text == "recipe"]
        entries = (*first, *(each for each in merged if each.key.text != "recipe"))
        return Document(document.source, Mapping(entries, root.span), (*diagnostics, *wrong))

    def _opened(self, entry: Entry, folder: PurePosixPath) -> tuple[Source, PurePosixPath]:
        """The text of what a recipe extends, and its folder."""
        value = entry.value
        if not isinstance(value, Scalar):
            raise _Refused(Diagnostic("value-form", "`extends` names one recipe", value.span, hint="such as `extends: gpt2`"))
        text = value.text.replace("\\", "/")
        name, below = text, folder
        if is_path(text):
            path = _inside(value, folder / text)
            name, below = str(path), path.parent
        if name in self.way:
            first = Label(self.way[name].span, "extended here first")
            message = f"{value.text} is extended by what it extends itself"
            raise _Refused(Diagnostic("extends-cycle", message, value.span, labels=(first,)))
        if len(self.way) == CHAIN:
            raise _Refused(Diagnostic("too-deep", f"more than {CHAIN} recipes extend one another", value.span))
        self.way[name] = value
        try:
            return self.opener(name), below
        except RecipeError as error:
            found = error.diagnostics[0]
            raise _Refused(Diagnostic(found.code, f"{value.text}: {found.message}", value.span, hint=found.hint)) from None


class _Refused(Exception):
    def __init__(self, diagnostic: Diagnostic) -> None:
        self.diagnostic = diagnostic


def is_path(text: str) -> bool:
    """Whether a recipe is named by where it lies, and not by its name in the zoo."""
    return text.endswith((".yaml", ".yml")) or "/" in text


def _inside(value: Scalar, path: PurePath) -> PurePosixPath:
    """The path without `.` and `..`, which must not leave the folder of the outermost recipe."""
    steps: list[str] = []
    whole = PurePosixPath(path).is_absolute() or PureWindowsPath(value.text).drive
    for step in PurePosixPath(path).parts:
        if step == ".." and steps:
            steps.pop()
        elif step == ".." or whole:
            message = f"{value.text} leads out of the folder of the recipe"
            raise _Refused(Diagnostic("outside-folder", message, value.span, hint="name a file beside the recipe or below it"))
        else:
            steps.append(step)
    return PurePosixPath(*steps)
