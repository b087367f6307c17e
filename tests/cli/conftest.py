"""The command line as a function: words in, exit code and both streams out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from composer.cli import main


class Done(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


Arco = Callable[..., Done]


@pytest.fixture
def arco(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Arco:
    """Runs `arco WORDS` in an empty folder, a hundred columns wide."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")

    def run(*words: object) -> Done:
        capsys.readouterr()
        code = main([str(word) for word in words])
        return Done(code, *capsys.readouterr())

    return run


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    """A recipe with one mistake, in line 4, and one doubt, in line 5."""
    file = tmp_path / "wrong.yaml"
    file.write_text(
        'recipe: wrong\ninputs: {x: "float[batch, time, 6]"}\ngraph:\n  norm: rmsnrm\n'
        "  attn: {type: attention, heads: 2, mask: full}\n",
        encoding="utf-8",
    )
    return file
