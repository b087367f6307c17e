"""Texts that are prepared once: the same tokens from memory, files and the cache, and what becomes of damage and of changes."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import subprocess
import sys
from dataclasses import asdict, replace
from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from composer.cli import main
from composer.evaluate import evaluate
from composer.train import (
    ByteTokenizer,
    TrainingError,
    make_tokenizer,
    open_prepared,
    prepare,
    read_documents,
    resume,
    tokenize,
    train,
)
from composer.train.data.prepared import prepare as module
from composer.train.data.prepared import text_cache, token_files
from composer.train.data.prepared.preparing import PreparingBar, PreparingLines
from composer.train.data.prepared.text_cache import cache_of
from composer.train.data.prepared.text_stream import texts_of
from composer.train.run.manifest import Seal, sealed
from tests.train.small import TEXT

RECIPE = "composer: 1\nname: small\ntask: causal_lm\n"
PARTS = ("\ufeff" + TEXT[:2000], "x", " \n", "né 中 " * 40 + TEXT[2000:])


@pytest.fixture(autouse=True)
def large(monkeypatch):
    """Every text is large enough for files, and every file has settled."""
    monkeypatch.setattr(module, "SMALL", 1)
    monkeypatch.setattr(text_cache, "RECENT", -1e9)


@pytest.fixture
def texts(tmp_path):
    """A folder with texts: one with a byte order mark, one of a single character, a blank one, a compressed one."""
    folder = tmp_path / "texts"
    folder.mkdir()
    for number, part in enumerate(PARTS[:3]):
        (folder / f"{number}.txt").write_bytes(part.encode())
    (folder / "3.txt.gz").write_bytes(gzip.compress(PARTS[3].encode()))
    return folder


def facts(data):
    """Return everything of a text as tokens."""
    arrays = {"train": data.train.tolist(), "validation": data.validation.tolist()}
    names = ("path", "sha256", "characters", "bytes", "more_paths", "train_ends", "validation_ends")
    return {**arrays, **{name: getattr(data, name) for name in names}}


def no_work(monkeypatch):
    """Make reading and tokenizing fail."""

    def fail(*_arguments, **_options):
        raise AssertionError("the text is read again")

    for name in ("scan", "TokenStreams", "tokenizer_of"):
        monkeypatch.setattr(module, name, fail)


@pytest.mark.parametrize("kind", ["characters", "bytes", "bpe", "words"])
def test_prepared_tokens_are_those_of_the_text(texts, tmp_path, kind, monkeypatch):
    """In memory, in temporary files, in the cache and from it, and in a folder."""
    size = None if kind in ("characters", "bytes") else 280
    documents = read_documents([texts])
    tokenizer = make_tokenizer(kind, "".join(document.text for document in documents), size=size)
    expected = facts(tokenize(documents, tokenizer, path=texts))
    cache = tmp_path / "cache"
    for place in ("off", cache, cache):
        found = prepare(texts, kind, vocab_size=size, cache=place)
        assert facts(found.data) == expected
        assert found.tokenizer.to_json() == tokenizer.to_json()
    made = prepare(texts, kind, vocab_size=size, folder=tmp_path / "tokens", cache="off")
    for found in (made, open_prepared(tmp_path / "tokens", cache="off")):
        assert facts(found.data) == {**expected, "path": tmp_path / "tokens"}
        assert found.data.train.dtype == (np.uint8 if tokenizer.size <= 256 else np.uint16)
    monkeypatch.setattr(module, "SMALL", 1 << 20)
    assert facts(prepare(texts, kind, vocab_size=size, cache=tmp_path / "unused").data) == expected
    assert not (tmp_path / "unused").exists()


def test_the_second_time_nothing_is_read_again(texts, tmp_path, monkeypatch):
    """Neither the text, nor its tokens, nor to learn the tokenizer; and a changed file is."""
    cache = tmp_path / "cache"
    first = prepare(texts, "bpe", vocab_size=280, cache=cache)
    with monkeypatch.context() as patched:
        no_work(patched)
        patched.setattr(token_files, "check_tokens", None)
        again = prepare(texts, "bpe", vocab_size=280, cache=cache)
        assert facts(again.data) == facts(first.data)
        with pytest.raises(AssertionError, match="read again"):
            prepare(texts, "bpe", vocab_size=281, cache=cache)
    (texts / "1.txt").write_text("y", encoding="utf-8")
    assert prepare(texts, "bpe", vocab_size=280, cache=cache).data.sha256 != first.data.sha256


def test_a_file_that_may_still_change_is_read_again(texts, tmp_path, monkeypatch):
    """Since a second change within the same tick of the clock leaves no trace."""
    monkeypatch.setattr(text_cache, "RECENT", 1e9)
    prepare(texts, "bytes", cache=tmp_path / "cache")
    no_work(monkeypatch)
    with pytest.raises(AssertionError, match="read again"):
        prepare(texts, "bytes", cache=tmp_path / "cache")


@pytest.mark.parametrize("name", ["train.bin", "validation.bin", "documents.bin", "tokenizer.json", "index.json"])
def test_damage_in_the_cache_is_made_good(texts, tmp_path, name):
    """A byte that is changed, a file that is cut, gone, a link, or somebody's note."""
    cache = tmp_path / "cache"
    expected = facts(prepare(texts, "bpe", vocab_size=280, cache=cache).data)
    (folder,) = (cache / "tokens").iterdir()
    path = folder / name
    whole = path.read_bytes()

    def flip():
        path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))

    def link():
        (tmp_path / "other").write_bytes(whole)
        path.unlink()
        path.symlink_to(tmp_path / "other")

    for damage in (flip, lambda: path.write_bytes(whole[:-1]), path.unlink, *([] if os.name == "nt" else [link])):
        damage()
        assert facts(prepare(texts, "bpe", vocab_size=280, cache=cache).data) == expected
        assert path.read_bytes() == whole
    for note in (cache / "notes").iterdir():
        note.write_bytes(note.read_bytes().replace(b"1", b"2"))
    assert facts(prepare(texts, "bpe", vocab_size=280, cache=cache).data) == expected


