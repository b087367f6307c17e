"""Mamba's recurrence as a recipe of formulas, against a plain loop and the loop of transformers."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

import composer
from composer.graph.flatten import flatten
from composer.graph.scans.hoist_steps import hoist_steps
from composer.graph.typed import TypedScan
from tests.docs.pages import ROOT, examples

TEXT = next(each.text for each in examples(ROOT / "docs" / "language.md") if "recipe: selective_scan" in each.text)
B, T, I, N = 2, 9, 6, 4


def inputs(dtype: torch.dtype, length: int = T) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    draw = {
        name: torch.randn(B, length, width, generator=generator, dtype=torch.float64)
        for name, width in zip("ubc", (I, N, N), strict=True)
    }
    draw["delta"] = torch.rand(B, length, I, generator=generator, dtype=torch.float64)
    return {name: value.to(dtype) for name, value in draw.items()}


def looped(model: Any, given: dict[str, torch.Tensor]) -> torch.Tensor:
    """Return the same by a plain loop over the steps."""
    a, h, rows = -torch.exp(model.a_log.weight), torch.zeros(B, I, N, dtype=given["u"].dtype), []
    for step in range(given["u"].shape[1]):
        delta, u, b, c = (given[name][:, step] for name in ("delta", "u", "b", "c"))
        h = torch.exp(delta[:, :, None] * a) * h + delta[:, :, None] * b[:, None] * u[:, :, None]
        rows.append((h * c[:, None]).sum(-1))
    return torch.stack(rows, 1) + given["u"] * model.skip.weight


def test_it_is_the_plain_loop() -> None:
    """Values and gradients, in float64."""
    model = composer.load(TEXT).compile(dtype=torch.float64, seed=0)
    given = inputs(torch.float64)
    torch.testing.assert_close(model(**given).out, looped(model, given), rtol=1e-12, atol=1e-12)
    found, expected = [], []
    for run, grads in ((lambda: model(**given).out, found), (lambda: looped(model, given), expected)):
        model.zero_grad()
        run().square().sum().backward()
        grads.extend(parameter.grad.clone() for parameter in model.parameters())
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)


def test_it_has_no_loop() -> None:
    """The states of all steps are computed at once: a step is linear in the state."""
    source = composer.load(TEXT).export()
    assert (
        "recurrence(" in source.partition("class SelectiveScan(")[2]
        and " in zip(" not in source.partition("class SelectiveScan(")[2]
    )
    (scan,) = [node for node in hoist_steps(flatten(composer.load(TEXT).program)).root.nodes if node.name == "ssm"]
    assert isinstance(scan, TypedScan) and [*scan.linear] == ["h"]


def test_what_is_not_carried_is_computed_before_the_loop() -> None:
    """Where a step is not linear, what reads the state is left in it: one product, one sum and a curve."""
    text = TEXT.replace("compute: decay * h + dt * u * b", "compute: tanh(decay * h + dt * u * b)")
    source = composer.load(text).export()
    step = source.partition("class SelectiveScanSsm")[2].partition("class SelectiveScan(")[0]
    assert "exp" not in step and "einsum" not in step
    assert step.count("*") == 1
    (scan,) = [node for node in hoist_steps(flatten(composer.load(text).program)).root.nodes if node.name == "ssm"]
    assert isinstance(scan, TypedScan) and [node.name for node in scan.graph.nodes] == ["new", "y"]


def test_in_bfloat16_the_island_is_exact() -> None:
    """The decay is computed in float32 and rounded once; a state in float32 is carried where the formula says so."""
    model = composer.load(TEXT).compile(dtype=torch.bfloat16, seed=0)
    given = inputs(torch.bfloat16)
    assert model(**given).out.dtype == torch.bfloat16
    wide = TEXT.replace("compute: decay * h + dt * u * b", "compute: float32(decay * h + dt * u * b)")
    wide = wide.replace("exp(-dt * exp(float32(a_log)))", "float32(exp(-dt * exp(float32(a_log))))").replace(
        "in: [new, c]}", "in: [low, c]}"
    )
    wide = wide.replace("      y: {type", "      low: {compute: float(new)}\n      y: {type")
    fine = composer.load(wide).compile(dtype=torch.bfloat16, seed=0)
    fine.load_state_dict({**fine.state_dict(), **model.state_dict()})
    exact = copy.deepcopy(model).double()
    expected = exact(**{name: value.double() for name, value in given.items()}).out
    errors = [(each(**given).out.double() - expected).abs().mean() for each in (model, fine)]
    assert fine(**given).out.dtype == torch.bfloat16
    assert errors[1] < errors[0]


def test_it_is_the_loop_of_transformers() -> None:
    """That of Mamba without fused kernels, from the same projections on."""
    mamba = pytest.importorskip("transformers.models.mamba.modeling_mamba")
    config = pytest.importorskip("transformers").MambaConfig(
        hidden_size=3, state_size=N, intermediate_size=I, conv_kernel=2, time_step_rank=2, expand=2, num_hidden_layers=1,
        vocab_size=5, use_mambapy=False,
    )  # fmt: skip
    torch.manual_seed(0)
    mixer = mamba.MambaMixer(config, layer_idx=0).eval()
    caught: dict[str, torch.Tensor] = {}
    mixer.in_proj.register_forward_hook(lambda module, args, out: caught.update(gate=out.chunk(2, dim=-1)[1]))
    mixer.x_proj.register_forward_hook(lambda module, args, out: caught.update(u=args[0], projected=out))
    mixer.out_proj.register_forward_pre_hook(lambda module, args: caught.update(out=args[0]))
    with torch.no_grad():
        mixer(torch.randn(B, T, 3))
        time_step, b, c = caught["projected"].split([2, N, N], dim=-1)
        delta = torch.nn.functional.softplus(mixer.dt_proj(time_step))
        model = composer.load(TEXT).compile(seed=0)
        model.load_state_dict({**model.state_dict(), "a_log.weight": mixer.A_log, "skip.weight": mixer.D})
        out = model(delta=delta, u=caught["u"], b=b, c=c).out * torch.nn.functional.silu(caught["gate"])
    torch.testing.assert_close(out, caught["out"], rtol=1e-5, atol=1e-6)
