"""Recipes out of several files: `extends`, which lays a recipe over another, and `uses`, which takes in the blocks of others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath, PurePosixPath, PureWindowsPath

from blocks.core import Library
from composer.diagnostics import Diagnostic, Label, RecipeError, Source
from composer.language.composition.merge import merge
from composer.language.composition.uses import Used, blocks_of, taken_in
from composer.language.yaml.nodes import Document, YamlEntry, YamlList, YamlMapping, YamlScalar
from composer.language.yaml.reader import read

CHAIN = 20
"""Recipes that may stand over one another."""
FILES = 100
"""Files that one recipe may be made of."""

Opener = Callable[[str], Source]
"""The text of a recipe, by its name in the zoo or by its path from the folder of the outermost recipe."""


def extend(document: Document, library: Library, opener: Opener) -> Document:
    """The document with what it extends below it, and with the blocks that it uses among its own; every key and value keeps the
    place where it was written.

    Paths lead from the recipe that they stand in, to files below the folder of the outermost one.
    """
    return _Composition(library, opener, document.source).document(document, PurePosixPath())


class _Composition:
    """One run of `extend`: the files on the way to the one that is being read."""

    def __init__(self, library: Library, opener: Opener, outermost: Source) -> None:
        self.library, self.opener = library, opener
        self.way: dict[str, YamlScalar | None] = {}
        """What is being read, the outermost first, each with the place that names it."""
        self.done: dict[str, Document] = {}
        """What has been read, with all that is below it."""
        if is_path(outermost.name):
            self.way[PurePath(outermost.name).name] = None

    def document(self, document: Document, folder: PurePosixPath) -> Document:
        """A recipe of the folder, with all that is below it and the blocks that it uses."""
        document = self._with_blocks(document, folder)
        root = document.root
        entry = root.entry("extends") if root is not None else None
        if root is None or entry is None:
            return document
        own = YamlMapping(tuple(each for each in root if each is not entry), root.span)
        try:
            base = self._base(entry, own, folder)
        except _Refused as refused:
            return Document(document.source, None, (*document.diagnostics, refused.diagnostic))
        diagnostics = (*document.diagnostics, *base.diagnostics)
        if base.root is None:
            return Document(document.source, None, diagnostics)
        below = YamlMapping(tuple(each for each in base.root if each.key.text != "recipe"), root.span)
        merged, wrong = merge(below, own, self.library)
        first = [each for each in merged if each.key.text == "recipe"]
        entries = (*first, *(each for each in merged if each.key.text != "recipe"))
        clashes = {**base.clashes, **document.clashes}
        return Document(document.source, YamlMapping(entries, root.span), (*diagnostics, *wrong), clashes)

    def _base(self, entry: YamlEntry, own: YamlMapping, folder: PurePosixPath) -> Document:
        """What a recipe extends."""
        if "recipe" not in own:
            message = "a recipe begins with its name, even if it extends another"
            hint = "write `recipe: my_model` as the first line"
            raise _Refused(Diagnostic("missing-key", message, entry.key.span, hint=hint))
        if not isinstance(entry.value, YamlScalar):
            hint = "such as `extends: gpt2`"
            raise _Refused(Diagnostic("value-form", "`extends` names one recipe", entry.value.span, hint=hint))
        return self._opened(entry.value, folder, "extend")

    def _with_blocks(self, document: Document, folder: PurePosixPath) -> Document:
        """A recipe with the blocks of the files that it uses among its own."""
        root = document.root
        entry = root.entry("uses") if root is not None else None
        if root is None or entry is None:
            return document
        diagnostics, used = list(document.diagnostics), list[Used]()
        for name in entry.value.items if isinstance(entry.value, YamlList) else (entry.value,):
            try:
                if not isinstance(name, YamlScalar):
                    message = "`uses` lists files, or recipes of the zoo"
                    raise _Refused(Diagnostic("value-form", message, name.span, hint="such as `uses: [blocks.yaml, vit]`"))
                other = self._opened(name, folder, "use")
                diagnostics.extend(other.diagnostics)
                if other.root is not None:
                    found, wrong = blocks_of(name, other.root)
                    used.extend(found)
                    diagnostics.extend(wrong)
            except _Refused as refused:
                diagnostics.append(refused.diagnostic)
        blocks, clashes, wrong = taken_in(root.entry("blocks"), used, entry.key.span)
        diagnostics.extend(wrong)
        entries = (each for each in root if each is not entry and each.key.text != "blocks")
        return Document(document.source, YamlMapping((*entries, blocks), root.span), tuple(diagnostics), clashes)

    def _opened(self, value: YamlScalar, folder: PurePosixPath, verb: str) -> Document:
        """Another recipe, with all that is below it."""
        text = value.text.replace("\\", "/")
        name, below = text, folder
        if is_path(text):
            path = _inside(value, folder / text)
            name, below = str(path), path.parent
        if name in self.way:
            place = self.way[name]
            past = "extended" if verb == "extend" else "used"
            labels = (Label(place.span, f"{past} here first"),) if place is not None else ()
            message = f"{value.text} is {past} by what it {verb}s itself"
            if verb == "extend":
                raise _Refused(Diagnostic("extends-cycle", message, value.span, labels=labels))
            raise _Refused(Diagnostic("uses-cycle", message, value.span, labels=labels))
        if len(self.way) == CHAIN:
            raise _Refused(Diagnostic("too-deep", f"more than {CHAIN} recipes {verb} one another", value.span))
        if name not in self.done:
            if len(self.done) == FILES:
                raise _Refused(Diagnostic("too-deep", f"a recipe is made of at most {FILES} files", value.span))
            try:
                source = self.opener(name)
            except RecipeError as error:
                found = error.diagnostics[0]
                raise _Refused(Diagnostic(found.code, f"{value.text}: {found.message}", value.span, hint=found.hint)) from None
            self.way[name] = value
            self.done[name] = self.document(read(source), below)
            del self.way[name]
        return self.done[name]


class _Refused(Exception):
    def __init__(self, diagnostic: Diagnostic) -> None:
        self.diagnostic = diagnostic


def is_path(text: str) -> bool:
    """Whether a recipe is named by where it lies, and not by its name in the zoo."""
    return text.endswith((".yaml", ".yml")) or "/" in text


def _inside(value: YamlScalar, path: PurePath) -> PurePosixPath:
    """The path without `.` and `..`, which must not leave the folder of the outermost recipe."""
    steps: list[str] = []
    whole = PurePosixPath(path).is_absolute() or PureWindowsPath(value.text).drive
    for step in PurePosixPath(path).parts:
        if step == ".." and steps:
            steps.pop()
        elif step == ".." or whole:
            message = f"{value.text} is outside the folder of the recipe"
            raise _Refused(
                Diagnostic("outside-folder", message, value.span, hint="use a file in the folder of the recipe or below it")
            )
        else:
            steps.append(step)
    return PurePosixPath(*steps)
