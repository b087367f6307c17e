"""What checks, draws and counts starts at once: it never loads torch."""

import subprocess
import sys
from pathlib import Path

import pytest

from composer.cli import COMMANDS

ROOT = Path(__file__).parents[2]
RUNS_MODULES = {"lower", "train", "decode", "evaluate", "compare", "estimate", "report", "verify", "weights"}
SLOW = {"torch", "transformers", "tokenizers"}


def modules() -> list[str]:
    """Return every module of both packages outside the parts that run what was compiled."""
    files = [file.relative_to(ROOT) for package in ("blocks", "composer") for file in (ROOT / package).rglob("*.py")]
    front = [file.with_suffix("").parts for file in files if not RUNS_MODULES & {*file.parts[1:-1]}]
    return sorted(".".join(parts[:-1] if parts[-1] == "__init__" else parts) for parts in front)


def loaded_after(statement: str) -> set[str]:
    """Return the top-level modules that a fresh interpreter holds after one statement."""
    code = f"{statement}\nimport sys\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(run.stdout.splitlines()[-1].split())  # a command may print before


def test_modules_of_every_layer_are_looked_at() -> None:
    """The list reaches into both packages, and leaves out what may load torch."""
    names = modules()
    assert {"blocks.core", "composer", "composer.diagnostics", "composer.language", "composer.graph", "composer.cli"} <= {*names}
    assert not [name for name in names if name.startswith(("composer.lower", "composer.train"))]


def test_front_half_never_loads_torch() -> None:
    """All of it at once: an import that loads torch anywhere in it is found."""
    loaded = loaded_after("import " + ", ".join(modules()))
    assert {"blocks", "composer"} <= loaded
    assert not loaded & SLOW


@pytest.mark.parametrize("name", ["torch", "tokenizers"])
def test_loading_is_seen_where_it_happens(name: str) -> None:
    """The measurement itself: an interpreter that does load the library shows it."""
    assert name in loaded_after(f"import {name}")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command_answers_without_torch(command: str) -> None:
    """Also of those that run a model."""
    assert not loaded_after(f"from composer.cli import main\nassert main([{command!r}, '-h']) == 0") & SLOW
