"""What follows a run from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Arco
from tests.cli.test_run import QUICK, SMALL, TEXT


def test_several_processes_of_a_launcher_do_not_race_for_a_folder(arco: Arco, monkeypatch) -> None:
    """Each is told so before anything is read; a launcher with one process is as good as none."""
    monkeypatch.setenv("WORLD_SIZE", "2")
    done = arco("train", "gpt_mini", "--data", "nowhere.txt")
    assert done.code == 2 and done.err.startswith("arco train: a launcher started 2 processes")
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert "launcher" not in arco("train", "gpt_mini", "--data", "nowhere.txt").err


@pytest.mark.slow
def test_a_run_is_watched_logged_and_resumed(arco: Arco, tmp_path: Path) -> None:
    """What is measured is in the metrics and in TensorBoard's folder; a model without experts has no load."""
    pytest.importorskip("tensorboard")
    text = tmp_path / "sheep.txt"
    text.write_text(TEXT, encoding="utf-8", newline="\n")
    words = ["train", "gpt_mini", *SMALL, "--data", text, *QUICK, "--run", "run"]
    refused = arco(*words, "--watch", "experts")
    assert refused.code == 2 and refused.err.startswith("arco: the model has no experts")
    assert arco(*words, "--peak-flops", "0").err.startswith("arco: the peak of the device is 0")
    assert not Path("run").exists()
    watched = ["--watch", "gradients", "--watch", "activations", "--peak-flops", "1e9", "--log", "tensorboard"]
    done = arco(*words, *watched)
    assert (done.code, done.err) == (0, "") and "  MFU " in done.out
    line = json.loads(Path("run/metrics.jsonl").read_text(encoding="utf-8").splitlines()[-1])
    assert {"gradient_norm/layers.0", "activation/layers.0", "mfu", "validation_loss"} <= {*line}
    assert len([*Path("run/tensorboard").iterdir()]) == 1
    done = arco("train", "--resume", "run", "--steps", 4, "--device", "cpu", "--log", "tensorboard")
    assert (done.code, done.err) == (0, "") and len([*Path("run/tensorboard").iterdir()]) == 2
