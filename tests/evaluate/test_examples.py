"""Evaluation on tables, against counts and losses written out by hand."""

from __future__ import annotations

import json
import math

import pytest
import torch
from torch.nn import functional as F

import composer
from composer.cli import main
from composer.evaluate import ClassScores, TableEvaluation, evaluate
from composer.train import (
    TrainingError,
    TrainSettings,
    characters_of,
    examples_of,
    fitted,
    open_run,
    read_table,
    train,
)
from tests.train.small import Quiet
from tests.train.test_examples import CLASSIFIER, NUMBERS

ROWS = [("good film", "pos"), ("bad", "neg"), ("a very good book", "pos"), ("so so", "fair"), ("bad, bad song", "neg")] * 8


def written(path, rows, header="tokens,label"):
    """Write a table and return its path."""
    path.write_text("\n".join([header, *(",".join(f'"{cell}"' for cell in row) for row in rows)]) + "\n")
    return path


@pytest.fixture
def classifier(tmp_path):
    """Return the folder of a classifier that was trained on a table of forty rows."""
    table = read_table([written(tmp_path / "reviews.csv", ROWS)])
    tokenizer = characters_of("".join(text for text, _ in ROWS))
    recipe = fitted(composer.load(CLASSIFIER, {"vocab": tokenizer.size}), table, columns=())
    settings = TrainSettings(steps=4, batch_size=4, seq_len=12, warmup_steps=1)
    data = examples_of(table, recipe.program, tokenizer, seq_len=12)
    train(recipe.compile(seed=0), tokenizer, data, settings, tmp_path / "run", recipe=recipe.text, show=Quiet())
    return tmp_path / "run"


def by_hand(run, rows):
    """Return nats, and how often each class was told for each, row by row without padding."""
    trained = open_run(run)
    names = trained.labels["label"]
    counts = {(true, told): 0 for true in names for told in names}
    nats = 0.0
    for text, label in rows:
        with torch.no_grad():
            scores = trained.model(torch.tensor([trained.tokenizer.encode(text)[:12]])).logits[0]
        nats += float(F.cross_entropy(scores[None].double(), torch.tensor([names.index(label)])))
        counts[label, names[int(scores[: len(names)].argmax())]] += 1
    return nats, names, counts


def test_the_rows_of_another_table_are_told_as_by_a_loop(classifier, tmp_path):
    """All of them are read, with the classes of the run, of which this table lacks one."""
    rows = [("bad film", "neg"), ("good", "pos"), ("a good song", "pos"), ("a bad book", "neg"), ("so bad", "neg")]
    nats, names, counts = by_hand(classifier, rows)
    found = evaluate(classifier, written(tmp_path / "others.csv", rows), batch_size=2)
    assert isinstance(found, TableEvaluation)
    assert (found.held_out, found.targets, found.unit, found.step) == (False, 5, "example", 4)
    assert found.loss == pytest.approx(nats / 5, rel=1e-5)
    scores = found.classes["label"]
    assert scores.names == names == ("fair", "neg", "pos")
    assert scores.counts == tuple(tuple(counts[true, told] for told in names) for true in names)
    assert found == evaluate(classifier, tmp_path / "others.csv", batch_size=2)


def test_of_the_table_of_the_run_the_held_out_rows_are_read(classifier):
    """They are every tenth, and the loss is that of the last validation."""
    found = evaluate(classifier)
    nats, _, _ = by_hand(classifier, ROWS[9::10])
    assert (found.held_out, found.targets, found.data) == (True, 4, str(classifier.parent / "reviews.csv"))
    assert found.loss == pytest.approx(nats / 4, rel=1e-5)
    lines = [json.loads(line) for line in (classifier / "metrics.jsonl").read_text().splitlines()]
    assert found.loss == pytest.approx(lines[-1]["validation_loss"], rel=1e-6)


