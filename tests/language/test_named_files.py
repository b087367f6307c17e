"""What a recipe names is opened inside its folder, and is a small, ordinary file."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import composer
from composer.diagnostics import Diagnostic, RecipeError
from composer.language import source_file
from composer.language.composition import named_files
from composer.language.source_file import MAX_FILE_BYTES, open_within

SECRET = "recipe: secret\ninputs: {x: 'float[batch, 8]'}\nparams: {password: 12345}\ngraph: {a: {type: linear, out: password}}\n"
TAIL = "inputs: {x: 'float[batch, 8]'}\ngraph: {b: tanh}\n"

links = pytest.mark.skipif(os.name == "nt", reason="links need a privilege on Windows")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of recipes beside another one with a secret."""
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "secret.yaml").write_text(SECRET, encoding="utf-8")
    (tmp_path / "downloaded").mkdir()
    return tmp_path / "downloaded"


def refused(folder: Path, key: str, name: str) -> Diagnostic:
    """Return the only error of a recipe that names a file; it stands at the key's line, and quotes nothing of the file."""
    (folder / "top.yaml").write_text(f"recipe: top\n{key}: {name}\n{TAIL}", encoding="utf-8")
    (found,) = [each for each in composer.load(folder / "top.yaml").check() if each.severity == "error"]
    assert (found.span.source.name, found.span.line) == (str(folder / "top.yaml"), 2)
    assert "password" not in str(RecipeError([found]))
    assert "\n" not in found.message
    return found


@links
@pytest.mark.parametrize("key", ["extends", "uses"])
def test_a_link_out_of_the_folder_is_refused(folder: Path, key: str) -> None:
    """Of the file, of a folder on the way, of a link to a link, and to a name that only begins like the folder's."""
    (folder / "link.yaml").symlink_to(folder.parent / "private" / "secret.yaml")
    (folder / "below").symlink_to(folder.parent / "private")
    (folder / "again.yaml").symlink_to("link.yaml")
    (folder.parent / "downloaded-too").mkdir()
    (folder.parent / "downloaded-too" / "secret.yaml").write_text(SECRET, encoding="utf-8")
    (folder / "near.yaml").symlink_to(folder.parent / "downloaded-too" / "secret.yaml")
    for name in ("link.yaml", "below/secret.yaml", "again.yaml", "near.yaml"):
        found = refused(folder, key, name)
        assert found.code == "outside-folder"
        assert found.message == f"{name}: this is a link to a file outside the folder of the recipe"


@links
def test_a_link_inside_the_folder_is_followed(folder: Path) -> None:
    """To a file and through a folder; so is a hard link, which installers use, and a link to the folder itself."""
    (folder / "real").mkdir()
    (folder / "real" / "base.yaml").write_text(SECRET, encoding="utf-8")
    (folder / "link.yaml").symlink_to("real/base.yaml")
    (folder / "other").symlink_to("real")
    os.link(folder.parent / "private" / "secret.yaml", folder / "hard.yaml")
    (folder.parent / "shortcut").symlink_to(folder)
    for name in ("link.yaml", "other/base.yaml", "hard.yaml"):
        (folder / "top.yaml").write_text(f"recipe: top\nextends: {name}\n", encoding="utf-8")
        for where in (folder, folder.parent / "shortcut"):
            assert [each.code for each in composer.load(where / "top.yaml").check()] == []


@links
@pytest.mark.parametrize("what", ["loop", "nothing"])
def test_a_link_to_nothing_names_no_file(folder: Path, what: str) -> None:
    """Nor does one in a circle."""
    (folder / "link.yaml").symlink_to("link.yaml" if what == "loop" else "nowhere.yaml")
    assert refused(folder, "extends", "link.yaml").code in {"missing-file", "unreadable-file"}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("key", ["extends", "uses"])
def test_what_is_no_ordinary_file_is_refused_at_once(folder: Path, key: str) -> None:
    """A pipe, a folder, a device that is linked, and a file of more than 4 MB."""
    os.mkfifo(folder / "pipe.yaml")
    (folder / "folder.yaml").mkdir()
    (folder / "zero.yaml").symlink_to("/dev/zero")
    (folder / "large.yaml").write_bytes(b"#" * (MAX_FILE_BYTES + 1))
    expected = {"pipe": "not-a-file", "folder": "not-a-file", "zero": "outside-folder", "large": "too-large"}
    assert {name: refused(folder, key, f"{name}.yaml").code for name in expected} == expected


