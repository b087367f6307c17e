"""What holds for every test."""

import os

import pytest

# Before torch is imported: several workers with a thread per core each would wait for one another.
os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--device`, for the conformance suite."""
    parser.addoption("--device", default="cpu", choices=["cpu", "cuda"], help="where the conformance suite computes")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Says loudly what was not run."""
    if config.getoption("--device") == "cpu" and not hasattr(config, "workerinput"):
        terminalreporter.write_line("The CUDA half of the conformance suite DID NOT RUN: pytest tests/conformance --device cuda")
