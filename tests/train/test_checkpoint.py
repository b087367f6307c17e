"""Checkpoints: whole, checked, and never half there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import safetensors.torch
import torch

from composer.train import Checkpoint, TrainingError
from composer.train.run import disk
from composer.train.run.lock import locked
from composer.train.run.reader import read_run
from composer.train.run.tensors import DTYPES, pieces, read_tensors
from composer.train.run.writer import RunWriter


def at(step: int) -> Checkpoint:
    """Return a checkpoint whose numbers tell its step."""
    tensors = {"weight": torch.full((3, 5), float(step)), "half": torch.tensor([1.5], dtype=torch.bfloat16)}
    return Checkpoint(step, tensors, {"weight/step": torch.tensor(float(step))}, {"cpu": torch.get_rng_state()}, 7, 0.5)


@pytest.fixture
def begun(tmp_path, data, tokenizer, settings):
    """Opens the writer of a new run, or of the same run again at one of its checkpoints."""

    @contextmanager
    def open_writer(name: str | None = None) -> Iterator[RunWriter]:
        path = tmp_path / "run"
        path.mkdir(exist_ok=True)
        with locked(path) as lock:
            if (path / "manifest.json").exists():
                saved = read_run(path)
                yield RunWriter.go_on(lock, saved, name=saved.name(name), settings=settings)
            else:
                yield RunWriter.begin(lock, recipe="recipe: r\n", settings=settings, tokenizer=tokenizer, data=data)

    return open_writer


def latest(folder):
    """Return the latest checkpoint of a run."""
    run = read_run(folder)
    return run.checkpoint(run.name(None))


def names(folder):
    """Return what lies in the folder of checkpoints."""
    return sorted(path.name for path in (folder / "checkpoints").iterdir())


def test_a_checkpoint_comes_back_bit_for_bit(begun, tmp_path):
    """Every tensor of every part, and the counters."""
    with begun() as writer:
        writer.save(at(3))
    loaded = latest(tmp_path / "run")
    assert (loaded.step, loaded.tokens, loaded.seconds, loaded.report) == (3, 7, 0.5, None)
    for part in ("model", "optimizer", "random"):
        before, after = getattr(at(3), part), getattr(loaded, part)
        assert before.keys() == after.keys()
        assert all(torch.equal(before[key], after[key]) and before[key].dtype == after[key].dtype for key in before)


def test_every_dtype_is_written_as_the_library_reads_it(tmp_path):
    """Aligned or not, empty, with no axes, or a view of another tensor."""
    tensors = {str(dtype): torch.arange(7).to(dtype) for dtype in DTYPES}
    tensors |= {
        "empty": torch.zeros(0, 3),
        "one": torch.tensor(2.5),
        "view": torch.arange(12.0).view(3, 4).T[1:],
        "ß": torch.ones(2),
    }
    seal = disk.write_new(tmp_path / "t.safetensors", pieces(tensors))
    assert seal.bytes == (tmp_path / "t.safetensors").stat().st_size
    for loaded in (read_tensors(tmp_path / "t.safetensors"), safetensors.torch.load_file(tmp_path / "t.safetensors")):
        assert loaded.keys() == tensors.keys()
        assert all(torch.equal(loaded[name], tensors[name]) and loaded[name].dtype == tensors[name].dtype for name in tensors)


def test_a_dtype_that_no_file_has_is_named():
    """Such as complex numbers."""
    with pytest.raises(TrainingError, match=r"`w` has the dtype torch.complex64"):
        list(pieces({"w": torch.zeros(1, dtype=torch.complex64)}))


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "random.safetensors", "state.json"])
@pytest.mark.parametrize("place", [0, 0.5, 1])
def test_a_flipped_bit_anywhere_names_the_file_and_the_checkpoint_before(begun, tmp_path, name, place):
    """At the beginning, in the middle and at the end."""
    with begun() as writer:
        writer.save(at(10))
        writer.save(at(20))
    path = tmp_path / "run" / "checkpoints" / "step-000020" / name
    content = bytearray(path.read_bytes())
    content[round(place * (len(content) - 1))] ^= 4
    path.write_bytes(content)
    with pytest.raises(TrainingError, match=f"{name} is damaged") as error:
        latest(tmp_path / "run")
    assert "step-000010" in error.value.hint
    assert read_run(tmp_path / "run").checkpoint("step-000010").step == 10


def test_a_cut_or_missing_file_is_named(begun, tmp_path):
    """With what to do."""
    with begun() as writer:
        writer.save(at(1))
    model = tmp_path / "run" / "checkpoints" / "step-000001" / "model.safetensors"
    model.write_bytes(model.read_bytes()[:-1])
    with pytest.raises(TrainingError, match=r"model\.safetensors is damaged") as error:
        latest(tmp_path / "run")
    assert "restore it" in error.value.hint
    model.unlink()
    with pytest.raises(TrainingError, match=r"model\.safetensors is missing"):
        latest(tmp_path / "run")


def test_the_last_two_are_kept_and_the_last_is_the_latest(begun, tmp_path):
    """Nothing else lies beside them."""
    with begun() as writer:
        for step in (5, 10, 15, 1_000_000):
            writer.save(at(step))
    assert names(tmp_path / "run") == ["step-000015", "step-1000000"]
    assert latest(tmp_path / "run").step == 1_000_000


@pytest.mark.parametrize("moment", ["make_folder", "write_new", "flush_folder", "rename", "replace", "remove"])
def test_a_save_that_dies_leaves_the_one_before(begun, tmp_path, monkeypatch, moment):
    """Whenever it dies, the latest checkpoint is whole; the next save clears what is left."""

    def die(*arguments: object) -> None:
        raise KeyboardInterrupt

    with begun() as writer:
        writer.save(at(1))
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(disk, moment, die)
            writer.save(at(2))
    assert latest(tmp_path / "run").step == 1
    with begun() as writer:
        writer.save(at(3))
    assert latest(tmp_path / "run").step == 3
    assert names(tmp_path / "run") == ["step-000001", "step-000003"]


def test_going_back_gives_up_what_came_after(begun, tmp_path):
    """A damaged later checkpoint neither stays nor pushes a good one out."""
    with begun() as writer:
        for step in (10, 20):
            writer.save(at(step))
    with begun("step-000010") as writer:
        assert names(tmp_path / "run") == ["step-000010"]
        writer.save(at(15))
    assert names(tmp_path / "run") == ["step-000010", "step-000015"]
    with begun("step-000010") as writer:
        writer.save(at(15))  # once more to the same place
    assert latest(tmp_path / "run").step == 15


def test_a_run_without_checkpoints_says_so(begun, tmp_path):
    """In one line; one that it does not have is refused with those that it has."""
    with begun() as writer:
        with pytest.raises(TrainingError, match="has no checkpoint yet"):
            latest(tmp_path / "run")
        writer.save(at(4))
    with pytest.raises(TrainingError, match="there is no checkpoint step-000007") as error:
        read_run(tmp_path / "run").name("step-000007")
    assert error.value.hint == "its checkpoints are step-000004"
    with pytest.raises(TrainingError, match=r"there is no checkpoint \.\./\.\./elsewhere"):
        read_run(tmp_path / "run").name("../../elsewhere")
