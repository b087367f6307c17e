"""The examples in the docstrings of the public API run, and give what they show."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from composer.diff.figure.comparison import Comparison
from composer.draw.figure import Figure

PUBLIC = ("composer", "composer.train", "composer.decode", "composer.weights", "composer.published", "blocks.core")


def documented() -> Iterator[tuple[str, str]]:
    """Yield the docstring of every public class, function and method, by its name."""
    public = [getattr(module, name) for module in map(import_module, PUBLIC) for name in module.__all__]
    for held in (*public, Figure, Comparison):
        if not (inspect.isclass(held) or inspect.isfunction(held)):
            continue
        members = vars(held).items() if inspect.isclass(held) else ()
        for one in (held, *(member for name, member in members if not name.startswith("_"))):
            if isinstance(one, type | property) or inspect.isfunction(one):
                yield f"{held.__module__}.{getattr(one, '__qualname__', held.__qualname__)}", inspect.getdoc(one) or ""


EXAMPLES = {name: text for name, text in documented() if ">>> " in text}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_gives_what_it_shows(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each stands alone, as a reader would paste it, in a folder of its own; `…` in an output is any text, as on the pages."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(doctest, "ELLIPSIS_MARKER", r"\u2026")  # doctest compares in ASCII
    example = doctest.DocTestParser().get_doctest(EXAMPLES[name], {}, name, None, None)
    report: list[str] = []
    outcome = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS).run(example, out=report.append)
    assert not outcome.failed, "".join(report)
