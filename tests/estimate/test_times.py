"""Time by a roofline, against sums by hand and the FLOPs that torch counts."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from torch.utils.flop_counter import FlopCounterMode

import composer
from composer.cost.lengths import lengths_of
from composer.estimate import DEVICES, DeviceSpec, estimate
from composer.estimate.batch import largest
from composer.estimate.devices import at_size
from composer.estimate.estimating import batch_of, traced_step
from composer.estimate.work import Operation, duration
from composer.train import TrainSettings
from composer.train.losses import loss
from tests.estimate.test_memory import TINY

DEVICE = DeviceSpec(name="one", matmul={"fp32": ((1.0, 100.0),), "bf16": ((1.0, 400.0),)}, bandwidth=((1.0, 10.0),), launch=0.5)
PRODUCT = Operation("forward pass", "matrix products", "fp32", 600, 0, 20, 10, 0)
MOVE = Operation("forward pass", "memory traffic", "fp32", 0, 0, 7, 3, 0)


def test_each_operator_takes_as_long_as_its_bottleneck() -> None:
    """A product of 600 FLOPs and 30 bytes takes 6 s or 3 s, whichever is more; in bf16 memory is slower."""
    found = duration(Counter({PRODUCT: 2, MOVE: 3}), DEVICE)
    assert found.seconds == pytest.approx(2 * 6 + 3 * 1)
    assert found.parts == {"matrix products": pytest.approx(12), "memory traffic": pytest.approx(3)}
    assert duration(Counter({PRODUCT._replace(precision="bf16"): 1}), DEVICE).bottleneck == "memory traffic"


def test_launches_are_hidden_on_a_gpu_only() -> None:
    """A GPU computes while the processor starts operators."""
    work = Counter({MOVE: 4})
    assert duration(work, DEVICE).seconds == pytest.approx(4)
    assert duration(work, replace(DEVICE, overlaps=False)).seconds == pytest.approx(4 + 2)
    slow = duration(work, replace(DEVICE, launch=3.0))
    assert slow.seconds == pytest.approx(12) and slow.bottleneck == "launches"


def test_rates_follow_the_size() -> None:
    """On logarithmic scales between two measured sizes, and the nearest beyond them."""
    rate = ((10.0, 2.0), (1000.0, 200.0))
    assert [at_size(rate, size) for size in (1, 10, 100, 1000, 9999)] == pytest.approx([2, 2, 20, 200, 200])


def test_the_flops_of_a_step_are_those_that_torch_counts() -> None:
    """Forward and backward, of a model that runs."""
    recipe = composer.load("conv_lm", {"n_layers": 2})
    model = recipe.compile(seed=0).train()
    lengths = lengths_of(model.program, {"batch": 3, "time": 20})
    traced = traced_step(recipe.compile(device="meta"), lengths, TrainSettings(precision="fp32"), on_gpu=False)
    with FlopCounterMode(display=False) as counter:
        loss(model, batch_of(model.program, lengths)).total.backward()
    assert sum(each.flops * count for each, count in traced.work.items()) == counter.get_total_flops()


@pytest.mark.parametrize("wanted", [1, 2, 37, 2048])
def test_the_largest_batch_is_found(wanted: int) -> None:
    """Of a line, and of one with a bend, in a few evaluations."""
    asked: list[int] = []

    def peak(batch: int) -> int:
        asked.append(batch)
        return 1000 + 7 * batch + (300 * (batch - 20) if batch > 20 else 0)

    assert largest(peak, peak(wanted)) == wanted and largest(peak, 1006) == 0
    assert len(asked) < 30


def test_longer_texts_and_slower_devices_take_longer() -> None:
    """And gradient accumulation takes its batches; only measured rates are no bounds."""
    recipe = composer.load("gpt2", {**TINY, "d_model": 64})
    step = {
        (name, accumulated): estimate(
            recipe, {"batch": 64}, device=replace(DEVICES[name], launch=0.0), settings=TrainSettings(grad_accum=accumulated)
        )
        for name, accumulated in (("h100", 1), ("h100", 4), ("l4", 1))
    }
    times = {key: each.step.seconds for key, each in step.items() if each.step is not None}
    assert times["l4", 1] > 5 * times["h100", 1]
    assert times["h100", 4] == pytest.approx(4 * times["h100", 1], rel=0.15)
    assert step["h100", 4].tokens == 4 * 64 * 24
    text = str(step["h100", 1])
    assert "≥" in text and "data sheet" in text
    assert "≥" not in str(replace(step["h100", 1], device=replace(DEVICES["h100"], measured=True)))
