"""What a recipe says about published checkpoints, changed at random: refused where it is written, or loaded bit for bit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from functools import cache

import pytest
import torch
from torch import Tensor

import composer
from composer.diagnostics import Diagnostic, RecipeError
from composer.language.yaml.nodes import YamlEntry, YamlMapping, YamlNode
from composer.weights import check_rules, mapping
from composer.weights.config_syntax import Config, ConfigReader
from composer.weights.model_names import names_of
from composer.weights.rule_reader import RuleReader
from tests.weights.rule_mutants import SMALL, Data, Mutant, mutants, seeds

NAMES = [*sorted([*SMALL, "offset", "page0", "page1"]), "paths"]


@cache
def recipes() -> dict[str, Data]:
    """Return the recipes that are changed."""
    return seeds()


def test_the_recipes_that_are_changed_are_all_there() -> None:
    """And nothing is wrong with them."""
    assert sorted(recipes()) == sorted(NAMES)
    for data in recipes().values():
        assert holds(Mutant("nothing", data, ())) == "loads"


@pytest.mark.parametrize("name", NAMES)
def test_a_changed_mapping_is_refused_in_its_place_or_loads(name: str) -> None:
    """A slice of all changes."""
    outcomes = Counter(holds(each) for each in mutants(recipes()[name], 7, seed=NAMES.index(name)))
    assert sum(outcomes.values()) == 7


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", NAMES)
def test_many_changed_mappings_are_refused_in_their_places_or_load(name: str) -> None:
    """More of them; some of each are refused, and some load."""
    outcomes = Counter(holds(each) for each in mutants(recipes()[name], 400, seed=1000 + NAMES.index(name)))
    assert outcomes["refused"] > 100 and outcomes["loads"] > 20


def holds(mutant: Mutant) -> str:
    """Return whether a changed recipe is refused or loads, and assert that it does one of these rightly."""
    text = mutant.text
    recipe = composer.load(text)
    errors = [each for each in recipe.check() if each.severity == "error"]
    typed = recipe._outcome[0]
    if typed is None and any(_of_no_map(each) for each in errors):
        return "refused"
    if typed is None:  # sizes that no model has
        assert "change_params" in mutant.what, f"{mutant.what}: {errors}\n{text}"
        return "no model"
    agree(recipe)
    if errors:
        located(mutant, recipe, errors)
        return "refused"
    loads(recipe, f"{mutant.what}\n{text}")
    configured(recipe, f"{mutant.what}\n{text}")
    return "loads"


def _of_no_map(error: Diagnostic) -> bool:
    """Return whether a map is like nothing or like itself, or takes away what the other has not."""
    return error.code == "nothing-to-delete" or "like: " in error.span.source.lines[error.span.line - 1]


def located(mutant: Mutant, recipe: composer.Recipe, errors: list[Diagnostic]) -> None:
    """Assert that errors are under `checkpoints`, and one of them marks the change; of two rules that clash, it marks both."""
    root = recipe.document.root
    assert root is not None
    whole = root.entry("checkpoints")
    assert whole is not None
    about = f"{mutant.what} {mutant.keys}: {errors}\n{mutant.text}"
    for each in errors:
        assert each.span.source == whole.key.span.source and whole.key.span.line < each.span.line <= whole.value.span.end_line, (
            about
        )
        assert (each.span.line, each.span.column) < (each.span.end_line, each.span.end_column), about
    lines = {line for key, line in places(whole.value) if key in mutant.keys}
    marked = {span.line for each in errors for span in (each.span, *(label.span for label in each.labels))}
    assert marked & lines, about


def places(node: YamlNode) -> Iterator[tuple[str, int]]:
    """Yield each line of what is written for each key, which in a map like another may stand apart from the key; of a model
    type, the line of its name alone.
    """
    for depth, entry in entries(node, 0):
        if depth:
            yield from ((entry.key.text, inner.value.span.end_line) for _, inner in entries(entry.value, depth + 1))
        last = entry.key.span.line if not depth else max(entry.value.span.end_line, entry.key.span.line)
        yield from ((entry.key.text, line) for line in range(entry.key.span.line, last + 1))


def entries(node: YamlNode, depth: int) -> Iterator[tuple[int, YamlEntry]]:
    """Yield the entries of mappings in mappings, each with how deep it is."""
    for entry in node if isinstance(node, YamlMapping) else ():
        yield depth, entry
        yield from entries(entry.value, depth + 1)


def agree(recipe: composer.Recipe) -> None:
    """Assert that some passes show what all of them would."""
    typed, checkpoints = recipe._outcome[0], recipe.checkpoints
    assert typed is not None and checkpoints is not None
    for entry in checkpoints:
        reader = RuleReader(typed.untyped.params)
        rules = reader.rules(entry)
        if not reader.diagnostics:
            assert check_rules._misfits(rules, typed) == check_rules._against(rules, names_of(typed))


def loads(recipe: composer.Recipe, what: str) -> None:
    """Assert that tensors of the names and shapes that the rules give make every parameter, and come back bit for bit."""
    typed, checkpoints = recipe.program, recipe.checkpoints
    assert checkpoints is not None
    ours = names_of(typed).owned
    for entry in checkpoints:
        made = mapping(checkpoints, entry.key.text, ours, typed.untyped.params)
        theirs = drawn(dict(made.published))
        assert made.check({name: tuple(tensor.shape) for name, tensor in theirs.items()}) == [], what
        filled = made.load(theirs)
        assert {name: tuple(tensor.shape) for name, tensor in filled.items()} == dict(ours), what
        saved = made.save(filled)
        assert saved.keys() == theirs.keys(), what
        assert all(torch.equal(saved[name], tensor) for name, tensor in theirs.items()), what
        numbers = sorted(number for tensor in theirs.values() for number in tensor.flatten().tolist())
        offset = any(rule.offset for rule in made.rules.rules)
        assert offset or numbers == sorted(number for tensor in filled.values() for number in tensor.flatten().tolist()), what
        copied = {copy.name: theirs[copy.original] for copy in made.rules.copies if copy.original in theirs}
        again = made.load({**copied, **theirs})
        assert all(torch.equal(again[name], tensor) for name, tensor in filled.items()), what


def configured(recipe: composer.Recipe, what: str) -> None:
    """Assert that a file with the keys that `config` names sets what they name: its values may be refused, but no path is, unless
    it leads into another block than the file chooses.
    """
    assert recipe.checkpoints is not None
    for entry in recipe.checkpoints:
        node = entry.value.get("config") if isinstance(entry.value, YamlMapping) else None
        if node is None:
            continue
        config = ConfigReader().config(node)
        choices = max((len(setting.values) for setting in config.settings), default=0)
        refused = [unknown_paths(recipe, entry.key.text, config, choice) for choice in range(max(1, choices))]
        assert not frozenset.intersection(*refused), what


def unknown_paths(recipe: composer.Recipe, kind: str, config: Config, choice: int) -> frozenset[str]:
    """Return the keys of a file that lead nowhere, if each key with several values has the one of this index, or its last."""
    params = recipe.program.untyped.params
    file: dict[str, object] = {"model_type": kind}
    for setting in config.settings:
        own = params.get(setting.path.text, 1)
        for key in setting.keys:
            *around, name = key.split(".")
            holder = file
            for each in around:
                holder = holder.setdefault(each, {})  # type: ignore[assignment]  # made here
            known = setting.values[min(choice, len(setting.values) - 1)][0] if setting.values else None
            holder[name] = known or (float(own) if isinstance(own, Fraction) else own)
    try:
        assert recipe.with_config(file).program
    except RecipeError as error:
        wrong = [each for each in error.diagnostics if each.severity == "error" and each.code.startswith("unknown-")]
        return frozenset(each.span.source.lines[each.span.line - 1].partition(":")[0].strip() for each in wrong)
    return frozenset()


def drawn(shapes: dict[str, tuple[int, ...]]) -> dict[str, Tensor]:
    """Return tensors of numbers that are all different, and small enough for 1 to be added exactly."""
    found, start = {}, 0
    for name, shape in shapes.items():
        count = torch.Size(shape).numel()
        found[name] = torch.arange(start, start + count, dtype=torch.float32).reshape(shape)
        start += count
    return found
