"""Values beside tensors without storage."""

from __future__ import annotations

import torch

from composer.estimate.tracing import tracing


def test_values_that_depend_on_no_weight_are_known() -> None:
    """Through views and changes in place, until something unknown is mixed in; of what is not known, all counts."""
    with tracing() as tracer:
        ids = torch.arange(6) // 4  # 0 0 0 0 1 1
        weight = torch.empty(6)
        assert (ids[1:] != ids[:-1]).nonzero().shape == (1, 1)
        assert ids.tolist() == [0, 0, 0, 0, 1, 1]
        part = ids[4:]
        part.add_(1)
        assert ids.max().item() == 2 and weight[ids == 2].shape == (2,)
        part.copy_(weight[:2])
        assert tracer.known.of(ids) is None and tracer.known.of(part) is None
        assert (weight > 0).nonzero().shape == (6, 1) and weight[weight > 0].shape == (6,)
        assert torch.isfinite(weight.sum())


def test_random_numbers_are_not_drawn() -> None:
    """A trace leaves the generator as it was."""
    before = torch.random.get_rng_state()
    with tracing() as tracer:
        assert tracer.known.of(torch.rand(3)) is None
    assert torch.equal(before, torch.random.get_rng_state())
