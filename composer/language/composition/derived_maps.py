"""Maps of published weights that change another one: `like` under a model type names it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from blocks.core import Library
from composer.diagnostics import Diagnostic, Label
from composer.language.composition.merge import is_deleted, merge_maps
from composer.language.recipe.base_parser import names_under
from composer.language.unknown_names import unknown
from composer.language.yaml.nodes import Document, YamlEntry, YamlMapping, YamlNode, YamlScalar

LIKE = "like"
MAPS = "checkpoints"
ARCHITECTURE = "architecture"


def like_other_files(root: YamlMapping) -> Iterator[YamlScalar]:
    """Yield what maps are like, but for model types that the file itself has a map for; one that it deletes is none of these."""
    maps = root.get(MAPS)
    entries = maps.entries if isinstance(maps, YamlMapping) else ()
    own = {each.key.text for each in entries if not is_deleted(each.value)}
    for entry in entries:
        like = entry.value.get(LIKE) if isinstance(entry.value, YamlMapping) else None
        if isinstance(like, YamlScalar) and like.text not in own:
            yield like


def with_derived_maps(document: Document, library: Library, named: Callable[[YamlScalar], Document | Diagnostic]) -> Document:
    """Return a recipe in which every map is whole: what `like` names, with the changes of the map merged into it.

    Args:
        document: The recipe, merged into what it extends.
        library: The blocks that it may name.
        named: Returns the recipe of a name.
    """
    maps = document.root.get(MAPS) if document.root is not None else None
    if document.root is None or not isinstance(maps, YamlMapping) or all(LIKE not in names_under(entry.value) for entry in maps):
        return document
    made = _Maps(maps, library, named)
    whole = YamlMapping(tuple(each for entry in maps if (each := made.whole(entry, ())) is not None), maps.span)
    entries = (YamlEntry(entry.key, whole) if entry.value is maps else entry for entry in document.root)
    return replace(
        document, root=YamlMapping(tuple(entries), document.root.span), diagnostics=(*document.diagnostics, *made.wrong)
    )


class _Maps:
    """The maps of one recipe."""

    def __init__(self, maps: YamlMapping, library: Library, named: Callable[[YamlScalar], Document | Diagnostic]) -> None:
        self.maps, self.library, self.named = maps, library, named
        self.wrong: list[Diagnostic] = []

    def whole(self, entry: YamlEntry, seen: tuple[str, ...]) -> YamlEntry | None:
        """Return a map with what it changes below it; None after an error, which is recorded."""
        like = entry.value.entry(LIKE) if isinstance(entry.value, YamlMapping) else None
        if like is None or not isinstance(entry.value, YamlMapping):
            return entry
        own = YamlMapping(tuple(each for each in entry.value if each is not like), entry.value.span)
        if not isinstance(like.value, YamlScalar):
            hint = "such as `like: llama3`"
            self.wrong.append(Diagnostic("value-form", "`like` names one model type or recipe", like.value.span, hint=hint))
            return None
        base = self._base(like.value, entry.key.text, (*seen, entry.key.text))
        if base is None:
            return None
        merged, wrong = merge_maps(base, own, self.library)
        self.wrong += wrong
        return YamlEntry(entry.key, merged)

    def _base(self, like: YamlScalar, kind: str, seen: tuple[str, ...]) -> YamlNode | None:
        """Return the whole map that one for a model type of some `kind` is like."""
        if like.text in seen:
            message = f"a map cannot be like itself: {' → '.join((*seen, like.text))}"
            self.wrong.append(Diagnostic("uses-cycle", message, like.span))
            return None
        if (there := self.maps.entry(like.text)) is not None:
            found = self.whole(there, seen)
            return None if found is None else _without_architecture(found.value)
        other = self.named(like)
        if isinstance(other, Diagnostic):
            types = [each.key.text for each in self.maps if each.key.text != kind]
            hint = unknown(other.code, like.span, "model type", like.text, types).hint if types else other.hint
            self.wrong.append(replace(other, hint=hint))
            return None
        theirs = other.root.get(MAPS) if other.root is not None else None
        maps = theirs.entries if isinstance(theirs, YamlMapping) else ()
        chosen = next(([one] for name in (kind, like.text) for one in maps if one.key.text == name), list(maps))
        if len(chosen) != 1:
            which = f"has maps of {', '.join(each.key.text for each in maps)}" if maps else "maps to no published model"
            labels = tuple(Label(each.key.span, "one of them") for each in maps)
            hint = "call this model type like one of them" if maps else "name a recipe that has `checkpoints`"
            message = f"{like.text} {which}"
            self.wrong.append(Diagnostic("checkpoints-unknown-type", message, like.span, labels=labels, hint=hint))
            return None
        return chosen[0].value if chosen[0].key.text == kind else _without_architecture(chosen[0].value)


def _without_architecture(base: YamlNode) -> YamlNode:
    """Return a map without the class that it names, which is that of its own model type."""
    config = base.entry("config") if isinstance(base, YamlMapping) else None
    if config is None or not isinstance(base, YamlMapping) or not isinstance(config.value, YamlMapping):
        return base
    kept = YamlMapping(tuple(each for each in config.value if each.key.text != ARCHITECTURE), config.value.span)
    return YamlMapping(tuple(YamlEntry(each.key, kept) if each is config else each for each in base), base.span)
