"""What holds for every test of blocks."""

from collections.abc import Iterator

import pytest

from tests.blocks.build import use_lazy_torch


@pytest.fixture(autouse=True)
def _lazy_torch_again() -> Iterator[None]:
    """No test leaves blocks that others would export with another torch."""
    yield
    use_lazy_torch()
