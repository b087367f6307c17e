"""Cross-entropy from the logits of a few positions at a time, so that those of all positions never exist at once.

The gradients of a chunk are computed together with its loss; its logits are then let go, and not computed again (as in Hsu et
al., 2024, "Liger Kernel"). Positions without a target are left out before any logits are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from composer.lower.tail_module import Tail

LARGE_VOCABULARY = 2**14
"""The number of words from which on the loss is computed in chunks, unless the settings say otherwise."""
LOGITS_AT_A_TIME = 2**23
"""The least number of logits in a chunk: enough to keep a device busy."""


def positions_at_a_time(vocabulary: int, weights: int = 0) -> int:
    """Return how many positions make a chunk; 0 if all are computed at once.

    Each chunk adds to the gradient of the head, which costs as much memory traffic as logits of that number: with fewer logits
    than weights, most of the time would go there.

    Args:
        vocabulary: The number of words.
        weights: The number of weights of what computes the logits.
    """
    return max(1, max(LOGITS_AT_A_TIME, weights) // vocabulary) if vocabulary >= LARGE_VOCABULARY else 0


def chunked_cross_entropy(
    tail: Tail, hidden: Tensor, targets: Tensor, *, positions: int, label_smoothing: float = 0.0, ignored: int = -100
) -> Tensor:
    """Return the mean cross-entropy, in nats, over the targets that are not ignored; 0 if all are.

    Args:
        tail: What computes the logits.
        hidden: The hidden states that it reads, [B, T, D].
        targets: The target of each position, [B, T].
        positions: How many positions are computed at a time.
        label_smoothing: Share of each target's probability that is spread evenly over the vocabulary.
        ignored: The target that is left out.
    """
    asked = (targets != ignored).nonzero(as_tuple=True)
    trained = [parameter for parameter in tail.module.parameters() if parameter.requires_grad]
    read, wanted = hidden[asked], targets[asked]
    apply = cast("Callable[..., Tensor]", _Sum.apply)  # torch leaves it untyped
    total = apply(tail, positions, label_smoothing, wanted, torch.is_grad_enabled(), read, *trained)
    return total / max(len(wanted), 1)


def chunks(count: int, positions: int) -> Iterator[slice]:
    """Yield the places of so many positions at a time; the last may be fewer."""
    return (slice(start, start + positions) for start in range(0, count, positions))


class _Sum(torch.autograd.Function):
    """The sum of the cross-entropy over hidden states [N, D], with its gradients."""

    @staticmethod
    def forward(
        ctx: Any,
        tail: Tail,
        positions: int,
        label_smoothing: float,
        targets: Tensor,
        training: bool,
        hidden: Tensor,
        *trained: Tensor,
    ) -> Tensor:
        asked = [training and needed for needed in ctx.needs_input_grad[5:]]
        total = hidden.new_zeros((), dtype=torch.promote_types(hidden.dtype, torch.float32))
        of_hidden = torch.empty_like(hidden) if asked[0] else None
        of_trained: list[Tensor | None] = [None] * len(trained)
        for part in chunks(len(targets), positions):
            with torch.set_grad_enabled(any(asked)):
                read = hidden[part].detach().requires_grad_(asked[0])
                logits = tail(read[None])[0]
                wide = logits.to(torch.promote_types(logits.dtype, torch.float32))  # bf16 is too coarse for the sum
                loss = F.cross_entropy(wide, targets[part], label_smoothing=label_smoothing, reduction="sum")
            total += loss.detach()
            if not any(asked):
                continue
            sources = [one for one, needed in zip((read, *trained), asked, strict=True) if needed]
            found = iter(torch.autograd.grad(loss, sources, allow_unused=True))  # of a group, it may run only a part
            if of_hidden is not None:
                of_hidden[part] = next(found)
            for index, needed in enumerate(asked[1:]):
                if needed and (gradient := next(found)) is not None:
                    so_far = of_trained[index]
                    of_trained[index] = gradient if so_far is None else so_far.add_(gradient)
                    del gradient, so_far
            del read, logits, wide, loss, sources, found  # they would last while the next chunk is computed
        ctx.gradients = (of_hidden, *of_trained)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Any:
        if ctx.gradients is None:
            raise RuntimeError("the gradients of a chunked loss can be computed only once; call `loss` again")
        found, ctx.gradients = ctx.gradients, None  # they are scaled in place: they may be as large as an embedding
        return (None, None, None, None, None, *(None if one is None else one.mul_(gradient) for one in found))
