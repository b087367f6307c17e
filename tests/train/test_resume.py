"""A run that stops and goes on is the run that never stopped."""

from __future__ import annotations

import hashlib
import json
import signal
import threading

import pytest
import torch

import composer
from composer.train import Interrupted, RunFolder, TrainingError, resume, train
from composer.train.interrupt import stop_requests
from composer.train.run.manifest import Manifest, Seal
from composer.train.run.reader import SavedRun, read_run
from composer.train.run.trained import rebuilt

RECIPE = "composer: 1\nname: small\ntask: causal_lm\n"
TIMES = ("seconds", "tokens_per_second")


def metrics(path):
    """Return every line of a run, without what the clock decides."""
    lines = [json.loads(line) for line in RunFolder(path).metrics.read_text(encoding="utf-8").splitlines()]
    return [{key: value for key, value in line.items() if key not in TIMES} for line in lines]


def weights(path):
    """Return the latest checkpoint's tensors: the model's and the optimizer's, and the random states."""
    run = read_run(path)
    saved = run.checkpoint(run.name(None))
    return {**saved.model, **saved.optimizer, **saved.random}


@pytest.fixture
def uninterrupted(build, data, tokenizer, settings, quiet, tmp_path):
    """The run that never stopped."""
    train(build(RECIPE), tokenizer, data, settings, tmp_path / "whole", recipe=RECIPE, show=quiet())
    return tmp_path / "whole"


@pytest.fixture
def start(build, data, tokenizer, settings, quiet, tmp_path):
    """Begins a run that something happens to after a step."""

    def begin(after):
        show = quiet(after)
        with pytest.raises(KeyboardInterrupt) as stopped:
            train(build(RECIPE), tokenizer, data, settings, tmp_path / "run", recipe=RECIPE, show=show)
        return tmp_path / "run", show, stopped.value

    return begin


def same(run, whole):
    """Assert equality bit for bit: every measured number, every weight, every state."""
    assert metrics(run) == metrics(whole)
    mine, theirs = weights(run), weights(whole)
    assert mine.keys() == theirs.keys()
    assert all(torch.equal(mine[name], theirs[name]) for name in mine)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("step", [1, 7])
def test_a_run_that_is_asked_to_stop_saves_and_goes_on_to_the_same_losses(start, uninterrupted, build, quiet, number, step):
    """In warm-up or after it, between two checkpoints; dropout, data order and moments included."""
    run, show, stopped = start(lambda at: signal.raise_signal(number) if at == step else None)
    assert isinstance(stopped, Interrupted)
    assert stopped.args == (number,)
    assert f"saved step {step}; to continue: arco train --resume {run}" in show.notes
    assert len(metrics(run)) == step
    torch.randn(100)  # whatever else the process draws must not matter
    resume(run, build=build, show=quiet())
    same(run, uninterrupted)


def test_a_run_that_dies_goes_on_from_its_checkpoint_and_measures_nothing_twice(start, uninterrupted, build, quiet):
    """Steps 6 to 8 were lost with the process and are made again."""

    def die(step: int) -> None:
        if step == 8:
            raise KeyboardInterrupt

    run, show, _ = start(die)
    assert show.notes[-1] == f"stopped at once; to continue from step-000005: arco train --resume {run}"
    assert len(metrics(run)) == 7
    with RunFolder(run).metrics.open("a", encoding="utf-8") as file:
        file.write('{"step": 8, "lo')  # the line that was being written
    resume(run, build=build, show=quiet())
    same(run, uninterrupted)


def test_a_run_goes_on_from_the_checkpoint_before_a_damaged_one(uninterrupted, build, quiet):
    """It is offered, can be named, and leads to the same end."""
    checkpoint_folder = RunFolder(uninterrupted).checkpoints
    expected_metrics, expected_weights = metrics(uninterrupted), weights(uninterrupted)
    damaged = checkpoint_folder / "step-000012" / "model.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    with pytest.raises(TrainingError, match="is damaged") as error:
        resume(uninterrupted, build=build, show=quiet())
    assert "step-000010" in error.value.hint
    resume(uninterrupted, build=build, checkpoint="step-000010", show=quiet())
    assert metrics(uninterrupted) == expected_metrics
    assert all(torch.equal(tensor, expected_weights[name]) for name, tensor in weights(uninterrupted).items())


