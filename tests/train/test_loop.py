"""One step, and a run from its beginning to its end."""

from __future__ import annotations

import copy
import json

import pytest
import torch
from torch import nn

import composer
from composer.train import RunFolder, TrainingError, objective_of, open_run, tokenize, train
from composer.train.loop import SMALL_STEP, STEPS_AHEAD, batches_by_step, batches_of_step, build_optimizer, update
from composer.train.losses import loss

RECIPE = "composer: 1\nname: small\n"


def unequal(tokens, asked):
    """Return a batch that asks for the first `asked` tokens of each row only."""
    targets = tokens.roll(-1, 1)
    targets[:, asked:] = -100
    return {"tokens": tokens, "targets": targets}


@pytest.mark.parametrize(("seq_len", "first"), [(8, 1), (8, 6), (SMALL_STEP, 6)])
def test_batches_that_are_drawn_ahead_are_those_of_their_steps(tokenizer, settings, change, seq_len, first):
    """Of small steps and of large ones, from any step on, up to the last."""
    drawn = change(settings, steps=STEPS_AHEAD + 9, batch_size=2, seq_len=seq_len, grad_accum=2)
    data = tokenize("to be or not to be\n" * 2 * SMALL_STEP, tokenizer, path="plays")
    objective = objective_of("causal_lm", tokenizer)
    found = list(batches_by_step(first, objective, data, drawn, torch.Generator()))
    assert len(found) == drawn.steps - first + 1
    for step, batches in enumerate(found, first):
        alone = batches_of_step(step, objective, data, drawn, torch.Generator())
        assert [torch.equal(one["tokens"], other["tokens"]) for one, other in zip(batches, alone, strict=True)] == [True, True]


@pytest.mark.slow
def test_accumulated_batches_make_the_step_of_the_large_batch(build, settings, change):
    """Also where one asks for many tokens and the other for few: targets count alike, not batches."""
    tokens = torch.randint(20, (5, 9), generator=torch.Generator().manual_seed(2))
    parts = [unequal(tokens[:2], 8), unequal(tokens[2:], 3)]
    large = {name: torch.cat([part[name] for part in parts]) for name in ("tokens", "targets")}
    plain = change(settings, max_grad_norm=0)
    stepped = []
    for batches in ([large], parts):
        model = build(RECIPE).double().eval()  # no dropout: the two would draw differently
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        measured = update(model, optimizer, batches, plain, rate=1.0)
        assert measured.tokens == 2 * 8 + 3 * 3
        stepped.append((measured.loss, torch.cat([p.detach().flatten() for p in model.parameters()])))
    assert stepped[0][0] == pytest.approx(stepped[1][0], rel=1e-6)  # the loss itself is reported in single precision
    torch.testing.assert_close(stepped[0][1], stepped[1][1], rtol=0, atol=1e-6)


LOSSES = """
recipe: many_losses
task: causal_lm
inputs: {tokens: "int[batch, time]", labels: "int[batch, time]?", valid: "bool[batch, time]?", wanted: "float[batch, time, 8]?"}
graph:
  embed: {type: embedding, vocab: 20, dim: 8}
  layers:
    repeat: 2
    graph:
      moe: {type: moe, experts: 3, expert: {type: gated_ffn, hidden: 5}}
      near: {type: mse, in: {input: moe, target: input}}
      y: {type: identity, in: moe}
  head: {type: linear, out: 20}
outputs: {logits: head}
losses:
  after: {type: cross_entropy, in: head, target: tokens, shift: 2, weight: 0.3}
  label: {type: cross_entropy, in: head, target: labels, label_smoothing: 0.1, valid: valid}
  form: {type: mse, in: ["layers(0)", layers], target: wanted, reduction: sum}
  odds: {type: binary_cross_entropy, in: layers, target: embed}
  z: {in: "layers(:).moe.router_z", weight: 0.1}
  drift: {in: "layers(:).near"}
"""


