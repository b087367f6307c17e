"""`arco export`: a file is written atomically."""

from __future__ import annotations

from pathlib import Path

import pytest

import composer
from tests.cli.conftest import Arco

TINY = ["gpt2", "--set", "n_layers=2", "--set", "d_model=32", "--set", "n_heads=4", "--set", "vocab=61"]


def test_export_writes_the_source_that_the_model_runs(arco: Arco, tmp_path: Path) -> None:
    """To the recipe's name and `.py`, to a file that is named, or to the terminal."""
    source = composer.load("gpt2", overrides=TINY[2::2]).export()
    assert arco("export", *TINY) == (0, "wrote gpt2.py\n", "")
    assert arco("export", *TINY, "-o", "other.txt") == (0, "wrote other.txt\n", "")
    assert arco("export", *TINY, "-o", "-") == (0, source, "")
    assert {file.name for file in tmp_path.iterdir()} == {"gpt2.py", "other.txt"}
    assert {file.read_bytes() for file in tmp_path.iterdir()} == {source.encode()}


def test_an_existing_file_is_replaced_only_when_it_is_named(arco: Arco, tmp_path: Path) -> None:
    """The default name may be someone's work."""
    (tmp_path / "gpt2.py").write_text("mine", encoding="utf-8")
    assert arco("export", *TINY) == (2, "", "arco export: gpt2.py exists\n  = -o gpt2.py replaces it\n")
    assert (tmp_path / "gpt2.py").read_text(encoding="utf-8") == "mine"
    assert arco("export", *TINY, "-o", "gpt2.py").code == 0
    assert (tmp_path / "gpt2.py").read_text(encoding="utf-8") != "mine"


def test_a_failure_while_writing_leaves_the_old_file(arco: Arco, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full after the first half: the file is as it was, and nothing lies beside it."""
    (tmp_path / "model.py").write_text("the old one", encoding="utf-8")

    def half(self: Path, data: bytes) -> int:
        with self.open("wb") as file:
            file.write(data[: len(data) // 2])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", half)
    done = arco("export", *TINY, "-o", "model.py")
    assert done == (2, "", "arco: model.py cannot be written: no space left on device\n")
    assert [file.name for file in tmp_path.iterdir()] == ["model.py"]
    assert (tmp_path / "model.py").read_text(encoding="utf-8") == "the old one"


@pytest.mark.parametrize("place", ["nowhere/model.py", "folder", "."])
def test_places_that_take_no_file_are_refused(place: str, arco: Arco, tmp_path: Path) -> None:
    """A folder that is not there, and folders that are."""
    (tmp_path / "folder").mkdir()
    done = arco("export", *TINY, "-o", place)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith(f"arco: {Path(place)} cannot be written: ")
    assert [file.name for file in tmp_path.iterdir()] == ["folder"] and not list((tmp_path / "folder").iterdir())
