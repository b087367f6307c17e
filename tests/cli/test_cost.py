"""`arco cost` and `arco bench`."""

from __future__ import annotations

import csv
import io
import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from composer.cli.measures.bench import lines
from composer.estimate import DEVICES
from tests.cli.conftest import Arco

TINY = ("--set", "n_layers=1", "--set", "d_model=16", "--set", "n_heads=2", "--set", "vocab=31", "--set", "context=12")


def test_one_model_is_told_whole(arco: Arco) -> None:
    """Memory by its parts, time with what it is spent on, and the largest batch."""
    done = arco("cost", "gpt2", *TINY, "--device", "h100", "--budget", "1MB")
    assert done.code == 0
    for part in ("weights", "optimizer", "activations", "peak", "largest batch", "within 977 KiB", "launches 100%", "session"):
        assert part in done.out


def test_several_models_and_lengths_are_a_table(arco: Arco, tmp_path: Path) -> None:
    """As text, as CSV and as JSON with equal numbers, and as a figure with a curve for each model."""
    command = ("cost", "gpt2", "opt", *TINY[:-2], "--set", "context=16", "--at", "time=4,8", "--device", "h200")
    rows = list(csv.DictReader(io.StringIO(arco(*command, "--format", "csv").out)))
    assert [(row["model"], row["time"]) for row in rows] == [("gpt2", "4"), ("gpt2", "8"), ("opt", "4"), ("opt", "8")]
    found = json.loads(arco(*command, "--format", "json").out)
    assert [str(each["training"]["peak"]) for each in found] == [row["peak"] for row in rows]
    done = arco(*command, "--figure", "cost.svg")
    assert done.out.count("launches") == 4 and "wrote cost.svg" in done.out
    drawn = ElementTree.parse(tmp_path / "cost.svg").getroot()
    assert len(drawn.findall(".//{*}polyline")) == 4  # memory and time of two models


def test_runs_and_files_of_devices_are_read(arco: Arco, tmp_path: Path) -> None:
    """A recipe of a user's own, on a device of a user's own."""
    (tmp_path / "card.json").write_text(
        json.dumps({"name": "my card", "matmul": {"fp32": 1e12}, "bandwidth": 1e11, "launch": 0, "measured": True}), "utf-8"
    )
    (tmp_path / "own.yaml").write_text(arco("expand", "gpt2", *TINY).out, encoding="utf-8")
    done = arco("cost", "own.yaml", "--device", "card.json")
    assert done.code == 0 and "on my card" in done.out and "≥" not in done.out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--at", "time=0"), "at least 1"),
        (("--at", "time=2", "--at", "time=3"), "given twice"),
        (("--at", "width=2"), "no axis called `width`"),
        (("--budget", "eighty"), "no memory"),
        (("--device", "h10"), "did you mean h100"),
        (("--figure", "cost.png"), ".svg"),
        (("--figure", "cost.svg"), "several lengths"),
        (("--recompute", "layer"), "no module"),
    ],
)
def test_mistakes_are_refused(arco: Arco, options: tuple[str, ...], said: str) -> None:
    """Before anything is written."""
    done = arco("cost", "gpt2", *TINY, *options)
    assert done.code == 2 and said in done.err and not done.out


def test_rates_are_told_by_their_range() -> None:
    """In units that people use."""
    assert "989,000 GFLOPS" in lines(DEVICES["h100"]) and "3,350 GB/s" in lines(DEVICES["h100"])
