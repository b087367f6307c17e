"""Tokenizers that are learned from a text, and the command that shows tokens."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from composer.cli import main
from composer.train import (
    MarkedTokenizer,
    TrainingError,
    load_tokenizer,
    make_tokenizer,
    save_tokenizer,
    text_as_it_comes,
    train_wordpiece,
    train_words,
)
from composer.train.data.learned_tokenizers import MAKERS
from composer.train.data.objectives import END, MASK, START
from composer.train.data.tokenizer_kinds import SIZED, TOKENIZER_KINDS
from tests.published.examples import write_example

TEXT = "I don't like the playing cats, they play.\nThe cats don't like me: played out.\n" * 20


def test_every_kind_has_a_maker():
    """And the commands offer the same."""
    assert [*MAKERS] == [*TOKENIZER_KINDS]
    assert [*SIZED] == ["bpe", "wordpiece", "words"]


@pytest.mark.parametrize("name", SIZED)
def test_a_learned_tokenizer_is_kept_whole(name, tmp_path):
    """Its size is at most the one that is asked for; the file of a run gives the same ids; words that it knows come back."""
    made = make_tokenizer(name, TEXT, size=280 if name == "bpe" else 90)
    assert made.size <= (280 if name == "bpe" else 90)
    save_tokenizer(made, tmp_path / "tokenizer.json")
    again = load_tokenizer(tmp_path / "tokenizer.json")
    text = "the cats don't play"
    assert again.encode(text) == made.encode(text)
    assert again.size == made.size
    assert "cats" in made.decode(made.encode(text))
    for after in (0, 2):
        ids = made.encode(text)
        come = "".join(text_as_it_comes(made, ids[after:], after=ids[:after]))
        assert made.decode(ids[:after]) + come == made.decode(ids)


ELSEWHERE = """
import sys
from composer.train import make_tokenizer
for name, size in (("bpe", 270), ("wordpiece", 45), ("words", 16)):
    print(make_tokenizer(name, sys.argv[1], size=size).to_json())
