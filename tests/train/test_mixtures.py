"""Several texts by weights, and an order of the data that depends on the seed and the step alone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

import composer
from composer.cli import main
from composer.cli.arguments import Problem
from composer.cli.training.sources import with_weights
from composer.train import (
    ByteTokenizer,
    Examples,
    TextDocument,
    TrainingError,
    examples_of,
    marked,
    mixed,
    objective_of,
    prepare,
    read_documents,
    read_table,
    resume,
    tokenize,
    train,
)
from composer.train.data.documents import counts_by_source
from composer.train.data.order import at_batch
from composer.train.data.prepared.prepare import open_together
from composer.train.data.skip_gram import SkipGram
from composer.train.run.reader import read_run
from tests.train.small import TEXT
from tests.train.test_resume import same

ROWS = """
recipe: rows
inputs: {kind: "float[batch, 1]", x: "float[batch, 1]", y: "float[batch, 1]?"}
graph: {out: {type: linear, out: 1, in: kind}}
outputs: {out: out}
losses: {error: {type: mse, in: out, target: x}}
"""
RECIPE = "composer: 1\nname: small\ntask: causal_lm\n"


def texts():
    """Three sources: a long one, two short documents, and one of which each window is known."""
    documents = [
        TextDocument("a", "a" * 900),
        TextDocument("b1", "b" * 30),
        TextDocument("b2", "b" * 20),
        TextDocument("c", "cde" * 9),
    ]
    return tokenize(documents, ByteTokenizer(), path=["a", "b", "c"])


def drawn(data, *, batch_size=10, batches=400, seed=3):
    """Return the first byte of each sequence [batches, batch_size]."""
    generator = torch.Generator()
    objective = objective_of("causal_lm", ByteTokenizer())
    each = [
        objective.draw(data, batch_size=batch_size, seq_len=4, generator=at_batch(generator, seed, number))
        for number in range(batches)
    ]
    return torch.stack([batch["tokens"][:, 0] for batch in each])


def test_each_source_has_its_share_of_every_batch():
    """Up to a whole number, exactly on average; in a source, every start of each document is equally likely."""
    data = mixed(texts(), [1, 3, 0.5], documents=[1, 2, 1])
    shares = np.array([1, 3, 0.5]) / 4.5 * 10
    found = drawn(data)
    for letters, share in zip(("a", "b", "cde"), shares, strict=True):
        counts = sum((found == ord(letter)).sum(1) for letter in letters)
        assert set(counts.tolist()) <= {int(share), int(share) + 1}
        assert abs(float(counts.double().mean()) - share) < 0.1
    firsts = {letter: int((found == ord(letter)).sum()) for letter in "cde"}  # of 20 starts: 7, 7, 6
    assert max(firsts.values()) < 1.4 * min(firsts.values())


def test_a_batch_depends_on_the_seed_and_its_number_alone():
    """Not on batches before it: whoever draws every other one draws the same."""
    data, objective, generator = texts(), objective_of("causal_lm", ByteTokenizer()), torch.Generator()

    def batch(number, seed=3):
        return objective.draw(data, batch_size=10, seq_len=4, generator=at_batch(generator, seed, number))["tokens"]

    all_of_them = [batch(number) for number in range(6)]
    assert [torch.equal(batch(number), all_of_them[number]) for number in (5, 3, 1, 4)] == [True] * 4
    assert not any(torch.equal(all_of_them[0], other) for other in (*all_of_them[1:], batch(0, seed=4)))


@pytest.mark.parametrize("step", [2, 7])
def test_a_run_on_a_mixture_goes_on_bit_for_bit(build, tokenizer, settings, change, quiet, tmp_path, step):
    """From the step before the one at which it died, with the weights that its folder keeps, of a folder and a file."""
    folder, file = tmp_path / "texts", tmp_path / "c.txt"
    folder.mkdir()
    for name, text in (("a.txt", TEXT[:900]), ("b.txt", TEXT[900:1500])):
        (folder / name).write_text(text, encoding="utf-8")
    file.write_text(TEXT, encoding="utf-8")
    documents = read_documents([folder, file])
    counts = counts_by_source([folder, file], [document.path for document in documents])
    data = mixed(tokenize(documents, tokenizer, path=[folder, file]), [2, 1], documents=counts)
    assert data.mixture == ((2, 2.0), (1, 1.0))
    train(build(RECIPE), tokenizer, data, settings, tmp_path / "whole", recipe=RECIPE, show=quiet())

    def die(at):
        if at == step:
            raise KeyboardInterrupt

    often = change(settings, save_every=1)
    with pytest.raises(KeyboardInterrupt):
        train(build(RECIPE), tokenizer, data, often, tmp_path / "run", recipe=RECIPE, show=quiet(die))
    assert read_run(tmp_path / "run").data.weights == [2, 1]
    resume(tmp_path / "run", build=build, show=quiet())
    same(tmp_path / "run", tmp_path / "whole")


def test_a_source_of_a_mixture_needs_a_window_and_a_weight():
    """Else it would give nothing, or another one would give its share."""
    data = mixed(texts(), [1, 1, 1], documents=[1, 2, 1])
    with pytest.raises(TrainingError, match="no document of b has 31 tokens"):
        objective_of("causal_lm", ByteTokenizer()).check(data, 30)
    for weights, documents in (([1, 1], [1, 2]), ([1, 0, 1], [1, 2, 1]), ([1, 1, 1], [1, 3, 0])):
        with pytest.raises(TrainingError, match=r"weight|has only files"):
            mixed(texts(), weights, documents=documents)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["a.txt=0.7", "b=c.txt=3"], (["a.txt", "b=c.txt"], (0.7, 3.0))),
        (["C:\\texts\\a.txt=1e-1", "*.md=2"], (["C:\\texts\\a.txt", "*.md"], (0.1, 2.0))),
        (["a=b.txt", "x=1"], (["a=b.txt", "x=1"], ())),
        (["x=1=5"], (["x=1"], (5.0,))),
    ],
)
def test_what_follows_the_last_equals_sign_is_a_weight(tmp_path, monkeypatch, given, expected):
    """Unless there is a file of that name."""
    monkeypatch.chdir(tmp_path)
    Path("x=1").write_text("x", encoding="utf-8")
    paths, weights = with_weights([Path(each) for each in given])
    assert ([str(path) for path in paths], weights) == expected
    for wrong in (["a=1", "b"], ["a=0"], ["a=inf"], ["a=nan", "b=1"]):
        with pytest.raises(Problem):
            with_weights([Path(each) for each in wrong])


def test_rows_of_tables_are_drawn_by_weights(tmp_path):
    """Of those that are trained on; which rows are held out stays the same."""
    for name, count in (("a", 50), ("b", 20), ("c", 30)):
        numbers = [f"{ord(name)},{row}" for row in range(count)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["kind,x", *numbers]) + "\n", encoding="utf-8")
    table = read_table([tmp_path / f"{name}.csv" for name in "abc"])
    data = examples_of(table, composer.load(ROWS).program, ByteTokenizer(), seq_len=1)
    weighed, generator = mixed(data, [1, 3, 0.5]), torch.Generator()
    batches = [
        Examples().draw(weighed, batch_size=10, seq_len=1, generator=at_batch(generator, 3, number)) for number in range(300)
    ]
    kinds = torch.stack([batch["kind"][:, 0] for batch in batches])
    for letter, share in zip("abc", np.array([1, 3, 0.5]) / 4.5 * 10, strict=True):
        counts = (kinds == ord(letter)).sum(1)
        assert set(counts.tolist()) <= {int(share), int(share) + 1} and abs(float(counts.double().mean()) - share) < 0.1
    rows = {tuple(row) for batch in batches for row in torch.cat([batch["kind"], batch["x"]], 1).long().tolist()}
    train, held = (
        {tuple(row) for row in torch.cat([*data.batch(each).values()], 1).long().tolist()}
        for each in (data.train, data.validation)
    )
    assert rows == train and not rows & held and weighed.validation is data.validation
    (tmp_path / "d.csv").write_text("y\n" + "1\n" * 50, encoding="utf-8")
    aside = examples_of(
        read_table([tmp_path / "a.csv", tmp_path / "d.csv"]), composer.load(ROWS).program, ByteTokenizer(), seq_len=1
    )
    with pytest.raises(TrainingError, match="side by side"):
        mixed(aside, [1, 1])


def test_pairs_and_words_are_drawn_by_weights():
    """From whatever documents a source has."""
    documents = [TextDocument(name, f"{name}{name}\t{name}\n" * count) for name, count in (("a", 40), ("b", 9), ("c", 30))]
    tokenizer = marked(ByteTokenizer(), "seq2seq_lm")
    objective = objective_of("seq2seq_lm", tokenizer)
    data = mixed(objective.tokenize(documents, path=["a", "bc"]), [1, 4], documents=[1, 2])
    objective.check(data, 9)
    batch = objective.draw(data, batch_size=50, seq_len=9, generator=torch.Generator().manual_seed(0))
    assert int((batch["source"][:, 0] == ord("a")).sum()) == 10
    near = SkipGram(ByteTokenizer())
    words = mixed(near.tokenize([TextDocument("a", "a" * 90), TextDocument("b", "b" * 20)], path=["a", "b"]), [1, 4])
    near.check(words, 1)
    centers = near.draw(words, batch_size=50, seq_len=1, generator=torch.Generator().manual_seed(0))["center"]
    assert int((centers == ord("a")).sum()) == 10
    empty = mixed(objective.tokenize([documents[0], TextDocument("e", "\n")], path=["a", "e"]), [1, 1])
    with pytest.raises(TrainingError, match="e has no pair to train on"):
        objective.check(empty, 9)


def test_prepared_texts_together_are_the_texts_together(tmp_path):
    """Token by token, with the same documents and weights."""
    files = [tmp_path / name for name in ("a.txt", "b.txt", "c.txt")]
    for number, file in enumerate(files, 1):
        file.write_text(TEXT[: 700 * number], encoding="utf-8")
    prepare(files[:1], "bytes", folder=tmp_path / "one", cache="off")
    prepare(files[1:], "bytes", folder=tmp_path / "two", cache="off")
    found = open_together([tmp_path / "one", tmp_path / "two"], cache="off", weights=[2, 1]).data
    expected = mixed(tokenize(read_documents(files), ByteTokenizer(), path=["one", "two"]), [2, 1], documents=[1, 2])
    for name in ("train", "validation"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    for name in ("train_ends", "validation_ends", "mixture", "characters", "bytes"):
        assert getattr(found, name) == getattr(expected, name)
    prepare(files[0], "characters", folder=tmp_path / "other", cache="off")
    for wrong, message in ((tmp_path / "other", "different tokenizers"), (files[1], "is no prepared text, and")):
        with pytest.raises(TrainingError, match=message):
            open_together([tmp_path / "one", wrong], cache="off")


SOURCES = {
    "prepared": ("gpt_mini", ["a", "b"], []),
    "lines": ("gpt_mini", ["a.txt", "b.txt"], ["--end-tokens", "line"]),
    "pairs": ("seq2seq_rnn", ["a.pairs", "b.pairs"], []),
    "tables": ("gpt_mini", ["a.jsonl", "b.jsonl"], []),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", SOURCES)
def test_weights_of_each_kind_of_source_are_kept(kind, tmp_path, monkeypatch):
    """A run that goes back to a checkpoint is, to the bit, the run that never stopped."""
    monkeypatch.chdir(tmp_path)
    for name, text in (("a", TEXT[:900]), ("b", TEXT[900:2000])):
        Path(f"{name}.txt").write_text(text, encoding="utf-8")
        lines = [line for line in text.splitlines() if len(line) > 20]
        Path(f"{name}.pairs").write_text("".join(f"{line[:9]}\t{line[9:20]}\n" for line in lines), encoding="utf-8")
        rows = [json.dumps({"prompt": line[:9], "answer": line[9:]}) for line in lines]
        Path(f"{name}.jsonl").write_text("\n".join(rows), encoding="utf-8")
        if kind == "prepared":
            prepare(f"{name}.txt", "bytes", folder=name, cache="off")
    recipe, (one, other), options = SOURCES[kind]
    gpt, rnn = ("d_model=16", "n_heads=2", "n_layers=1"), ("d_embed=8", "hidden=8", "align=8", "maxout=8")
    sizes = [part for each in (gpt if recipe == "gpt_mini" else rnn) for part in ("--set", each)]
    steps = ["--steps", "4", "--save-every", "2", "--batch-size", "3", "--seq-len", "64", "--cache", "off"]
    start = ["train", recipe, *sizes, *steps, *options, "--run", "run"]
    assert main([*start, "--data", f"{one}=2", "--data", f"{other}=1"]) == 0
    assert read_run(Path("run")).data.weights == [2, 1]
    shutil.copytree("run", "whole")
    assert main(["train", "--resume", "run", "--checkpoint", "step-000002", "--cache", "off"]) == 0
    same(Path("run"), Path("whole"))


@pytest.mark.slow
def test_the_command_keeps_the_weights_of_its_data(tmp_path, monkeypatch, capsys):
    """A resumed run takes them from its folder; what has no windows to draw is refused."""
    monkeypatch.chdir(tmp_path)
    for name, text in (("a.txt", TEXT[:900]), ("b.txt", TEXT[900:2000]), ("t.csv", "tokens,label\na,b\n" * 9)):
        Path(name).write_text(text, encoding="utf-8")
    sizes = ["--set", "d_model=16", "--set", "n_layers=1", "--set", "n_heads=2", "--batch-size", "2", "--seq-len", "8"]
    start = ["train", "gpt_mini", *sizes, "--steps", "2", "--run", "run"]
    assert main([*start, "--data", "a.txt=2", "--data", "b.txt=1"]) == 0
    assert read_run(Path("run")).data.weights == [2, 1]
    assert main(["train", "--resume", "run", "--steps", "3"]) == 0
    capsys.readouterr()
    for wrong, message in (
        (["train", "--resume", "run", "--steps", "4", "--data", "a.txt=1", "--data", "b.txt=1"], "keeps the weights of its data"),
        ([*start[:-1], "other", "--data", "t.csv=1", "--data", "a.txt=2"], "a.txt is no table"),
        ([*start[:-1], "other", "--data", "a.txt=1", "--data", "b.txt"], "b.txt has no weight"),
        ([*start[:-1], "other", "--data", "a.txt=1", "--data", "b.txt=1", "--end-tokens", "file"], "all files are one text"),
    ):
        assert main(wrong) != 0
        assert message in capsys.readouterr().err
