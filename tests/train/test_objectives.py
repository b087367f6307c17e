"""What models of texts are asked: batches of every task, and small models that learn from them."""

from __future__ import annotations

import math

import pytest
import torch

import composer
from composer.decode import GREEDY, Request, cached, generate
from composer.train import (
    ByteTokenizer,
    MarkedTokenizer,
    TrainingError,
    TrainSettings,
    characters_of,
    load_tokenizer,
    marked,
    objective_of,
    open_run,
    read_documents,
    resume,
    save_tokenizer,
    train,
    validate,
)
from composer.train.run.reader import read_run

TEXT = "the cat sat on the mat and the dog lay on the log. " * 30
TINY = {"d_model": 32, "n_layers": 1, "n_heads": 2, "hidden": 48, "dropout": 0}
PAIRS = "".join(f"{word}\t{word[::-1]}\n" for word in ("stone", "moth", "lamp", "river", "a", "bread", "owl", "tin", "hm", "sea"))


def made(task, text, path):
    """Return an objective with its data."""
    objective = objective_of(task, marked(characters_of(text), task))
    return objective, objective.tokenize(text, path=path)


def test_a_denoiser_is_given_what_is_left_and_asked_for_what_is_gone(tmp_path):
    """Source and target together are the window; the target begins with a start, and both end with an end."""
    objective, data = made("denoising", TEXT, tmp_path)
    marks = objective.tokenizer
    batch = objective.draw(data, batch_size=5, seq_len=40, generator=torch.Generator().manual_seed(0))
    for source, target, targets in zip(*(batch[name].tolist() for name in ("source", "target", "targets")), strict=True):
        assert target[0] == marks.mark("<start>") and target[1:] == targets[:-1]
        assert source[-1] == targets[-1] == marks.mark("<end>")
        shown, gone = marks.decode(source[:-1]), marks.decode(targets[:-1])
        for number in range(2):  # 6 of 40 tokens, in two gaps
            before, after = shown.split(f"<{number}>")
            piece = gone.split(f"<{number}>")[1].split("<")[0]
            shown = before + piece + after
        assert shown in TEXT


def test_a_masked_model_is_asked_for_hidden_words_where_they_stand(tmp_path):
    """Six of forty."""
    objective, data = made("masked_lm", TEXT, tmp_path)
    batch = objective.draw(data, batch_size=5, seq_len=40, generator=torch.Generator().manual_seed(0))
    asked = batch["labels"] != -100
    assert (asked.sum(1) == 6).all()
    whole = torch.where(asked, batch["labels"], batch["tokens"])
    assert all(objective.tokenizer.decode(row) in TEXT for row in whole.tolist())


def test_pairs_become_padded_sources_and_targets(tmp_path):
    """One to a line; the last tenth is held out, and counts its own characters."""
    objective, data = made("seq2seq_lm", PAIRS, tmp_path)
    marks = objective.tokenizer
    batch = objective.draw(data, batch_size=200, seq_len=8, generator=torch.Generator().manual_seed(0))
    seen = set()
    for source, valid, target, targets in zip(*(batch[name].tolist() for name in batch), strict=True):
        length = sum(valid)
        word, answer = marks.decode(source[: length - 1]), marks.decode([token for token in targets if token >= 0][:-1])
        assert answer == word[::-1] and valid == [True] * length + [False] * (len(valid) - length)
        assert source[length - 1] == marks.mark("<end>") and target[0] == marks.mark("<start>")
        assert target[1 : len(word) + 1] == targets[: len(word)] and targets[len(word)] == marks.mark("<end>")
        seen.add(word)
    assert seen == {line.split("\t")[0] for line in PAIRS.splitlines()[:9]}
    (held_out,) = objective.held_out(data, batch_size=4, seq_len=8)
    assert marks.decode(held_out["source"][0].tolist()) == "sea<end>"
    assert (data.characters, objective.whole(data)) == (3, 4)


