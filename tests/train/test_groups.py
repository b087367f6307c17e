"""Which parameters decay."""

from __future__ import annotations

import torch
from torch import nn

from composer.train.optimization.decay_groups import param_groups


class Parts(nn.Module):
    """A parameter of every role, two names for one, and a frozen one."""

    def __init__(self) -> None:
        super().__init__()
        self.roles = {
            "w": "matrix",
            "e": "experts",
            "table": "table",
            "embed": "embedding",
            "g": "gain",
            "b": "bias",
            "f": "matrix",
        }
        for size, name in enumerate(self.roles, start=1):
            setattr(self, name, nn.Parameter(torch.zeros(size, size)))
        self.f.requires_grad_(False)
        self.a_head = self.embed  # the name without a role does not own it


def sizes(group):
    """Return the parameters, told apart by their size."""
    return [len(parameter) for parameter in group["params"]]


def test_matrices_experts_and_embeddings_decay_and_nothing_else():
    """By role: a gain of two dimensions stays; tied ones come once, frozen ones not at all."""
    decayed, kept = param_groups(Parts(), weight_decay=0.3)
    assert (sizes(decayed), decayed["weight_decay"]) == ([1, 2, 4], 0.3)
    assert (sizes(kept), kept["weight_decay"]) == ([3, 5, 6], 0.0)


def test_there_is_no_empty_group():
    """A model of matrices only has one group."""
    model = nn.Linear(2, 3, bias=False)
    model.roles = {"weight": "matrix"}
    assert len(param_groups(model, weight_decay=0.1)) == 1