def labeled(generator, rows, asked):
    """Return a batch with targets of each kind, of which unequal shares ask for something."""
    tokens, labels = (torch.randint(20, (rows, 9), generator=generator) for _ in range(2))
    labels[:, asked:] = -100
    wanted = torch.randn(rows, 9, 8, generator=generator, dtype=torch.float64)
    valid = torch.rand(rows, 9, generator=generator) < 0.7
    return {**unequal(tokens, asked), "labels": labels, "valid": valid, "wanted": wanted}


def step_of_many_losses(batches, settings):
    """Return what one step of plain descent measures, and the weights after it, in float64."""
    model = composer.load(LOSSES).compile(seed=1).double()
    measured = update(model, torch.optim.SGD(model.parameters(), lr=1.0), batches, settings, rate=1.0)
    return measured.by_name, torch.cat([p.detach().flatten() for p in model.parameters()])


def test_every_loss_of_accumulated_batches_is_that_of_the_large_batch(settings, change):
    """Each is weighed by what it asks for itself, not by what the task does: the same numbers and the same step in float64."""
    generator = torch.Generator().manual_seed(2)
    parts = [labeled(generator, rows, asked) for rows, asked in ((2, 8), (3, 3), (1, 5))]
    large = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
    plain = change(settings, max_grad_norm=0, label_smoothing=0)
    (whole, expected), (pieces, weights) = (step_of_many_losses(batches, plain) for batches in ([large], parts))
    assert set(whole) == {"after", "label", "form", "odds", "z", "drift", "causal_lm"}
    assert pieces == {name: pytest.approx(value, abs=1e-12) for name, value in whole.items()}
    torch.testing.assert_close(weights, expected, rtol=0, atol=1e-12)


def test_a_batch_without_labels_takes_no_part_in_their_loss(settings, change):
    """Of two batches one has labels: their loss is that of the one."""
    generator = torch.Generator().manual_seed(2)
    asks, bare = labeled(generator, 2, 8), labeled(generator, 2, 8)
    del bare["labels"], bare["wanted"]
    plain = change(settings, max_grad_norm=0)
    alone, _ = step_of_many_losses([asks], plain)
    together, _ = step_of_many_losses([asks, bare], plain)
    assert together["label"] == pytest.approx(alone["label"], abs=1e-12)


WHOLE = {
    "the loss `balance` reads `layers\\(0\\).moe.load_balancing`": """
losses: {balance: {in: "layers(:).moe.load_balancing"}}""",
    "the loss `pairs` compares all rows": """
  one: {type: mean, axis: time, in: embed}
  warmth: {type: parameter, shape: []}
losses: {pairs: {type: contrastive, a: one, b: one, scale: warmth}}""",
    "`rows` is a batchnorm": """
  one: {type: mean, axis: time, in: embed}
  rows: {type: batchnorm, in: one}
losses: {near: {type: mse, in: rows, target: one}}""",
    "`m` is a mean, which mixes the rows of a batch": """
  m: {type: mean, axis: batch, in: embed}
  moved: {type: add, in: [embed, m]}
losses: {near: {type: mse, in: moved, target: embed}}""",
    "`group.b` is a softmax, which mixes the rows of a batch": """
  group: {in: {x: embed}, graph: {b: {type: softmax, axis: batch}}}
losses: {near: {type: mse, in: group, target: embed}}""",
    "`turned` is a gru, which reads the rows of a batch in their order": """
  other: {type: rearrange, pattern: "b t d -> t b d", in: embed}
  turned: {type: gru, hidden: 8}
losses: {near: {type: mse, in: turned, target: other}}""",
    "`scaled` is a multiply and reads `far`, which is one value for the whole batch": """
  far: {type: mse, in: {input: embed, target: layers}}
  scaled: {type: multiply, in: [embed, far]}
losses: {near: {type: mse, in: scaled, target: embed}}""",
    "the state `kept` changes": """
  kept: {type: state, shape: [8], next: kept}
losses: {near: {type: mse, in: kept, target: kept}}""",
    "the loss `made` has targets that the model computes": """
  group:
    in: {scores: head, words: tokens}
    graph: {far: {type: cross_entropy, in: {input: scores, target: words}}}
losses: {made: {in: group}}""",
    "the loss `outside` reads `given`, which is a single number": """
losses: {outside: {in: given}}""",
    "the loss `both` reads means over unequal numbers": """
  one: {type: mean, axis: time, in: embed}
  near: {type: mse, in: {input: one, target: one}}
  far: {type: mse, in: {input: embed, target: layers}}
losses: {both: {in: [near, far]}}""",
}
BASE = """
recipe: whole
task: causal_lm
inputs: {tokens: "int[batch, time]", given: "float[]?"}
outputs: {logits: head}
graph:
  embed: {type: embedding, vocab: 20, dim: 8}
  layers: {repeat: 2, graph: {moe: {type: moe, experts: 3, expert: {type: ffn, hidden: 5}}}}
  head: {type: linear, out: 20}"""


