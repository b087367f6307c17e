"""Recipes of several files: `extends`, which merges a recipe into another, and `uses`, which imports the blocks of others."""

from __future__ import annotations

from functools import partial

from blocks.core import Library
from composer.diagnostics import Diagnostic
from composer.language.composition.derived_maps import with_derived_maps
from composer.language.composition.merge import merge
from composer.language.composition.named_files import NamedFiles, Opener, RecipeFile, read_files
from composer.language.composition.uses import UsedBlock, used_blocks, with_used_blocks
from composer.language.yaml.nodes import Document, YamlEntry, YamlList, YamlMapping, YamlNode, YamlScalar
from composer.memo import Memo


def compose(document: Document, library: Library, opener: Opener) -> Document:
    """Return a document with what it extends below it, and with the blocks that it uses among its own.

    Every key and value keeps the place where it was written. Paths lead on from the recipe that they stand in, to files below
    the folder of the outermost one.
    """
    files = read_files(document, opener)
    return _Composition(files, library, Memo()).of(files.outermost)


class _Composition:
    """The files of a recipe, each composed once, however often it is named."""

    def __init__(self, files: NamedFiles, library: Library, composed: Memo[RecipeFile, Document]) -> None:
        self.files, self.library, self.composed = files, library, composed

    def of(self, file: RecipeFile) -> Document:
        """Return one of the files with all that is below it, and the blocks that it uses."""
        return self.composed.get(file, partial(self._of, file))

    def _of(self, file: RecipeFile) -> Document:
        return with_derived_maps(self._extended(file), self.library, partial(self._named, file))

    def _extended(self, file: RecipeFile) -> Document:
        """Return one of the files merged into what it extends."""
        document = self._with_used_blocks(file, self.files.documents[file])
        root = document.root
        entry = root.entry("extends") if root is not None else None
        if root is None or entry is None:
            return document
        own = YamlMapping(tuple(each for each in root if each is not entry), root.span)
        base = self._base(file, entry, own)
        if isinstance(base, Diagnostic):
            return Document(document.source, None, (*document.diagnostics, base))
        diagnostics = (*document.diagnostics, *base.diagnostics)
        if base.root is None:
            return Document(document.source, None, diagnostics)
        below = YamlMapping(tuple(each for each in base.root if each.key.text != "recipe"), root.span)
        merged, wrong = merge(below, own, self.library, from_file=True)
        name = [each for each in merged if each.key.text == "recipe"]
        entries = (*name, *(each for each in merged if each.key.text != "recipe"))
        ambiguous_blocks = {**base.ambiguous_blocks, **document.ambiguous_blocks}
        return Document(document.source, YamlMapping(entries, root.span), (*diagnostics, *wrong), ambiguous_blocks)

    def _base(self, file: RecipeFile, entry: YamlEntry, own: YamlMapping) -> Document | Diagnostic:
        """Return what a recipe extends, or why it extends nothing."""
        if "recipe" not in own:
            message = "a recipe begins with its name, even if it extends another"
            return Diagnostic("missing-key", message, entry.key.span, hint="write `recipe: my_model` as the first line")
        if not isinstance(entry.value, YamlScalar):
            return Diagnostic("value-form", "`extends` names one recipe", entry.value.span, hint="such as `extends: gpt2`")
        return self._named(file, entry.value)

    def _with_used_blocks(self, file: RecipeFile, document: Document) -> Document:
        """Return a recipe with the blocks of the files that it uses among its own."""
        root = document.root
        entry = root.entry("uses") if root is not None else None
        if root is None or entry is None:
            return document
        diagnostics, used = list(document.diagnostics), list[UsedBlock]()
        for item in entry.value.items if isinstance(entry.value, YamlList) else (entry.value,):
            other = self._used(file, item)
            if isinstance(other, Diagnostic):
                diagnostics.append(other)
                continue
            diagnostics.extend(other.diagnostics)
            if other.root is not None and isinstance(item, YamlScalar):
                found, wrong = used_blocks(item, other.root)
                used.extend(found)
                diagnostics.extend(wrong)
        blocks, ambiguous_blocks, wrong = with_used_blocks(root.entry("blocks"), used, entry.key.span)
        diagnostics.extend(wrong)
        entries = (each for each in root if each is not entry and each.key.text != "blocks")
        return Document(document.source, YamlMapping((*entries, blocks), root.span), tuple(diagnostics), ambiguous_blocks)

    def _used(self, file: RecipeFile, item: YamlNode) -> Document | Diagnostic:
        if isinstance(item, YamlScalar):
            return self._named(file, item)
        message, hint = "`uses` lists files, or recipes of the zoo", "such as `uses: [blocks.yaml, vit]`"
        return Diagnostic("value-form", message, item.span, hint=hint)

    def _named(self, file: RecipeFile, name: YamlScalar) -> Document | Diagnostic:
        """Return another recipe with all that is below it, or why it is none."""
        link = self.files.links[file].get(name)
        return self.of(link.target) if link is not None else self.files.refused[name]
