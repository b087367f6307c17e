"""What is hidden of a text, and what is asked for: words, spans, infilling, permuted sentences, prefixes, and ends."""

from __future__ import annotations

from collections import Counter
from itertools import groupby

import pytest
import torch

import composer
from composer.train import (
    ByteTokenizer,
    MarkedTokenizer,
    TextDocument,
    TrainingError,
    TrainSettings,
    characters_of,
    examples_of,
    marked,
    objective_of,
    resume,
    train,
    train_bpe,
    train_wordpiece,
    validate,
)
from composer.train.data.ended import learned_from
from composer.train.data.examples import EVERY
from composer.train.data.hiding.spans import _spans
from composer.train.data.hiding.words import sentences_in, words_in
from composer.train.data.marks import END, MASK
from composer.train.data.prefixes import prefix_input
from composer.train.losses import IGNORED
from composer.train.objective_kinds import check_objective
from composer.train.run.reader import read_run
from tests.train.small import Quiet
from tests.train.test_examples import table_of

TEXT = "the cat sat on the mat and the hippopotamus lay on the log. why? so it is! " * 20
PREFIX = (
    composer.load("gpt_mini")
    .text.replace("mask: causal and", "mask: (causal or prefix(prompt_length)) and")
    .replace("  valid: bool[batch, time]?\n", "  valid: bool[batch, time]?\n  prompt_length: int[batch]\n")
)


def made(task, objective, text=TEXT, tokenizer=None):
    """Return an objective with its data."""
    settings = TrainSettings(objective=objective)
    found = objective_of(task, marked(tokenizer or characters_of(text), task, settings), settings)
    return found, found.tokenize(text, path="t.txt")


def drawn(task, objective, *, count=6, length=40, seed=0):
    """Return an objective and a batch of it."""
    found, data = made(task, objective)
    return found, found.draw(data, batch_size=count, seq_len=length, generator=torch.Generator().manual_seed(seed))


def test_words_are_what_spaces_divide_or_pieces_mark():
    """Of characters and bytes, of a BPE, and of WordPiece; a mark is a word by itself, and a space is none."""
    text = "to be, or not"
    for tokenizer in (characters_of(text), ByteTokenizer(), train_bpe(text * 9, size=262), train_wordpiece(text * 9, size=40)):
        ids = tokenizer.encode(text)
        ((*words,),) = words_in(torch.tensor([ids]), tokenizer)
        shown = [tokenizer.decode([ids[place] for place in word]).strip() for word in words]
        assert "".join(shown).replace(" ", "") == "tobe,ornot"
        assert {"to", "or", "not"} <= {*shown}
    marks = MarkedTokenizer(characters_of(text), (MASK,))
    assert words_in(torch.tensor([marks.encode_marked("be<mask>or")]), marks) == [[[0, 1], [2], [3, 4]]]


def test_whole_words_are_hidden_with_all_of_their_tokens():
    """As many as fit into 15 % of the tokens, at least one; the text is asked for where it was."""
    objective, batch = drawn("masked_lm", "whole_words", count=20)
    asked = batch["labels"] != IGNORED
    whole = torch.where(asked, batch["labels"], batch["tokens"])
    for row, words in enumerate(words_in(whole, objective.tokenizer)):
        hidden = [[bool(asked[row, place]) for place in word] for word in words]
        assert all(len(set(each)) == 1 for each in hidden) and sum(map(sum, hidden)) == int(asked[row].sum())
        chosen = [each for each in hidden if each[0]]
        assert chosen and (len(chosen) == 1 or sum(map(len, chosen)) <= 6)
        assert objective.tokenizer.decode(whole[row].tolist()) in TEXT
    shown = batch["tokens"][asked]
    assert 0.6 < float((shown == objective.tokenizer.mark(MASK)).float().mean()) < 0.95


def test_lengths_of_spans_are_geometric():
    """Of at most ten words, with a mean of 3.8 (Joshi et al. 2020, section 3.1): against the sum over all lengths."""
    generator = torch.Generator().manual_seed(0)
    words = [[place] for place in range(4000)]  # so many that spans hardly meet
    lengths = Counter(len(span) for _ in range(3) for span in _spans(words, 4000, generator))
    weights = {length: 0.2 * 0.8 ** (length - 1) for length in range(1, 11)}
    mean = sum(length * weight for length, weight in weights.items()) / sum(weights.values())
    assert mean == pytest.approx(3.8, abs=0.01)
    assert sum(length * count for length, count in lengths.items()) / lengths.total() == pytest.approx(mean, abs=0.3)
    assert max(lengths) == 10


