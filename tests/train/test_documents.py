"""Texts from files, folders, patterns and compressed files; windows that stay in one of them."""

from __future__ import annotations

import gzip
import os
from importlib import import_module

import numpy as np
import pytest
import torch

from composer.train import (
    ByteTokenizer,
    TextDocument,
    TrainingError,
    marked,
    objective_of,
    read_documents,
    read_text,
    resume,
    tokenize,
    train,
)
from composer.train.data import documents as module
from composer.train.data.text import check_length, draw_batch, fingerprint, held_out_batches, too_short
from tests.train.small import TEXT

RECIPE = "composer: 1\nname: small\ntask: causal_lm\n"
TEXTS = ("abcdefghij" * 3, "k", "lmnopqrstuvw" * 4, "xyz")
"""Letters differ between texts, so that a window that crosses from one into another is seen."""


def paths_of(*sources):
    """Return the paths of the documents of sources."""
    return [document.path for document in read_documents(sources)]


@pytest.fixture
def folder(tmp_path):
    """A folder with texts, and with files and links that are not read."""
    root = tmp_path / "texts"
    for name in ("b.txt", "a/z.md", "a/.hidden.txt", ".git/x.txt", "c.bin", "a/deep/er.TXT", "code.py", "empty.txt"):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("" if name == "empty.txt" else name, encoding="utf-8")
    (root / "d.txt.gz").write_bytes(gzip.compress(b"packed"))
    return root


def test_a_folder_is_its_text_files_sorted(folder):
    """Hidden files, other files and files without text are left out."""
    assert paths_of(folder) == [folder / name for name in ("a/deep/er.TXT", "a/z.md", "b.txt", "d.txt.gz")]
    assert read_documents([folder])[-1].text == "packed"


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*.txt", ["b.txt"]),
        ("**/*.txt", ["b.txt"]),
        ("**", ["a/deep/er.TXT", "a/z.md", "b.txt", "c.bin", "code.py", "d.txt.gz"]),
        ("**/**/z.*", ["a/z.md"]),
        ("a/*/er.[T]XT", ["a/deep/er.TXT"]),
        ("?/*", ["a/z.md"]),
        (".git/*", [".git/x.txt"]),
        (".g*/*", [".git/x.txt"]),
        ("[bc].*", ["b.txt", "c.bin"]),
    ],
)
def test_a_pattern_is_what_it_matches(folder, pattern, names):
    """Of any suffix; a hidden name only if the pattern says so, which a plain folder in it does too."""
    assert paths_of(folder / pattern) == [folder / name for name in names]


def test_sources_keep_their_order_and_a_file_is_read_once(folder):
    """However it is found again."""
    sources = [folder / "code.py", folder / "b.txt", folder, folder / "a" / ".." / "b.txt"]
    assert [path.name for path in paths_of(*sources)] == ["code.py", "b.txt", "er.TXT", "z.md", "d.txt.gz"]


def test_a_name_with_brackets_is_a_file_if_there_is_one(tmp_path):
    """And a pattern otherwise."""
    (tmp_path / "act[1].txt").write_text("to be", encoding="utf-8")
    assert paths_of(tmp_path / "act[1].txt") == [tmp_path / "act[1].txt"]


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege")
def test_no_link_leads_out_of_a_folder(folder, tmp_path):
    """Neither one to a file nor one to a folder; a path that is named itself may be a link."""
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "s.txt").write_text("secret", encoding="utf-8")
    (folder / "link.txt").symlink_to(tmp_path / "secret" / "s.txt")
    (folder / "linked").symlink_to(tmp_path / "secret")
    (folder / "round").symlink_to(folder)
    for source in (folder, folder / "**/*.txt", folder / "*/*.md"):
        assert not any("secret" in document.text for document in read_documents([source]))
    with pytest.raises(TrainingError, match="no file matches"):
        read_documents([folder / "l*"])
    assert read_text(folder / "link.txt") == "secret"
    assert paths_of(folder / "linked") == [folder / "linked" / "s.txt"]


def test_a_source_without_texts_is_refused(tmp_path, folder):
    """Whether nothing is there, nothing matches, or nothing is in it."""
    (tmp_path / "bare").mkdir()
    with pytest.raises(TrainingError, match="bare has no text file") as error:
        read_documents([tmp_path / "bare"])
    assert ".txt, .text, .md" in error.value.hint
    with pytest.raises(TrainingError, match=r"no file matches .*\*\.tex"):
        read_documents([folder, tmp_path / "*.tex"])
    with pytest.raises(TrainingError, match=r"no file matches .*absent"):
        read_documents([tmp_path / "absent" / "*.txt"])
    with pytest.raises(TrainingError, match=r"empty\.txt is empty"):
        read_documents([folder / "empty.txt"])
    with pytest.raises(TrainingError, match="has only files without text"):
        read_documents([folder / "e*.txt"])
    with pytest.raises(TrainingError, match=r"c\.raw is not UTF-8 text: line 1 has the byte 0xff"):
        (folder / "c.raw").write_bytes(b"\xff")
        read_documents([folder / "*.raw"])


