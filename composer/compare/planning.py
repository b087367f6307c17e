"""The plan of an experiment: for each variant its recipe with the width that was solved for, its costs and its steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from composer.compare.experiment import Budget, Experiment, Variant, WidthMatch
from composer.diagnostics import Diagnostic, RecipeError
from composer.loading import load
from composer.own_blocks import Blocks
from composer.recipe import Recipe
from composer.train.data.fitting import vocabulary_values
from composer.train.data.tokenizers import Tokenizer
from composer.train.errors import TrainingError
from composer.train.settings import TrainSettings

TOLERANCE = 0.01
"""How far the cost of a variant may be from that of the first one, as a share of it."""
WIDEST = 1 << 20
"""The largest width that is tried."""
NEIGHBORS = 64
"""How many widths are tried before the next one at which a model is sound."""
BACKWARD = 3
"""FLOPs of a training step for each FLOP of its forward pass: the backward pass has twice as many."""


@dataclass(frozen=True)
class PlannedVariant:
    """A variant that is about to be trained."""

    variant: Variant
    recipe: Recipe
    parameters: int
    flops: int
    """FLOPs of a training step: three times those of its forward passes."""
    width: int | None = None
    """The value of the param that is matched, which was solved for but in the first variant; None if nothing is matched."""
    steps: int | None = None
    """Steps of each run; None if the budget is a time, which is measured."""


def plan(experiment: Experiment, *, vocabulary: int | Tokenizer | None = None, blocks: Blocks = ()) -> tuple[PlannedVariant, ...]:
    """Return what is trained in an experiment, without training it.

    Args:
        experiment: The experiment.
        vocabulary: The tokenizer, to whose size and padding token the params of a recipe are set that a variant does not set
            itself; or its size alone.
        blocks: Block classes of your own, or Python files that define some.

    Raises:
        RecipeError: A recipe has errors, located in the experiment where it sets something.
        TrainingError: The variants are not of one task that can be trained, or the budget does not suffice for a step.

    Examples:
        >>> import composer
        >>> from pathlib import Path
        >>> from composer.compare import Budget, Experiment, Variant, plan
        >>> variants = (Variant("one", "gpt_mini", ("n_layers=1",)), Variant("two", "gpt_mini", ("n_layers=2",)))
        >>> experiment = Experiment("depth", (Path("input.txt"),), variants, (0,), Budget("tokens", 1e6))
        >>> [(each.parameters, each.steps) for each in plan(experiment)]
        [(205568, 244), (402432, 244)]
    """
    return plan_of(experiment, [sound_recipe(variant, blocks) for variant in experiment.variants], vocabulary)


def plan_of(experiment: Experiment, recipes: Sequence[Recipe], vocabulary: int | Tokenizer | None) -> tuple[PlannedVariant, ...]:
    """Return what is trained, as `plan` does, of variants whose recipes are loaded."""
    tasks = {recipe.task for recipe in recipes}
    if len(tasks) > 1:
        several = ", ".join(f"{each.name} is of {recipe.task}" for each, recipe in zip(experiment.variants, recipes, strict=True))
        raise TrainingError(f"the variants are of several tasks, whose losses cannot be compared: {several}")
    if vocabulary is not None:
        recipes = [recipe.with_overrides(vocabulary_values(recipe, vocabulary)) for recipe in recipes]
    first, *others = (
        planned(variant, recipe, experiment.settings) for variant, recipe in zip(experiment.variants, recipes, strict=True)
    )
    if experiment.match is not None:
        match = experiment.match
        own = first.recipe.program.untyped.params.get(match.by)
        first = replace(first, width=own if isinstance(own, int) else None)
        others = [matched(each, first, match, experiment.settings) for each in others]
    return tuple(replace(each, steps=steps_of(each, experiment.budget, experiment.settings)) for each in (first, *others))


def sound_recipe(variant: Variant, blocks: Blocks) -> Recipe:
    """Return the recipe of a variant.

    Raises:
        RecipeError: It cannot be read or has errors, located in the experiment where it sets something.
    """
    try:
        recipe = load(variant.recipe, variant.overrides, blocks)
        found = recipe.check()
    except RecipeError as error:
        raise RecipeError(located(error.diagnostics, variant)) from None
    wrong = [each for each in found if each.severity == "error"]
    if wrong:
        raise RecipeError(located(wrong, variant))
    return recipe


def located(found: Iterable[Diagnostic], variant: Variant) -> list[Diagnostic]:
    """Return diagnostics of a recipe, those of its overrides and those without a text at their places in the experiment."""

    def moved(each: Diagnostic) -> Diagnostic:
        text = each.span.source.text
        if text not in variant.places:
            return each
        path, value = variant.places[text]
        if not text:
            return replace(each, span=path, message=f"{each.span.source.name}: {each.message}")
        before = text.index("=") + 1
        start, end = each.span.column - 1 - before, each.span.end_column - 1 - before
        return replace(each, span=path if start < 0 else value.part(start, end))

    return [moved(each) for each in found]


def planned(variant: Variant, recipe: Recipe, settings: TrainSettings) -> PlannedVariant:
    """Return a variant with its costs."""
    lengths: Mapping[str, int] = recipe.summary().costs.lengths
    costs = recipe.summary({axis: 1 if axis == "batch" else settings.seq_len for axis in lengths}).costs
    sequences = settings.batch_size * settings.grad_accum
    return PlannedVariant(variant, recipe, costs.parameters, BACKWARD * costs.flops.dense * sequences)


def steps_of(planned: PlannedVariant, budget: Budget, settings: TrainSettings) -> int | None:
    """Return the steps that a budget has for a variant; None if they are measured.

    Raises:
        TrainingError: It does not suffice for one.
    """
    tokens = settings.batch_size * settings.grad_accum * settings.seq_len
    match budget.kind:
        case "steps":
            return int(budget.amount)
        case "tokens":
            steps = int(budget.amount // tokens)
        case "flops":
            steps = int(budget.amount // planned.flops)
        case "minutes":
            return None
    if steps < 1:
        per = f"{tokens:,} tokens" if budget.kind == "tokens" else f"{planned.flops:.3g} FLOPs"
        raise TrainingError(
            f"a budget of {budget.amount:g} {budget.kind} has no step of {planned.variant.name}, which takes {per}",
            hint="raise the budget, or lower `batch_size` or `seq_len`",
        )
    return steps


def matched(each: PlannedVariant, first: PlannedVariant, match: WidthMatch, settings: TrainSettings) -> PlannedVariant:
    """Return a variant with the width at which it costs as much as the first one, to 1 %.

    Raises:
        RecipeError: There is no such width, or the recipe has no such param.
    """
    params = each.recipe.program.untyped.params
    if match.by not in params or isinstance(params[match.by], bool) or not isinstance(params[match.by], int):
        raise refused("unknown-param", match, each, f"{each.variant.name} has no param `{match.by}` that is a whole number")
    if any(text.partition("=")[0].strip() == match.by for text in each.variant.overrides):
        raise refused("value-form", match, each, f"{each.variant.name} sets `{match.by}`, which `match` chooses")
    target = cost_of(first, match)

    def at(multiple: int) -> PlannedVariant | None:
        """Return the variant at a width, None if the model has errors there."""
        value = multiple * match.multiple_of
        recipe = each.recipe.with_overrides({match.by: value})
        if any(found.severity == "error" for found in recipe.check()):
            return None
        return replace(planned(each.variant, recipe, settings), width=value)

    def sound(multiple: int) -> PlannedVariant | None:
        """Return the variant at the next width at which the model has no errors."""
        return next((found for step in range(NEIGHBORS) if (found := at(multiple + step)) is not None), None)

    def cost(found: PlannedVariant | None) -> int:
        return target if found is None else cost_of(found, match)

    low, high = 0, 1
    while cost(sound(high)) < target and high * match.multiple_of < WIDEST:
        low, high = high, 2 * high
    while high - low > 1:  # costs grow with the width
        middle = (low + high) // 2
        low, high = (middle, high) if cost(sound(middle)) < target else (low, middle)
    around = [
        found for multiple in range(max(1, high - NEIGHBORS // 8), high + NEIGHBORS // 8) if (found := at(multiple)) is not None
    ]
    if not around:
        message = f"{each.variant.name} is sound at no `{match.by}` that is a multiple of {match.multiple_of}"
        raise refused("out-of-range", match, each, message)
    best = min(around, key=lambda found: (abs(cost(found) - target), found.width))
    if abs(cost(best) - target) > TOLERANCE * target:
        off = cost(best) / target - 1
        raise refused(
            "out-of-range", match, each,
            f"no `{match.by}` gives {each.variant.name} the {match.what} of {first.variant.name}, {target:,}, to 1 %: "
            f"{best.width} comes nearest, with {cost(best):,} ({off:+.1%})",
            hint="a smaller `multiple_of`, or a larger model, has finer steps",
        )  # fmt: skip
    return best


def cost_of(planned: PlannedVariant, match: WidthMatch) -> int:
    """Return the cost that is made equal."""
    return planned.parameters if match.what == "parameters" else planned.flops


def refused(code: str, match: WidthMatch, each: PlannedVariant, message: str, *, hint: str = "") -> RecipeError | TrainingError:
    """Return the error of a width that cannot be matched, at its place if the experiment was read from a file."""
    if match.place is None:
        return TrainingError(message, hint=hint)
    return RecipeError([Diagnostic(code, message, match.place, hint=hint)])