def test_a_span_is_masked_as_one():
    """15 % of the tokens, and each span becomes the mask, random tokens, or itself as a whole."""
    objective, batch = drawn("masked_lm", "spans", count=30, length=60)
    asked = batch["labels"] != IGNORED
    assert (asked.sum(1) == 9).all()
    mask = objective.tokenizer.mark(MASK)
    runs = [
        {bool(batch["tokens"][row, place] == mask) for place in places}
        for row in range(30)
        for places in _runs(asked[row].tolist())
    ]
    assert sum(len(run) == 1 for run in runs) > 0.9 * len(runs)  # two spans may touch
    assert 0.65 < sum(run == {True} for run in runs) / len(runs) < 0.95


def _runs(flags: list[bool]) -> list[list[int]]:
    groups = groupby(range(len(flags)), key=lambda place: flags[place])
    return [list(places) for flag, places in groups if flag]


def test_infilled_spans_are_one_mask_each():
    """The target is the text, the source what is left of it in order, and 30 % of the tokens are gone."""
    objective, batch = drawn("denoising", "infilling", count=12, length=41)
    marks = objective.tokenizer
    mask, end = marks.mark(MASK), marks.mark(END)
    counts = []
    for row in range(12):
        source = batch["source"][row][batch["source_valid"][row]].tolist()
        target = batch["targets"][row].tolist()
        assert source[-1] == target[-1] == end and batch["target"][row].tolist() == [marks.mark("<start>"), *target[:-1]]
        text, kept = marks.decode(target[:-1]), [token for token in source[:-1] if token != mask]
        assert text in TEXT and len(text) == 40 and len(source) <= 41
        assert len(kept) == 28
        at = 0
        for piece in marks.decode(source[:-1]).split(MASK):
            at = text.index(piece, at) + len(piece)
        counts.append(source.count(mask))
    assert 3 < sum(counts) / len(counts) < 7 and len(set(counts)) > 1  # 12 tokens in spans of 3 on average, some without any


def test_sentences_are_permuted_and_asked_for_in_order():
    """A stop ends a sentence, and so does the window."""
    objective, batch = drawn("denoising", "permuted_sentences", count=10, length=97)
    marks, moved = objective.tokenizer, 0
    for row in range(10):
        source, target = batch["source"][row, :-1], batch["targets"][row, :-1]
        sentences = sentences_in(target, marks)
        assert all(marks.decode(each)[-1] in ".?!" for each in sentences[:-1]) and len(sentences) > 2
        assert sorted(map(tuple, sentences)) != [] and sorted(source.tolist()) == sorted(target.tolist())
        text = marks.decode(source.tolist())
        assert all(marks.decode(each) in text for each in sentences)
        moved += not torch.equal(source, target)
    assert moved > 5
    _, both = drawn("denoising", "bart", count=10, length=97)
    assert (both["source"] == marks.mark(MASK)).any() and bool((both["target"][:, 1:] == both["targets"][:, :-1]).all())


def test_a_prefix_is_read_whole_and_what_follows_is_predicted():
    """Of texts at a random place; of prompts and answers at the end of the prompt."""
    recipe = composer.load(PREFIX, {"vocab": 257, "d_model": 16, "n_layers": 1})
    assert prefix_input(recipe.program) == "prompt_length"
    assert prefix_input(composer.load("gpt_mini").program) is None
    objective = objective_of("causal_lm", ByteTokenizer(), TrainSettings(objective="prefix_lm"), program=recipe.program)
    data = objective.tokenize(TEXT, path="t.txt")
    batch = objective.draw(data, batch_size=9, seq_len=11, generator=torch.Generator().manual_seed(0))
    for tokens, targets, length in zip(*(batch[name].tolist() for name in ("tokens", "targets", "prompt_length")), strict=True):
        assert targets == [IGNORED] * (length - 1) + (tokens[1:] + targets[-1:])[length - 1 :]
    assert len(batch["prompt_length"].unique()) > 2
    with pytest.raises(TrainingError, match="the recipe is no prefix language model"):
        objective_of(
            "causal_lm", ByteTokenizer(), TrainSettings(objective="prefix_lm"), program=composer.load("gpt_mini").program
        )
    rows = table_of({"prompt": ["12+3=", "4="], "answer": ["15", "4"]})
    data = examples_of(rows, recipe.program, MarkedTokenizer(ByteTokenizer(), (END,)), seq_len=16)
    batch = data.batch(data.train)
    assert batch["prompt_length"].tolist() == [5, 2]
    assert batch["targets"].tolist() == [[IGNORED] * 4 + [*b"15", 256], [IGNORED, *b"4", 256, *[IGNORED] * 4]]
    model = recipe.compile(seed=0).eval()
    seen = [model(batch["tokens"], batch["valid"], torch.tensor([length, 2])).logits[0, 1] for length in (0, 5)]
    assert not torch.allclose(*seen)  # the second token sees the rest of the prompt


