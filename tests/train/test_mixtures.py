"""Several texts by weights, and an order of the data that depends on the seed and the step alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from composer.cli import main
from composer.cli.arguments import Problem
from composer.cli.training.sources import with_weights
from composer.train import (
    ByteTokenizer,
    TextDocument,
    TrainingError,
    mixed,
    objective_of,
    read_documents,
    resume,
    tokenize,
    train,
)
from composer.train.data.documents import counts_by_source
from composer.train.data.order import at_batch
from composer.train.run.reader import read_run
from tests.train.small import TEXT
from tests.train.test_resume import same

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
        ([*start[:-1], "other", "--data", "t.csv=1", "--data", "a.txt=2"], "only work with texts"),
        ([*start[:-1], "other", "--data", "a.txt=1", "--data", "b.txt"], "b.txt has no weight"),
        ([*start[:-1], "other", "--data", "a.txt=1", "--data", "b.txt=1", "--end-tokens", "line"], "windows of plain text"),
    ):
        assert main(wrong) != 0
        assert message in capsys.readouterr().err
