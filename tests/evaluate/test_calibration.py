"""Calibration and retrieval, against plain loops over single predictions and over pairs."""

from __future__ import annotations

import json

import pytest
import torch

import composer
from composer.cli import main
from composer.evaluate import evaluate
from composer.evaluate.calibration import Calibrator
from composer.evaluate.retrieval import CHUNK, retrieved
from composer.train import ByteTokenizer, TrainingError, TrainSettings, examples_of, open_run, read_table, train
from tests.blocks.test_losses import CLIP
from tests.evaluate.test_examples import ROWS, classifier, written  # noqa: F401  # a fixture
from tests.train.small import TEXT, Quiet


def expected(rows):
    """Return the calibration error and the bins of logits with their targets, one after the other."""
    bins = {}
    for logits, target in rows:
        probabilities = logits.double().softmax(-1)
        told = max(range(len(logits)), key=lambda place: float(logits[place]))
        sure = float(probabilities[told])
        bins.setdefault(min(int(sure * 10), 9), []).append((sure, told == target))
    means = {at: [sum(each) / len(each) for each in zip(*found, strict=True)] for at, found in bins.items()}
    error = sum(len(bins[at]) * abs(sure - right) for at, (sure, right) in means.items()) / len(rows)
    return error, {at: (len(bins[at]), *means[at]) for at in sorted(bins)}


def same(found, rows):
    """Assert that a calibration is that of the loop."""
    error, bins = expected(rows)
    assert found.error == pytest.approx(error, abs=1e-6)
    assert [(round(10 * each.least), each.count) for each in found.bins] == [(at, count) for at, (count, _, _) in bins.items()]
    for each, (_, sure, right) in zip(found.bins, bins.values(), strict=True):
        assert (each.confidence, each.accuracy) == (pytest.approx(sure, abs=1e-6), pytest.approx(right))


def test_a_model_is_as_calibrated_as_a_loop_says():
    """In batches, with a confidence of 1 in the last range; one that is right as often as it is sure has no error."""
    logits = torch.randn(300, 5, generator=torch.Generator().manual_seed(0)) * 3
    logits[0] = torch.tensor([200.0, 0, 0, 0, 0])
    targets = torch.randint(5, (300,), generator=torch.Generator().manual_seed(1))
    calibrator = Calibrator()
    for begin in range(0, 300, 70):
        calibrator.add(logits[begin : begin + 70], targets[begin : begin + 70])
    same(calibrator.found(), list(zip(logits, targets.tolist(), strict=True)))
    even = Calibrator()
    even.add(torch.zeros(4, 4), torch.arange(4))
    assert even.found().error == 0


def test_ranks_are_those_of_a_loop():
    """Also where the rows are more than are scored at a time; among equal scores, the partner is the last."""
    a, b = torch.randn(2, CHUNK + 5, 3, generator=torch.Generator().manual_seed(0)).double()
    found = retrieved([a[:100], a[100:]], [b[:100], b[100:]])
    for place in (0, 7, CHUNK - 1, CHUNK, CHUNK + 4):
        scores = [float(a[place] @ row) for row in b]
        assert found.ranks[place] == 1 + sum(score > scores[place] for score in scores)
    assert retrieved([torch.zeros(3, 2)], [torch.ones(3, 2)]).ranks == (3, 3, 3)
    assert (found.recall_at(5), found.reciprocal_rank) == (
        sum(rank <= 5 for rank in found.ranks) / len(found.ranks),
        pytest.approx(sum(1 / rank for rank in found.ranks) / len(found.ranks)),
    )


@pytest.mark.slow
def test_the_confidence_of_tokens_is_compared_if_that_is_asked_for(run_of, tmp_path):
    """Of each token of a text."""
    run = run_of("gpt2", n_layers=1, context=64, text=TEXT)
    file = tmp_path / "other.txt"
    file.write_text("9 lambs ran over the hill\n", encoding="utf-8", newline="")
    trained = open_run(run)
    ids = torch.tensor(trained.tokenizer.encode("9 lambs ran over the hill\n"))
    with torch.no_grad():
        logits = trained.model(ids[None, :-1]).logits[0]
    found = evaluate(run, file, seq_len=len(ids), calibration=True)
    same(found.calibration, list(zip(logits, ids[1:].tolist(), strict=True)))
    assert evaluate(run, file, seq_len=len(ids)).calibration is None


def test_the_confidence_of_classes_is_compared(classifier, capsys):  # noqa: F811
    """Of the held-out rows of a table, on the command line."""
    assert main(["evaluate", str(classifier), "--calibration", "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)["classes"]["label"]
    assert sum(each["count"] for each in told["reliability"]) == len(ROWS) // 10
    trained = open_run(classifier)
    rows = []
    for text, label in ROWS[9::10]:
        with torch.no_grad():
            logits = trained.model(torch.tensor([trained.tokenizer.encode(text)[:12]])).logits[0]
        rows.append((logits, trained.labels["label"].index(label)))
    assert told["expected_calibration_error"] == pytest.approx(expected(rows)[0], abs=1e-6)


def test_a_contrastive_model_finds_the_partners_of_rows(tmp_path):
    """In both directions, among all rows that are read, whatever the batches."""
    chance = torch.Generator().manual_seed(0)
    lines = [
        json.dumps({"image": torch.randn(5, generator=chance).tolist(), "text": torch.randn(4, generator=chance).tolist()})
        for _ in range(30)
    ]
    (tmp_path / "pairs.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    recipe, table = composer.load(CLIP), read_table([tmp_path / "pairs.jsonl"])
    data = examples_of(table, recipe.program, ByteTokenizer(), seq_len=8)
    settings = TrainSettings(steps=1, batch_size=3, warmup_steps=1)
    train(recipe.compile(seed=0), ByteTokenizer(), data, settings, tmp_path / "run", recipe=recipe.text, show=Quiet())
    (tmp_path / "more.jsonl").write_text("\n".join(lines[:7]) + "\n", encoding="utf-8")
    found = evaluate(tmp_path / "run", tmp_path / "more.jsonl", batch_size=3)
    model = open_run(tmp_path / "run").model
    rows = [json.loads(line) for line in lines[:7]]
    with torch.no_grad():
        out = model(*(torch.tensor([row[name] for row in rows]) for name in ("image", "text")))
    scores = (out.a @ out.b.T).double()
    for name, table_of in (("a to b", scores), ("b to a", scores.T)):
        ranks = [1 + sum(float(score) > float(row[place]) for score in row) for place, row in enumerate(table_of)]
        assert list(found.retrieval[name].ranks) == ranks
    assert "a to b      recall" in str(found) and found.to_json()["retrieval"]["a to b"]["recall_at_10"] == 1
    with pytest.raises(TrainingError, match="tells no classes"):
        evaluate(tmp_path / "run", calibration=True)
