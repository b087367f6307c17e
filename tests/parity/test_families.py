"""Encoders, encoder-decoders and models of images of the zoo against transformers' models, whose configurations and weights they
take, at tiny sizes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.core_model_loading import revert_weight_conversion

import composer
from composer.decode import session
from composer.diagnostics import RecipeError
from composer.language.tasks import TASKS
from tests.parity.families import FAMILIES, Given, T
from tests.parity.reference import loaded, perturbed, published, weight_map
from tests.parity.test_initial import assert_same_spread
from tests.parity.test_sizes import assert_same_parameters
from tests.parity.tiers import recipe_of, thorough
from tests.zoo import PARAMETERS

WRITERS = [name for name in FAMILIES if TASKS[composer.load(recipe_of(name)).program.untyped.recipe.task].text]
each_family = pytest.mark.parametrize("name", FAMILIES)


def pair(name: str) -> tuple[composer.Model, PreTrainedModel]:
    """Return the recipe's model, as transformers' configuration sets it, and transformers', with the same weights."""
    torch.manual_seed(0)
    reference = perturbed(FAMILIES[name].small())
    return loaded(recipe_of(name), reference), reference


def outputs(name: str, model: composer.Model, reference: PreTrainedModel, given: Given) -> list[tuple[Tensor, Tensor]]:
    """Return each output of ours with that of transformers, where it has a meaning."""
    ours, theirs = model(**given.ours), reference(**given.theirs)
    pairs = [(getattr(ours, mine), theirs[other]) for mine, other in FAMILIES[name].outputs.items()]
    return pairs if given.compared is None else [(mine[given.compared], other[given.compared]) for mine, other in pairs]


def assert_same(name: str, model: composer.Model, reference: PreTrainedModel) -> None:
    """Assert that the outputs of every call are equal within 1e-5 of the largest."""
    for case, given in FAMILIES[name].given().items():
        for ours, theirs in outputs(name, model, reference, given):
            assert ours.dtype == theirs.dtype == torch.float32
            largest = theirs.abs().max().item()
            torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5 * largest, msg=lambda m, case=case: f"{case}: {m}")


@torch.no_grad()
@each_family
def test_outputs_are_those_of_transformers(name: str) -> None:
    assert_same(name, *pair(name))


@torch.no_grad()
@pytest.mark.parametrize("name", WRITERS)
def test_steps_with_a_cache_are_those_of_transformers(name: str) -> None:
    """A few tokens and then one at a time, against transformers over the whole text."""
    model, reference = pair(name)
    given = next(iter(FAMILIES[name].given().values()))
    text = TASKS[model.program.untyped.recipe.task].text
    with session(model):
        ours = [model(**{**given.ours, text: some}).logits for some in given.ours[text].split([5, 1, 1, T - 7], dim=1)]
    theirs = reference(**given.theirs).logits
    torch.testing.assert_close(torch.cat(ours, dim=1), theirs, rtol=0, atol=1e-5 * theirs.abs().max().item())


@thorough(FAMILIES)
def test_gradients_are_those_of_transformers(name: str) -> None:
    """Of every parameter, by its published name."""
    model, reference = pair(name)
    given = next(iter(FAMILIES[name].given().values()))
    for both in outputs(name, model, reference, given):
        direction = torch.randn(both[0].shape, generator=torch.Generator().manual_seed(3))
        for one in both:
            (one * direction).sum().backward(retain_graph=True)
    kept = {key: torch.zeros_like(each) for key, each in model.named_buffers()}
    made = weight_map(model, reference, model.state_dict())
    ours = made.save({**kept, **gradients(model)})
    theirs = revert_weight_conversion(reference, gradients(reference))
    found = made.found(published(reference))
    copies = {found.get(copy.name, copy.name) for copy in made.rules.copies}
    largest = max(each.abs().max().item() for each in theirs.values())
    assert {found[key] for key in ours} - theirs.keys() <= {key for key, _ in reference.named_buffers()}
    assert theirs.keys() <= {found[key] for key in ours} | copies
    for key, gradient in ours.items():
        if found[key] not in theirs:
            continue
        torch.testing.assert_close(
            gradient, theirs[found[key]], rtol=1e-4, atol=1e-5 * largest, msg=lambda m, key=key: f"{key}: {m}"
        )


def gradients(model: torch.nn.Module) -> dict[str, Tensor]:
    """Return the gradient of each parameter by each of its names, zeros for one that nothing has read."""
    every = model.named_parameters(remove_duplicate=False)
    return {key: torch.zeros_like(each) if each.grad is None else each.grad for key, each in every}


@each_family
def test_weights_come_back_bit_for_bit(name: str) -> None:
    """Saved again, what was loaded is the `state_dict` of transformers, but for names that repeat another."""
    model, reference = pair(name)
    made, theirs = weight_map(model, reference, model.state_dict()), published(reference)
    saved, found = made.save(model.state_dict()), made.found(theirs)
    found = {key: name for key, name in found.items() if not key.endswith("num_batches_tracked")}  # counts calls
    assert found.keys() - saved.keys() <= {copy.name for copy in made.rules.copies} and saved.keys() <= found.keys()
    assert all(torch.equal(saved[key], theirs[found[key]]) for key in saved)


@torch.no_grad()
@each_family
def test_a_folder_that_transformers_wrote_is_the_model(name: str, tmp_path: Path) -> None:
    """In one call, from its `config.json` and its weights."""
    torch.manual_seed(0)
    reference = perturbed(FAMILIES[name].small())
    reference.save_pretrained(tmp_path)
    assert_same(name, composer.load(tmp_path).pretrained(), reference)


OTHER_STARTS = ("deit", "wav2vec2", "wav2vec2 large")
"""Families that start otherwise in transformers: tokens at 0, and the kernel that tells positions as any other convolution."""


@thorough({name: family for name, family in FAMILIES.items() if name not in OTHER_STARTS})
def test_initial_weights_spread_as_in_transformers(name: str) -> None:
    """Of a model wide enough to tell."""
    torch.manual_seed(0)
    reference = FAMILIES[name].small(**FAMILIES[name].wide)
    model = composer.load(recipe_of(name)).with_config(reference.config.to_dict()).compile(seed=0)
    assert_same_spread(model, reference)


@each_family
def test_default_sizes_are_the_published_ones(name: str) -> None:
    """The published `config.json` has every value of the recipe, or is that of another of its kinds."""
    with torch.device("meta"):
        theirs = FAMILIES[name].whole()
    recipe = composer.load(recipe_of(name))
    configured = recipe.with_config(theirs.config.to_dict())
    assert (configured.program.untyped.params == recipe.program.untyped.params) == (name == recipe.name)
    assert_same_parameters(configured, theirs, FAMILIES[name].parameters or PARAMETERS[name])


REFUSED = [
    pytest.param(name, key, marks=pytest.mark.exhaustive if number else ())
    for name, family in FAMILIES.items()
    for number, key in enumerate(family.refused)
]


@pytest.mark.parametrize(("name", "key"), REFUSED)
def test_what_a_recipe_does_not_do_is_refused_by_its_key(name: str, key: str) -> None:
    """What transformers does by another value of a key is never passed over."""
    config: dict[str, Any] = {**FAMILIES[name].small().config.to_dict(), key: FAMILIES[name].refused[key]}
    with pytest.raises(RecipeError) as error:
        composer.load(recipe_of(name)).with_config(config)
    spans = [wrong.span for wrong in error.value.diagnostics]
    assert f'"{key}"' in [span.source.lines[span.line - 1][span.column - 1 : span.end_column - 1] for span in spans]
