"""`--device cuda` runs the suite on a GPU; where there is none, it says so."""

from __future__ import annotations

import pytest
import torch


@pytest.fixture(scope="session")
def device(request: pytest.FixtureRequest) -> str:
    """Where the suite computes."""
    name: str = request.config.getoption("--device")
    if name == "cuda" and not torch.cuda.is_available():
        pytest.skip("NOT RUN ON CUDA: --device cuda was asked for, and this machine has no GPU that torch can use")
    return name