def test_a_prepared_text_of_a_stranger_is_checked(texts, tmp_path):
    """Also if all its checksums are right: tokens, ends of documents and sizes."""
    folder = tmp_path / "tokens"
    prepare(texts, "characters", folder=folder, cache="off")
    index, contents = token_files.read_index(folder), {name: (folder / name).read_bytes() for name in token_files.FILES}

    def written(changes, **fields):
        seals = {}
        for name, content in {**contents, **changes}.items():
            (folder / name).write_bytes(content)
            seals[name] = Seal(len(content), hashlib.sha256(content).hexdigest())
        (folder / "index.json").write_bytes(sealed({**asdict(replace(index, files=seals)), **fields}))

    ends = np.frombuffer(contents["documents.bin"], "<i8")
    for changes, fields, message in (
        ({"train.bin": b"\xff" + contents["train.bin"][1:]}, {}, "has the token 255"),
        ({"documents.bin": ends[::-1].astype("<i8").tobytes()}, {}, "not in their order"),
        ({"documents.bin": contents["documents.bin"][:-3]}, {}, "ends within a number"),
        ({"train.bin": b""}, {}, "not in their order"),
        ({"tokenizer.json": b'"bytes"'}, {}, "its tokenizer 256"),
        ({}, {"documents": 9}, "ends of 9 documents"),
        ({}, {"documents": -1}, "has another form"),
        ({}, {"format": 2}, "has the format 2"),
        ({}, {"kind": "weights"}, "is not the index"),
        ({}, {"files": {}}, "does not seal"),
    ):
        written(changes, **fields)
        with pytest.raises(TrainingError, match=message):
            open_prepared(folder, cache="off")
    written({})
    assert open_prepared(folder, cache="off").data.sha256 == index.text
    (folder / "index.json").write_text(json.dumps({"kind": "tokens", "format": 1}), encoding="utf-8")
    with pytest.raises(TrainingError, match="is damaged"):
        open_prepared(folder, cache="off")


