"""What a compiled model computes, learns and costs is what its graph says."""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

import composer
from blocks.core import ports, standard
from blocks.masks.count import visible
from blocks.masks.mask import Mask
from blocks.masks.views import matrix
from composer.cost.costs import costs
from composer.graph.parameters import buffers, parameters
from composer.graph.typed import TypedBlock
from composer.graph.types import TensorType
from composer.lower import Model
from tests.conformance.cases import ALONE, CASES, each_of, models, recipes
from tests.conformance.inputs import DRAWS, blocks, draw, on, placed, shape_of
from tests.conformance.interpreter import Interpreter, Running

each_case = each_of(CASES)
SEEDS = 4
"""Draws in which a parameter may show that it learns."""


@each_case
@torch.no_grad()
def test_generated_code_computes_what_the_graph_says(case: str, device: str) -> None:
    """Bit for bit on a processor, for every output, with and without optional inputs; every node's shape is the one that was
    inferred.
    """
    for model in (placed(model, device) for model in models(case)):
        for position, lengths in enumerate(DRAWS):
            given = on(device, draw(model.program, lengths, seed=position, optional=position == 0))
            walk = Interpreter(model, dense=False, at_once=True)
            outputs = walk(**given)
            real = model(**given)
            for (field, name), value in zip(model.module.outputs, outputs.values(), strict=True):
                assert same(getattr(real, field), value), (name, model.recipe.text)
            losses = {name: walk.seen[node][1]["y"] for name, node in walk.program.losses.items() if node in walk.seen}
            assert real.losses.keys() == losses.keys()
            assert all(same(real.losses[name], value) for name, value in losses.items()), model.recipe.text
            for path, (node, values) in walk.seen.items():
                for port, value in values.items():
                    promised = node.outputs.get(port)
                    if isinstance(promised, TensorType) and isinstance(value, torch.Tensor):
                        assert tuple(value.shape) == shape_of(promised, lengths), (path, port, model.recipe.text)


