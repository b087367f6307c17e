"""The files that a recipe is made of: which names which, each read once, without cycles."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from pathlib import PurePath, PurePosixPath, PureWindowsPath
from typing import Literal, TypeAlias

from composer.diagnostics import Diagnostic, Label, RecipeError, Source
from composer.language.composition.derived_maps import like_other_files
from composer.language.source_file import MAX_FILE_BYTES, form_of
from composer.language.yaml.nodes import Document, YamlList, YamlScalar
from composer.language.yaml.reader import read

MAX_CHAIN = 20
"""Recipes in a chain of `extends` and `uses`."""
MAX_FILES = 100
"""Files that one recipe may be made of, beside its own."""
MAX_CHARACTERS = 4 * MAX_FILE_BYTES
"""Characters of all these files together."""


@dataclass(frozen=True, slots=True, order=True)
class RecipeFile:
    """One of the recipes that another is made of."""

    name: str
    """Its name in the zoo, or its path from the folder of the outermost recipe."""
    in_zoo: bool


DONE: Mapping[str, str] = {"extend": "extended", "use": "used", "read": "read"}
Opener: TypeAlias = Callable[[RecipeFile, PurePosixPath], Source]
"""Opens a recipe that is named in a file of a folder; the folder is below that of the outermost recipe."""


@dataclass(frozen=True, slots=True)
class NamedRecipe:
    """One recipe named by another."""

    value: YamlScalar
    """The name, where it is written."""
    verb: Literal["extend", "use", "read"]
    """How: `extends`, `uses`, or `like` of a map of published weights."""
    target: RecipeFile


@dataclass(frozen=True, slots=True)
class NamedFiles:
    """Every file that can be reached from the outermost recipe."""

    outermost: RecipeFile
    documents: Mapping[RecipeFile, Document]
    links: Mapping[RecipeFile, Mapping[YamlScalar, NamedRecipe]]
    """Of each file, what it names, by the place where the name is written; a link that is refused is none of these."""
    refused: Mapping[YamlScalar, Diagnostic] = field(default_factory=dict)
    """Names that cannot be followed, each with the reason."""


def read_files(document: Document, opener: Opener) -> NamedFiles:
    """Return the files that a recipe and the files that it names are made of.

    What a name refers to, and why it cannot be followed, does not depend on the order in which names are written.
    """
    source = document.source.name
    outermost = RecipeFile(PurePath(source).name if form_of(source) == "path" else "", in_zoo=False)
    documents = {outermost: document}
    links: dict[RecipeFile, dict[YamlScalar, NamedRecipe]] = {}
    refused: dict[YamlScalar, Diagnostic] = {}
    waiting, characters = [outermost], len(document.source.text)
    for file in waiting:  # the nearest first
        links[file] = {}
        folder = PurePosixPath() if file.in_zoo else PurePosixPath(file.name).parent
        for value, verb in _names(documents[file]):
            try:
                link = NamedRecipe(value, verb, _target(value, folder))
                if link.target not in documents:
                    if len(documents) > MAX_FILES:
                        raise _Refused(Diagnostic("too-deep", f"a recipe is made of at most {MAX_FILES} files", value.span))
                    opened = _opened(link, folder, opener)
                    if characters + len(opened.text) > MAX_CHARACTERS:
                        message = f"the files of a recipe have at most {MAX_CHARACTERS} characters together"
                        raise _Refused(Diagnostic("too-large", message, value.span))
                    characters += len(opened.text)
                    documents[link.target] = read(opened)
                    waiting.append(link.target)
                links[file][value] = link
            except _Refused as error:
                refused[value] = error.diagnostic
    _break_cycles(outermost, links, refused)
    _refuse_long_chains(outermost, links, refused)
    return NamedFiles(outermost, documents, links, refused)


class _Refused(Exception):
    """A name of a file that cannot be used."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        self.diagnostic = diagnostic


def _names(document: Document) -> Iterator[tuple[YamlScalar, Literal["extend", "use", "read"]]]:
    """Yield the recipes that a document names, where each is written."""
    if document.root is None:
        return
    base, used = document.root.get("extends"), document.root.get("uses")
    if isinstance(base, YamlScalar):
        yield base, "extend"
    for item in used.items if isinstance(used, YamlList) else (used,):
        if isinstance(item, YamlScalar):
            yield item, "use"
    for like in like_other_files(document.root):
        yield like, "read"