def test_a_finished_run_goes_on_only_with_more_steps(uninterrupted, build, quiet):
    """And remembers how many."""
    with pytest.raises(TrainingError, match="has already completed its 12 steps"):
        resume(uninterrupted, build=build, show=quiet())
    assert resume(uninterrupted, build=build, steps=14, show=quiet()).step == 14
    assert [line["step"] for line in metrics(uninterrupted)] == list(range(1, 15))
    with pytest.raises(TrainingError, match="has already completed its 14 steps"):
        resume(uninterrupted, build=build, show=quiet())


def test_a_run_does_not_go_on_with_another_text_recipe_or_setting(uninterrupted, build, settings, change, quiet, data, tmp_path):
    """Each is refused with what differs; what only says how long and how often may change."""
    other = tmp_path / "other.txt"
    other.write_text(data.path.read_text(encoding="utf-8").replace("7 sheep", "8 sheep"), encoding="utf-8")
    with pytest.raises(TrainingError, match=r"other.txt is not the text"):
        resume(uninterrupted, build=build, data=other, steps=20, show=quiet())
    with pytest.raises(TrainingError, match="-name: small; \\+name: large"):
        resume(uninterrupted, build=build, recipe=RECIPE.replace("small", "large"), steps=20, show=quiet())
    with pytest.raises(TrainingError, match=r"learning_rate: 0.003 → 0.5, seed: 5 → 6"):
        resume(uninterrupted, build=build, settings=change(settings, learning_rate=0.5, seed=6), show=quiet())
    assert resume(uninterrupted, build=build, settings=change(settings, steps=13, save_every=0), show=quiet()).step == 13


def test_what_the_last_bits_depend_on_is_told_where_it_differs(uninterrupted, build, quiet, monkeypatch):
    """Versions and threads; nothing is told where they are the same."""
    same = quiet()
    resume(uninterrupted, build=build, steps=13, show=same)
    assert not any("computed otherwise" in note for note in same.notes)
    monkeypatch.setattr(torch, "__version__", "2.99.0")
    changed = quiet()
    resume(uninterrupted, build=build, steps=14, show=changed)
    (told,) = [note for note in changed.notes if "computed otherwise" in note]
    assert told.startswith("step-000013 was") and told.endswith(", now 2.99.0") and "threads" not in told


def test_a_text_that_moved_is_found_again(uninterrupted, build, quiet, data, tmp_path):
    """The old place gives one line; the new one goes on."""
    moved = data.path.rename(tmp_path / "moved.txt")
    with pytest.raises(TrainingError, match="cannot read"):
        resume(uninterrupted, build=build, steps=13, show=quiet())
    assert resume(uninterrupted, build=build, steps=13, data=moved, show=quiet()).step == 13


def test_a_folder_without_a_run_is_refused(tmp_path, build, quiet):
    """It says what is not there."""
    with pytest.raises(TrainingError, match=r"is not a run folder: there is no manifest.json"):
        resume(tmp_path, build=build, show=quiet())


@pytest.mark.parametrize(
    ("number", "again"), [(signal.SIGINT, "press Ctrl-C again to quit"), (signal.SIGTERM, "another SIGTERM quits")]
)
def test_a_second_request_quits_at_once_and_handlers_are_put_back(number, again):
    """The first is noted, with how to make the second, which raises where it strikes."""
    before = signal.getsignal(number)
    told: list[str] = []
    with stop_requests(told.append) as stop:
        assert not stop.made
        signal.raise_signal(number)
        assert stop.made
        with pytest.raises(KeyboardInterrupt) as raised:
            signal.raise_signal(number)
        assert raised.value.args == (number,)
    assert told == [f"stopping after this step; {again} at once"]
    assert signal.getsignal(number) is before


def test_a_run_outside_the_main_thread_hears_no_signals():
    """It trains all the same."""
    heard: list[bool] = []

    def work() -> None:
        with stop_requests(lambda text: None) as stop:
            heard.append(stop.made)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert heard == [False]


def test_a_run_without_its_own_blocks_names_its_recipe(tmp_path):
    """And what the blocks are given by."""
    text = 'recipe: own\ninputs: {x: "float[batch, time, 8]"}\ngraph:\n  a: {type: zigzag_of_mine}\n'
    folder = RunFolder(tmp_path)
    folder.recipe.write_bytes(text.encode())
    run = SavedRun(folder, Manifest(files={"recipe.yaml": Seal(len(text), hashlib.sha256(text.encode()).hexdigest())}))
    with pytest.raises(composer.RecipeError) as error:
        rebuilt(run, lambda recipe: composer.load(recipe).compile(device="meta"))
    (found,) = error.value.diagnostics
    assert (found.code, found.span.source.name, found.span.line) == ("unknown-block", str(folder.recipe), 4)
    assert found.hint == "a block of your own needs its file: --blocks FILE.py"
