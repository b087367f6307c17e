"""Published models, against the run that they were exported from and the loss of transformers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tokenizers
import torch

import composer
from composer.cli import main
from composer.evaluate import evaluate, evaluate_published
from composer.published.opened import open_published
from composer.train import TrainingError

TEXTS = {"one.txt": "9 lambs ran 16 sheep ran over the hill\n7 sheep\n", "two.txt": "sheep and lambs ran"}


@pytest.fixture
def folder(run_of, tmp_path: Path) -> Path:
    """A published folder of a run, and two texts beside it."""
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    run = run_of(n_layers=1, context=64)
    assert main(["export", str(run), "--to", "transformers", "-o", str(tmp_path / "published")]) == 0
    return tmp_path / "published"


@pytest.mark.slow
def test_a_published_model_predicts_as_its_run(folder, tmp_path, capsys):
    """The same numbers, and the same from the command; in windows of its context."""
    files = [tmp_path / name for name in TEXTS]
    found = evaluate_published(open_published(folder, load=composer.load), files)
    own = evaluate(tmp_path / "run", files, seq_len=64)
    assert (found.loss, found.accuracy, found.tokens) == (pytest.approx(own.loss, rel=1e-6), own.accuracy, own.tokens)
    assert (found.per_byte, found.step) == (pytest.approx(own.per_byte, rel=1e-6), None)
    capsys.readouterr()
    words = ["evaluate", str(folder), "--device", "cpu"]
    data = [word for file in files for word in ("--data", str(file))]
    assert main([*words, *data, "--format", "json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["perplexity"] == found.perplexity and "step" not in printed
    for more, said in (([], "--data is missing"), ([*data, "--checkpoint", "step-000003"], "--checkpoint is for run folders")):
        assert main([*words, *more]) == 2 and said in capsys.readouterr().err


@pytest.mark.slow
def test_a_token_that_begins_every_text_predicts_the_first(folder, tmp_path):
    """As transformers counts it, with all of the text as targets."""
    transformers = pytest.importorskip("transformers")
    file = folder / "tokenizer.json"
    tokenizer = tokenizers.Tokenizer.from_file(str(file))
    begin = next(token for token, place in tokenizer.get_vocab().items() if place == 3)
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(single=f"{begin} $A", special_tokens=[(begin, 3)])
    tokenizer.save(str(file))
    text = TEXTS["two.txt"]
    ids = torch.tensor([tokenizer.encode(text).ids])
    assert ids[0, 0] == 3 and ids.shape[1] == len(text) + 1
    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder)
    with torch.no_grad():
        loss = float(theirs(ids, labels=ids).loss)
    found = evaluate_published(open_published(folder, load=composer.load), tmp_path / "two.txt")
    assert (found.tokens, found.loss) == (len(text), pytest.approx(loss, rel=1e-6))
    assert found.per_character == pytest.approx(loss, rel=1e-6)


def test_a_tokenizer_that_changes_a_text_counts_all_of_it():
    """What it writes is no beginning of the text; that is found without writing the text again and again."""
    from composer.train.data.text import unseen

    class Lower:
        size, calls = 256, 0

        def encode(self, text):
            return list(text.lower().encode())

        def decode(self, ids):
            self.calls += 1
            return bytes(ids).decode(errors="replace")

    tokenizer = Lower()
    data = unseen("TO BE\n" * 500, tokenizer, path="t", first=1)
    assert (len(data.train), len(data.validation), data.bytes) == (1, 2999, 3000) and tokenizer.calls < 20


def test_models_of_other_tasks_are_refused(tmp_path):
    """In a line."""

    class Other:
        model = composer.load("bert", {"n_layers": 1, "d_model": 16, "n_heads": 2, "hidden": 16, "vocab": 40}).compile(seed=0)

    with pytest.raises(TrainingError, match="of the task masked_lm is not evaluated"):
        evaluate_published(Other(), tmp_path / "t")