def test_a_search_ends(folder, monkeypatch):
    """Even from the root."""
    monkeypatch.setattr(module, "MOST_ENTRIES", 5)
    with pytest.raises(TrainingError, match="more than 5 files and folders would be searched"):
        read_documents([folder])


def test_gzip_is_read_whatever_its_name(tmp_path):
    """Of several members too, with a byte order mark."""
    path = tmp_path / "text"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbfto be\r\n") + gzip.compress("né".encode()))
    assert read_text(path) == "to be\r\nné"


def test_a_bomb_is_bounded_by_what_it_decompresses_to(tmp_path):
    """A file of a few kilobytes; a text of just the limit is read."""
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b"x" * 3_000_000))
    assert path.stat().st_size < 10_000
    with pytest.raises(TrainingError, match=r"bomb\.gz has more than 2,999,999 bytes"):
        read_text(path, max_bytes=2_999_999)
    assert len(read_text(path, max_bytes=3_000_000)) == 3_000_000


def test_the_limit_holds_for_all_texts_together(tmp_path):
    """Also where each is smaller."""
    for name in "ab":
        (tmp_path / f"{name}.txt").write_bytes(b"12345")
    assert len(read_documents([tmp_path], max_bytes=10)) == 2
    with pytest.raises(TrainingError, match=r"the texts up to .*b\.txt have more than 9 bytes"):
        read_documents([tmp_path], max_bytes=9)


@pytest.mark.parametrize(
    ("cut", "flip", "message"), [(-9, None, "is cut off"), (None, 20, "is damaged"), (None, -6, "is damaged")]
)
def test_a_damaged_gzip_is_told(tmp_path, cut, flip, message):
    """Cut off, changed within, or of another checksum."""
    packed = bytearray(gzip.compress(bytes(range(32, 127)) * 9, mtime=0)[:cut])
    if flip is not None:
        packed[flip] ^= 0xFF
    (tmp_path / "t.gz").write_bytes(packed)
    with pytest.raises(TrainingError, match=rf"t\.gz {message}"):
        read_text(tmp_path / "t.gz")


def test_zstd_is_read_where_python_can(tmp_path):
    """And told where it cannot."""
    path = tmp_path / "t.zst"
    try:
        zstd = import_module("compression.zstd")
    except ImportError:
        path.write_bytes(b"\x28\xb5\x2f\xfd\x00")
        with pytest.raises(TrainingError, match=r"t\.zst is compressed with zstd, which Python reads from 3\.14 on") as error:
            read_text(path)
        assert "decompress it first" in error.value.hint
    else:
        path.write_bytes(zstd.compress(b"to be" * 1000))
        assert read_text(path) == "to be" * 1000
        with pytest.raises(TrainingError, match="has more than 99 bytes"):
            read_text(path, max_bytes=99)
        path.write_bytes(path.read_bytes()[:-3])
        with pytest.raises(TrainingError, match=r"t\.zst is"):
            read_text(path)


def several(objective=None):
    """Return the texts as data."""
    documents = [TextDocument(f"{number}.txt", text) for number, text in enumerate(TEXTS)]
    if objective is None:
        return tokenize(documents, ByteTokenizer(), path="texts")
    return objective.tokenize(documents, path="texts")


def test_the_last_tenth_of_each_document_is_held_out():
    """At the characters where each alone is split; a single character is trained on."""
    data = several()
    alone = [tokenize(text, ByteTokenizer(), path="t") for text in TEXTS if len(text) > 1]
    assert data.validation.tolist() == [token for one in alone for token in one.validation.tolist()]
    assert bytes(data.train.tolist()).decode() == TEXTS[0][:27] + "k" + TEXTS[2][:43] + "xy"
    assert data.characters == data.bytes == len(data.validation)


def test_one_document_is_its_text():
    """Same tokens, same checksum, so that runs on one file go on as before."""
    text, alone = tokenize("to be or not", ByteTokenizer(), path="t"), [TextDocument("t", "to be or not")]
    data = tokenize(alone, ByteTokenizer(), path=["t"])
    assert (data.sha256, data.train.tolist(), data.path) == (text.sha256, text.train.tolist(), text.path)
    assert fingerprint([TextDocument("a", "ab"), TextDocument("b", "c")]) != fingerprint(
        [TextDocument("a", "a"), TextDocument("b", "bc")]
    )