def same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether two values are equal; on a GPU, where kernels that scatter add in no fixed order, whether they are close."""
    if one.device.type == "cpu":
        return torch.equal(one, other)
    return (
        one.dtype == other.dtype and one.shape == other.shape and torch.allclose(one, other, rtol=1e-5, atol=1e-6, equal_nan=True)
    )


OPENED = ("attention", "layernorm", "rmsnorm", "sum")


@pytest.mark.parametrize("kind", [kind if kind in OPENED else pytest.param(kind, marks=pytest.mark.exhaustive) for kind in ALONE])
@torch.no_grad()
def test_a_block_computes_the_same_where_lengths_are_left_open(kind: str, device: str) -> None:
    """Every length that an input has by a number is left to the call: that is refused, or changes nothing."""
    for recipe in recipes(f"block {kind}"):
        inputs = next(iter(re.findall(r"(?ms)^inputs:.*?(?=^\w|\Z)", recipe.text)), "")
        opened = composer.load(recipe.text.replace(inputs, re.sub(r"(?<=[\[ ])(\d+)(?=[,\]])", r"open\1", inputs)))
        if any(found.severity == "error" for found in opened.check()):
            continue
        one, two = (placed(each.compile(seed=1).eval(), device) for each in (recipe, opened))
        given = on(device, draw(one.program, DRAWS[0], seed=3))
        for ours, theirs in zip(one(**given)[:-1], two(**given)[:-1], strict=True):
            torch.testing.assert_close(ours, theirs, equal_nan=True, msg=lambda m, text=opened.text: f"{m}\n{text}")


class Measuring(Interpreter):
    """Gives every block other numbers at its shape-only inputs, and at those that are read in training alone."""

    def block(self, block: TypedBlock, given: Mapping[str, Any], path: str) -> dict[str, Any]:
        unread = (*block.part.shape_only_inputs, *block.part.training_inputs)
        others = {port: other(given[port]) for port in unread if given.get(port) is not None}
        return super().block(block, {**given, **others}, path)


def other(value: torch.Tensor) -> torch.Tensor:
    """Return other numbers of the shape and dtype of a value."""
    return torch.randn_like(value) if value.is_floating_point() else ~value


@each_case
@torch.no_grad()
def test_numbers_of_what_is_measured_do_not_count(case: str) -> None:
    """A block that is given noise at its `shape_only_inputs` gives what it gave, so that every output is the same; in evaluation,
    so does one at its `training_inputs`.
    """
    for model in models(case):
        if not any(block.part.shape_only_inputs or block.part.training_inputs for block in blocks(model.program.root)):
            continue
        given = draw(model.program, DRAWS[0], seed=3)
        plain, noisy = Interpreter(model, dense=False)(**dict(given)), Measuring(model, dense=False)(**dict(given))
        assert plain.keys() == noisy.keys()
        assert all(torch.equal(plain[name], noisy[name]) for name in plain), model.recipe.text


OF_EVERY_POSITION = {"block moe": {"y", "routing", "router_z"}}
"""Outputs that are of each position, or of all, whether it is valid or not."""


@pytest.mark.parametrize("case", [f"block {kind}" for kind in ALONE if "valid" in ports(standard()[kind])])
@torch.no_grad()
def test_padding_has_no_influence(case: str) -> None:
    """A block that is told what is valid gives the same whatever stands elsewhere."""
    padded = [model for model in models(case) if "valid" in model.program.inputs]
    assert padded
    for model in padded:
        given = draw(model.program, DRAWS[1], seed=6)
        axes, valid = model.program.inputs["valid"].sizes, given["valid"]
        valid[..., 1::2] = False
        noisy = dict(given)
        for name, type_ in model.program.inputs.items():
            if type_.dtype == "float" and type_.sizes[: len(axes)] == axes:
                noisy[name] = torch.where(valid.view(*valid.shape, *[1] * (given[name].dim() - valid.dim())), given[name], 99.0)
        quiet, loud = (model(**each)._asdict() for each in (given, noisy))
        for name in quiet.keys() - {"losses"} - OF_EVERY_POSITION.get(case, set()):
            torch.testing.assert_close(quiet[name], loud[name], msg=lambda m, of=model: f"{m}\n{of.recipe.text}")


@each_case
@torch.no_grad()
def test_fast_paths_compute_what_the_masks_say(case: str) -> None:
    """In float64, against every mask as the matrix that its predicate makes."""
    for model in models(case):
        wide = copy.deepcopy(model).double()
        for optional in (False, True):
            given = draw(model.program, DRAWS[1], seed=5, optional=optional, dtype=torch.float64)
            real, walked = wide(**given), Interpreter(wide, dense=True)(**given)
            for (field, _), value in zip(model.module.outputs, walked.values(), strict=True):
                torch.testing.assert_close(
                    getattr(real, field), value, rtol=1e-9, atol=1e-9, msg=lambda m, of=model: f"{m}\n{of.recipe.text}"
                )


@each_case
def test_every_parameter_learns(case: str, device: str) -> None:
    """A nonzero gradient for every trainable parameter, in float64, in one of a few draws; none for a frozen one.

    What adds the same to every score of a softmax has no influence by construction, and what feeds a unit that is off has none
    where it is: a parameter without a gradient must prove it, by changing no output when it is moved a little.
    """
    for model in models(case):
        wide = copy.deepcopy(model).double().to(device)
        waiting = {name for name, parameter in wide.named_parameters() if parameter.requires_grad}
        for seed in range(SEEDS):
            if not waiting:
                break
            given = given_in(seed, wide, device)
            wide.zero_grad(set_to_none=True)
            value = loss(wide(**given))
            if value.requires_grad:  # which it does not where a block that reads only the shape is behind every parameter
                value.backward()
            waiting -= {n for n, p in wide.named_parameters() if p.grad is not None and p.grad.abs().max() > 1e-12}
        for name in waiting:
            assert not moves(wide, name, device), (name, model.recipe.text)
        assert all(p.grad is None for p in wide.parameters() if not p.requires_grad)


def loss(output: Any) -> torch.Tensor:
    """Return one number that depends on every output in its own way."""
    values = [*output[:-1], *output[-1].values()] if isinstance(output[-1], dict) else output
    parts = [value for value in values if value.dtype.is_floating_point]
    return sum((p * torch.linspace(0.5, 1.5, p.numel(), dtype=p.dtype, device=p.device).view_as(p)).sin().sum() for p in parts)  # type: ignore[return-value]  # never empty


def given_in(seed: int, model: Model, device: str) -> dict[str, torch.Tensor]:
    """Return the inputs of a draw: short and long ones, with those that are optional and without."""
    return on(device, draw(model.program, DRAWS[seed % 2], seed=seed, optional=seed % 2 == 0, dtype=torch.float64))


@torch.no_grad()
def moves(model: Model, name: str, device: str) -> bool:
    """Return whether a parameter has any influence on any output around its value, where its gradient was taken. The move is
    small, since a larger one may change what is chosen, such as an expert, through values whose gradients vanish.
    """
    given = [given_in(seed, model, device) for seed in range(SEEDS)]
    before = [loss(model(**one)) for one in given]
    parameter = model.get_parameter(name)
    kept = parameter.clone()
    chance = torch.Generator().manual_seed(9)

    def moved(size: float) -> list[bool]:
        parameter.add_(size * torch.randn(parameter.shape, generator=chance, dtype=parameter.dtype).to(parameter.device))
        after = [loss(model(**one)) for one in given]
        parameter.copy_(kept)
        return [(a - b).abs().item() > 1e-11 * (1 + a.abs().item()) for a, b in zip(before, after, strict=True)]

    # Equal tokens tie where experts choose among them: what rounding decides there is no influence.
    by_rounding = [moved(size) for size in (1e-13, 2e-13, 5e-13, 1e-12)]
    return any(far and not any(near) for far, *near in zip(moved(1e-5), *by_rounding, strict=True))


@each_case
def test_declared_parameters_are_the_built_ones(case: str) -> None:
    """Names, shapes, number and who owns what."""
    for model in models(case):
        table = parameters(model.program)
        own = {entry.name: entry.parameter.shape for entry in table if not entry.tied_to}
        kept = {name: buffer.shape for name, buffer in buffers(model.program).items()}
        assert kept == {name: tuple(value.shape) for name, value in model.named_buffers()}, model.recipe.text
        assert own | kept == {name: tuple(value.shape) for name, value in model.state_dict().items()}, model.recipe.text
        assert sum(map(math.prod, own.values())) == sum(p.numel() for p in model.parameters())
        for entry in table:
            assert model.get_parameter(entry.name) is model.get_parameter(entry.owner)
            assert model.get_parameter(entry.owner).requires_grad or not entry.trainable


@each_case
@torch.no_grad()
def test_declared_dense_flops_are_those_that_torch_counts(case: str) -> None:
    """To the last one, on the meta device, every mask a matrix, so that attention computes the full square whatever it hides."""
    for model in models(case):
        lengths = DRAWS[1]
        empty = Interpreter(copy.deepcopy(model).requires_grad_(False).to("meta"), dense=True)
        given = on("meta", draw(model.program, lengths, optional=False))
        with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
            empty(**given)
        assert costs(model.program, lengths).flops.dense == counter.get_total_flops(), model.recipe.text


@each_case
def test_declared_masked_flops_are_sums_over_the_masks(case: str) -> None:
    """What a mask is said to leave, where no data decides, is what is true in its matrix."""
    for model in models(case):
        for block in blocks(model.program.root):
            for mask in (value for value in vars(block.part).values() if isinstance(value, Mask)):
                if mask.edge_types():
                    continue
                for queries, keys in ((7, 7), (5, 9)):
                    seen = matrix(Running(mask, grows=queries == keys), torch.arange(queries), torch.arange(keys), {})
                    pairs = queries * keys if seen is None else int(seen.expand(1, queries, keys).sum())
                    assert visible(mask, queries, keys) == pairs, model.recipe.text
        flops = costs(model.program, DRAWS[1]).flops
        assert 0 <= flops.masked <= flops.dense
