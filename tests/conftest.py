"""What holds for every test."""

import datetime
import gc
import os
import time
from pathlib import Path

import pytest

# Before torch is imported: several workers with a thread per core each would wait for one another.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["COMPOSER_CACHE"] = "off"  # tests leave nothing in the user's cache
os.environ.setdefault("TESTS_DAY", str(datetime.date.today().toordinal()))  # before workers start, which share it


WHOLE = {"conformance", "docs", "fuzz", "package", "parity"}
"""Folders whose tests run models, mutants, pages and commands from end to end: all of them are slow."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks what lies in these folders, and what drives a browser; within a budget, begins elsewhere each day."""
    if config.getoption("--budget") is not None and items:
        first = int(os.environ["TESTS_DAY"]) * (len(items) // 7) % len(items)
        items[:] = items[first:] + items[:first]
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
    """`--device`, for the conformance suite, and `--budget`, for runs that must end in time."""
    parser.addoption("--device", default="cpu", choices=["cpu", "cuda"], help="where the conformance suite computes")
    parser.addoption("--budget", type=float, metavar="SECONDS", help="skip what has not begun after so many seconds")


BEGIN = time.monotonic()
OUT_OF_TIME = "no time left within --budget"


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips what the budget has no time for."""
    budget = item.config.getoption("--budget")
    if budget is not None and time.monotonic() - BEGIN > budget:
        pytest.skip(OUT_OF_TIME)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Says loudly what was not run."""
    if config.getoption("--device") == "cpu" and not hasattr(config, "workerinput"):
        terminalreporter.write_line("The CUDA half of the conformance suite DID NOT RUN: pytest tests/conformance --device cuda")
    late = [report for report in terminalreporter.getreports("skipped") if OUT_OF_TIME in str(report.longrepr)]
    if late:
        terminalreporter.write_line(f"{len(late)} tests DID NOT RUN: {OUT_OF_TIME}")