"""


def test_pieces_are_those_of_the_lectures():
    """`##ing` of WordPiece, words with an apostrophe, and special tokens around a whole text."""
    tokenizer = train_wordpiece("play playing played sing singing\n" * 20, size=30)
    assert [tokenizer.pieces.id_to_token(each) for each in tokenizer.encode("played playing")] == [
        "play",
        "##ed",
        "play",
        "##ing",
    ]
    words = train_words(TEXT, size=40)
    assert words.decode(words.encode("I don't like cats.")) == "I don't like cats."
    assert words.decode(words.encode("I like dogs.")) == "I like."
    for each in (tokenizer, words):
        start, end = each.special[START], each.special[END]
        assert each.encode_whole("play") == [start, *each.encode("play"), end]
        assert MarkedTokenizer(each, (MASK,)).size == each.size
        assert len({start, end, each.special[MASK]}) == 3


def test_the_same_text_gives_the_same_tokenizer_in_every_process():
    """Whatever the order in which a process keeps its sets and maps."""

    def made(seed: int) -> bytes:
        command = [sys.executable, "-c", ELSEWHERE, TEXT]
        return subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": str(seed)}, check=True, capture_output=True).stdout

    first, *others = (made(seed) for seed in range(3))
    assert first.count(b"\n") >= 3
    assert others == [first, first]


def test_what_cannot_be_made_is_refused():
    """An unknown name, a size where there is none to choose, or one that is too small."""
    with pytest.raises(TrainingError, match="there is no tokenizer morse"):
        make_tokenizer("morse", TEXT)
    with pytest.raises(TrainingError, match="the vocabulary of bytes follows from the text"):
        make_tokenizer("bytes", TEXT, size=300)
    for name, size in (("words", 15), ("wordpiece", 0), ("wordpiece", 30), ("words", -1), ("bpe", 255)):
        with pytest.raises(TrainingError, match=rf"a vocabulary of {size}"):
            make_tokenizer(name, TEXT, size=size)


def test_the_command_shows_tokens_merges_and_the_table(tmp_path, monkeypatch, capsys):
    """Ids that the tokenizer gives, the first pair that is merged, a share of unknown words."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.txt").write_text(TEXT)
    words = ["--tokenizer", "bpe", "--vocab-size", "270", "--data", "t.txt"]
    assert main(["tokens", "the cats\n", *words, "--merges", "2", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    made = make_tokenizer("bpe", TEXT, size=270)
    assert [each["id"] for each in found["texts"][0]["tokens"]] == made.encode("the cats\n")
    assert "".join(each["token"] for each in found["texts"][0]["tokens"]) == "the␣cats\\n"
    assert len(found["merges"]) == 2
    assert main(["tokens", "the cats", *words, "--merges", "2"]) == 0
    out = capsys.readouterr().out
    assert f"{len(made.encode('the cats'))} tokens" in out
    assert f"   1  {found['merges'][0][0]} + {found['merges'][0][1]}\n" in out
    assert main(["tokens", "--table", "--data", "t.txt", "--vocab-size", "300", "--format", "json"]) == 0
    rows = {row["tokenizer"]: row for row in json.loads(capsys.readouterr().out)}
    assert [*rows] == [*TOKENIZER_KINDS]
    assert rows["characters"]["tokens"] == len(TEXT)
    assert rows["bpe"]["tokens"] == len(make_tokenizer("bpe", TEXT, size=300).encode(TEXT))
    assert rows["words"]["tokens_per_word"] == pytest.approx(rows["words"]["tokens"] / len(TEXT.split()))
    assert main(["tokens", "--table", "--data", "t.txt", "--vocab-size", "256"]) == 0
    (tmp_path / "u.txt").write_text(" ".join(f"w{number}" for number in range(100)))
    capsys.readouterr()
    assert main(["tokens", "--table", "--data", "u.txt", "--vocab-size", "265"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split()[:2] == ["words", "105"]


def test_the_command_reads_runs_and_published_folders(tmp_path, monkeypatch, capsys):
    """And refuses what is neither, and options that do not fit."""
    monkeypatch.chdir(tmp_path)
    write_example("bert-base-uncased", tmp_path / "bert")
    (tmp_path / "t.txt").write_text(TEXT)
    assert main(["tokens", "a [MASK]", "--tokenizer", "bert"]) == 0
    assert "[MASK]" in capsys.readouterr().out
    steps = ["--steps", "1", "--seq-len", "8", "--batch-size", "2", "--set", "n_layers=1", "--set", "d_model=16"]
    assert main(["train", "gpt_mini", "--data", "t.txt", "--tokenizer", "words", "--vocab-size", "40", *steps, "--run", "r"]) == 0
    capsys.readouterr()
    assert main(["tokens", "don't like", "--tokenizer", "r"]) == 0
    assert [line.split()[-1] for line in capsys.readouterr().out.splitlines()[:-1]] == ["[CLS]", "don't", "like", "[SEP]"]
    for words, message in (
        (["x", "--tokenizer", "nothing"], "there is no tokenizer nothing"),
        (["x", "--tokenizer", "r", "--data", "t.txt"], "--data is for a tokenizer that is made from a text"),
        (["x", "--tokenizer", "r", "--merges", "2"], "this tokenizer has no merges"),
        ([], "there is no text"),
        (["--table"], "--table needs --data"),
        (["x", "--table", "--data", "t.txt"], "--table reads the texts of --data alone"),
        (["x", "--tokenizer", "words", "--vocab-size", "3"], "a vocabulary of 3 is too small"),
    ):
        assert main(["tokens", *words]) == 2
        assert message in capsys.readouterr().err
    assert main(["generate", "r", "--prompt", "don't", "--temperature", "0", "--max-new-tokens", "1"]) == 0
    assert capsys.readouterr().out.startswith("don't ")
