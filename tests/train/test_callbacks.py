"""What follows a run, and what it measures and writes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import composer
from composer.train import (
    ActivationSizes,
    Callback,
    ExpertLoad,
    GradientNorms,
    Interrupted,
    MemoryUse,
    RunFolder,
    RunStart,
    TensorBoard,
    TrainingError,
    TrainSettings,
    Utilization,
    WeightsAndBiases,
    resume,
    train,
)
from composer.train.run.reader import read_run
from tests.train.small import Quiet

RECIPE = "recipe: a\n"
SPEED = {"seconds", "tokens_per_second"}


class Diary(Callback):
    """Notes what it is told."""

    def __init__(self, fail_at: int = 0) -> None:
        self.notes: list[str] = []
        self.fail_at = fail_at

    def begin(self, run):
        self.notes.append(f"begin after {run.step}")

    def before_step(self, step, *, logged):
        if step == self.fail_at:
            raise RuntimeError("broken")
        self.notes.append(f"{step}{' logged' if logged else ''}")

    def after_backward(self, step):
        self.notes.append("gradients")

    def logged(self, line):
        self.notes.append("validation" if "validation_loss" in line else "line")

    def end(self):
        self.notes.append("end")


def lines_of(run: Path) -> list[dict[str, float]]:
    """The metrics of a run, without speeds."""
    lines = map(json.loads, RunFolder(run).metrics.read_text(encoding="utf-8").splitlines())
    return [{name: value for name, value in line.items() if name not in SPEED} for line in lines]


def start_of(model: torch.nn.Module, folder: Path = Path("run"), *, step: int = 0, **settings: object) -> RunStart:
    """The beginning of a run of a model."""
    return RunStart(model, TrainSettings(**settings), RunFolder(folder), "recipe: a", step)


def test_a_run_that_is_watched_and_resumed_equals_one_that_is_not(tmp_path, build, tokenizer, data, settings):
    """Weights, losses and validations bit for bit, with dropout; what is measured stands beside them."""
    plain = train(build(""), tokenizer, data, settings, tmp_path / "plain", recipe=RECIPE, show=Quiet())

    def stop(step: int) -> None:
        if step == 8:
            raise KeyboardInterrupt

    watching = [GradientNorms(), ActivationSizes(), MemoryUse()]
    with pytest.raises((KeyboardInterrupt, Interrupted)):
        train(build(""), tokenizer, data, settings, tmp_path / "seen", recipe=RECIPE, show=Quiet(stop), callbacks=watching)
    watching = [GradientNorms(), ActivationSizes()]
    resumed = resume(tmp_path / "seen", build=build, show=Quiet(), callbacks=watching)
    assert (resumed.loss, resumed.validation) == (plain.loss, plain.validation)
    one, other = (read_run(run) for run in (plain.run, resumed.run))
    for name, value in one.weights(one.name(None)).items():
        assert torch.equal(value, other.weights(other.name(None))[name]), name
    seen, expected = lines_of(resumed.run), lines_of(plain.run)
    assert [{name: line[name] for name in same} for line, same in zip(seen, expected, strict=True)] == expected
    assert all("gradient_norm/qkv" in line and "activation/down" in line for line in seen)


def test_callbacks_are_called_in_order_and_ended_however_a_run_ends(tmp_path, build, tokenizer, data, change, settings):
    """A step is announced, its gradients are shown, its line with the validation follows."""
    settings = change(settings, steps=3, log_every=2, validate_every=3, grad_accum=1)
    diary = Diary()
    train(build(""), tokenizer, data, settings, tmp_path / "a", recipe=RECIPE, show=Quiet(), callbacks=[diary])
    steps = ["1", "gradients", "2 logged", "gradients", "line", "3 logged", "gradients", "validation"]
    assert diary.notes == ["begin after 0", *steps, "end"]
    diary, broken = Diary(), Diary(fail_at=2)
    with pytest.raises(RuntimeError, match="broken"):
        train(build(""), tokenizer, data, settings, tmp_path / "b", recipe=RECIPE, show=Quiet(), callbacks=[diary, broken])
    assert diary.notes[-1] == broken.notes[-1] == "end"


def test_norms_of_layers_are_those_of_all_gradients_together(tmp_path, build, tokenizer, data, change, settings):
    """Their squares sum to that of the norm which the loop clips by."""
    run = tmp_path / "run"
    few = change(settings, steps=2)
    train(build(""), tokenizer, data, few, run, recipe=RECIPE, show=Quiet(), callbacks=[GradientNorms()])
    for line in lines_of(run):
        layers = [value for name, value in line.items() if name.startswith("gradient_norm/")]
        assert len(layers) == 9 and sum(each**2 for each in layers) ** 0.5 == pytest.approx(line["gradient_norm"], rel=1e-5)


def test_activations_are_the_root_mean_squares_of_what_layers_return():
    """Over all calls of a step; nothing is measured in steps that are not logged."""
    model = composer.load("gpt2", {"n_layers": 2, "d_model": 8, "n_heads": 2, "vocab": 13, "context": 6}).compile(seed=1)
    watch = ActivationSizes()
    watch.begin(start_of(model))
    watch.before_step(1, logged=True)
    with torch.no_grad():
        parts = [model.embed(tokens) for tokens in (torch.tensor([[3, 1, 4]]), torch.tensor([[1, 5, 9]]))]
    watch.after_backward(1)
    with torch.no_grad():
        model(tokens=torch.tensor([[2, 6]]))  # a validation
    size = torch.cat([part.flatten() for part in parts]).square().mean().sqrt()
    assert watch.metrics({}) == {"activation/embed": pytest.approx(float(size), rel=1e-6)}
    watch.before_step(2, logged=False)
    with torch.no_grad():
        model(tokens=torch.tensor([[2, 6]]))
    assert watch.metrics({}) == {}
    watch.end()
    assert not model.embed._forward_hooks


def test_the_load_of_experts_is_how_often_the_router_chooses_each():
    """Counted once more from its logits; afterward the router is as it was."""
    sizes = {"n_layers": 2, "d_model": 8, "n_heads": 2, "n_kv_heads": 1, "hidden": 6, "vocab": 13, "n_experts": 5}
    model = composer.load("mixtral", sizes).compile(seed=1)
    watch, given = ExpertLoad(), []
    watch.begin(start_of(model))
    watch.before_step(1, logged=True)
    hook = model.layers[1].moe.body.gate.register_forward_hook(lambda module, read, logits: given.append(logits))
    model(tokens=torch.tensor([[3, 1, 4, 1], [5, 9, 2, 6]]))
    hook.remove()
    chosen = given[0].topk(2, dim=-1).indices.flatten()
    counted = {f"load/layers.1.moe.body/{expert}": float((chosen == expert).sum() / 8) for expert in range(5)}
    found = watch.metrics({})
    assert {name: value for name, value in found.items() if "layers.1" in name} == counted and len(found) == 10
    watch.end()
    assert "route" not in vars(model.layers[0].moe.body.router)


def test_the_load_of_experts_is_watched_where_their_logits_are_given():
    """A router whose logits other nodes compute is asked with one argument more."""
    router = "{type: top_k_router, top_k: 2}"
    moe = f"{{type: moe, experts: 4, expert: {{type: ffn, hidden: 4}}, router: {router}, in: {{x: x, logits: gate}}}}"
    graph = f"graph:\n  gate: {{type: linear, out: 4, in: x}}\n  moe: {moe}\n"
    model = composer.load(f"recipe: given\ninputs: {{x: 'float[batch, time, 6]'}}\n{graph}").compile(seed=0)
    watch, x = ExpertLoad(), torch.randn(2, 7, 6, generator=torch.Generator().manual_seed(0))
    watch.begin(start_of(model))
    watch.before_step(1, logged=True)
    model(x)
    chosen = model.gate(x).topk(2, dim=-1).indices
    assert watch.metrics({}) == {f"load/moe/{expert}": pytest.approx(int((chosen == expert).sum()) / 14) for expert in range(4)}
    watch.end()


def test_what_cannot_be_watched_is_refused():
    """A model without experts, one that is compiled, a peak of nothing."""
    model = composer.load("gpt_mini", {"n_layers": 1, "d_model": 8, "n_heads": 2}).compile(seed=1)
    with pytest.raises(TrainingError, match="no experts"):
        ExpertLoad().check(model, TrainSettings())
    with pytest.raises(TrainingError, match="compile is block"):
        ActivationSizes().check(model, TrainSettings(compile="block"))
    with pytest.raises(TrainingError, match="more than 0"):
        Utilization(peak_flops=0)


def test_utilization_is_the_share_of_the_peak():
    """Three forward passes a step, of a matrix of 3 × 5 for each of 2 · 4 · 7 positions, over the steps since the line before."""
    text = "recipe: one\ninputs: {x: 'float[batch, time, 3]'}\ngraph:\n  y: {type: linear, out: 5, bias: false}\n"
    model = composer.load(f"{text}losses: {{}}\noutputs: {{y: y}}\n").compile(seed=1)
    watch = Utilization(peak_flops=10_000)
    watch.begin(start_of(model, batch_size=2, grad_accum=4, seq_len=7))
    flops = 3 * 2 * 3 * 5 * (2 * 4 * 7)
    assert watch.metrics({"step": 4, "seconds": 2.0}) == {"mfu": pytest.approx(flops * 4 / 2 / 10_000)}
    assert watch.metrics({"step": 5, "seconds": 2.25}) == {"mfu": pytest.approx(flops / 0.25 / 10_000)}
    watch.begin(start_of(model, step=5))
    assert watch.metrics({"step": 6, "seconds": 9.0}) == {}  # the seconds before are not known


@pytest.mark.slow
def test_tensorboard_reads_what_was_written_and_hides_what_a_resumed_run_gave_up(tmp_path, capfd):
    """By its own reader."""
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    model = torch.nn.Linear(1, 1)
    for step, losses in ((0, {1: 4.0, 2: 3.0, 3: 9.0}), (2, {3: 2.0})):
        board = TensorBoard()
        board.begin(start_of(model, tmp_path, step=step))
        for number, loss in losses.items():
            board.logged({"step": number, "loss": loss, "gradient_norm/head": loss / 2})
        board.end()
    read = accumulator.EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert [(each.step, each.value) for each in read.Scalars("loss")] == [(1, 4.0), (2, 3.0), (3, 2.0)]
    assert [each.value for each in read.Scalars("gradient_norm/head")] == [2.0, 1.5, 1.0]
    (recipe,) = read.Tensors("recipe/text_summary")
    assert b"recipe: a" in recipe.tensor_proto.string_val[0]


def test_weights_and_biases_stays_offline(tmp_path, monkeypatch):
    """It is begun without a connection, in the run folder, and gets each line at its step."""
    calls: list[tuple[str, object]] = []
    run = SimpleNamespace(
        log=lambda line, step: calls.append(("log", (step, line))), finish=lambda: calls.append(("finish", None))
    )

    def init(**options: object) -> object:
        calls.append(("init", options))
        return run

    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=init, Settings=lambda **options: options))
    writer = WeightsAndBiases(project="hamlet")
    writer.begin(start_of(torch.nn.Linear(1, 1), tmp_path / "hamlet", step=4, batch_size=3))
    writer.logged({"step": 5, "loss": 2.0})
    writer.end()
    (_, options), *others = calls
    assert isinstance(options, dict) and options["mode"] == "offline" and options["dir"] == str(tmp_path / "hamlet")
    assert (options["project"], options["name"], options["group"]) == ("hamlet", "hamlet from step 4", "hamlet")
    assert options["config"]["batch_size"] == 3
    assert others == [("log", (5, {"loss": 2.0})), ("finish", None)]


@pytest.mark.parametrize(("tracker", "package"), [(TensorBoard, "torch.utils.tensorboard"), (WeightsAndBiases, "wandb")])
def test_a_package_that_is_missing_is_named(monkeypatch, tracker, package):
    """With the command that installs it."""
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(TrainingError) as found:
        tracker().check(torch.nn.Linear(1, 1), TrainSettings())
    assert found.value.hint == f"pip install {package.split('.')[-1]}"