def test_an_end_token_stands_after_each_line_or_file():
    """In place of the line break; the last tenth of the lines is held out, or every tenth file."""
    text = "".join(f"name{index}\n\n" for index in range(20))
    settings = TrainSettings(end_tokens="line")
    assert [learned_from(name, "a\nb\r\n", ends=ends) for name, ends in [("characters", "line"), ("bpe", "line")]] == [
        "ab", "a\nb\r\n",
    ]  # fmt: skip
    assert learned_from("characters", "a\nb", ends="file") == "a\nb"
    tokenizer = marked(ByteTokenizer(), "causal_lm", settings)
    objective = objective_of("causal_lm", tokenizer, settings)
    data = objective.tokenize(text, path="names.txt")
    assert tokenizer.decode(data.train.tolist()) == "".join(f"name{index}<end>" for index in range(18))
    assert tokenizer.decode(data.validation.tolist()) == "name18<end>name19<end>"
    assert (data.characters, objective.whole(data)) == (14, 14)
    first = next(objective.held_out(data, batch_size=1, seq_len=4))
    assert (first["tokens"].tolist(), first["targets"].tolist()) == ([[256, *b"nam"]], [[*b"name"]])
    unseen = objective.unseen("ab\ncd\n", path="u.txt")
    assert next(objective.held_out(unseen, batch_size=1, seq_len=9))["tokens"].tolist() == [[256, *b"ab", 256, *b"cd"]]
    files = objective_of("causal_lm", tokenizer, TrainSettings(end_tokens="file"))
    documents = [TextDocument(f"{index}.txt", f"a\nb{index}") for index in range(EVERY)]
    data = files.tokenize(documents, path="folder")
    assert tokenizer.decode(data.validation.tolist()) == "a\nb9<end>"
    assert tokenizer.decode(data.train.tolist()) == "".join(f"a\nb{index}<end>" for index in range(EVERY - 1))
    with pytest.raises(TrainingError, match="there must be two files at least"):
        files.tokenize(documents[:1], path="folder")


@pytest.mark.parametrize(
    ("name", "task", "table", "end_tokens", "message"),
    [
        (
            "spans",
            "causal_lm",
            False,
            "none",
            "the objective spans is for recipes with the task masked_lm; this one has causal_lm",
        ),
        ("dpo", "causal_lm", False, "none", "dpo is learned from a table, such as a .jsonl file, not from a text"),
        ("bart", "denoising", True, "none", "bart is learned from texts, not from a table"),
        ("auto", "masked_lm", False, "line", "end tokens are for texts of a causal_lm; the recipe has the task masked_lm"),
        ("auto", "causal_lm", True, "file", "a table has an end token after each answer anyway"),
    ],
)
def test_an_objective_that_is_not_for_a_recipe_or_its_data_is_refused(name, task, table, end_tokens, message):
    """With what it is for."""
    with pytest.raises(TrainingError, match=message):
        check_objective(name, task, table=table, end_tokens=end_tokens)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("objective", "task", "recipe", "given"),
    [
        ("whole_words", "masked_lm", "bert", {}), ("spans", "masked_lm", "bert", {}), ("bart", "denoising", "bart", {}),
        ("prefix_lm", "causal_lm", PREFIX, {}), ("auto", "causal_lm", "gpt_mini", {"end_tokens": "line"}),
    ],
)  # fmt: skip
def test_models_learn_and_go_on(objective, task, recipe, given, tmp_path):
    """The loss falls, and a run that goes on from its fourth step ends where it ended before, bit by bit."""
    text = TEXT.replace(". ", ".\n")
    path = tmp_path / "text.txt"
    path.write_text(text, encoding="utf-8", newline="")
    settings = TrainSettings(
        steps=10, batch_size=4, seq_len=24, learning_rate=1e-2, warmup_steps=2, save_every=4, validate_every=0,
        objective=objective, **given,
    )  # fmt: skip
    tokenizer = marked(characters_of(text), task, settings)
    sizes = {"d_model": 32, "n_layers": 1, "n_heads": 2, "dropout": 0, "vocab": tokenizer.size, "hidden": 48}
    plain = composer.load(recipe)
    loaded = plain.with_overrides({name: size for name, size in sizes.items() if name in plain.program.untyped.params})
    made = objective_of(task, tokenizer, settings, program=loaded.program)
    data = made.tokenize(text, path=path)
    before = validate(loaded.compile(seed=0), data, made, batch_size=4, seq_len=24)
    whole = train(loaded.compile(seed=0), tokenizer, data, settings, tmp_path / "run", recipe=loaded.text, show=Quiet())
    assert whole.validation.per_token < before.per_token
    saved = read_run(tmp_path / "run").weights("step-000010")
    resume(tmp_path / "run", checkpoint="step-000008", show=Quiet())
    again = read_run(tmp_path / "run").weights("step-000010")
    assert all(torch.equal(again[name], saved[name]) for name in saved)