def test_a_text_that_changes_while_it_is_read_is_refused(texts):
    """Whether it grows, shrinks or has other letters."""
    path = texts / "0.txt"
    (document,) = module.scanned(path, max_bytes=10_000, cache=None, show=PreparingLines(Console(file=StringIO()))).scan.documents
    for text in ("more" * 3000, "less", PARTS[0].replace("sheep", "goats")):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(TrainingError, match=r"0\.txt has changed while it was read"):
            list(texts_of(document))


def test_a_run_on_a_prepared_text_is_one_on_the_text(build, tokenizer, settings, change, quiet, tmp_path):
    """To the bit; and it is resumed from either, and evaluated on its held-out part."""
    path = tmp_path / "sheep.txt"
    path.write_text(TEXT, encoding="utf-8", newline="")
    folder = tmp_path / "tokens"
    found = prepare(path, tokenizer, folder=folder, cache="off")
    weights = {}
    for name, data in (("on-text", tokenize(TEXT, tokenizer, path=path)), ("on-tokens", found.data)):
        short = change(settings, steps=4, save_every=2)
        train(build(RECIPE), tokenizer, data, short, tmp_path / name, recipe=RECIPE, show=quiet())
        last = tmp_path / name / "checkpoints" / "step-000004"
        weights[name] = {file.name: file.read_bytes() for file in last.glob("*.safetensors")}
    assert weights["on-text"] == weights["on-tokens"]
    for data in (None, path, folder):
        resume(tmp_path / "on-tokens", build=build, checkpoint="step-000002", data=data, cache=tmp_path / "cache", show=quiet())
        assert {file.name: file.read_bytes() for file in last.glob("*.safetensors")} == weights["on-text"]
    assert evaluate(tmp_path / "on-tokens", build=build).held_out
    other = prepare(path, "bytes", folder=tmp_path / "bytes", cache="off")
    assert other.data.sha256 == found.data.sha256
    with pytest.raises(TrainingError, match="prepared with another tokenizer"):
        resume(tmp_path / "on-tokens", build=build, checkpoint="step-000002", data=tmp_path / "bytes", show=quiet())


def test_the_cache_is_where_it_is_chosen(tmp_path):
    """By the argument, else by the environment, else in the user's folder; a home that is not there is none."""
    home = tmp_path / "home"
    assert cache_of("off") is None
    assert cache_of(tmp_path).folder == tmp_path
    assert cache_of("default", {"COMPOSER_CACHE": "off", "HOME": str(home)}) is None
    assert cache_of("default", {"COMPOSER_CACHE": str(tmp_path)}).folder == tmp_path
    assert cache_of("default", {}) is None
    if sys.platform == "linux":
        assert cache_of("default", {"HOME": str(home)}).folder == home / ".cache" / "composer"
        assert cache_of("default", {"HOME": "/", "XDG_CACHE_HOME": str(home)}).folder == home / "composer"