@pytest.mark.parametrize("length", [300, 5000])
@pytest.mark.parametrize("key", ["extends", "uses"])
def test_a_name_that_no_file_can_have_is_refused(folder: Path, key: str, length: int) -> None:
    """With an ending, and as a recipe of the zoo."""
    assert refused(folder, key, "n" * length + ".yaml").code in {"missing-file", "unreadable-file"}
    assert refused(folder, key, "n" * length).code == "unknown-recipe"
    assert refused(folder, key, "/".join("n" * length)).code in {"missing-file", "unreadable-file"}


def test_files_together_are_bounded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not only each, since a recipe may be made of a hundred."""
    monkeypatch.setattr(named_files, "MAX_CHARACTERS", 1200)
    for number in range(4):
        (folder / f"b{number}.yaml").write_text(f"recipe: b{number}\n{TAIL}#{'-' * 400}\n", encoding="utf-8")
    (folder / "top.yaml").write_text(f"recipe: top\nuses: [b0.yaml, b1.yaml, b2.yaml, b3.yaml]\n{TAIL}", encoding="utf-8")
    found = [each for each in composer.load(folder / "top.yaml").check() if each.severity == "error"]
    assert [(each.code, each.span.column) for each in found] == [("too-large", 26), ("too-large", 35)]


def swapping(monkeypatch: pytest.MonkeyPatch, swap: Callable[[], None]) -> None:
    """Have something happen after the path of a file has been judged, and before it is opened."""
    judged = source_file._inside

    def inside(folder: Path, name: str) -> Path:
        found = judged(folder, name)
        swap()
        return found

    monkeypatch.setattr(source_file, "_inside", inside)


@links
def test_a_link_put_in_place_between_judging_and_opening_is_not_followed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of the file, or of a folder on the way."""
    (folder / "real").mkdir()
    base = folder / "real" / "secret.yaml"
    base.write_text("recipe: base\n", encoding="utf-8")
    assert open_within(folder, "real/secret.yaml").text == "recipe: base\n"

    def swap_file() -> None:
        base.unlink()
        base.symlink_to(folder.parent / "private" / "secret.yaml")

    def swap_folder() -> None:
        (folder / "real").rename(folder / "moved")
        (folder / "real").symlink_to(folder.parent / "private")

    with monkeypatch.context() as patch:
        swapping(patch, swap_file)
        with pytest.raises(RecipeError) as stopped:
            open_within(folder, "real/secret.yaml")
        assert stopped.value.diagnostics[0].code == "outside-folder"
    base.unlink()
    base.write_text("recipe: base\n", encoding="utf-8")
    with monkeypatch.context() as patch:
        swapping(patch, swap_folder)
        with pytest.raises(RecipeError) as stopped:
            open_within(folder, "real/secret.yaml")
        assert stopped.value.diagnostics[0].code == "outside-folder"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_put_in_place_between_judging_and_opening_is_not_waited_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the recipe is named on the command line or by another one."""
    (folder / "a.yaml").write_text("recipe: base\n", encoding="utf-8")

    def swap() -> None:
        (folder / "a.yaml").unlink()
        os.mkfifo(folder / "a.yaml")

    swapping(monkeypatch, swap)
    done: list[str] = []

    def attempt() -> None:
        with pytest.raises(RecipeError) as stopped:
            open_within(folder, "a.yaml")
        done.append(stopped.value.diagnostics[0].code)

    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    thread.join(timeout=30)
    assert done == ["not-a-file"]


@links
def test_nothing_is_opened_but_what_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file outside is not even opened and thrown away: opening a tape or a driver's file does something."""
    (folder / "link.yaml").symlink_to(folder.parent / "private" / "secret.yaml")
    opened: list[str] = []
    real = os.open

    def noted(path: str, *arguments: int, **keywords: int) -> int:
        opened.append(str(path))
        return real(path, *arguments, **keywords)

    monkeypatch.setattr(os, "open", noted)
    refused(folder, "extends", "link.yaml")
    assert opened and not any("secret" in path for path in opened)