def test_pairs_that_are_too_long_are_left_out(tmp_path):
    """Of both parts of the text, which is split as before; what another text holds is all measured."""
    path = tmp_path / "pairs.txt"
    path.write_text(PAIRS, encoding="utf-8", newline="")
    documents = read_documents([path])
    tokenizer = marked(characters_of(PAIRS), "seq2seq_lm")
    whole = objective_of("seq2seq_lm", tokenizer)
    short = objective_of("seq2seq_lm", tokenizer, TrainSettings(seq_len=5))
    every, kept = (each.tokenize(documents, path=path) for each in (whole, short))
    lengths = [len(line.split("\t")[0]) + 1 for line in PAIRS.splitlines()]  # of words and of the mark behind them
    assert max(lengths) > 5 >= min(lengths[:9])
    assert short.left_out(documents, kept) == (sum(length > 5 for length in lengths), len(lengths))
    assert whole.left_out(documents, every) == (0, len(lengths))
    expected = [pair for pair in whole.pairs(every.train) if len(pair[0]) <= 5]
    found = short.pairs(kept.train)
    assert [[*map(list, pair)] for pair in found] == [[*map(list, pair)] for pair in expected]
    short.check(kept, 5)
    assert (kept.characters, short.whole(kept)) == (every.characters, whole.whole(every))  # "sea" is short
    assert short.unseen(documents, path=path).characters == sum(length - 1 for length in lengths)
    with pytest.raises(TrainingError, match="too few pairs of at most 2 tokens"):
        none = objective_of("seq2seq_lm", tokenizer, TrainSettings(seq_len=2))
        none.check(none.tokenize(documents, path=path), 2)


@pytest.mark.parametrize("task", ["masked_lm", "denoising"])
def test_held_out_windows_are_the_same_each_time(task, tmp_path):
    """Side by side over the whole held-out text, spoiled in the same way."""
    objective, data = made(task, TEXT, tmp_path)
    one, two = (list(objective.held_out(data, batch_size=2, seq_len=20)) for _ in range(2))
    assert all(torch.equal(a[name], b[name]) for a, b in zip(one, two, strict=True) for name in a)
    total = sum(math.prod(batch[name].shape) for batch in one for name in ("tokens",) if name in batch)
    assert task == "denoising" or total == len(data.validation)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("one\ttwo\nthree\n", "line 2 is not a pair of texts"),
        ("\tx\n", "line 1 is not a pair"),
        ("a\tb\tc\n", "line 1 is not a pair"),
    ],
)
def test_a_line_that_is_no_pair_is_refused(text, message, tmp_path):
    """With its number."""
    with pytest.raises(TrainingError, match=message):
        made("seq2seq_lm", text, tmp_path)


def test_what_does_not_fit_is_refused(tmp_path):
    """A text longer than the context, too few pairs, a window too short for gaps or too long for their marks."""
    objective, data = made("seq2seq_lm", PAIRS, tmp_path)
    objective.check(data, 6)
    with pytest.raises(TrainingError, match="a sequence of 6 tokens, end token included; the sequence length is 5"):
        objective.check(data, 5)
    with pytest.raises(TrainingError, match="too few pairs"):
        (few := made("seq2seq_lm", "a\tb\n", tmp_path))[0].check(few[1], 4)
    denoiser, text = made("denoising", TEXT * 20, tmp_path)
    with pytest.raises(TrainingError, match="a sequence length of 2200 has 110 masked spans"):
        denoiser.check(text, 2200)
    with pytest.raises(TrainingError, match="a window of 1 tokens"):
        denoiser.check(text, 1)
    with pytest.raises(TrainingError, match="the task causal_lm, masked_lm, denoising or seq2seq_lm; this one has encoder"):
        objective_of("encoder", ByteTokenizer())
    with pytest.raises(TrainingError, match="no special tokens for denoising"):
        objective_of("denoising", marked(ByteTokenizer(), "masked_lm"))


