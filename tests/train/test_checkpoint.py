"""Checkpoints: whole, checked, and never half there."""

from __future__ import annotations

import pytest
import torch

from composer.train import Checkpoint, TrainingError
from composer.train.run import checkpoint as checkpoints


def at(step: int) -> Checkpoint:
    """Return a checkpoint whose numbers tell its step."""
    tensors = {"weight": torch.full((3, 5), float(step)), "half": torch.tensor([1.5], dtype=torch.bfloat16)}
    return Checkpoint(step, tensors, {"weight/step": torch.tensor(float(step))}, {"cpu": torch.get_rng_state()}, {"tokens": 7})


def names(folder):
    """Return what lies in a folder."""
    return sorted(path.name for path in folder.iterdir())


def test_a_checkpoint_comes_back_bit_for_bit(tmp_path):
    """Every tensor of every part, and the counters."""
    loaded = checkpoints.load(checkpoints.save(at(3), tmp_path))
    assert (loaded.step, loaded.counters) == (3, {"tokens": 7})
    for part in ("model", "optimizer", "random"):
        before, after = getattr(at(3), part), getattr(loaded, part)
        assert before.keys() == after.keys()
        assert all(torch.equal(before[key], after[key]) and before[key].dtype == after[key].dtype for key in before)


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "random.safetensors", "state.json"])
@pytest.mark.parametrize("place", [0, 0.5, 1])
def test_a_flipped_bit_anywhere_names_the_file_and_the_checkpoint_before(tmp_path, name, place):
    """At the beginning, in the middle and at the end."""
    checkpoints.save(at(10), tmp_path)
    path = checkpoints.save(at(20), tmp_path) / name
    content = bytearray(path.read_bytes())
    content[round(place * (len(content) - 1))] ^= 4
    path.write_bytes(content)
    with pytest.raises(TrainingError, match=f"{name} is damaged") as error:
        checkpoints.load(checkpoints.latest(tmp_path))
    assert "step-000010" in error.value.hint
    assert checkpoints.load(tmp_path / "step-000010").step == 10


def test_a_cut_or_missing_file_is_named(tmp_path):
    """As is a manifest that cannot be read."""
    folder = checkpoints.save(at(1), tmp_path)
    model = folder / "model.safetensors"
    whole = model.read_bytes()
    model.write_bytes(whole[:-1])
    with pytest.raises(TrainingError, match=r"model\.safetensors is damaged"):
        checkpoints.load(folder)
    model.unlink()
    with pytest.raises(TrainingError, match=r"model\.safetensors is missing"):
        checkpoints.load(folder)
    (folder / "manifest.json").write_text("{", encoding="utf-8")
    with pytest.raises(TrainingError, match=r"manifest.json is damaged"):
        checkpoints.load(folder)


def test_the_last_two_are_kept_and_latest_points_at_the_last(tmp_path):
    """Nothing else lies beside them."""
    for step in (5, 10, 15, 1_000_000):
        checkpoints.save(at(step), tmp_path)
    assert names(tmp_path) == ["latest", "step-000015", "step-1000000"]
    assert checkpoints.latest(tmp_path).name == "step-1000000"


@pytest.mark.parametrize("moment", ["save_file", "write_json", "replace_text"])
def test_a_save_that_dies_leaves_the_one_before(tmp_path, monkeypatch, moment):
    """Whenever it dies, the latest checkpoint is whole; the next save clears what is left."""
    checkpoints.save(at(1), tmp_path)

    def die(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(checkpoints, moment, die)
        checkpoints.save(at(2), tmp_path)
    assert checkpoints.load(checkpoints.latest(tmp_path)).step == 1
    checkpoints.save(at(3), tmp_path)
    assert checkpoints.load(checkpoints.latest(tmp_path)).step == 3
    assert not [name for name in names(tmp_path) if name.startswith(".")]


def test_going_back_gives_up_what_came_after(tmp_path):
    """A damaged later checkpoint neither stays nor pushes a good one out."""
    for step in (10, 20):
        checkpoints.save(at(step), tmp_path)
    checkpoints.save(at(15), tmp_path)  # resumed from 10
    assert names(tmp_path) == ["latest", "step-000010", "step-000015"]
    checkpoints.save(at(15), tmp_path)  # and once more to the same place
    assert checkpoints.load(checkpoints.latest(tmp_path)).step == 15


def test_a_folder_without_checkpoints_says_so(tmp_path):
    """In one line."""
    with pytest.raises(TrainingError, match="has no checkpoint yet"):
        checkpoints.latest(tmp_path / "checkpoints")
    with pytest.raises(TrainingError, match="there is no checkpoint"):
        checkpoints.load(tmp_path / "step-000007")
