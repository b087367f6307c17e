"""The mapping between the parameters of a model and the tensors of a published checkpoint."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from composer.diagnostics import Diagnostic, Label, RecipeError, Source, Span
from composer.language.name_patterns import folded, without_numbers
from composer.language.unknown_names import unknown
from composer.language.wording import counted
from composer.language.yaml import nodes as document
from composer.weights.checkpoint_mistakes import SIZES, idle, misspelled, older, shape_hint, them, with_indices
from composer.weights.fit import first_of_each, fit, is_unit, uncovered
from composer.weights.prefixes import PrefixDifference, prefix_difference
from composer.weights.rule_reader import RuleReader
from composer.weights.rules import Rules
from composer.weights.tensor_maps import TensorMap, TensorShape, shown

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Match:
    """How the names in a checkpoint correspond to those of the rules."""

    found: Mapping[str, str]
    """The names in the checkpoint by those that the rules have for them."""
    difference: PrefixDifference | None
    """The prefix by which the names differ."""
    missing: tuple[str, ...]
    """Names of the rules that are not in the checkpoint."""
    strange: tuple[str, ...]
    """Names in the checkpoint, without its prefix, that the rules do not know."""
    passed_over: tuple[str, ...]
    """Names in the checkpoint that need no rule: ignored ones and copies."""


@dataclass(frozen=True)
class WeightMap:
    """The mapping between the parameters of a model and published tensors, for one model type and size.

    Examples:
        >>> import composer
        >>> from composer.weights import mapping
        >>> recipe = composer.load("gpt2", {"n_layers": 1})
        >>> model = recipe.compile(device="meta")
        >>> shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
        >>> mapping(recipe.checkpoints, "gpt2", shapes).published["wte.weight"]
        (50257, 768)
    """

    rules: Rules
    moves: tuple[TensorMap, ...]
    ours: Mapping[str, TensorShape]

    @cached_property
    def published(self) -> Mapping[str, TensorShape]:
        """The shapes of all published tensors that are needed, by name."""
        shapes = ((move.theirs, move.published([self.ours[name] for name in move.ours])) for move in self.moves)
        return {name: shape for names, each in shapes for name, shape in zip(names, each, strict=True)}

    def check(self, shapes: Mapping[str, Sequence[int]]) -> list[Diagnostic]:
        """Return an error for each missing, unexpected or misshapen tensor of a checkpoint.

        Args:
            shapes: The shapes of the checkpoint's tensors, by name.
        """
        match = self.match(shapes)
        rules, found = self.rules, match.found
        covered = {
            without_numbers(name): move.rule for move in self.moves for names in (move.theirs, *move.spellings) for name in names
        }
        beyond = [name for name in match.strange if without_numbers(name) in covered]
        strange = [name for name in match.strange if without_numbers(name) not in covered]
        there = {name: tuple(shapes[found[name]]) for name in strange}
        told = [*older(self.moves, match.missing, there)]
        by_older = frozenset[str]().union(*(names for _, names in told))
        lacking = [name for name in match.missing if name not in by_older]
        told += misspelled(
            self.moves, self.published, lacking, {name: each for name, each in there.items() if name not in by_older}
        )
        told += idle(rules, [name for name in strange if not any(name in names for _, names in told)])
        wrong = [each for each, _ in told]
        known = frozenset[str]().union(*(names for _, names in told))
        missing, strange = ([name for name in names if name not in known] for names in (match.missing, strange))
        if missing:
            message = f"the checkpoint lacks {counted(len(missing), 'tensor')}: {folded(missing)}"
            wrong.append(Diagnostic("checkpoints-missing", message, rules.span))
        if beyond:
            several = counted(len(beyond), "tensor")
            message = f"the checkpoint has {several} of indices that the model lacks: {with_indices(beyond)}"
            hint = f"{SIZES}, such as its number of layers"
            place = covered[without_numbers(beyond[0])].theirs.span
            wrong.append(Diagnostic("checkpoints-unexpected", message, place, hint=hint))
        if strange:
            message = f"no rule covers {counted(len(strange), 'published tensor')}: {folded(strange)}"
            hint = f"write a rule for {them(strange)}, or list {them(strange)} under `ignore`"
            wrong.append(Diagnostic("checkpoints-unexpected", message, rules.span, hint=hint))
        if len(found) < len(shapes):
            wrong.append(self._of_one_name(shapes, match.difference))
        for move in self.moves:
            for index, name in enumerate(move.theirs):
                wanted = self.published[name]
                if name in found and (shape := tuple(shapes[found[name]])) != wanted:
                    message = f"{name} is {shown(shape)} in the checkpoint, but {shown(wanted)} for this recipe"
                    hint = shape_hint(move, index, shape, [self.ours[each] for each in move.ours])
                    wrong.append(Diagnostic("checkpoints-shape", message, move.rule.theirs.span, hint=hint))
        return first_of_each(wrong)

    def _of_one_name(self, names: Iterable[str], difference: PrefixDifference | None) -> Diagnostic:
        """Return the error for the first two of a checkpoint's tensors that have one name in the rules."""
        by_name: dict[str, list[str]] = {}
        for name in names:
            by_name.setdefault(self._plain(name, difference), []).append(name)
        plain, several = next((plain, several) for plain, several in by_name.items() if len(several) > 1)
        message = f"{several[0]} and {several[1]} are both {plain} in the rules, without prefixes and with new words for old ones"
        return Diagnostic("checkpoints-ambiguous", message, self.rules.span)

    def load(self, theirs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the model's parameters by name.

        Args:
            theirs: The checkpoint's tensors, by name.

        Raises:
            RecipeError: The checkpoint does not match this model.
        """
        if wrong := self.check(shapes_of(theirs)):
            raise RecipeError(wrong)
        return {name: tensor.contiguous() for name, tensor in self.stream(theirs)}

    def stream(self, theirs: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
        """Yield the model's parameters with their names, one by one; most are views of the checkpoint's tensors.

        Args:
            theirs: The tensors of a checkpoint by name, for which `check` returned no errors.

        Raises:
            RecipeError: Two tensors that this recipe ties differ.
        """
        import torch

        found = self.found(theirs)
        for copy in self.rules.copies:
            name, original = copy.name, copy.original
            if name not in found or name in self.published or original not in self.published:
                continue
            if not torch.equal(theirs[found[name]], theirs[found[original]]):
                message = f"{name} differs from {original}, but this recipe ties them"
                raise RecipeError([Diagnostic("checkpoints-differ", message, copy.span, hint="remove the tie from the recipe")])
        for move in self.moves:
            shapes = [self.ours[name] for name in move.ours]
            yield from zip(move.ours, move.load([theirs[found[name]] for name in move.theirs], shapes), strict=True)
        covered = {name for move in self.moves for name in move.ours}
        yield from ((name, torch.ones(())) for name in self.ours if is_unit(name) and name not in covered)

    def save(self, ours: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the tensors of a checkpoint by their published names.

        Args:
            ours: The model's parameters, by name.
        """
        pairs = (zip(move.theirs, move.save([ours[name] for name in move.ours]), strict=True) for move in self.moves)
        return {name: tensor.contiguous() for pair in pairs for name, tensor in pair}

    def found(self, names: Iterable[str]) -> dict[str, str]:
        """Return the names of a checkpoint's tensors by their names in the rules.

        Args:
            names: The names of the checkpoint's tensors.
        """
        return dict(self.match(names).found)

    def match(self, names: Iterable[str]) -> Match:
        """Return how the names of a checkpoint's tensors correspond to those of the rules.

        A prefix that most names lack or have in addition is found by comparing both sides.

        Args:
            names: The names of the checkpoint's tensors.
        """
        rules, names = self.rules, [*names]
        plain = {self._plain(name): name for name in names}
        missing, strange = self._apart(plain)
        difference = prefix_difference(missing, strange, rules.passes_over)
        if difference is not None:
            plain = {self._plain(name, difference): name for name in names}
            missing, strange = self._apart(plain)
        passed_over = tuple(name for name in plain if name not in self.published and rules.passes_over(name))
        return Match(plain, difference, tuple(missing), tuple(strange), passed_over)

    @cached_property
    def spellings(self) -> Mapping[str, str]:
        """The names that other files have for published tensors, each with the first that the rules have."""
        pairs = (zip(other, move.theirs, strict=True) for move in self.moves for other in move.spellings)
        return {other: first for pair in pairs for other, first in pair}

    def spelled(self, names: Iterable[str]) -> dict[str, str]:
        """Return the published names that a checkpoint spells otherwise, each with how it does.

        Args:
            names: The names of the checkpoint's tensors.
        """
        names = [*names]
        difference = self.match(names).difference
        own = {self._plain(name, difference): self._unspelled(name, difference) for name in names}
        return {first: other for first, other in own.items() if other in self.spellings}

    def _plain(self, name: str, difference: PrefixDifference | None = None) -> str:
        """Return the name that the rules have for a tensor of a checkpoint, of several spellings the first."""
        plain = self._unspelled(name, difference)
        return self.spellings.get(plain, plain)

    def _unspelled(self, name: str, difference: PrefixDifference | None) -> str:
        plain = self.rules.plain(name)
        return plain if difference is None else difference.plain(plain)

    def _apart(self, found: Mapping[str, str]) -> tuple[list[str], list[str]]:
        """Return the names that are missing in a checkpoint, and those in it that the rules do not know."""
        missing = [name for name in self.published if name not in found]
        return missing, [name for name in found if name not in self.published and not self.rules.passes_over(name)]


def mapping(
    checkpoints: document.YamlMapping,
    model_type: str | None,
    ours: Mapping[str, Sequence[int]],
    params: Mapping[str, Any] = MappingProxyType({}),
    *,
    at: Span | None = None,
) -> WeightMap:
    """Return the mapping between a model's parameters and the tensors of a published checkpoint.

    Args:
        checkpoints: The value of `checkpoints:` in a recipe, `Recipe.checkpoints`.
        model_type: The model type of transformers; None if the recipe has rules for only one.
        ours: The shapes of the model's parameters, by name.
        params: The values of the recipe's params, which rules may use.
        at: Where the model type is written, if it was read from a file.

    Raises:
        RecipeError: The rules have errors, or cover a parameter twice or not at all.

    Examples:
        >>> import composer
        >>> from composer.weights import mapping
        >>> recipe = composer.load("gpt2", {"n_layers": 1})
        >>> shapes = {name: tuple(tensor.shape) for name, tensor in recipe.compile("meta").state_dict().items()}
        >>> found = mapping(recipe.checkpoints, "gpt2", shapes)
        >>> found.published["h.0.attn.c_attn.weight"]
        (768, 2304)
    """
    reader = RuleReader(params)
    rules = reader.rules(entry_of(checkpoints, model_type, at))
    if reader.diagnostics:
        raise RecipeError(reader.diagnostics)
    shapes = {name: tuple(shape) for name, shape in ours.items()}
    found = fit(rules, shapes)
    wrong = list(found.mistakes)
    if found.uncovered:
        used = {id(rule) for rule, _ in found.matches}
        idle = tuple(Label(rule.span, "covers nothing") for rule in rules.rules if id(rule) not in used)
        wrong.append(replace(uncovered(rules, found.uncovered), labels=idle))
    if wrong:
        raise RecipeError(first_of_each(wrong))
    return WeightMap(rules, found.moves, shapes)


def entry_of(checkpoints: document.YamlMapping, model_type: str | None, at: Span | None = None) -> document.YamlEntry:
    """Return the rules of a model type, or the only ones if no type is given.

    Args:
        checkpoints: The value of `checkpoints:` in a recipe.
        model_type: The model type; None if the recipe has rules for only one.
        at: Where the model type is written; None for an argument.

    Raises:
        RecipeError: There are no rules for this type, or no type is given and there are several.
    """
    types = [entry.key.text for entry in checkpoints]
    if model_type is None and len(types) == 1:
        return checkpoints.entries[0]
    if model_type is None:
        message = f"there are rules for {', '.join(types) or 'no model type'}"
        hint = "name one of them" if types else ""
        raise RecipeError([Diagnostic("checkpoints-unknown-type", message, checkpoints.span, hint=hint)])
    entry = checkpoints.entry(model_type)
    if entry is None:
        at = at or Span(Source("model_type", model_type), 1, 1, 1, len(model_type) + 1)
        labels = tuple(Label(each.key.span, "there are rules for this one") for each in checkpoints)
        wrong = unknown("checkpoints-unknown-type", at, "model type", model_type, types)
        raise RecipeError([replace(wrong, labels=labels)])
    return entry


def shapes_of(tensors: Mapping[str, Tensor]) -> Mapping[str, TensorShape]:
    """Return the shapes of tensors; for a checkpoint on disk, they are read from its header."""
    shapes = getattr(tensors, "shapes", None)
    return shapes if shapes is not None else {name: tuple(tensor.shape) for name, tensor in tensors.items()}
