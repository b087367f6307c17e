"""The comparison of two trees, on small ones: it must be able to fail, and only where something differs."""

from __future__ import annotations

import gzip
import io
import json
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path

import pytest
from PIL import Image

from tests.artifacts.compare import compare, differences
from tests.artifacts.renames import Renames, load
from tests.artifacts.unpack import parts

SVG = '<svg viewBox="0 0 9 9"><g data-id="attn"><rect x="1.5" y="2"/></g></svg>'
RENAMES = {
    "tokens": {"old": "new", "new": "old", "--batch": "--batch-size", "dead-node": "unused-node"},
    "either": {"at": "position_ids"},
    "texts": [["^source:", "paper:", "*.yaml"]],
    "paths": {"docs/x": "docs/y"},
}


def renames(folder: Path, told: Mapping[str, object]) -> Renames:
    """Return the renames as they are read from a file."""
    file = folder / "renames.json"
    file.write_text(json.dumps(told), encoding="utf-8")
    return load(file)


def tree(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Return a tree of some files."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def packed(x: int) -> str:
    """Return a page with a picture in pieces."""
    data = {
        "words": ["<svg><rect", ' x="', '" y="', '"/></svg>'],
        "phrases": [[0, 1], [2], [3]],
        "things": [[0, 0, 1, 0, 2]],
        "views": {"block": {"picture": [0, x, 20], "copied": [], "level": "block"}},
        "axes": "[batch, time]",
    }
    return f'<p>hello</p><script type="application/json" id="data">{json.dumps(data)}</script><script>show()</script>'


def zipped(x: str) -> str:
    """Return the same page with the picture as it is, in data that are compressed."""
    picture = f'<svg><rect x="{x}" y="2"/></svg>'
    data = {"views": {"block": {"picture": picture, "copied": "", "level": "block"}}, "axes": "[batch, time]"}
    text = b64encode(gzip.compress(json.dumps(data).encode())).decode()
    return f'<p>hello</p><script type="application/gzip" id="data">{text}</script><script>show()</script>'


def png(color: str, level: int) -> bytes:
    """Return a picture of one color."""
    made = io.BytesIO()
    Image.new("RGB", (4, 4), color).save(made, "PNG", compress_level=level)
    return made.getvalue()


@pytest.mark.parametrize(
    ("name", "before", "after", "outcome"),
    [
        ("a.txt", "one\ntwo\n", "one\ntwo", "equal"),
        ("a.txt", "one two", "one\n  two", "layout"),
        ("a.txt", "a:3:7: no\n 3 | x: y\n   |    ^", "a:3:9: no\n3 | x: y\n  |    ^^^", "layout"),
        ("a.txt", "one two", "one too", "differs"),
        ("a.txt", "an old rule", "an new rule", "equal"),
        ("a.txt", "older", "newer", "differs"),
        ("a.txt", "train --batch 3 dead-node", "train --batch-size 3 unused-node", "equal"),
        ("a.txt", "`at` stands at the end", "`position_ids` stands at the end", "equal"),
        ("a.yaml", "source: x", "paper: x", "equal"),
        ("a.txt", "source: x", "paper: x", "differs"),
        ("a.py", "x = old(1)  # one", "x = new( 1 )  # one", "equal"),
        ("a.py", 'def f():\n    "one"\n    return 1  # one', 'def f():\n    "two"\n    return 1  # two', "comments"),
        ("a.py", "class A: pass\nclass B: x = 1", "class B: x = 1\nclass A: pass", "layout"),
        ("a.py", "x = 1", "x = 2", "differs"),
        ("a.svg", SVG, SVG.replace("/></g>", "></rect></g>"), "equal"),
        ("a.svg", SVG, SVG.replace("1.5", "1.6"), "layout"),
        ("a.svg", SVG, SVG.replace("attn", "attention"), "differs"),
        ("a.json", '{"old": 1, "b": ["x\\nold"]}', '{"b": ["x\\nnew"], "new": 1}', "equal"),
        ("a.json", '{"a": 1}', '{"a": 1.0}', "differs"),
        ("a.json", '{"a": 0.1}', '{"a": 0.10000000000000002}', "differs"),
        ("a.json", '[{"column": 1, "code": "x"}]', '[{"column": 2, "code": "x"}]', "layout"),
        ("a.png", png("red", 1), png("red", 9), "equal"),
        ("a.png", png("red", 1), png("blue", 1), "differs"),
        ("docs/x/a.txt", "a", "b", "added missing"),
    ],
)
def test_files_are_compared_as_what_they_are(
    name: str, before: str | bytes, after: str | bytes, outcome: str, tmp_path: Path
) -> None:
    """Modulo the renames, of which all tokens go at once."""
    trees = tree(tmp_path / "a", {name: before}), tree(tmp_path / "b", {name: after})
    found = [one.outcome for one in differences(*trees, renames(tmp_path, RENAMES))]
    assert " ".join(found) == outcome


def test_files_are_found_where_they_are_now(tmp_path: Path) -> None:
    """By `paths`, and by the words in their names."""
    before = tree(tmp_path / "a", {"docs/x/a.txt": "1", "docs/z/old.txt": "2", "zoo/old.txt": "3"})
    after = tree(tmp_path / "b", {"docs/y/a.txt": "1", "docs/z/new.txt": "2", "zoo/old.txt": "3"})
    assert {one.outcome for one in differences(before, after, renames(tmp_path, RENAMES))} == {"equal"}


def test_pages_are_compared_by_their_parts() -> None:
    """A picture in pieces, and the same in data that are compressed."""
    assert parts(packed(15)) | {"markup": ""} == parts(zipped("1.5")) | {"markup": ""}
    assert parts(packed(15))["picture/views/block/picture.svg"] == '<svg><rect x="1.5" y="2"/></svg>'
    assert parts(packed(15))["script"] == "show()"
    assert parts(packed(15)) != parts(packed(16))


def test_what_differs_fails_unless_it_is_accepted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The whole command, with what it prints."""
    before = tree(tmp_path / "a", {"zoo/a/x.txt": "one", "zoo/a/p.html": packed(15), "zoo/a/y.txt": "b a", "docs/c": ""})
    after = tree(tmp_path / "b", {"zoo/a/x.txt": "two", "zoo/a/p.html": packed(16), "zoo/a/y.txt": "a b", "docs/d": ""})
    accepted = {"zoo/a/x.txt": "meant", "docs/*": "moved", "nothing*": "stale"}
    assert compare(before, after, Renames(), accepted=accepted) == 1
    said = capsys.readouterr().out
    assert "zoo/a/p.html#picture/views/block/picture.svg" in said
    assert "x.txt: meant" in said
    assert "nothing*: nothing differs there" in said
    assert "-b a\n+a b" in said
    assert compare(before, after, Renames(), accepted=accepted, only=["zoo"], layout=True) == 0
    assert compare(before, before, Renames(), accepted={}) == 0
