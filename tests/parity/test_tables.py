"""Models of tables against a reading of their papers, and their losses against torch's own."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import composer
from tests.parity import readings_of_tables as readings
from tests.parity.test_readings import assert_same, moved

TABLE: dict[str, Any] = {"n_outputs": 3, "n_numbers": 2, "sizes": [4, 2, 5], "d_embed": 6, "hidden": [8, 7]}
ROWS = 9


def rows() -> tuple[Tensor, Tensor]:
    """Return rows of numbers and of categories, in which every value of each column occurs."""
    numbers = torch.randn(ROWS, 2, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    return numbers, torch.arange(ROWS)[:, None] % torch.tensor(TABLE["sizes"])


@torch.no_grad()
def test_mlp_table_computes_what_its_papers_say() -> None:
    model = moved("mlp_table", TABLE)
    assert_same(model(*rows()).prediction, readings.mlp_table(model.state_dict(), *rows()))


@pytest.mark.parametrize("asked", ["label", "target", ""])
def test_mlp_table_learns_classes_or_numbers(asked: str) -> None:
    """By what the batch holds: a class of each row, its numbers, or neither."""
    model, (numbers, categories) = moved("mlp_table", TABLE), rows()
    label, target = torch.arange(ROWS) % 3, torch.randn(ROWS, 3, generator=torch.Generator().manual_seed(3)).double()
    given = {
        "numbers": numbers,
        "categories": categories,
        **({asked: {"label": label, "target": target}[asked]} if asked else {}),
    }
    told = model(numbers, categories).prediction
    expected = {"label": {"class": F.cross_entropy(told, label)}, "target": {"number": F.mse_loss(told, target)}}.get(asked, {})
    losses = model(**given).losses
    assert losses.keys() == expected.keys()
    for name, loss in losses.items():
        assert_same(loss, expected[name])


def test_mlp_table_learns_a_table() -> None:
    """A class that depends on two columns of categories together, and on a number."""
    generator = torch.Generator().manual_seed(0)
    numbers, categories = torch.randn(256, 1, generator=generator), torch.randint(3, (256, 2), generator=generator)
    label = (categories[:, 0] == categories[:, 1]).long() ^ (numbers[:, 0] > 0).long()
    model = composer.load("mlp_table", {"n_numbers": 1, "sizes": [3, 3], "d_embed": 4, "hidden": [32], "dropout": 0}).compile(
        seed=0
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(150):
        optimizer.zero_grad()
        composer.loss(model, {"numbers": numbers, "categories": categories, "label": label}).total.backward()
        optimizer.step()
    assert (model.eval()(numbers, categories).prediction.argmax(-1) == label).float().mean() > 0.97


def test_mlp_table_starts_as_in_the_authors_code() -> None:
    """Uniform, of embeddings up to 1 / √width of the embedding, of a map up to 1 / √width of what it reads."""
    model = composer.load("mlp_table", {**TABLE, "sizes": [400], "d_embed": 16, "hidden": [96, 200]}).compile(seed=0)
    widths = {"columns.0.embed": 16, "layers.0.up": 18, "layers.1.up": 96, "head": 200}
    for name, width in widths.items():
        largest = model.get_parameter(f"{name}.weight").abs().max().item()
        assert 0.98 * width**-0.5 < largest <= width**-0.5, name
