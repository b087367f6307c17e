"""The tests of this folder need a GPU, and are skipped where torch has none."""

from __future__ import annotations

import os

import pytest
import torch


@pytest.fixture
def gpu() -> str:
    """The GPU; `TESTS_GPU=cpu` runs the tests without one, to mend the tests themselves."""
    name = os.environ.get("TESTS_GPU", "cuda")
    if name == "cuda" and not torch.cuda.is_available():
        pytest.skip("this machine has no GPU that torch can use")
    return name
