"""What models of tables tell of a row, one row and one column at a time."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.parity.readings import Weights, affine


def mlp_table(w: Weights, numbers: Tensor, categories: Tensor) -> Tensor:
    """Compute the MLP of Gorishniy et al. 2021, https://arxiv.org/abs/2106.11959, in evaluation.

    Section 3.2: MLPBlock(x) = Dropout(ReLU(Linear(x))), and a linear map of the last. Its input has the numbers of a row and,
    one after another, the entity embeddings of Guo and Berkhahn 2016, https://arxiv.org/abs/1604.06737: of the value in each
    column, the row of a table that this column has for itself.
    """
    rows = []
    for row, values in zip(numbers, categories.tolist(), strict=True):
        x = torch.cat([row, *(w[f"columns.{column}.embed.weight"][value] for column, value in enumerate(values))])
        for layer in range(sum(name.endswith("up.weight") for name in w)):
            x = affine(w, f"layers.{layer}.up", x).clamp(min=0)
        rows.append(affine(w, "head", x))
    return torch.stack(rows)
