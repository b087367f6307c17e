"""A published model read as a recipe: its configuration, and the names and shapes of its weights, together."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from composer.atomic_files import StrPath
from composer.diagnostics import Diagnostic, RecipeError, Source
from composer.language.composition.override import Override, Overrides, read_override, read_overrides
from composer.language.source_file import form_of
from composer.language.suggestions import did_you_mean, suggest
from composer.own_blocks import Blocks
from composer.published.extension import changes, cut_away, merged, passing_over, written
from composer.published.findings import Findings
from composer.published.folder import CONFIG, PublishedFolder, published_folder
from composer.published.heads import Cut, other_heads, patterns, promised, without_head
from composer.recipe import Recipe, text_of, zoo_names
from composer.weights.config import model_type_of, parsed
from composer.weights.json_places import places
from composer.weights.mapping import Match, WeightMap, mapping
from composer.weights.model_names import names_of
from composer.weights.other_formats import refuse
from composer.weights.published_files import PublishedCheckpoint

TIED, UNTIED = "tied=true", "tied=false"
"""What a `config.json` sets that ties the head to the embedding. transformers takes it for a default: a head that the checkpoint
has all the same is read."""


@dataclass(frozen=True)
class Imported:
    """A published model as a recipe."""

    recipe: Recipe
    """It extends one of the zoo, and knows its weights."""
    findings: Findings
    overrides: tuple[Override, ...]
    """What its configuration and the user set that differs in the recipe that it extends."""
    folder: PublishedFolder
    made: WeightMap | None
    """How its weights are read; None without weights."""
    match: Match | None


@dataclass(frozen=True)
class _Fitted:
    """What a checkpoint changes in a recipe that its configuration has set."""

    data: Mapping[str, Any]
    cut: Cut | None
    beside: tuple[str, ...]
    """Tensors of heads that the recipe does not have."""
    wrong: list[Diagnostic]


def imported(
    place: StrPath,
    *,
    recipe: str | None = None,
    overrides: Overrides = None,
    blocks: Blocks = (),
    weights: StrPath | None = None,
) -> Imported:
    """Return a published model as a recipe that extends another.

    Args:
        place: A published folder, or a `config.json`.
        recipe: The recipe to set the values in; by default, the one of the zoo for this type of model.
        overrides: Further values, which win over those of the configuration.
        blocks: Block classes of the user, or Python files that define some.
        weights: The weights, if they are not beside the configuration.

    Raises:
        RecipeError: The configuration has keys or values that the recipe does not support, or the weights do not fit; all of it
            at once.
    """
    folder = published_folder(Path(place))
    if weights is not None:
        folder = replace(folder, weights=Path(weights))
    return imported_folder(folder, recipe=recipe, overrides=overrides, blocks=blocks)


def imported_folder(
    folder: PublishedFolder,
    *,
    recipe: str | None = None,
    overrides: Overrides = None,
    blocks: Blocks = (),
    shapes: Mapping[str, tuple[int, ...]] | None = None,
) -> Imported:
    """Return what a published folder holds as a recipe that extends another.

    Args:
        folder: The folder.
        recipe: As for `imported`.
        overrides: As for `imported`.
        blocks: As for `imported`.
        shapes: The shapes of its tensors by name, for weights that are not written yet; by default, those of the files.

    Raises:
        RecipeError: As for `imported`.
    """
    name = recipe or zoo_recipe_for(folder)
    base = Recipe(text_of(name), (), blocks)
    read = base.read_config(folder.config, overrides)
    wrong = list(read.wrong)
    changed = replace(base, overrides=(*read.overrides, *read_overrides(overrides)))
    sound = not any(each.severity == "error" for each in changed.check())
    made, match, fitted = None, None, _Fitted({}, None, (), [])
    if folder.weights is not None and sound:
        shapes = _shapes(folder.weights) if shapes is None else shapes
        made, match, fitted = _matched(changed, folder, shapes)
        if fitted.wrong and TIED in map(str, read.overrides):
            apart = replace(changed, overrides=(*changed.overrides, read_override(UNTIED)))
            if not (untied := _matched(apart, folder, shapes))[2].wrong:
                changed, (made, match, fitted) = apart, untied
        wrong += (_with_way_out(each, name, made, match) for each in fitted.wrong)
    if wrong:
        raise RecipeError(wrong)
    data, differences = changes(base, changed)
    title = folder.title if folder.weights is not None else CONFIG
    findings = Findings(title, base.name, None, tuple(differences), read.passed_over, match, fitted.cut, fitted.beside)
    data = merged(data, fitted.data)

    def made_of(findings: Findings) -> Recipe:
        doc = f"{base.name} as published in {title}." if folder.weights is not None else None
        own = base.name if folder.weights is None else _name(title, base.name)
        text = written(own, _extended(name), doc, data, findings.lines)
        result = Recipe(_source(text, name, folder), (), blocks, published=folder.weights)
        if form_of(name) == "name":
            return result
        # what is extended may not lie below the place to which this is written
        return replace(result, source=Source(result.source.name, result.text))

    result = made_of(findings)
    if any(each.severity == "error" for each in result.check()):
        raise RecipeError(result.check())
    if made is not None and match is not None and shapes is not None:
        made = _mapped(result, folder)
        match = made.match(shapes)
        if left := made.check(shapes):
            raise RecipeError(left)
    findings = replace(findings, parameters=_parameters(result))
    return Imported(made_of(findings), findings, _that_change(base, changed.overrides), folder, made, match)


def recipe_of_type(kind: str) -> str | None:
    """Return the recipe of the zoo whose `checkpoints` list a model type; None if there is none."""
    return _of_type(kind, _zoo())


def zoo_recipe_for(folder: PublishedFolder) -> str:
    """Return the recipe of the zoo whose `checkpoints` list the model type of a configuration.

    Raises:
        RecipeError: There is no such recipe.
    """
    kind = model_type_of(parsed(folder.config))
    if kind is None:
        refuse(
            "checkpoints-unknown-type", "this file has no model_type", folder.config.name, hint="choose a recipe with --recipe"
        )
    sources = _zoo()
    if (name := _of_type(kind, sources)) is not None:
        return name
    types = [known for source in sources.values() for known in _types(source)]
    offered = suggest(kind, types)
    hint = f"the zoo has recipes for {', '.join(sorted(set(types)))}; for others, write one and name it with --recipe"
    message = f"the zoo has no recipe for the model type {kind}"
    place = places(folder.config)["model_type"].value
    raise RecipeError([Diagnostic("checkpoints-unknown-type", message, place, hint=did_you_mean(offered) if offered else hint)])


def _shapes(weights: Path) -> Mapping[str, tuple[int, ...]]:
    with PublishedCheckpoint(weights) as checkpoint:
        return checkpoint.shapes


def _zoo() -> Mapping[str, Source]:
    return {name: text_of(name) for name in zoo_names()}


def _of_type(kind: str, sources: Mapping[str, Source]) -> str | None:
    return next((name for name, source in sources.items() if f"  {kind}:" in source.text and kind in _types(source)), None)


def _types(source: Source) -> list[str]:
    """Return the model types that a recipe has rules for."""
    return [entry.key.text for entry in Recipe(source).checkpoints or ()]


def _that_change(base: Recipe, overrides: Sequence[Override]) -> tuple[Override, ...]:
    """Return the overrides that change something in a recipe as it is with those before them."""
    kept: tuple[Override, ...] = ()
    for each in overrides:
        if changes(replace(base, overrides=kept), replace(base, overrides=(*kept, each)))[0]:
            kept = (*kept, each)
    return kept


def _matched(recipe: Recipe, folder: PublishedFolder, shapes: Mapping[str, tuple[int, ...]]) -> tuple[WeightMap, Match, _Fitted]:
    """Return how a recipe reads a checkpoint, and what that changes in it."""
    made = _mapped(recipe, folder)
    match = made.match(shapes)
    return made, match, _fitted(recipe, made, match, shapes, folder)


def _fitted(
    recipe: Recipe, made: WeightMap, match: Match, shapes: Mapping[str, tuple[int, ...]], folder: PublishedFolder
) -> _Fitted:
    """Return what a checkpoint changes in a recipe, and where it does not fit all the same."""
    typed, kind = recipe.program, made.rules.model_type
    beside = other_heads(typed, made, match)
    cut = without_head(typed, made, match) if match.missing else None
    wrong = made.check({name: shape for name, shape in shapes.items() if name not in {match.found[one] for one in beside}})
    if cut is not None:
        if named := promised(parsed(folder.config).get("architectures"), recipe.task):
            hint = f"config.json promises them with the class {named}; of a body alone, `architectures` names another class"
            lacking = [each for each in wrong if each.code == "checkpoints-missing"]
            return _Fitted(
                {}, None, (), [*(replace(each, hint=hint) for each in lacking), *(e for e in wrong if e not in lacking)]
            )
        wrong = [each for each in wrong if each.code != "checkpoints-missing"]
    elif beside and any(each.code == "checkpoints-missing" for each in wrong):
        wrong = made.check(shapes)  # what seems to be another head may be what is missing, by other names
    data = [] if cut is None else [cut_away(recipe, made, kind, cut)]
    if beside:
        data.append(passing_over(recipe, kind, patterns(beside)))
    return _Fitted(merged(*data), cut, beside, wrong)


def _with_way_out(wrong: Diagnostic, name: str, made: WeightMap, match: Match) -> Diagnostic:
    """Return an error; of tensors that no rule covers, with a recipe that passes them over: the zoo's is not the user's."""
    if wrong.code != "checkpoints-unexpected" or wrong.span != made.rules.span or form_of(name) != "name":
        return wrong
    over = f"checkpoints: {{{made.rules.model_type}: {{ignore: [{', '.join(patterns(match.strange))}]}}}}"
    hint = f"if the model does not need them, `extends: {name}` with `{over}` in a file, and that after --recipe"
    return replace(wrong, hint=hint)


def _mapped(recipe: Recipe, folder: PublishedFolder) -> WeightMap:
    assert recipe.checkpoints is not None  # its configuration was read by them
    typed = recipe.program
    return mapping(recipe.checkpoints, model_type_of(parsed(folder.config)), names_of(typed).owned, typed.untyped.params)


def _parameters(recipe: Recipe) -> int:
    return recipe.summary().costs.parameters


def _name(title: str, base: str) -> str:
    """Return a folder's name as that of a recipe."""
    plain = re.sub(r"[^a-z0-9]+", "_", title.lower()).strip("_")
    return plain if re.fullmatch(r"[a-z]\w*", plain) else f"{base}_{plain}".strip("_")


def _extended(name: str) -> str:
    return name if form_of(name) == "name" else Path(name).name


def _source(text: str, name: str, folder: PublishedFolder) -> Source:
    """Return the source of a text, where the recipe that it extends is found."""
    home = folder.path if form_of(name) == "name" else Path(name).parent
    return Source(str(home / "recipe.yaml"), text)