def test_marks_stand_beside_the_text(tmp_path):
    """They are shown by name, read only where that is asked for, and kept in the file."""
    tokenizer = MarkedTokenizer(characters_of("ab<>0"), ("<start>", "<0>"))
    assert tokenizer.size == 7
    assert tokenizer.encode("<0>") == tokenizer.text.encode("<0>")
    ids = tokenizer.encode_marked("a<0>b")
    assert ids == [*tokenizer.encode("a"), 6, *tokenizer.encode("b")]
    assert tokenizer.decode([5, *ids, 6]) == "<start>a<0>b<0>"
    save_tokenizer(tokenizer, tmp_path / "t.json")
    assert load_tokenizer(tmp_path / "t.json") == tokenizer


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "recipe", "text", "context"),
    [("seq2seq_lm", "transformer", PAIRS * 4, 8), ("denoising", "t5", TEXT, 20), ("masked_lm", "bert", TEXT, 20)],
)
def test_models_learn_stop_and_go_on(task, recipe, text, context, tmp_path, quiet):
    """The loss falls, and a run that goes on from its eighth step ends where it ended before."""
    path = tmp_path / "text.txt"
    path.write_text(text, encoding="utf-8", newline="")
    tokenizer = marked(characters_of(text), task)
    objective = objective_of(task, tokenizer)
    data = objective.tokenize(text, path=path)
    sizes = {**TINY, "vocab": tokenizer.size, **({"head_dim": 16} if recipe == "t5" else {})}
    loaded = composer.load(recipe, overrides=sizes)
    settings = TrainSettings(
        steps=12, batch_size=4, grad_accum=2, seq_len=context, learning_rate=1e-2, warmup_steps=2, save_every=8, validate_every=0
    )
    before = validate(loaded.compile(seed=0), data, objective, batch_size=4, seq_len=context)
    whole = train(loaded.compile(seed=0), tokenizer, data, settings, tmp_path / "whole", recipe=loaded.text, show=quiet())
    assert whole.validation.per_token < before.per_token
    assert (whole.validation.per_character is None) == (task != "seq2seq_lm")

    saved = read_run(tmp_path / "whole").checkpoint("step-000012").model
    resume(tmp_path / "whole", build=lambda _: loaded.compile(seed=5), checkpoint="step-000008", show=quiet())
    again = read_run(tmp_path / "whole").checkpoint("step-000012").model
    assert all(torch.equal(again[name], saved[name]) for name in saved)


@pytest.mark.parametrize(
    ("recipe", "sizes", "steps"),
    [("transformer", TINY, 150), ("seq2seq_rnn", {"d_embed": 16, "hidden": 32, "align": 16, "maxout": 16}, 400)],
)
def test_a_translator_learns_its_pairs(recipe, sizes, steps, tmp_path, quiet):
    """Nine words backwards, by heart, from batches with padding; opened again, it writes each without any, with a cache."""
    text = PAIRS
    tokenizer = marked(characters_of(text), "seq2seq_lm")
    objective = objective_of("seq2seq_lm", tokenizer)
    data = objective.tokenize(text, path=tmp_path / "pairs.txt")
    loaded = composer.load(recipe, overrides={**sizes, "vocab": tokenizer.size})
    settings = TrainSettings(
        steps=steps, batch_size=9, seq_len=8, learning_rate=1e-2, warmup_steps=10, save_every=0, validate_every=0
    )
    (tmp_path / "pairs.txt").write_text(text, encoding="utf-8", newline="")
    train(loaded.compile(seed=0), tokenizer, data, settings, tmp_path / "run", recipe=loaded.text, show=quiet())
    opened = open_run(tmp_path / "run", build=lambda _: loaded.compile(seed=3))
    end = opened.tokenizer.mark("<end>")
    request = Request(max_new_tokens=8, sampling=GREEDY, stop=frozenset({end}))
    for line in PAIRS.splitlines()[:9]:
        word, answer = line.split("\t")
        source = torch.tensor([[*opened.tokenizer.encode(word), end]])
        start = [[opened.tokenizer.mark("<start>")]]
        (found,) = generate(opened.model, start, request, encoder_inputs={"source": source}, reading=cached)
        assert opened.tokenizer.decode(found) == answer


def test_a_model_without_a_place_for_padding_is_refused(tmp_path, quiet):
    """It would read the padding."""
    tokenizer = marked(characters_of(PAIRS), "seq2seq_lm")
    data = objective_of("seq2seq_lm", tokenizer).tokenize(PAIRS, path=tmp_path)
    text = composer.load("transformer", overrides={**TINY, "vocab": tokenizer.size}).text
    for mask in (" and valid(source_valid)", "valid(source_valid)", "  source_valid: bool[batch, source_time]?\n"):
        text = text.replace(mask, "full" if mask.startswith("valid") else "")
    loaded = composer.load(text, overrides={**TINY, "vocab": tokenizer.size})
    with pytest.raises(TrainingError, match="the model has no input `source_valid`"):
        train(loaded.compile(), tokenizer, data, TrainSettings(seq_len=8), tmp_path / "run", recipe=loaded.text, show=quiet())
