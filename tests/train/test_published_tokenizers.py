"""Training with the tokenizers and from the weights of published models."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tokenizers
import torch

import composer
from composer.cli import main
from composer.published import start_from_published, tokenizer_to_train
from composer.train import TrainingError, examples_of, load_tokenizer, open_run, read_table, save_tokenizer, text_as_it_comes
from composer.train.data.objectives import END, MASK, START
from composer.train.data.tokenizers import MarkedTokenizer, PiecesTokenizer
from tests.published.examples import write_example
from tests.train.test_examples import CLASSIFIER

WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "the",
    "cat",
    "sat",
    "on",
    "mat",
    "##s",
    "##ting",
    "un",
    "##like",
    ",",
    ".",
]


@pytest.fixture
def word_pieces(tmp_path: Path) -> Path:
    """Return a folder with the tokenizer of a BERT."""
    folder = tmp_path / "bert"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "bert"}')
    pieces = tokenizers.BertWordPieceTokenizer({word: index for index, word in enumerate(WORDS)}, lowercase=True)
    pieces.save(str(folder / "tokenizer.json"))
    special = {"cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]", "pad_token": "[PAD]", "unk_token": "[UNK]"}
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizerFast", **special}))
    return folder


def test_ids_are_those_of_transformers(word_pieces, tmp_path):
    """With and without the tokens around a whole text; from the file of a run too, which keeps all of it."""
    transformers = pytest.importorskip("transformers")
    theirs = transformers.AutoTokenizer.from_pretrained(word_pieces)
    made = tokenizer_to_train(word_pieces)
    save_tokenizer(made, tmp_path / "tokenizer.json")
    for tokenizer in (made, load_tokenizer(tmp_path / "tokenizer.json")):
        assert isinstance(tokenizer, PiecesTokenizer)
        for text in ("The cats, sitting unlike the mat.", "", "cat [MASK] mat"):
            assert tokenizer.encode_whole(text) == theirs(text).input_ids
            assert tokenizer.encode(text) == theirs(text, add_special_tokens=False).input_ids
        assert tokenizer.size == len(WORDS)
        assert (tokenizer.special[START], tokenizer.special[END], tokenizer.special[MASK]) == (2, 3, 4)
        assert tokenizer.words["mask_token"] == "[MASK]"


def test_marks_that_the_tokenizer_knows_keep_their_ids(word_pieces):
    """Others are behind the vocabulary."""
    marked = MarkedTokenizer(tokenizer_to_train(word_pieces), (MASK, END, "<x>"))
    assert [marked.mark(mark) for mark in (MASK, END, "<x>")] == [4, 3, 16]
    assert marked.size == 17
    assert marked.encode_marked("the <mask> <x>") == [5, 4, 16]
    assert marked.decode([5, 6, 16]) == "the cat<x>"


@pytest.mark.parametrize("text", ["the cats sat, unlike the mats.", "unlike", ""])
def test_text_comes_as_it_is_decoded(word_pieces, text):
    """Word pieces stand together, and words apart."""
    tokenizer = tokenizer_to_train(word_pieces)
    ids = tokenizer.encode(text)
    pieces = list(text_as_it_comes(tokenizer, ids))
    assert "".join(pieces) == tokenizer.decode(ids)
    assert len(pieces) >= len(text.split())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"special": {"<mask>": 16}}, "a special token has no id of its vocabulary"),
        ({"special": {"<mask>": "4"}}, "a special token has no id of its vocabulary"),
        ({"words": {"mask_token": 4}}, "a special token is not a word"),
        ({"pieces": {"model": {}}}, "is not a tokenizer"),
        (
            {"pieces": {"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a+)+b"}}}},
            r"by a pattern that is not known here: \(a\+\)\+b",
        ),
        ({"more": 1}, "is not a"),
    ],
)
def test_a_damaged_file_is_refused(word_pieces, tmp_path, change, message):
    """By what is wrong with it."""
    file = tmp_path / "tokenizer.json"
    file.write_text(json.dumps({**tokenizer_to_train(word_pieces).to_json(), **change}))
    with pytest.raises(TrainingError, match=message):
        load_tokenizer(file)


def test_a_text_to_be_classified_is_whole(word_pieces, tmp_path):
    """Also where it is cut; with two columns, or where it is written, it is not."""
    (tmp_path / "t.csv").write_text('tokens,label\n"the cat sat on the mat",yes\n"cat",no\n')
    program = composer.load(CLASSIFIER, {"vocab": 16, "n_classes": 2}).program
    table = read_table([tmp_path / "t.csv"])
    data = examples_of(table, program, tokenizer_to_train(word_pieces), seq_len=6)
    batch = data.batch(data.train)
    assert batch["tokens"].tolist() == [[2, 5, 6, 7, 8, 3], [2, 6, 3, 0, 0, 0]]
    assert batch["valid"].sum(1).tolist() == [6, 3]
    assert data.cut == 1


@pytest.mark.slow
def test_a_published_model_is_trained_on(tmp_path, monkeypatch, capsys):
    """From its weights, with its tokenizer; adapters over it start where it is, and the run goes out and answers as published."""
    transformers = pytest.importorskip("transformers")
    monkeypatch.chdir(tmp_path)
    write_example("Llama-3.2-1B", tmp_path / "llama")
    Path("notes.txt").write_text("some notes to be learned\n" * 40)
    words = ["--data", "notes.txt", "--steps", "2", "--seq-len", "16", "--batch-size", "2", "--warmup-steps", "0"]
    assert main(["train", "llama", *words, "--run", "one"]) == 0
    assert "loaded 12 tensors of llama\ntraining" in capsys.readouterr().out
    trained = open_run("one")
    published = composer.load("./llama").pretrained()
    moved = (trained.model.state_dict()["head.weight"] - published.state_dict()["head.weight"]).abs()
    assert 0 < moved.max() < 0.01
    assert main(["import", "llama", "-o", "folder"]) == 0
    Path("tuned.yaml").write_text('extends: folder/recipe.yaml\nrecipe: tuned\nadapters: {"*.(q|v)": {rank: 2}}\n')
    capsys.readouterr()
    assert main(["train", "tuned.yaml", "--init", "folder", *words, "--run", "two"]) == 0
    out = capsys.readouterr().out
    assert "loaded 12 tensors of folder\nnew: layers.0.attn.body.q.lora_a, layers.0.attn.body.q.lora_b" in out
    tuned = open_run("two")
    assert torch.equal(tuned.model.state_dict()["head.weight"], published.state_dict()["head.weight"])
    assert not torch.equal(tuned.model.state_dict()["layers.0.attn.body.q.lora_b"], torch.zeros(16, 2))
    assert main(["generate", "two", "--prompt", "some", "--max-new-tokens", "3"]) == 0
    assert main(["export", "two", "--to", "transformers", "-o", "out"]) == 0
    theirs = transformers.AutoModelForCausalLM.from_pretrained("out")
    read = transformers.AutoTokenizer.from_pretrained("out")
    ids = read("some notes", return_tensors="pt").input_ids
    assert ids[0].tolist() == tuned.tokenizer.encode("some notes")
    with torch.no_grad():
        torch.testing.assert_close(theirs(ids).logits, tuned.model(ids).logits, rtol=1e-4, atol=1e-5)
    assert main(["train", "gpt_mini", "--set", "n_layers=1", "--tokenizer", "llama", *words, "--run", "three"]) == 0
    assert "vocab is set to 259" in capsys.readouterr().out


def test_what_does_not_fit_is_refused(tmp_path, monkeypatch, capsys, word_pieces):
    """No tokenizer of this name, no weights that fit, a checkpoint of a folder that has none."""
    monkeypatch.chdir(tmp_path)
    write_example("Llama-3.2-1B", tmp_path / "llama")
    Path("notes.txt").write_text("some notes\n" * 40)
    assert main(["train", "gpt_mini", "--data", "notes.txt", "--tokenizer", "morse"]) == 2
    assert (
        "there is no tokenizer morse\n  = one of characters, bytes, bpe, wordpiece, words, or a published folder"
        in capsys.readouterr().err
    )
    assert main(["train", "gpt_mini", "--data", "notes.txt", "--init", "llama", "--checkpoint", "step-000001"]) == 2
    assert "--checkpoint is for run folders" in capsys.readouterr().err
    with pytest.raises(TrainingError, match=r"nothing of .*llama fits the recipe") as caught:
        start_from_published(composer.load("mlp_lm").compile(), tmp_path / "llama")
    assert "arco import" in caught.value.hint
    assert main(["train", "gpt_mini", "--data", "notes.txt", "--init", str(word_pieces)]) == 1
