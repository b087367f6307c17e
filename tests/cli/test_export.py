"""`arco export` and the others that print a text or write a file: nothing unasked, and a file whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

import composer
from tests.cli.conftest import Arco

TINY = ["gpt2", "--set", "n_layers=2", "--set", "d_model=32", "--set", "n_heads=4", "--set", "vocab=61"]


def test_export_writes_the_source_that_the_model_runs(arco: Arco, tmp_path: Path) -> None:
    """To standard output, or to a file that is named."""
    source = composer.load("gpt2", overrides=TINY[2::2]).export()
    assert arco("export", *TINY) == arco("export", *TINY, "-o", "-") == (0, source, "")
    assert not list(tmp_path.iterdir())
    assert arco("export", *TINY, "-o", "other.txt") == (0, "wrote other.txt\n", "")
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("other.txt", source.encode())]


TEXTS = [
    ("show", "gpt2"),
    ("expand", "gpt2"),
    ("export", *TINY),
    ("schema",),
    ("diff", "gpt2", "llama3"),
    ("diff", "gpt2", "llama3", "--format", "json"),
    ("diff", "gpt2", "llama3", "--format", "svg"),
    ("draw", "gpt2", "--format", "mermaid"),
    ("draw", "gpt2"),
    ("import", "config.json"),
    ("import", "config.json", "--format", "options"),
]


@pytest.mark.parametrize("words", TEXTS, ids=" ".join)
def test_the_same_is_printed_and_written(words: tuple[str, ...], arco: Arco, tmp_path: Path) -> None:
    """`-o` replaces what is there, since it was named; twice it is refused."""
    config = '{"model_type": "gpt2", "vocab_size": 61, "n_positions": 16, "n_embd": 8, "n_layer": 1, "n_head": 2,'
    config += '"resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0}'
    (tmp_path / "config.json").write_text(config, encoding="utf-8")
    printed = arco(*words)
    assert printed.out and not printed.err and [file.name for file in tmp_path.iterdir()] == ["config.json"]
    ending = ".mmd" if "mermaid" in words else ".svg" if "draw" in words else ".yaml" if "import" in words else ".txt"
    file = (tmp_path / "out").with_suffix(ending)
    file.write_text("mine", encoding="utf-8")
    done = arco(*words, "-o", file.name)
    assert (done.code, done.out.splitlines()[-1], done.err) == (printed.code, f"wrote {file.name}", "")
    assert len(done.out.splitlines()) == 1 or words == ("import", "config.json")  # an import also says what it found
    assert file.read_text(encoding="utf-8") == printed.out
    done = arco(*words, "-o", "a.txt", "--output", "b.txt")
    assert done == (2, "", f"arco {words[0]}: --output is given twice\n  = give it once\n")


@pytest.mark.parametrize(
    "words",
    [
        ("draw", "gpt2"),
        ("draw", "gpt2", "--format", "png"),
        pytest.param(("diff", "gpt2", "t5", "--format", "html"), marks=pytest.mark.slow),
    ],
)
def test_a_terminal_is_not_filled_with_a_picture(words: tuple[str, ...], arco: Arco, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless `-o -` asks for it; DOT and Mermaid are for reading."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    done = arco(*words)
    assert (done.code, done.out) == (2, "") and "is not printed to a terminal" in done.err and "-o " in done.err
    if "png" not in words:
        assert arco(*words, "-o", "-").out.startswith("<")
    assert arco("draw", "gpt2", "--format", "dot").code == 0


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
