"""Figure sheets: the options of a drawing, in a file of their own beside the recipe or under its key `figure`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast, get_args

from blocks.core.fields import field_docs
from composer.atomic_files import StrPath
from composer.diagnostics import Diagnostic, RecipeError, Span
from composer.draw.arrange.arrangement import Unarrangeable
from composer.draw.arrange.shares import COLORINGS
from composer.draw.build.levels import LEVELS, Level
from composer.draw.export.formats import NotDrawn
from composer.draw.figure import Figure, check_width, draw_arranged
from composer.draw.option_paths import with_paths
from composer.draw.options import ALL_PASSES, DEFAULTS, Engine, Options
from composer.draw.scene import Direction
from composer.draw.style.themes import THEMES
from composer.graph.passes.roll_layers.roll_layers import as_written, folded
from composer.graph.typed import TypedProgram
from composer.language.recipe.base_parser import BaseParser
from composer.language.recipe.schema_fragments import BOOLEAN, STRING_OR_LIST, TEXT, Schema, either, mapping, one_of
from composer.language.source_file import open_source
from composer.language.yaml.nodes import YamlEntry, YamlList, YamlMapping, YamlNode, YamlScalar
from composer.language.yaml.reader import read

CHOICES: Mapping[str, tuple[str, ...]] = {
    "level": LEVELS,
    "direction": get_args(Direction),
    "theme": tuple(THEMES),
    "engine": get_args(Engine),
    "color": COLORINGS,
}
KEYS = ("level", *DEFAULTS)
MAX_LETTERS, MAX_LABEL_LETTERS = 2000, 200
"""Letters of a title or a caption, and of what stands in a box: more has no room in a figure."""
LISTS = ("open", "details", "highlight", "hide", "break_after")
LEVEL_DOC = "How much is shown: a box for each repeat, the inside of each repeat, or every linear map."


@dataclass(frozen=True)
class FigureSheet:
    """What a file says of how a model is drawn, from `read_sheet`."""

    level: Level | None
    """The level of detail; None where the file has none."""
    options: Options
    """The options that it has."""
    places: Mapping[tuple[str, str], Span] = field(default_factory=dict, compare=False, repr=False)
    """Where each node of an option is named, and under an empty name where the option is."""

    def located(self, error: Unarrangeable) -> RecipeError | None:
        """Return what cannot be drawn at its place; None if it is not from this file."""
        place = self.places.get((error.option, error.entry))
        if place is None:
            return None
        code = "unknown-node" if error.message.startswith("there is no") else "rejected"
        return RecipeError([Diagnostic(code, error.message, place, hint=error.hint)])

    def over(self, other: FigureSheet) -> FigureSheet:
        """Return the sheet with what only another one says: of an option that both have, what this one says."""
        places = {key: place for key, place in other.places.items() if key[0] not in self.options}
        return FigureSheet(self.level or other.level, {**other.options, **self.options}, {**places, **self.places})


def read_sheet(path: StrPath) -> FigureSheet:
    """Return the figure sheet in a file.

    Args:
        path: The YAML file. Its keys are the options of `Recipe.draw`.

    Raises:
        RecipeError: It cannot be read or has mistakes, each with its place.

    Examples:
        >>> from pathlib import Path
        >>> from composer.draw.figure_sheet import read_sheet
        >>> written = Path("small.yaml").write_text("level: overview\\ncaption: The whole model.\\n")
        >>> read_sheet("small.yaml").level
        'overview'
    """
    document = read(open_source(Path(path)))
    parser = _SheetParser([_as_of_a_sheet(each) for each in document.diagnostics])
    found = parser.sheet(document.root) if document.root is not None else None
    if found is None or parser.diagnostics:
        raise RecipeError(parser.diagnostics)
    return found


def sheet_under(root: YamlMapping) -> tuple[FigureSheet | None, list[Diagnostic]]:
    """Return the figure sheet under the key `figure` of a recipe, None where there is none, and what is wrong with it."""
    parser = _SheetParser([])
    under = root.get("figure")
    if not isinstance(under, YamlMapping):
        parser.entries(under, "figure")
        return None, parser.diagnostics
    return parser.sheet(under, "`figure`"), parser.diagnostics


def check_sheet(typed: TypedProgram, sheet: FigureSheet) -> list[Diagnostic]:
    """Return what a sheet names that is not in a model, or where its options contradict each other; the first such mistake."""
    options: Options = {**DEFAULTS, **sheet.options}
    try:
        with_paths(options, as_written(typed) if options["unroll"] is True else folded(typed))
    except Unarrangeable as no:
        located = sheet.located(no)
        return [] if located is None else [*located.diagnostics]
    return []


def draw_sheet(typed: TypedProgram, sheet: FigureSheet, level: Level | None = None, options: Options | None = None) -> Figure:
    """Return the drawing of a model as a sheet says, but for a level and options that are given beside it.

    Raises:
        RecipeError: if what the sheet names is not there, or contradicts itself.
        NotDrawn: if another option cannot be drawn.
    """
    try:
        return draw_arranged(typed, level or sheet.level or "block", {**sheet.options, **(options or {})})
    except Unarrangeable as no:
        raise sheet.located(no) or NotDrawn(no.message, no.hint) from None


def sheet_schema() -> Schema:
    """Return the form of a figure sheet as JSON Schema, with what each key means."""
    docs = {"level": LEVEL_DOC, **field_docs(Options)}
    return {
        "type": "object",
        "properties": {name: {"description": " ".join(docs[name].split()), **_form(name)} for name in KEYS},
        "additionalProperties": False,
    }


def _form(name: str) -> Schema:
    """Return what may stand under a key."""
    if name in CHOICES:
        return one_of(CHOICES[name])
    forms = {
        "unroll": either(BOOLEAN, STRING_OR_LIST, mapping(TEXT)),
        "merge": mapping(STRING_OR_LIST),
        "labels": mapping(TEXT),
        **dict.fromkeys(LISTS, STRING_OR_LIST),
    }
    if name in forms:
        return forms[name]
    return BOOLEAN if isinstance(DEFAULTS[name], bool) else TEXT  # type: ignore[literal-required]


def _as_of_a_sheet(found: Diagnostic) -> Diagnostic:
    """Return what is wrong with YAML in the words of a figure sheet."""
    message = found.message.replace("the recipe is", "the figure sheet is").replace("a recipe", "a figure sheet")
    return Diagnostic(found.code, message, found.span, found.severity, found.note, found.labels, found.hint)


class _SheetParser(BaseParser):
    """Reads the keys of a sheet; what is wrong is collected."""

    def __init__(self, diagnostics: list[Diagnostic]) -> None:
        super().__init__(diagnostics)
        self.places: dict[tuple[str, str], Span] = {}

    def sheet(self, root: YamlMapping, what: str = "a figure sheet") -> FigureSheet:
        """Return the options of a file, or of what is called otherwise."""
        self.keys(root, KEYS, what)
        given: dict[str, Any] = {}
        for entry in root:
            name = entry.key.text
            if name in KEYS:
                self.places[name, ""] = entry.key.span
                given[name] = self.value(name, entry)
        level = cast("Level | None", given.pop("level", None))
        return FigureSheet(
            level, cast("Options", {name: value for name, value in given.items() if value is not None}), self.places
        )

    def value(self, name: str, entry: YamlEntry) -> object:
        """Return what stands under a key; None if it is wrong."""
        if name in CHOICES:
            return self.choice(name, entry.value, CHOICES[name])
        if name in LISTS:
            return self.paths(name, entry.value)
        readers: Mapping[str, Callable[[YamlEntry], object]] = {
            "unroll": self.unroll,
            "merge": self.merge,
            "labels": self.labels,
            "width": self.width,
        }
        if name in readers:
            return readers[name](entry)
        return self.boolean(name, entry.value) if isinstance(DEFAULTS[name], bool) else self.words(entry.value, name, MAX_LETTERS)  # type: ignore[literal-required]

    def choice(self, name: str, node: YamlNode, known: tuple[str, ...]) -> str | None:
        """Return one of a few words."""
        word = self.scalar(node, f"`{name}` takes one word")
        if word is not None and word.text not in known:
            self.unknown("unknown-choice", word.span, name, word.text, known)
            return None
        return None if word is None else word.text

    def boolean(self, name: str, node: YamlNode) -> bool | None:
        """Return `true` or `false`."""
        word = self.scalar(node, f"`{name}` takes `true` or `false`")
        if word is not None and word.text not in ("true", "false"):
            self.error("not-a-boolean", word.span, f"`{name}` takes `true` or `false`, not `{word.text[:40]}`")
            return None
        return None if word is None else word.text == "true"

    def width(self, entry: YamlEntry) -> str | None:
        """Return a width with its unit."""
        word = self.scalar(entry.value, "`width` takes one length")
        try:
            check_width(word.text if word else "")
        except NotDrawn as no:
            self.error("out-of-range", entry.value.span, no.message, hint=no.hint)
            return None
        return None if word is None else word.text

    def words(self, node: YamlNode, name: str, most: int) -> str:
        """Return a text of so many letters."""
        said = self.text(node)
        if len(said) > most:
            self.error("out-of-range", node.span, f"`{name}` has {len(said)} letters; at most {most} are drawn")
        return said[:most]

    def paths(self, name: str, node: YamlNode, label: str = "") -> list[str]:
        """Return the paths of a list, or the one that stands there alone; of a box, told by its label."""
        items = node.items if isinstance(node, YamlList) else (node,)
        words = [self.scalar(item, f"`{name}` takes paths of nodes") for item in items]
        found = [word for word in words if word is not None]
        self.places |= {(name, label or word.text): word.span for word in found}
        return [word.text for word in found]

    def unroll(self, entry: YamlEntry) -> bool | dict[str, str] | None:
        """Return whether every pass is drawn, or of each repeat which are; of one that stands there by its path, all."""
        if isinstance(entry.value, YamlScalar) and entry.value.text in ("true", "false"):
            return entry.value.text == "true"
        if not isinstance(entry.value, YamlMapping):
            return dict.fromkeys(self.paths("unroll", entry.value), ALL_PASSES)
        found = {}
        for one in self.entries(entry.value, "unroll"):
            self.places["unroll", one.key.text] = one.key.span
            word = self.scalar(one.value, "`unroll` takes a range of passes")
            found[one.key.text] = word.text if word else ""
        return found

    def merge(self, entry: YamlEntry) -> dict[str, list[str]]:
        """Return the nodes of each box by its label."""
        found = {}
        for box in self.entries(entry.value, "merge"):
            self.words(box.key, "merge", MAX_LABEL_LETTERS)
            found[box.key.text] = self.paths("merge", box.value, box.key.text)
            self.places["merge", box.key.text] = box.key.span
        return found

    def labels(self, entry: YamlEntry) -> dict[str, str]:
        """Return the words for each node."""
        found = {}
        for one in self.entries(entry.value, "labels"):
            self.places["labels", one.key.text] = one.key.span
            found[one.key.text] = self.words(one.value, "labels", MAX_LABEL_LETTERS)
        return found
