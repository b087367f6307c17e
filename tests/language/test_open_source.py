"""Opening a file gives its text, or says why it is no recipe."""

import os
from pathlib import Path

import pytest

from composer.diagnostics import RecipeError
from composer.language.source_file import MAX_FILE_BYTES, form_of, open_source


def refusal(path: Path) -> tuple[str, int, int]:
    with pytest.raises(RecipeError) as refused:
        open_source(path)
    (diagnostic,) = refused.value.diagnostics
    assert diagnostic.span.source.name == str(path)
    return diagnostic.code, diagnostic.span.line, diagnostic.span.column


@pytest.mark.parametrize("content", ["a: größe\n".encode(), "\ufeffa: größe\n".encode(), "a: größe\r\n".encode()])
def test_a_file_is_read_as_utf8(tmp_path: Path, content: bytes) -> None:
    """With or without a byte order mark, with either line end."""
    path = tmp_path / "r.yaml"
    path.write_bytes(content)
    assert open_source(path).text == "a: größe\n"


def test_a_byte_that_is_not_utf8_is_found(tmp_path: Path) -> None:
    """Line and column, counted in characters."""
    path = tmp_path / "r.yaml"
    path.write_bytes("a: größe\nb: é".encode() + b"\xff: c\n")
    assert refusal(path) == ("not-utf8", 2, 5)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    """A name without a file, a folder, and a name that no file can have."""
    assert refusal(tmp_path / "none.yaml")[0] == "missing-file"
    assert refusal(tmp_path)[0] in {"not-a-file", "unreadable-file"}
    assert refusal(tmp_path / "a\0b")[0] == "unreadable-file"
    assert refusal(tmp_path / ("x" * 10_000))[0] in {"missing-file", "unreadable-file"}


def test_a_file_of_more_than_4_mb_is_refused(tmp_path: Path) -> None:
    """Before it is decoded."""
    path = tmp_path / "r.yaml"
    path.write_bytes(b"#" * (MAX_FILE_BYTES + 1))
    assert refusal(path)[0] == "too-large"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_or_a_device_is_not_waited_for(tmp_path: Path) -> None:
    """A pipe without a writer would never end, nor would the zero device."""
    os.mkfifo(tmp_path / "pipe")
    assert refusal(tmp_path / "pipe")[0] == "not-a-file"
    assert refusal(Path("/dev/zero"))[0] == "not-a-file"


@pytest.mark.parametrize(
    ("source", "form"),
    [
        ("gpt2", "name"),
        ("mine", "name"),
        ("mine.yaml", "path"),
        ("mine.yml", "path"),
        ("./mine", "path"),
        ("../mine", "path"),
        ("dir/mine", "path"),
        ("/home/me/mine.yaml", "path"),
        ("dir\\mine.yaml", "path"),
        ("dir\\mine", "path"),
        ("C:\\recipes\\mine.yaml", "path"),
        ("C:mine", "path"),
        ("recipe: mine\n", "text"),
        ("recipe: mine\nextends: dir/mine.yaml\n", "text"),
    ],
)
def test_a_recipe_is_a_name_a_path_or_a_text(source: str, form: str) -> None:
    """By its form alone, so that no file that happens to be there changes what a word means."""
    assert form_of(source) == form