@pytest.mark.parametrize("message", WHOLE)
def test_what_sees_a_batch_as_a_whole_is_refused_by_name(settings, message):
    """Several batches do not make it; one does."""
    model = composer.load(BASE + WHOLE[message]).compile(seed=0)
    batch = unequal(torch.randint(20, (3, 9)), 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    update(model, optimizer, [batch], settings, rate=1.0)
    with pytest.raises(TrainingError, match=message):
        update(model, optimizer, [batch, batch], settings, rate=1.0)


def test_clipping_shortens_the_whole_gradient_to_the_norm(build, settings, change):
    """A step of plain descent is then as long as the rate times the norm; unclipped it is longer."""
    batch = unequal(torch.randint(20, (3, 9), generator=torch.Generator().manual_seed(2)), 8)
    lengths = {}
    for clip in (0.0, 0.01):
        model = build(RECIPE).eval()
        before = copy.deepcopy(model)
        measured = update(
            model, torch.optim.SGD(model.parameters(), lr=1.0), [batch], change(settings, max_grad_norm=clip), rate=0.5
        )
        moved = [new - old for new, old in zip(model.parameters(), before.parameters(), strict=True)]
        lengths[clip] = float(torch.cat([m.detach().flatten() for m in moved]).norm())
    assert lengths[0.01] == pytest.approx(0.5 * 0.01, rel=1e-3)
    assert lengths[0.0] == pytest.approx(0.5 * measured.gradient_norm, rel=1e-4)


def test_a_step_is_torchs_adamw_on_the_same_gradient(build, settings, change):
    """Rate, betas, decay and all: against the formula of the paper, for a matrix and for a gain."""
    model = build(RECIPE).eval()
    batch = unequal(torch.randint(20, (3, 9), generator=torch.Generator().manual_seed(2)), 8)
    before = copy.deepcopy(model)
    loss(before, batch).total.backward()
    plain = change(settings, max_grad_norm=0, weight_decay=0.1)
    update(model, build_optimizer(model, plain), [batch], plain, rate=0.02)
    for name, decay in (("up.weight", 0.1), ("norm1.weight", 0.0)):
        old, new = before.get_parameter(name), model.get_parameter(name)
        expected = old * (1 - 0.02 * decay) - 0.02 * old.grad / (old.grad.abs() + 1e-8)  # first step: the moments are unbiased
        torch.testing.assert_close(new, expected)


def test_a_run_learns_and_keeps_all_that_it_is(build, data, tokenizer, settings, change, quiet, tmp_path):
    """Counting pairs of characters gives 1.25 nats on this text; the folder opens again to the very model that was trained."""
    model = build(RECIPE)
    longer = change(
        settings, steps=200, batch_size=8, seq_len=24, learning_rate=2e-2, warmup_steps=10, save_every=0, validate_every=0
    )
    result = train(model, tokenizer, data, longer, tmp_path / "run", recipe=RECIPE, show=quiet())
    run = RunFolder(tmp_path / "run")
    lines = [json.loads(line) for line in run.metrics.read_text(encoding="utf-8").splitlines()]
    assert lines[0]["loss"] > 2.5
    assert result.validation.per_character < 1.25
    assert lines[-1]["validation_loss"] == result.validation.per_token
    assert lines[-1]["validation_tokens"] == len(data.validation)
    assert [line["tokens"] for line in lines] == [(step + 1) * 8 * 24 * 2 for step in range(200)]

    opened = open_run(tmp_path / "run", build=build)
    assert (opened.step, opened.settings, opened.tokenizer) == (200, longer, tokenizer)
    for name, tensor in model.state_dict().items():
        assert torch.equal(opened.model.state_dict()[name], tensor), name
    assert run.recipe.read_text(encoding="utf-8") == RECIPE


def test_a_loss_that_is_no_number_stops_the_run_before_it_harms_the_weights(build, data, tokenizer, settings, quiet, tmp_path):
    """The error names the step and the last good checkpoint, which is the last that was saved."""
    model = build(RECIPE)

    def poison(step: int) -> None:
        if step == 7:
            with torch.no_grad():
                model.norm3.weight.fill_(float("nan"))

    with pytest.raises(TrainingError, match=r"loss \(nan\) .* at step 8.*step-000005"):
        train(model, tokenizer, data, settings, tmp_path / "run", recipe=RECIPE, show=quiet(poison))
    assert torch.isfinite(model.up.weight).all()
    assert open_run(tmp_path / "run", build=build).step == 5


def test_a_folder_that_holds_a_run_is_not_written_over(build, data, tokenizer, settings, quiet, tmp_path):
    """The hint says how to continue it."""
    train(build(RECIPE), tokenizer, data, settings, tmp_path / "run", recipe=RECIPE, show=quiet())
    with pytest.raises(TrainingError, match="is a run folder already") as error:
        train(build(RECIPE), tokenizer, data, settings, tmp_path / "run", recipe=RECIPE, show=quiet())
    assert "--resume" in error.value.hint


def test_a_run_without_a_checkpoint_is_not_offered_to_be_continued(build, data, tokenizer, settings, quiet, tmp_path):
    """Which would be refused too."""

    def die(step: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(build(RECIPE), tokenizer, data, settings, tmp_path / "run", recipe=RECIPE, show=quiet(die))
    with pytest.raises(TrainingError, match="is a run folder already") as error:
        train(build(RECIPE), tokenizer, data, settings, tmp_path / "run", recipe=RECIPE, show=quiet())
    assert error.value.hint.startswith("it has no checkpoint to continue from: choose another folder, or remove it")


def test_a_batch_that_no_memory_holds_is_refused_before_it_is_tried(build, data, tokenizer, settings, change, quiet, tmp_path):
    """And before anything is written."""
    endless = change(settings, batch_size=10**12)
    with pytest.raises(TrainingError, match="not enough memory for batches of 1000000000000 sequences of 7 tokens"):
        train(build(RECIPE), tokenizer, data, endless, tmp_path / "run", recipe=RECIPE, show=quiet())
    assert not (tmp_path / "run").exists()


def test_a_tokenizer_larger_than_the_model_is_refused(build, data, tokenizer, settings, quiet, tmp_path):
    """Before anything is written."""
    model = build(RECIPE)
    model.embed = nn.Embedding(tokenizer.size - 1, 16)
    with pytest.raises(
        TrainingError, match=f"a vocabulary of {tokenizer.size - 1} tokens, the tokenizer one of {tokenizer.size}"
    ):
        train(model, tokenizer, data, settings, tmp_path / "run", recipe=RECIPE, show=quiet())
    assert not (tmp_path / "run").exists()


def test_a_recipe_for_another_task_is_refused(build, data, tokenizer, settings, quiet, tmp_path):
    """It is named."""
    model = build(RECIPE)
    model.recipe.task = "masked_lm"
    with pytest.raises(TrainingError, match="masked_lm"):
        train(model, tokenizer, data, settings, tmp_path / "run", recipe=RECIPE, show=quiet())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="bfloat16 autocast is for CUDA")
def test_on_cuda_a_run_computes_in_bfloat16_and_keeps_its_weights_in_full(build, data, tokenizer, settings, quiet, tmp_path):
    """And resumes on either device."""
    model = build(RECIPE).cuda()
    train(model, tokenizer, data, settings, tmp_path / "run", recipe=RECIPE, show=quiet())
    assert all(parameter.dtype == torch.float32 for parameter in model.parameters())
    opened = open_run(tmp_path / "run", build=build)
    assert torch.equal(opened.model.up.weight, model.up.weight.cpu())