@pytest.mark.parametrize("seq_len", [1, 2, 5, 26, 30])
def test_every_window_of_each_document_is_drawn_and_no_other(seq_len):
    """Uniformly: against the list of all windows of each."""
    data = several()
    parts = [TEXTS[0][:27], "k", TEXTS[2][:43], "xy"]
    windows = [part[start : start + seq_len + 1] for part in parts for start in range(len(part) - seq_len)]
    drawn = draw_batch(data, batch_size=20_000, seq_len=seq_len, generator=torch.Generator().manual_seed(1))
    rows = torch.cat([drawn["tokens"], drawn["targets"][:, -1:]], dim=1).tolist()
    counts = dict.fromkeys(windows, 0)
    for row in rows:
        counts[bytes(row).decode()] += 1
    share = np.array([count / windows.count(window) for window, count in counts.items()]) * len(windows) / 20_000
    assert share.min() > 0.7
    assert share.max() < 1.3


@pytest.mark.parametrize("seq_len", [1, 2, 3, 500])
def test_each_held_out_token_follows_its_own_document(seq_len):
    """Each is a target once, after the token before it in its file."""
    data = several()
    expected = []
    for text in TEXTS:
        boundary = int(0.9 * len(text))
        expected += [(ord(text[at - 1]), ord(text[at])) for at in range(boundary, len(text)) if at]
    found, sizes = [], []
    for batch in held_out_batches(data, batch_size=2, seq_len=seq_len):
        tokens, targets = batch["tokens"], batch["targets"]
        assert torch.equal(tokens[:, 1:], targets[:, :-1])
        found += zip(tokens.flatten().tolist(), targets.flatten().tolist(), strict=True)
        sizes.append(tokens.shape)
    assert sorted(found) == sorted(expected)
    assert max(rows for rows, _ in sizes) <= 2
    assert max(length for _, length in sizes) <= seq_len


def test_documents_that_are_too_short_are_counted():
    """With the tokens that they have; without a longer one, an error says how long the longest is."""
    data = several()
    check_length(data, 42)
    assert too_short(data, 28) == (3, 27 + 1 + 2)
    with pytest.raises(TrainingError, match="the longest document of texts has 43 tokens to train on"):
        check_length(data, 43)


def test_spoiled_windows_stay_in_a_document():
    """In training and held out: tokens that are seen in a row are of one file."""
    objective = objective_of("masked_lm", marked(ByteTokenizer(), "masked_lm"))
    data = several(objective)
    batches = [objective.draw(data, batch_size=500, seq_len=9, generator=torch.Generator().manual_seed(1))]
    batches += objective.held_out(data, batch_size=3, seq_len=2)
    for batch in batches:
        whole = torch.where(batch["labels"] >= 0, batch["labels"], batch["tokens"])
        for row in whole.tolist():
            assert any(bytes(row).decode() in text for text in TEXTS)


def test_pairs_of_several_files_are_split_by_file(tmp_path):
    """The error of a line names its own file."""
    objective = objective_of("seq2seq_lm", marked(ByteTokenizer(), "seq2seq_lm"))
    lines = [f"{number}\t{number}{number}\n" for number in range(30)]
    documents = [TextDocument("a.tsv", "".join(lines[:20])), TextDocument("b.tsv", "".join(lines[20:]))]
    data = objective.tokenize(documents, path="folder")
    held_out = [bytes(source[:-1].tolist()).decode() for source, _ in objective.pairs(data.validation)]
    assert held_out == ["18", "19", "29"]
    assert len(objective.pairs(data.train)) == 27
    with pytest.raises(TrainingError, match=r"wrong\.tsv, line 1 is not a pair"):
        objective.tokenize([*documents, TextDocument("wrong.tsv", "no tab")], path="folder")


def test_a_run_on_several_sources_goes_on_to_the_same_weights(build, tokenizer, settings, change, quiet, tmp_path):
    """From the paths that it began with, or from others with the same texts; with another text it does not."""
    (tmp_path / "more").mkdir()
    for name, part in (("a.txt", TEXT[:2000]), ("more/b.txt", TEXT[2000:3000]), ("more/c.txt", TEXT[3000:])):
        (tmp_path / name).write_text(part, encoding="utf-8")
    sources = [tmp_path / "a.txt", tmp_path / "more"]
    data = tokenize(read_documents(sources), tokenizer, path=sources)
    run = tmp_path / "run"
    train(build(RECIPE), tokenizer, data, change(settings, steps=4, save_every=2), run, recipe=RECIPE, show=quiet())
    last = run / "checkpoints" / "step-000004"
    before = {file.name: file.read_bytes() for file in last.glob("*.safetensors")}
    assert len(before) == 3
    for given in (None, [tmp_path / "*.txt", tmp_path / "more" / "*"]):
        resume(run, build=build, checkpoint="step-000002", data=given, show=quiet())
        assert {file.name: file.read_bytes() for file in last.glob("*.safetensors")} == before
    for given in (tmp_path / "more", sources[::-1]):
        with pytest.raises(TrainingError, match="is not the text that this run started with"):
            resume(run, build=build, checkpoint="step-000002", data=given, show=quiet())
