"""Preferences and second models: the losses against loops written out, runs that resume, and what is refused."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch

import composer
from composer.evaluate import evaluate
from composer.train import (
    ByteTokenizer,
    Interrupted,
    MarkedTokenizer,
    ReferenceModel,
    Table,
    TrainingError,
    TrainSettings,
    open_reference_model,
    read_table,
    resume,
    train,
)
from composer.train.criteria.distillation import Distillation, distillation_loss
from composer.train.criteria.preferences import DirectPreference, RewardModel
from composer.train.data.objectives import END
from composer.train.data.preferences import examples_for, preferences_of
from composer.train.losses import IGNORED
from composer.train.run.reader import read_run
from tests.train.small import Quiet

TOKENIZER = MarkedTokenizer(ByteTokenizer(), (END,))
TINY = {"vocab": 257, "d_model": 16, "n_layers": 1, "n_heads": 2, "dropout": 0}
ROWS = [("1+2=", "it is 3", "3"), ("7+5=", "it is 12", "12"), ("", "it is 0", "no")] * 7
SETTINGS = TrainSettings(
    steps=4, batch_size=3, seq_len=16, learning_rate=1e-2, warmup_steps=1, save_every=2, validate_every=0, objective="dpo"
)
JUDGE = """
recipe: judge
language: 1
task: sequence_classification
params: {vocab: 256, n_classes: 1, dim: 6}
inputs: {tokens: "int[batch, time]", valid: "bool[batch, time]?"}
graph:
  embed: {type: embedding, vocab: vocab, dim: dim}
  pool: {type: pool, mode: mean, in: {x: embed, valid: valid}}
  head: {type: linear, out: n_classes}