def test_a_cache_that_cannot_be_written_is_done_without(texts, tmp_path):
    """Such as in a home folder that is a file."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    found = prepare(texts, "bytes", cache=tmp_path / "file")
    assert facts(found.data) == facts(prepare(texts, "bytes", cache="off").data)


def test_the_cache_is_bounded(texts, tmp_path, monkeypatch):
    """What has not been used for longest goes first."""
    cache = tmp_path / "cache"
    prepare(texts, "bytes", cache=cache)
    (first,) = (cache / "tokens").iterdir()
    os.utime(first, (1, 1))
    monkeypatch.setattr(text_cache, "MOST_BYTES", 6000)
    data = prepare(texts, "characters", cache=cache).data
    assert not first.exists()
    assert len(data.train) > 100


def test_progress_is_shown_part_by_part(texts, tmp_path):
    """As lines, and as bars on a terminal."""
    for display, cache, terminal in ((PreparingLines, "a", False), (PreparingBar, "b", True)):
        shown = StringIO()
        console = Console(file=shown, force_terminal=terminal, width=80, color_system=None)
        made = display(console) if terminal else display(console, between=0)
        prepare(texts, "bpe", vocab_size=280, cache=tmp_path / cache, show=made)
        for part in ("reading", "learning bpe", "tokenizing"):
            assert part in shown.getvalue()
    assert "100%" in shown.getvalue()


def test_a_folder_is_prepared_and_trained_on(texts, tmp_path, capsys, monkeypatch):
    """By two commands; options that do not go together are refused."""
    monkeypatch.chdir(tmp_path)
    assert main(["data", "prepare", str(texts), "--tokenizer", "bytes", "-o", "tokens"]) == 0
    assert "wrote tokens: " in capsys.readouterr().out
    tiny = ["train", "gpt_mini", "--set", "d_model=8", "--set", "n_layers=1", "--seq-len", "16", "--data", "tokens"]
    assert main([*tiny, "--steps", "1", "--batch-size", "2", "--run", "run"]) == 0
    assert main(["evaluate", "run"]) == 0
    capsys.readouterr()
    for arguments, message in (
        (["data", "prepare", str(texts), "-o", "tokens"], "tokens is there already"),
        (["data", "prepare", str(texts)], "-o is missing"),
        (["data", "prepare", "-o", "new"], "FILE is missing"),
        (["data", "prepare", "x.txt", "-o", "new", "--lines", "3"], "--lines does not work with prepare"),
        (["data", "copy", "x.txt"], "FILE does not work with copy"),
        (["data", "prepare", "x.txt", "-o", "new", "--tokenizer", "morse"], "there is no tokenizer morse"),
        (["data", "prepare", "x.txt", "-o", "new", "--vocab-size", "3"], "--vocab-size only works with"),
        ([*tiny, "--tokenizer", "bpe"], "--tokenizer does not work with a prepared text"),
        ([*tiny, "--data", str(texts)], f"{texts} is no prepared text, and tokens is one"),
    ):
        assert main(arguments) == 2
        assert message in capsys.readouterr().err


MEASURE = """
import sys
from composer.train import prepare
from composer.train.data.prepared.preparing import PreparingLines
from rich.console import Console

def anonymous():
    rows = dict(line.split(":") for line in open("/proc/self/smaps_rollup").read().splitlines()[1:])
    return int(rows["Anonymous"].split()[0]) / 1024

class Watch(PreparingLines):
    most = 0.0
    def advance(self, count):
        self.most = max(self.most, anonymous())

small, large, kind, cache = sys.argv[1:]
prepare(small, kind, cache=cache)
before, watch = anonymous(), Watch(Console(file=sys.stderr))
data = prepare(large, kind, cache=cache, show=watch).data
data.train[:: 1 << 12].sum()
print(max(watch.most, anonymous()) - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/smaps_rollup"), reason="memory is read from /proc")  # noqa: PTH110
def test_memory_is_flat(tmp_path):
    """For a text of 16 MB, after one of a tenth."""
    for name, times in (("small.txt", 400), ("large.txt", 4_000)):
        (tmp_path / name).write_text(TEXT[:4000] * times, encoding="utf-8")
    files = [str(tmp_path / name) for name in ("small.txt", "large.txt")]
    command = [sys.executable, "-c", MEASURE, *files, "characters", str(tmp_path / "cache")]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert float(found.stdout) < 12  # MB


def test_bytes_of_a_text_are_its_tokens(texts, tmp_path):
    """Mapped from the file, and not in memory."""
    data = prepare(texts / "0.txt", ByteTokenizer(), cache=tmp_path / "cache").data
    assert isinstance(data.train.base, np.memmap)
    assert bytes(data.train) + bytes(data.validation) == TEXT[:2000].encode()