def _target(value: YamlScalar, folder: PurePosixPath) -> RecipeFile:
    """Return what a name in a file of a folder stands for."""
    if form_of(value.text) != "path":
        return RecipeFile(value.text, in_zoo=True)
    text = value.text.replace("\\", "/")
    steps: list[str] = []
    absolute = PurePosixPath(text).is_absolute() or PureWindowsPath(text).drive
    for step in (folder / text).parts:
        if step == ".." and steps:
            steps.pop()
        elif step == ".." or absolute:
            message = f"{value.text} is outside the folder of the recipe"
            raise _Refused(
                Diagnostic("outside-folder", message, value.span, hint="use a file in the folder of the recipe or below it")
            )
        else:
            steps.append(step)
    return RecipeFile(str(PurePosixPath(*steps)), in_zoo=False)


def _opened(link: NamedRecipe, folder: PurePosixPath, opener: Opener) -> Source:
    try:
        return opener(link.target, folder)
    except RecipeError as error:
        found, value = error.diagnostics[0], link.value
        raise _Refused(Diagnostic(found.code, f"{value.text}: {found.message}", value.span, hint=found.hint)) from None


# -- names that are not followed

NamedRecipes: TypeAlias = dict[RecipeFile, dict[YamlScalar, NamedRecipe]]


def _break_cycles(outermost: RecipeFile, links: NamedRecipes, refused: dict[YamlScalar, Diagnostic]) -> None:
    """Refuse the names that close a cycle: in each, those of the file that is nearest to the outermost one."""
    distance = _distances(outermost, links)
    order = sorted(links, key=lambda file: (distance[file], file))
    while True:
        sorter: TopologicalSorter[RecipeFile] = TopologicalSorter()
        for file in order:
            sorter.add(file, *sorted({link.target for link in links[file].values()}))
        try:
            sorter.prepare()
        except CycleError as error:
            cycle: list[RecipeFile] = error.args[1][:0:-1]  # each names the next, and the last the first
            start = cycle.index(min(cycle, key=lambda file: (distance[file], file)))
            cycle = [*cycle[start:], *cycle[:start]]
            back = [link for link in links[cycle[-1]].values() if link.target == cycle[0]]
            (onward, *_) = (link for link in links[cycle[0]].values() if link.target == (cycle[1:] or cycle)[0])
            for link in back:
                refused[link.value] = _cycle(link, onward, _first_link(cycle[0], distance, links))
                del links[cycle[-1]][link.value]
        else:
            return


def _cycle(back: NamedRecipe, onward: NamedRecipe, first: NamedRecipe | None) -> Diagnostic:
    """Return the diagnostic of a name that leads back to a recipe, which leads on to it."""
    labels = (Label(first.value.span, f"first {DONE[first.verb]} here"),) if first else ()
    message = f"{back.value.text} {onward.verb}s a file that {back.verb}s it"
    if back.verb == "extend":
        return Diagnostic("extends-cycle", message, back.value.span, labels=labels)
    return Diagnostic("uses-cycle", message, back.value.span, labels=labels)


def _distances(outermost: RecipeFile, links: NamedRecipes) -> dict[RecipeFile, int]:
    """Return how many names lead to each file, at the least."""
    distance = {outermost: 0}
    for file in (waiting := [outermost]):
        for link in links[file].values():
            if link.target not in distance:
                distance[link.target] = distance[file] + 1
                waiting.append(link.target)
    return distance


def _first_link(file: RecipeFile, distance: Mapping[RecipeFile, int], links: NamedRecipes) -> NamedRecipe | None:
    """Return the name that leads to a file on the shortest way; none leads to the outermost one."""
    nearer = sorted(other for other in links if distance[other] == distance[file] - 1)
    return next((link for other in nearer for link in links[other].values() if link.target == file), None)


def _refuse_long_chains(outermost: RecipeFile, links: NamedRecipes, refused: dict[YamlScalar, Diagnostic]) -> None:
    """Refuse the names that make a chain of recipes over one another too long."""
    depth = defaultdict(int, {outermost: 1})
    order = TopologicalSorter({file: {link.target for link in links[file].values()} for file in links}).static_order()
    for file in reversed(list(order)):
        for link in list(links[file].values()) if file in depth else ():
            if depth[file] < MAX_CHAIN:
                depth[link.target] = max(depth[link.target], depth[file] + 1)
                continue
            message = f"more than {MAX_CHAIN} recipes {link.verb} one another"
            refused[link.value] = Diagnostic("too-deep", message, link.value.span)
            del links[file][link.value]
