"""Synthetic tasks: examples that are right, texts without what is asked, and answers judged as a loop judges them."""

from __future__ import annotations

import json
import re
from itertools import islice

import pytest
import torch

from composer.cli import main
from composer.evaluate import evaluate_answers, synthetic_text
from composer.evaluate.answers import distinct
from composer.evaluate.synthetic import SYNTHETIC_TASKS, examples_of
from composer.train import TrainingError, TrainSettings, open_run


def answer_of(task: str, question: str) -> str:
    """Work out the answer from the question alone."""
    if task == "copy":
        return question
    if task == "arithmetic":
        return str(sum(map(int, question.split("+"))))
    if task == "needle":
        return re.findall("[0-9]+", question)[0]
    pairs, key = question.split("?")
    return dict(re.findall("(.)(.)", pairs))[key]


def test_a_run_whose_tokenizer_lacks_the_letters_of_a_task_says_so(run_of):
    """And no character of the task is to be removed: nobody has typed it."""
    run = run_of(text="abcabd\n" * 40)
    with pytest.raises(TrainingError, match="the tokenizer of the run cannot write copy of length 5: the character") as refused:
        evaluate_answers(run, "copy", [5])
    assert refused.value.hint == "train the run on a text of the task: arco data copy"


@pytest.mark.parametrize("task", SYNTHETIC_TASKS)
@pytest.mark.parametrize("length", [1, 2, 7, 26])
def test_examples_are_right_and_of_their_length(task, length):
    """Letters, pairs or digits; the same for a seed, and others for another."""
    for each in islice(examples_of(task, length, held_out=False, seed=3), 50):
        assert each.answer == answer_of(task, each.question)
        size = {"copy": len(each.question), "recall": (len(each.question) - 2) / 2, "arithmetic": (len(each.question) - 1) / 2}
        size["needle"] = each.question.count("hay ")
        assert size[task] == length
    seeds = [[each.question for each in islice(examples_of(task, length, held_out=False, seed=seed), 9)] for seed in (3, 3, 4)]
    assert seeds[0] == seeds[1] != seeds[2]


@pytest.mark.parametrize("task", SYNTHETIC_TASKS)
def test_what_is_asked_is_in_no_text(task):
    """Whatever the seed, also where there are few questions; about one in ten is kept."""
    lines = "".join(synthetic_text(task, [2, 3], lines=3000, seed=seed) for seed in (0, 1)).splitlines()
    written = {line.partition("=")[0] for line in lines}
    asked = [each.question for length in (2, 3) for each in distinct(examples_of(task, length, held_out=True, seed=5), 300)]
    assert len(asked) == len({*asked}) > 50 and not written & {*asked}
    assert all(answer_of(task, line.partition("=")[0]) == line.partition("=")[2] for line in lines)
    chance = [examples_of(task, 3, held_out=kept, seed=0) for kept in (True, False)]
    assert next(chance[0]).held_out and not next(chance[1]).held_out


def test_questions_that_do_not_exist_are_refused():
    """Other tasks and lengths, and a length without a question that is kept; where there are few, all are asked once."""
    for task, length, said in (("copy", 0, "from 1 to 1000"), ("recall", 27, "from 1 to 26"), ("sort", 2, "no synthetic task")):
        with pytest.raises(TrainingError, match=said):
            next(examples_of(task, length, held_out=True, seed=0))
    with pytest.raises(TrainingError, match="copy of length 1 has no example that is held out"):
        next(examples_of("copy", 1, held_out=True, seed=0))
    assert 3 < len(distinct(examples_of("copy", 2, held_out=True, seed=0), 200)) < 30
    with pytest.raises(TrainingError, match="at least"):
        synthetic_text("copy", [], lines=3)


@pytest.mark.slow
def test_answers_are_judged_as_a_loop_judges_them(run_of, capsys):
    """Token by token, each question alone; a model that has learned to recall one pair is right there, and guesses of two."""
    settings = TrainSettings(steps=240, batch_size=16, seq_len=32, warmup_steps=20, learning_rate=0.005, log_every=999)
    text = synthetic_text("recall", [1, 2], lines=5000)
    run = run_of("gpt_mini", text, settings, n_layers=2, d_model=64, n_heads=4)
    scores = evaluate_answers(run, "recall", [1, 2], examples=40, seed=2)
    trained = open_run(run)
    for score in scores:
        right = 0
        for each in islice(distinct(examples_of("recall", score.length, held_out=True, seed=2), 40), score.examples):
            tokens, said = trained.tokenizer.encode(f"\n{each.question}="), ""
            while len(said) < 2:
                with torch.no_grad():
                    tokens.append(int(trained.model(torch.tensor([tokens])).logits[0, -1].argmax()))
                said += trained.tokenizer.decode(tokens[-1:])
            right += said == f"{answer_of('recall', each.question)}\n"
        assert score.right == right
    assert scores[0].accuracy > 0.5 and scores[0].accuracy > scores[1].accuracy
    capsys.readouterr()
    words = ["evaluate", str(run), "--task", "recall", "--lengths", "1,2", "--examples", "40", "--seed", "2", "--device", "cpu"]
    assert main([*words, "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["lengths"]
    assert [(row["right"], row["accuracy"]) for row in rows] == [(score.right, score.accuracy) for score in scores]
    assert main(words) == 0 and f"{scores[1].right} of {scores[1].examples}" in capsys.readouterr().out
    for wrong, said in (
        ([*words, "--seq-len", "9"], "--seq-len is for texts"),
        (["evaluate", str(run), "--lengths", "3"], "--lengths is for synthetic tasks"),
        ([*words[:3], "arithmetic", "--device", "cpu"], "the character '+' "),
    ):
        assert main(wrong) == 2 and said in capsys.readouterr().err


@pytest.mark.parametrize("wrong", ["", "a", "3-1", "1-", "1-99999", "-4"])
def test_lengths_that_are_none_are_refused(wrong, capsys):
    """In one line."""
    assert main(["data", "copy", f"--lengths={wrong}"]) == 2
    assert capsys.readouterr().err.startswith("arco data: --lengths: ")


def test_the_command_writes_the_text(capsys):
    """The same that Python returns."""
    assert main(["data", "copy", "--lengths", "2,4-5", "--lines", "7", "--seed", "3"]) == 0
    assert capsys.readouterr().out == synthetic_text("copy", [2, 4, 5], lines=7, seed=3)