outputs: {logits: head}
"""


def preferences(rows=ROWS) -> Table:
    """Return a table of preferences, of which a prompt may be missing."""
    columns = {name: [row[place] or "?" for row in rows] for place, name in enumerate(("prompt", "chosen", "rejected"))}
    return Table((Path("p.csv"),), columns, "0" * 64, [("p.csv", row + 2) for row in range(len(rows))])


def written(path: Path) -> Path:
    """Write the table to a file."""
    table = preferences()
    rows = [{name: table.columns[name][row] for name in table.columns} for row in range(len(table))]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def gpt(seed: int) -> composer.lower.Model:
    """Return a small language model."""
    return composer.load("gpt_mini", TINY).compile(seed=seed)


def log_probability(model, prompt: str, answer: str) -> float:
    """Return the log-probability of an answer and its end, token by token."""
    ids, total = [*TOKENIZER.encode(prompt + answer), TOKENIZER.mark(END)], 0.0
    for place in range(len(prompt), len(ids)):
        with torch.no_grad():
            logits = model(torch.tensor([ids[:place]])).logits[0, -1].double()
        total += float(logits[ids[place]] - logits.logsumexp(0))
    return total


def test_preferences_become_sequences_of_which_the_answers_are_asked_for():
    """Chosen ones first; a row of which one answer is too long is left out, and prompts may be missing."""
    model = composer.load("gpt_mini", TINY)
    data = preferences_of(preferences([("ab", "xy", "z"), ("c", "uvw", "st")]), model.program, TOKENIZER, seq_len=9)
    batch = data.batch(np.array([1, 0]))
    assert batch["tokens"].tolist() == [[*b"cuvw"], [*b"abxy"], [*b"cst", 0], [*b"abz", 0]]
    none = IGNORED
    assert batch["targets"].tolist() == [
        [*b"uvw", 256], [none, *b"xy", 256], [*b"st", 256, none], [none, *b"z", 256, none],
    ]  # fmt: skip
    assert batch["valid"].sum(1).tolist() == [4, 4, 3, 3]
    short = preferences_of(preferences([("ab", "xyz", "z"), ("c", "uvw", "st")]), model.program, TOKENIZER, seq_len=4)
    assert (short.left_out, [*short.train]) == (1, [1])
    table = preferences()
    whole = Table(table.paths, {"good": table.columns["chosen"], "rejected": table.columns["rejected"]}, "", table.places)
    bare = preferences_of(whole, model.program, TOKENIZER, columns=["chosen=good"], seq_len=9).batch(np.array([0]))
    assert bare["tokens"].tolist()[0] == [*b"it is 3"] and bare["targets"].tolist()[0] == [*b"t is 3", 256]


@pytest.mark.parametrize("label_smoothing", [0.0, 0.2])
def test_dpo_is_the_loss_of_its_paper(label_smoothing):
    """Equation 7 of Rafailov et al. 2023, with the smoothing of `cdpo_label_smoothing` in TRL; half the margins are positive."""
    policy, reference, beta = gpt(0).eval(), gpt(1).eval(), 0.3
    data = preferences_of(preferences(), policy.program, TOKENIZER, seq_len=32)
    batch = data.batch(np.array([0, 1, 2]))
    found, judged = DirectPreference(reference, beta).loss(policy, batch, label_smoothing=label_smoothing)
    losses, right = [], 0
    for prompt, chosen, rejected in [(prompt or "?", *rest) for prompt, *rest in ROWS[:3]]:
        logratios = log_probability(policy, prompt, chosen) - log_probability(policy, prompt, rejected)
        known = log_probability(reference, prompt, chosen) - log_probability(reference, prompt, rejected)
        sigmoid = 1 / (1 + math.exp(-beta * (logratios - known)))
        losses.append(-(1 - label_smoothing) * math.log(sigmoid) - label_smoothing * math.log(1 - sigmoid))
        right += logratios > known
    assert found.total.item() == pytest.approx(sum(losses) / 3, rel=1e-4)
    assert DirectPreference(reference, beta).judged(batch, judged, []) == (right, 3)


def test_a_model_that_starts_at_its_reference_has_no_preference():
    """Its loss is log 2, whatever beta is."""
    model = gpt(3).eval()
    batch = preferences_of(preferences(), model.program, TOKENIZER, seq_len=32).batch(np.array([0, 1]))
    assert DirectPreference(gpt(3).eval(), 0.7).loss(model, batch)[0].total.item() == pytest.approx(math.log(2))


def test_a_reward_model_prefers_what_was_chosen(tmp_path):
    """Its loss is that of Bradley and Terry, and it learns."""
    recipe = composer.load(JUDGE)
    table = read_table([written(tmp_path / "p.jsonl")])
    data = examples_for("reward", table, recipe.program, ByteTokenizer(), seq_len=16)
    model = recipe.compile(seed=0)
    batch = data.batch(np.array([0, 4]))
    rewards = [
        model(torch.tensor([[*text.encode()]])).logits.item() for text in ("1+2=it is 3", "7+5=it is 12", "1+2=3", "7+5=12")
    ]
    expected = sum(math.log(1 + math.exp(-(rewards[row] - rewards[row + 2]))) for row in range(2)) / 2
    assert RewardModel().loss(model, batch)[0].total.item() == pytest.approx(expected, rel=1e-5)
    settings = TrainSettings(steps=30, batch_size=5, seq_len=16, learning_rate=0.05, warmup_steps=1, objective="reward")
    result = train(model, ByteTokenizer(), data, settings, tmp_path / "run", recipe=recipe.text, show=Quiet())
    assert (result.validation.accuracy, result.validation.unit, result.validation.tokens) == (1.0, "pair", 2)


def test_a_run_on_preferences_resumes_bit_by_bit_and_is_evaluated(tmp_path):
    """The reference is opened again, compared with its checksum, and read where it has moved to."""
    path = written(tmp_path / "p.jsonl")
    recipe = composer.load("gpt_mini", TINY)
    data = examples_for("dpo", read_table([path]), recipe.program, TOKENIZER, seq_len=16)
    first = TrainSettings(steps=1, batch_size=3, seq_len=16, objective="dpo")
    base = ReferenceModel(gpt(4), TOKENIZER, tmp_path / "nowhere")
    for name, seed in (("first", 4), ("other", 5)):
        train(gpt(seed), TOKENIZER, data, first, tmp_path / name, recipe=recipe.text, reference=base, show=Quiet())
    reference = open_reference_model(tmp_path / "first")
    results = {}
    for name in ("whole", "stopped"):
        model = composer.load("gpt_mini", TINY).compile(seed=9)
        model.load_state_dict(reference.model.state_dict())
        show = Quiet(lambda step: (_ for _ in ()).throw(Interrupted) if step == 3 and name == "stopped" else None)  # noqa: B023
        run = tmp_path / name
        try:
            results[name] = train(model, TOKENIZER, data, SETTINGS, run, recipe=recipe.text, reference=reference, show=show)
        except Interrupted:
            assert read_run(run).name(None) == "step-000002"
    (tmp_path / "first").rename(tmp_path / "moved")
    with pytest.raises(TrainingError, match=r"beside its own: .*first is not a run folder") as error:
        resume(tmp_path / "stopped", show=Quiet())
    assert "--reference RUN" in (error.value.hint or "")
    with pytest.raises(TrainingError, match="is not the model that this run started with"):
        resume(tmp_path / "stopped", reference=tmp_path / "other", show=Quiet())
    resume(tmp_path / "stopped", reference=tmp_path / "moved", show=Quiet())
    one, two = (read_run(tmp_path / name).weights("step-000004") for name in ("whole", "stopped"))
    assert all(torch.equal(one[name], two[name]) for name in one)
    (tmp_path / "moved").rename(tmp_path / "first")
    found = evaluate(tmp_path / "whole")
    assert found.loss == pytest.approx(results["whole"].validation.per_token)
    assert (found.unit, found.targets, found.preferred) == ("pair", 2, results["whole"].validation.accuracy)
    assert "of the chosen answers have the larger reward" in str(found)


def test_a_teacher_is_heard_in_the_measure_of_its_weight():
    """T² KL at a temperature, against a loop; at weight 0 the loss is that of the task, and padding has no part in it."""
    student, teacher = gpt(0).eval(), gpt(1).eval()
    tokens = torch.randint(257, (2, 7), generator=torch.Generator().manual_seed(0))
    targets = tokens.roll(-1, 1)
    targets[1, 4:] = IGNORED
    batch = {"tokens": tokens, "targets": targets}
    own, known = (model(tokens).logits.double().detach() for model in (student, teacher))
    terms = []
    for row, place in (targets != IGNORED).nonzero().tolist():
        p, q = ((each[row, place] / 3).softmax(0) for each in (known, own))
        terms.append(9 * float((p * (p / q).log()).sum()))
    learned = sum(terms) / len(terms)
    assert distillation_loss(own, known, targets, 3.0).item() == pytest.approx(learned, rel=1e-4)
    hard = composer.loss(student, batch).total.item()
    for weight in (0.0, 0.25, 1.0):
        found, _ = Distillation(teacher, weight, 3.0).loss(student, batch)
        assert found.total.item() == pytest.approx((1 - weight) * hard + weight * learned, rel=1e-4)
    wider = torch.cat([known, torch.full((2, 7, 5), 3.0)], -1)  # a published model may have rows that no token uses
    assert distillation_loss(own, wider, targets, 3.0).item() == pytest.approx(learned, rel=1e-4)


def test_what_does_not_fit_preferences_is_refused(tmp_path):
    """At its row, or before anything is trained."""
    program = composer.load("gpt_mini", TINY).program
    with pytest.raises(TrainingError, match=re.escape("p.csv, line 3: the chosen and the rejected answer are the same")):
        preferences_of(preferences([("a", "b", "c"), ("a", "b", "b")]), program, TOKENIZER, seq_len=9)
    with pytest.raises(TrainingError, match="the tokenizer has no token <end>"):
        preferences_of(preferences(), program, ByteTokenizer(), seq_len=9)
    with pytest.raises(TrainingError, match="no column `winner`; its columns are prompt, chosen, rejected"):
        preferences_of(preferences(), program, TOKENIZER, columns=["chosen=winner"], seq_len=9)
    with pytest.raises(TrainingError, match="preferences have the columns prompt, chosen, rejected, and no `answer`"):
        preferences_of(preferences(), program, TOKENIZER, columns=["answer=chosen"], seq_len=9)
    with pytest.raises(TrainingError, match="a reward is one number for each text, and this recipe tells 3"):
        preferences_of(preferences(), composer.load(JUDGE, {"n_classes": 3}).program, ByteTokenizer(), seq_len=9)
    recipe = composer.load("gpt_mini", TINY)
    data = preferences_of(preferences(), recipe.program, TOKENIZER, seq_len=16)
    model, run = recipe.compile(seed=0), tmp_path / "run"
    with pytest.raises(TrainingError, match="the objective dpo compares the model with a reference, and there is none"):
        train(model, TOKENIZER, data, SETTINGS, run, recipe=recipe.text, show=Quiet())
    other = ReferenceModel(gpt(1), ByteTokenizer(), Path("elsewhere"))
    with pytest.raises(TrainingError, match="elsewhere has another tokenizer than this run"):
        train(model, TOKENIZER, data, SETTINGS, run, recipe=recipe.text, reference=other, show=Quiet())
    judge = ReferenceModel(composer.load(JUDGE, {"vocab": 257}).compile(), TOKENIZER, Path("judge"))
    with pytest.raises(TrainingError, match="judge has the task sequence_classification, and the recipe the task causal_lm"):
        train(model, TOKENIZER, data, SETTINGS, run, recipe=recipe.text, reference=judge, show=Quiet())
    assert not run.exists()
