"""What holds for every test."""

import gc
import os
from pathlib import Path

import pytest

# Before torch is imported: several workers with a thread per core each would wait for one another.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["COMPOSER_CACHE"] = "off"  # tests leave nothing in the user's cache


WHOLE = {"conformance", "docs", "fuzz", "package", "parity"}
"""Folders whose tests run models, mutants, pages and commands from end to end: all of them are slow."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what lies in these folders, and what drives a browser."""
    for item in items:
        folders = item.path.relative_to(Path(__file__).parent).parts[:-1]
        if WHOLE & {*folders} or "chromium" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    """Takes what is there for good, modules and tests, out of the sight of the garbage collector, which else goes through all
    of it again and again: a sixth of the time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--device`, for the conformance suite."""
    parser.addoption("--device", default="cpu", choices=["cpu", "cuda"], help="where the conformance suite computes")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Says loudly what was not run."""
    if config.getoption("--device") == "cpu" and not hasattr(config, "workerinput"):
        terminalreporter.write_line("The CUDA half of the conformance suite DID NOT RUN: pytest tests/conformance --device cuda")