def test_scores_are_those_of_the_definitions():
    """Of precision and recall by class, a class that never occurs and is never told left out."""
    scores = ClassScores(("a", "b", "c", "d"), ((5, 2, 0, 0), (1, 3, 4, 0), (0, 0, 2, 0), (0, 0, 0, 0)))
    assert scores.accuracy == 10 / 17
    precision, recall = (5 / 6, 3 / 5, 2 / 6), (5 / 7, 3 / 8, 2 / 2)
    each = [2 * p * r / (p + r) for p, r in zip(precision, recall, strict=True)]
    assert [scores.f1_of(place) for place in range(4)] == pytest.approx([*each, None])
    assert scores.f1 == pytest.approx(sum(each) / 3)
    assert str(scores).splitlines()[0].split() == ["true", "\\", "told", "a", "b", "c", "d", "F1"]


def test_a_class_that_the_model_does_not_know_is_named(classifier, tmp_path):
    """So are a table that has changed, and a text where a table is meant."""
    with pytest.raises(TrainingError, match="has the class 'great', which is none of those that the model knows for `label`"):
        evaluate(classifier, written(tmp_path / "others.csv", [("good", "great")]))
    (tmp_path / "notes.txt").write_text("good film\n")
    with pytest.raises(TrainingError, match="a model of the task sequence_classification predicts no text"):
        evaluate(classifier, tmp_path / "notes.txt")
    written(tmp_path / "reviews.csv", ROWS[:30])
    with pytest.raises(TrainingError, match="is not the table that this run was trained on"):
        evaluate(classifier)


def test_a_model_with_losses_of_its_own_tells_the_total(tmp_path):
    """Classes are counted for the loss that has some, and numbers are not."""
    generator = torch.Generator().manual_seed(3)
    xs, kinds, values = torch.randn(40, 3, generator=generator), torch.arange(40) % 2, torch.randn(40, generator=generator)
    rows = [(*map(float, x), "odd" if kind else "even", float(value)) for x, kind, value in zip(xs, kinds, values, strict=True)]
    table = read_table([written(tmp_path / "points.csv", rows, "x0,x1,x2,kind,value")])
    recipe, tokenizer = composer.load(NUMBERS, {"classes": 2}), characters_of("a")
    settings = TrainSettings(steps=2, batch_size=4, warmup_steps=1, columns=("x=x*",))
    data = examples_of(table, recipe.program, tokenizer, columns=settings.columns, seq_len=1)
    run = tmp_path / "run"
    train(recipe.compile(seed=0), tokenizer, data, settings, run, recipe=recipe.text, show=Quiet())
    found, trained = evaluate(run, tmp_path / "points.csv"), open_run(run)
    held = torch.arange(40) % 10 == 9
    batch = {"x": xs[held], "kind": kinds[held], "value": values[held]}
    with torch.no_grad():
        total = composer.loss(trained.model, batch).total
        told = trained.model(xs[held]).scores.argmax(-1)
    assert found.loss == pytest.approx(float(total), rel=1e-5)
    assert found.classes["kind"].counts == tuple(
        tuple(int(((kinds[held] == true) & (told == name)).sum()) for name in range(2)) for true in range(2)
    )
    assert [*found.classes] == ["kind"]


def test_the_command_prints_text_and_json(classifier, capsys):
    """With the table of right and wrong ones, and the same numbers."""
    assert main(["evaluate", str(classifier), "--format", "json"]) == 0
    numbers = json.loads(capsys.readouterr().out)
    assert main(["evaluate", str(classifier)]) == 0
    text = capsys.readouterr().out
    assert f"loss        {numbers['loss']:.4f} per example, over 4 examples" in text
    assert f"accuracy    {numbers['classes']['label']['accuracy']:.2%} of `label`" in text
    assert numbers["classes"]["label"]["classes"] == ["fair", "neg", "pos"]
    assert math.isfinite(numbers["loss"])
    assert main(["evaluate", str(classifier), "--translate"]) == 2
    assert "a model of the task sequence_classification does not translate" in capsys.readouterr().err
