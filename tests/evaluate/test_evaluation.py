"""Evaluation against plain loops over the same model, and against the loss of transformers."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

from composer.cli import main
from composer.evaluate import Evaluation, evaluate
from composer.published import export_folder
from composer.train import TrainingError, TrainSettings, open_run
from composer.train.data.hiding.corruption import hidden

GPT = {"n_layers": 1, "context": 64}
OTHER = "9 lambs ran 16 sheep ran over the hill\n7 sheep\n"


def by_hand(run: Path, text: str, seq_len: int) -> tuple[float, float, int]:
    """Return nats, right ones and targets of a text whose characters are tokens, one window after the other."""
    trained = open_run(run)
    ids = torch.tensor(trained.tokenizer.encode(text))
    nats, right, targets = 0.0, 0, 0
    for start in range(0, len(ids) - 1, seq_len):
        window = ids[start : start + seq_len + 1]
        with torch.no_grad():
            logits = trained.model(window[None, :-1]).logits[0].double()
        for place, token in enumerate(window[1:].tolist()):
            nats -= float(logits[place].log_softmax(-1)[token])
            right += int(logits[place].argmax()) == token
            targets += 1
    return nats, right, targets


@pytest.mark.slow
def test_the_numbers_of_another_text_are_those_of_a_loop(run_of, tmp_path):
    """Every character but the first of each file is predicted, whatever the size of a batch; twice it is the same."""
    run = run_of(**GPT)
    files = [tmp_path / "one.txt", tmp_path / "two.txt"]
    texts = (OTHER, "sheep and lambs ran")
    for file, text in zip(files, texts, strict=True):
        file.write_text(text, encoding="utf-8", newline="")
    nats, right, targets = map(sum, zip(*(by_hand(run, text, 12) for text in texts), strict=True))
    found = evaluate(run, files)
    assert (found.tokens, found.accuracy, found.held_out) == (targets, right / targets, False)
    assert targets == sum(map(len, texts)) - 2
    assert found.loss == pytest.approx(nats / targets, rel=1e-6)
    assert found.perplexity == pytest.approx(math.exp(nats / targets), rel=1e-6)
    assert found.per_character == pytest.approx(nats / targets, rel=1e-6) == found.per_byte
    assert found == evaluate(run, files)
    assert evaluate(run, files, batch_size=1).loss == pytest.approx(found.loss, rel=1e-6)


@pytest.mark.slow
def test_the_loss_is_that_of_transformers(run_of, tmp_path):
    """Of the same model, written as a published folder, on a text that one window holds."""
    transformers = pytest.importorskip("transformers")
    run = run_of(**GPT)
    trained = open_run(run)
    export_folder(trained.model, tmp_path / "published")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "published")
    file = tmp_path / "other.txt"
    file.write_text(OTHER, encoding="utf-8", newline="")
    tokens = torch.tensor([trained.tokenizer.encode(OTHER)])
    with torch.no_grad():
        loss = float(theirs(tokens, labels=tokens).loss)
    found = evaluate(run, file, seq_len=60)
    assert found.loss == pytest.approx(loss, rel=1e-6) and found.perplexity == pytest.approx(math.exp(loss), rel=1e-6)


def test_the_text_of_the_run_is_read_where_it_is_held_out(run_of, tmp_path):
    """Named or not, and moved: to the bit what the last validation of the run found."""
    run = run_of(**GPT)
    last = json.loads((run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()[-1])
    found = evaluate(run)
    assert (found.held_out, found.loss, found.tokens) == (True, last["validation_loss"], last["validation_tokens"])
    assert (found.per_byte, found.step) == (last["validation_loss_per_byte"], 3)
    moved = (tmp_path / "text.txt").rename(tmp_path / "moved.txt")
    assert evaluate(run, moved).loss == found.loss
    with pytest.raises(TrainingError, match=r"text\.txt: no such file") as caught:
        evaluate(run)
    assert "moved" in caught.value.hint
    (tmp_path / "text.txt").write_text(OTHER, encoding="utf-8")
    with pytest.raises(TrainingError, match="its checksum differs"):
        evaluate(run)


def test_bytes_of_a_character_that_is_only_read_are_not_counted(run_of, tmp_path):
    """A text that begins with a character of several tokens has bits per byte of what comes after it."""
    from composer.train import ByteTokenizer
    from composer.train.data.text import unseen

    data = unseen("née\n", ByteTokenizer(), path="n.txt", first=1)
    assert (bytes(data.train.tolist()), data.characters, data.bytes) == (b"n", 3, 4)
    data = unseen("éée\n", ByteTokenizer(), path="n.txt", first=1)
    assert (bytes(data.train.tolist()), bytes(data.validation.tolist()), data.bytes) == ("é".encode(), "ée\n".encode(), 4)
    with pytest.raises(TrainingError, match="nothing in it to predict"):
        unseen("é", ByteTokenizer(), path="n.txt", first=1)


@pytest.mark.slow
def test_hidden_words_are_counted_alone(run_of, tmp_path):
    """Loss and accuracy are those of the hidden tokens; there is no loss per character, since a part is predicted."""
    run = run_of("bert", n_layers=1, hidden=16, context=64)
    file = tmp_path / "other.txt"
    file.write_text(OTHER, encoding="utf-8", newline="")
    found = evaluate(run, file, seq_len=len(OTHER))
    trained = open_run(run)
    ids = torch.tensor([trained.tokenizer.encode(OTHER)])
    mask = trained.tokenizer.mark("<mask>")
    tokens, labels = hidden(ids, mask, trained.tokenizer.text.size, torch.Generator().manual_seed(0))
    with torch.no_grad():
        logits = trained.model(tokens).logits[0]
    places = [place for place, label in enumerate(labels[0].tolist()) if label >= 0]
    losses = [float(F.cross_entropy(logits[place], ids[0, place])) for place in places]
    assert found.tokens == len(places) > 1 and found.loss == pytest.approx(sum(losses) / len(losses), rel=1e-5)
    assert found.accuracy == sum(int(logits[place].argmax()) == int(ids[0, place]) for place in places) / len(places)
    assert found.per_character is None and "bits" not in str(found) and "bits_per_byte" not in found.to_json()
    with pytest.raises(TrainingError, match="does not translate"):
        evaluate(run, translate=True)


PAIRS = "".join(f"{n}\t{n} {n}\n" for n in range(10, 60))


@pytest.mark.slow
def test_translations_are_judged_by_sacrebleu(run_of, tmp_path):
    """Each source alone, read again at each step, gives the translations that are judged."""
    sacrebleu = pytest.importorskip("sacrebleu")
    settings = TrainSettings(steps=60, batch_size=16, seq_len=8, warmup_steps=5, learning_rate=0.02, log_every=99)
    run = run_of("transformer", PAIRS, settings, n_layers=1, dropout=0.0)
    found = evaluate(run, translate=True, batch_size=2)
    trained = open_run(run)
    tokenizer = trained.tokenizer
    start, end = tokenizer.mark("<start>"), tokenizer.mark("<end>")
    mine, wanted, nats, targets = [], [], 0.0, 0
    for line in PAIRS.splitlines()[45:]:
        source, target = line.split("\t")
        given = torch.tensor([[*tokenizer.encode(source), end]])
        said = [start]
        while len(said) <= 8:
            with torch.no_grad():
                said.append(int(trained.model(source=given, target=torch.tensor([said])).logits[0, -1].argmax()))
            if said[-1] == end:
                break
        mine.append(tokenizer.decode([token for token in said[1:] if token != end]))
        wanted.append(target)
        truth = [start, *tokenizer.encode(target), end]
        with torch.no_grad():
            logits = trained.model(source=given, target=torch.tensor([truth[:-1]])).logits[0]
        nats += float(F.cross_entropy(logits, torch.tensor(truth[1:]), reduction="sum"))
        targets += len(truth) - 1
    assert found.loss == pytest.approx(nats / targets, rel=1e-5) and found.tokens == targets
    judged = found.translations
    assert judged is not None and judged.pairs == 5
    assert judged.exact_match == sum(a == b for a, b in zip(mine, wanted, strict=True)) / 5
    assert judged.bleu == sacrebleu.corpus_bleu(mine, [wanted]).score
    assert judged.chrf == sacrebleu.corpus_chrf(mine, [wanted]).score
    assert f"BLEU {judged.bleu:.2f}" in str(found) and found.to_json()["chrf"] == judged.chrf
    assert evaluate(run).translations is None
    table = tmp_path / "rows.csv"  # of the same pairs
    rows = [line.replace("\t", ",") for line in PAIRS.splitlines()[45:]]
    table.write_text("\n".join(["source,target", *rows, ""]), encoding="utf-8")
    same = evaluate(run, table, translate=True, batch_size=2)
    assert same.translations == judged and same.accuracy == found.accuracy
    assert same.loss == pytest.approx(found.loss, rel=1e-5) and f"perplexity  {same.perplexity:.4g}" in str(same)


def test_without_sacrebleu_the_extra_is_named(run_of, monkeypatch):
    """Before anything is translated."""
    monkeypatch.setattr("composer.evaluate.translations.find_spec", lambda name: None)
    run = run_of("transformer", PAIRS, n_layers=1)
    with pytest.raises(TrainingError, match="need sacrebleu") as caught:
        evaluate(run, translate=True)
    assert "arco-composer[metrics]" in caught.value.hint


def test_the_command_prints_the_same_numbers(run_of, capsys):
    """As lines and as JSON; what is asked wrongly is one line."""
    run = run_of(**GPT)
    found = evaluate(run)
    capsys.readouterr()
    assert main(["evaluate", str(run), "--device", "cpu", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == found.to_json()
    assert main(["evaluate", str(run), "--device", "cpu"]) == 0
    assert capsys.readouterr().out == f"{found}\n"
    assert main(["evaluate", str(run), "--seq-len", "0"]) == 2
    assert capsys.readouterr().err == "arco: `seq_len` is 0; it must be at least 1\n"
    assert main(["evaluate", str(run.parent)]) == 2
    assert "is not a run folder" in capsys.readouterr().err


def test_a_model_that_has_no_number_says_so(run_of, monkeypatch):
    """One that diverged, and one whose positions are too few."""
    run = run_of(**GPT)
    with pytest.raises(TrainingError, match="cannot read 65 tokens: position 64 has no learned vector"):
        evaluate(run, seq_len=65)

    def diverged(*given, **options):
        trained = open_run(*given, **options)
        with torch.no_grad():
            next(trained.model.parameters()).fill_(math.nan)
        return trained

    monkeypatch.setattr("composer.evaluate.evaluation.open_run", diverged)
    with pytest.raises(TrainingError, match="is not finite"):
        evaluate(run)


def test_a_perplexity_without_bound_is_not_a_number_of_json():
    """JSON has no infinity."""
    found = Evaluation(Path("run"), 1, "causal_lm", "text", True, 5, 1e5, 0.0)
    assert found.perplexity == math.inf and json.loads(json.dumps(found.to_json(), allow_nan=False))["perplexity"] is None
