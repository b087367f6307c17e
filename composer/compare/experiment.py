"""Experiment files: variants of a model, seeds, a budget, and what is made equal between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Literal, TypeAlias, cast, get_args

from composer.atomic_files import StrPath
from composer.diagnostics import Diagnostic, RecipeError, Span
from composer.language.recipe.base_parser import BaseParser, first_key
from composer.language.source_file import form_of, open_source
from composer.language.yaml.nodes import YamlEntry, YamlList, YamlMapping, YamlNode, YamlScalar
from composer.language.yaml.reader import read
from composer.train.data.tokenizer_kinds import SIZED, TOKENIZER_KINDS
from composer.train.errors import TrainingError
from composer.train.settings import CHOICES, SEVERAL, TrainSettings

BudgetKind: TypeAlias = Literal["steps", "tokens", "flops", "minutes"]
MatchedCost: TypeAlias = Literal["parameters", "flops"]

KEYS = ("experiment", "doc", "data", "tokenizer", "vocab_size", "variants", "seeds", "budget", "train", "match")
MISSING = {
    "experiment": "write `experiment: my_experiment` as the first line",
    "data": "name the texts to train on, such as `data: input.txt`",
    "variants": "name two models or more, such as `variants: {small: gpt_mini, deep: {recipe: gpt_mini, set: {n_layers: 8}}}`",
    "budget": "say how long each run is, such as `budget: {steps: 500}`",
}
TRAINED = tuple(each.name for each in fields(TrainSettings) if each.name not in ("steps", "seed", *SEVERAL))
"""The settings that an experiment may give: the others are its budget and its seeds."""
MOST_SEEDS = 1000


@dataclass(frozen=True)
class Variant:
    """One of the models that are compared.

    Examples:
        >>> from composer.compare import Variant
        >>> Variant("deep", "gpt_mini", ("n_layers=8",)).name
        'deep'
    """

    name: str
    recipe: str
    """The name of a recipe, or the path to its file."""
    overrides: tuple[str, ...] = ()
    """What is set in it, as `PATH=VALUE`."""
    places: Mapping[str, tuple[Span, Span]] = field(default_factory=dict, compare=False, repr=False)
    """Where path and value of each override are written; where the recipe is named, twice, under an empty key."""


@dataclass(frozen=True)
class Budget:
    """How long each run is.

    Examples:
        >>> from composer.compare import Budget
        >>> Budget("tokens", 1e6).amount
        1000000.0
    """

    kind: BudgetKind
    """Steps; tokens that are trained on; FLOPs of training, three times those of the forward passes; or minutes of steps."""
    amount: float


@dataclass(frozen=True)
class WidthMatch:
    """A param that is chosen such that every variant costs as much as the first one, to 1 %.

    Examples:
        >>> from composer.compare import WidthMatch
        >>> WidthMatch("parameters", by="d_model", multiple_of=8).multiple_of
        8
    """

    what: MatchedCost
    by: str
    """The name of the param."""
    multiple_of: int = 1
    place: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Experiment:
    """Variants of a model that are trained alike, from `read_experiment`."""

    name: str
    data: tuple[Path, ...]
    """The texts to train on."""
    variants: tuple[Variant, ...]
    """The models; the others are compared with the first."""
    seeds: tuple[int, ...]
    budget: Budget
    doc: str = ""
    tokenizer: str = "characters"
    vocab_size: int | None = None
    """The size of the vocabulary, of a tokenizer that can have several."""
    settings: TrainSettings = field(default_factory=TrainSettings)
    """What all runs have in common; their steps and seeds are set for each."""
    match: WidthMatch | None = None


def read_experiment(path: StrPath) -> Experiment:
    """Return the experiment in a file; paths in it are relative to its folder.

    Args:
        path: The YAML file.

    Raises:
        RecipeError: It cannot be read or has mistakes, each with its place.

    Examples:
        >>> from pathlib import Path
        >>> from composer.compare import read_experiment
        >>> text = "experiment: depth\\ndata: input.txt\\nbudget: {steps: 500}\\nvariants: {one: gpt_mini, two: gpt2}\\n"
        >>> written = Path("depth.yaml").write_text(text)
        >>> [variant.name for variant in read_experiment("depth.yaml").variants]
        ['one', 'two']
    """
    file = Path(path)
    source = open_source(file)
    document = read(source)
    parser = ExperimentParser([as_of_an_experiment(each) for each in document.diagnostics], file.parent)
    found = parser.experiment(document.root) if document.root is not None else None
    if found is None or parser.diagnostics:
        raise RecipeError(parser.diagnostics)
    return found


def as_of_an_experiment(found: Diagnostic) -> Diagnostic:
    """Return what is wrong with YAML in the words of an experiment."""
    message = found.message.replace("the recipe is", "the experiment is").replace("a recipe", "an experiment")
    return Diagnostic(found.code, message, found.span, found.severity, found.note, found.labels, found.hint)


class ExperimentParser(BaseParser):
    """Reads the keys of an experiment; what is wrong is collected."""

    def __init__(self, diagnostics: list[Diagnostic], folder: Path) -> None:
        super().__init__(diagnostics)
        self.folder = folder

    def experiment(self, root: YamlMapping) -> Experiment | None:
        """Return the experiment of a file; None if something that it needs is missing or wrong."""
        self.keys(root, KEYS, "an experiment")
        for key, hint in MISSING.items():
            if key not in root:
                self.error("missing-key", first_key(root), f"an experiment needs `{key}`", hint=hint)
        name = self.scalar(root.get("experiment"), "an experiment has one name")
        if name is not None:
            self.declares(name, "an experiment")
        tokenizer, size = self.choice(root.entry("tokenizer"), tuple(TOKENIZER_KINDS)), root.entry("vocab_size")
        if size is not None and tokenizer not in SIZED:
            message = f"only the tokenizers {', '.join(SIZED)} have a vocabulary of a size that is chosen"
            self.error("value-form", size.key.span, message, hint="write `tokenizer: bpe`, or leave `vocab_size` out")
        variants, seeds = self.variants(root.entry("variants")), self.seeds(root.entry("seeds"))
        data, budget = self.data(root.get("data")), self.budget(root.entry("budget"))
        settings, match = self.settings(root.entry("train")), self.match(root.entry("match"))
        count = (
            None if size is None else self.number(size.value, "vocab_size", whole=True, least=256 if tokenizer == "bpe" else 16)
        )
        if budget is None or name is None or self.diagnostics:
            return None
        return Experiment(
            name=name.text,
            data=data,
            variants=variants,
            seeds=seeds,
            budget=budget,
            doc=self.text(root.get("doc")),
            tokenizer=tokenizer or "characters",
            vocab_size=None if count is None else int(count),
            settings=settings,
            match=match,
        )

    def data(self, node: YamlNode | None) -> tuple[Path, ...]:
        """Return the paths of one text or a list of them."""
        items = node.items if isinstance(node, YamlList) else () if node is None else (node,)
        texts = [self.scalar(item, "the path of a text is expected here") for item in items]
        return tuple(self.folder / text.text for text in texts if text is not None)

    def variants(self, entry: YamlEntry | None) -> tuple[Variant, ...]:
        """Return the models by name, of which there are at least two."""
        found = [self.variant(each) for each in self.entries(entry.value, "variants")] if entry is not None else []
        if entry is not None and len(found) < 2 and isinstance(entry.value, YamlMapping):
            self.error("out-of-range", entry.key.span, "one variant alone cannot be compared", hint="name at least two")
        return tuple(each for each in found if each is not None)

    def variant(self, entry: YamlEntry) -> Variant | None:
        """Return a model: the name or the path of a recipe, or a mapping with `recipe` and `set`."""
        self.declares(entry.key, "a variant")
        if not isinstance(entry.value, YamlMapping):
            recipe = self.scalar(entry.value, "a variant is the name or the path of a recipe")
            return None if recipe is None else self._variant(entry, recipe, None)
        self.keys(entry.value, ("recipe", "set"), "a variant")
        if "recipe" not in entry.value:
            hint = f"such as `{entry.key.text}: {{recipe: gpt_mini}}`"
            self.error("missing-key", entry.key.span, "a variant needs `recipe`", hint=hint)
            return None
        recipe = self.scalar(entry.value.get("recipe"), "a variant has the name or the path of one recipe")
        return None if recipe is None else self._variant(entry, recipe, entry.value.get("set"))

    def _variant(self, entry: YamlEntry, recipe: YamlScalar, changes: YamlNode | None) -> Variant:
        pairs = {
            f"{each.key.text}={written(each.value)}": (each.key.span, each.value.span) for each in self.entries(changes, "set")
        }
        source = str(self.folder / recipe.text) if form_of(recipe.text) == "path" else recipe.text
        return Variant(entry.key.text, source, tuple(pairs), {"": (recipe.span, recipe.span), **pairs})

    def seeds(self, entry: YamlEntry | None) -> tuple[int, ...]:
        """Return the seeds of a list, or as many from 0 on as a number says; three by default."""
        if entry is None:
            return (0, 1, 2)
        if not isinstance(entry.value, YamlList):
            count = self.number(entry.value, "seeds", whole=True, least=1, most=MOST_SEEDS)
            return () if count is None else tuple(range(int(count)))
        found: dict[int, Span] = {}
        for item in entry.value.items:
            seed = self.number(item, "seeds", whole=True, least=0)
            if seed is not None and int(seed) in found:
                self.error(
                    "out-of-range", item.span, f"the seed {int(seed)} is used twice", hint="two runs of one seed are the same"
                )
            elif seed is not None:
                found[int(seed)] = item.span
        if not entry.value.items:
            self.error("empty-list", entry.value.span, "an experiment needs at least one seed")
        return tuple(found)

    def budget(self, entry: YamlEntry | None) -> Budget | None:
        """Return the length of each run: one of several measures."""
        if entry is None:
            return None
        kinds = get_args(BudgetKind)
        pairs = self.entries(entry.value, "budget")
        self.keys(pairs, kinds, "a budget")
        known = [each for each in pairs if each.key.text in kinds]
        if len(pairs) != 1 and isinstance(entry.value, YamlMapping):
            self.error("value-form", entry.key.span, "a budget has one measure", hint=f"one of {', '.join(kinds)}")
        if len(known) != 1:
            return None
        kind = cast("BudgetKind", known[0].key.text)
        amount = self.number(
            known[0].value, kind, whole=kind == "steps", least=1 if kind == "steps" else 0, above=kind != "steps"
        )
        return None if amount is None else Budget(kind, amount)

    def settings(self, entry: YamlEntry | None) -> TrainSettings:
        """Return the settings that all runs have in common."""
        usual = TrainSettings()
        given: dict[str, object] = {}
        pairs = self.entries(entry.value, "train") if entry is not None else ()
        self.keys(pairs, TRAINED, "`train`")
        for each in pairs:
            name = each.key.text
            if name in CHOICES:
                given[name] = self.choice(each, tuple(CHOICES[name])) or getattr(usual, name)
            elif name in TRAINED:
                whole = isinstance(getattr(usual, name), int)
                value = self.number(each.value, name, whole=whole, least=None)
                given[name] = getattr(usual, name) if value is None else int(value) if whole else value
        try:
            return TrainSettings(**given)  # type: ignore[arg-type]  # by their names
        except TrainingError as error:
            wrong = next((each for each in pairs if f"`{each.key.text}`" in str(error)), None)
            if entry is not None:
                self.error("out-of-range", wrong.value.span if wrong else entry.key.span, str(error), hint=error.hint)
        return usual

    def match(self, entry: YamlEntry | None) -> WidthMatch | None:
        """Return what is made equal, and by which param."""
        if entry is None:
            return None
        pairs = {each.key.text: each for each in self.entries(entry.value, "match")}
        self.keys(pairs.values(), ("what", "by", "multiple_of"), "`match`")
        if isinstance(entry.value, YamlMapping):
            for key in ("what", "by"):
                if key not in pairs:
                    hint = "such as `match: {what: parameters, by: d_model, multiple_of: 8}`"
                    self.error("missing-key", entry.key.span, f"`match` needs `{key}`", hint=hint)
        what = self.choice(pairs.get("what"), get_args(MatchedCost))
        by = self.scalar(pairs["by"].value, "`by` is the name of a param") if "by" in pairs else None
        step = pairs.get("multiple_of")
        multiple = 1.0 if step is None else self.number(step.value, "multiple_of", whole=True, least=1)
        if what is None or by is None or multiple is None:
            return None
        return WidthMatch(cast("MatchedCost", what), by.text, int(multiple), by.span)

    def choice(self, entry: YamlEntry | None, known: Sequence[str]) -> str | None:
        """Return one of a few words."""
        word = self.scalar(entry.value, f"`{entry.key.text}` takes one word") if entry is not None else None
        if entry is None or word is None or word.text in known:
            return None if word is None else word.text
        self.unknown("unknown-choice", word.span, entry.key.text, word.text, known)
        return None

    def number(
        self, node: YamlNode, name: str, *, whole: bool, least: float | None, above: bool = False, most: float | None = None
    ) -> float | None:
        """Return a number of at least `least`, or above it, and at most `most`."""
        word = self.scalar(node, f"`{name}` takes a number")
        if word is None:
            return None
        try:
            value = float(word.text.replace("_", "x"))  # Python's own underscores are no numbers of YAML
        except ValueError:
            self.error("not-a-number", word.span, f"`{name}` takes a number, not `{word.text[:40]}`")
            return None
        if not abs(value) < float("inf"):
            self.error("out-of-range", word.span, f"`{name}` must be finite")
            return None
        if whole and value != int(value):
            self.error("not-whole", word.span, f"`{name}` must be a whole number, not {word.text}")
            return None
        if least is not None and (value < least or (above and value == least)):
            self.error(
                "out-of-range", word.span, f"`{name}` must be {'above' if above else 'at least'} {least:g}, not {word.text}"
            )
            return None
        if most is not None and value > most:
            self.error("out-of-range", word.span, f"`{name}` must be at most {most:g}, not {word.text}")
            return None
        return value


def written(node: YamlNode) -> str:
    """Return a value as it is written, on one line."""
    span = node.span
    lines = span.source.lines[span.line - 1 : span.end_line]
    lines[-1] = lines[-1][: span.end_column - 1]
    lines[0] = lines[0][span.column - 1 :]
    return " ".join(line.strip() for line in lines)
