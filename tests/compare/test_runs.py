"""Experiments of a second: the same batches for a seed, each run once, and after a stop the same table."""

from __future__ import annotations

import csv
import io
import json
import xml.etree.ElementTree as ET
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from statistics import fmean, stdev

import pytest
import torch

from composer.cli import main
from composer.compare import compare, read_experiment, runs
from composer.compare.curves import points_of, svg_of
from composer.train import TrainingError, open_run
from composer.train.data.objectives import NextToken
from tests.train.small import TEXT, Quiet

EXPERIMENT = """experiment: depth
data: sheep.txt
variants:
  one: {recipe: gpt_mini, set: {n_layers: 1, d_model: 16, n_heads: 2}}
  two: {recipe: gpt_mini, set: {n_layers: 2, d_model: 16, n_heads: 2, dropout: 0.1}}
seeds: [0, 4]
budget: {steps: 6}
train: {batch_size: 2, seq_len: 8, learning_rate: 0.01, warmup_steps: 1, log_every: 99, save_every: 3, validate_every: 2}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """An experiment and its text."""
    (tmp_path / "sheep.txt").write_text(TEXT, encoding="utf-8", newline="")
    path = tmp_path / "depth.yaml"
    path.write_text(EXPERIMENT, encoding="utf-8")
    return path


def losses(result):
    """Return what does not depend on the clock."""
    return [
        (each.name, each.difference, [(run.seed, run.loss, run.tokens, run.curve) for run in each.runs])
        for each in result.variants
    ]


def ran(file: Path, folder: str, **options):
    """Return the result of an experiment, and what it told."""
    told: list[str] = []
    found = compare(read_experiment(file), file.parent / folder, device="cpu", tell=told.append, show=Quiet, **options)
    return found, told


@pytest.fixture
def drawn(monkeypatch) -> list[torch.Tensor]:
    """Every batch that is drawn."""
    batches: list[torch.Tensor] = []
    draw = NextToken.draw

    def recorded(self, data, **options):
        batch = draw(self, data, **options)
        if options["batch_size"] > 1:
            batches.append(batch["tokens"])
        return batch

    monkeypatch.setattr(NextToken, "draw", recorded)
    return batches


@pytest.mark.slow
def test_runs_of_one_seed_see_the_same_batches(file, drawn):
    """In the same order; those of another seed see others."""
    ran(file, "all")
    first = [torch.stack(drawn[6 * run : 6 * run + 6]) for run in range(4)]  # one and two with seed 0, then with seed 4
    assert len(drawn) == 24 and torch.equal(first[0], first[1]) and torch.equal(first[2], first[3])
    assert not torch.equal(first[0], first[2])


@pytest.mark.slow
def test_after_a_stop_the_table_is_the_same(file, drawn, monkeypatch):
    """Without a checkpoint, behind one, and between two runs; what is finished is not trained again."""
    whole, _ = ran(file, "whole")
    started = 0
    for run, step in ((1, 2), (1, 4), (1, 6)):  # of the runs that such a call starts
        count = -1

        def dying(run=run, step=step):
            nonlocal count
            count += 1

            def after(now, mine=count):
                if mine == run and now == step:
                    raise SystemError("killed")

            return Quiet(after)

        with pytest.raises(SystemError):
            compare(read_experiment(file), file.parent / "stopped", device="cpu", tell=lambda text: None, show=dying)
        started += 1
    stopped, told = ran(file, "stopped")
    assert started == 3 and losses(stopped) == losses(whole)
    assert "finished" in told[0] and any("resuming" in each or "begins again" in each for each in told)
    drawn.clear()
    again, told = ran(file, "stopped")
    assert drawn == [] and losses(again) == losses(whole) and all("finished" in each for each in told)


@pytest.mark.slow
def test_results_are_those_of_the_runs(file, tmp_path, capsys):
    """The model's own loss, mean and spread by the formula; as table, CSV, JSON and curves."""
    result, _ = ran(file, "all")
    for variant in result.variants:
        for run in variant.runs:
            folder = tmp_path / "all" / variant.name / f"seed-{run.seed}"
            last = json.loads((folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()[-1])
            assert run.loss == last["validation_loss"] and [tokens for tokens, _ in run.curve] == [32, 64, 96]
            count = sum(parameter.numel() for parameter in open_run(folder).model.parameters())
            assert count == variant.parameters
        found = [run.loss for run in variant.runs]
        assert (variant.loss, variant.spread) == (fmean(found), stdev(found))
        assert variant.tokens_per_second == pytest.approx(192 / sum(run.seconds for run in variant.runs))
    one, two = result.variants
    assert one.difference is None and two.difference.mean == pytest.approx(two.loss - one.loss)
    table = str(result).splitlines()
    assert table[1].startswith("one") and f"{two.loss:.4f}" in table[2] and two.difference.verdict in table[2]
    lines = [*csv.DictReader(io.StringIO(result.to_csv()))]
    assert [(line["variant"], int(line["seed"]), float(line["loss"])) for line in lines] == [
        (variant.name, run.seed, run.loss) for variant in result.variants for run in variant.runs
    ]
    words = ["compare", str(tmp_path / "depth.yaml"), "--runs", str(tmp_path / "all"), "--device", "cpu"]
    assert main([*words, "--format", "json", "--figure", str(tmp_path / "depth.svg"), "-o", str(tmp_path / "depth.json")]) == 0
    assert json.loads((tmp_path / "depth.json").read_text(encoding="utf-8")) == json.loads(json.dumps(result.to_json()))
    capsys.readouterr()
    assert main(words) == 0 and capsys.readouterr().out == f"{result}\n"
    assert main([*words, "--plan"]) == 0 and f"{two.parameters:,}" in capsys.readouterr().out
    assert (tmp_path / "depth.svg").read_text(encoding="utf-8") == svg_of(result)
    assert main([*words, "--figure", "depth.png"]) == 2


@pytest.mark.slow
def test_curves_have_the_means_and_bands(file):
    """Each point where its axis says; names beside each other do not overlap."""
    result, _ = ran(file, "all")
    tree = ET.fromstring(svg_of(result))
    space = "{http://www.w3.org/2000/svg}"
    lines, bands = list(tree.iter(f"{space}polyline")), list(tree.iter(f"{space}polygon"))
    heights = defaultdict(list)
    for variant, line, band in zip(result.variants, lines, bands, strict=True):
        points = [tuple(map(float, each.split(","))) for each in line.attrib["points"].split()]
        edges = [tuple(map(float, each.split(","))) for each in band.attrib["points"].split()]
        for (_, y), (_, top), (_, bottom), mine in zip(points, edges, reversed(edges), points_of(variant), strict=False):
            heights["y"].append((mine.y, y))
            heights["y"] += [(mine.y + mine.spread, top), (mine.y - mine.spread, bottom)]
            assert [run.loss for run in variant.runs] and mine.spread == stdev(dict(run.curve)[mine.x] for run in variant.runs)
    (low, bottom), (high, top) = min(heights["y"]), max(heights["y"])
    for value, y in heights["y"]:  # one straight scale, to the tenth that is written
        assert y == pytest.approx(bottom + (value - low) / (high - low) * (top - bottom), abs=0.11)
    texts = {each.text for each in tree.iter(f"{space}text")}
    assert {"depth", "one", "two", "tokens trained on"} <= texts


@pytest.mark.slow
def test_runs_of_another_experiment_are_refused(file, tmp_path):
    """Before anything is trained: other settings, other recipes, another text; nothing of them is lost."""
    ran(file, "all")
    for old, new, what in (
        ("learning_rate: 0.01", "learning_rate: 0.02", "learning_rate: 0.01 → 0.02"),
        ("steps: 6", "steps: 7", "steps: 6 → 7"),
        ("n_layers: 2", "n_layers: 3", "its recipe"),
    ):
        file.write_text(EXPERIMENT.replace(old, new), encoding="utf-8")
        with pytest.raises(TrainingError, match=f"is a run of another experiment: what differs is {what}"):
            ran(file, "all")
    file.write_text(EXPERIMENT, encoding="utf-8")
    (tmp_path / "sheep.txt").write_text(TEXT[::-1], encoding="utf-8", newline="")
    with pytest.raises(TrainingError, match="its text"):
        ran(file, "all")


@pytest.mark.slow
def test_minutes_are_measured_once(file, tmp_path, monkeypatch):
    """For each variant; a call that continues takes the steps that the first one found."""
    assert 0 < runs.seconds_per_step(*measured(file)) < 5
    file.write_text(EXPERIMENT.replace("steps: 6", "minutes: 0.1").replace("[0, 4]", "[0]"), encoding="utf-8")
    speeds = iter([2.0, 3.0])
    monkeypatch.setattr(runs, "seconds_per_step", lambda recipe, material: next(speeds))
    result, told = ran(file, "timed")
    assert [each.steps for each in result.variants] == [3, 2] and told[0] == "one: 2 s per step, so 3 steps"
    assert losses(ran(file, "timed")[0]) == losses(result)
    assert "one seed does not tell a difference from chance" in str(result) and result.variants[1].difference is None


def measured(file: Path):
    """Return a recipe, and what its runs need."""
    material, variants = runs.prepared(read_experiment(file), file.parent / "none", device="cpu")
    return variants[0].recipe, material


def test_names_beside_curves_do_not_overlap():
    """However near the curves end, also at the bottom of the page."""
    from composer.draw.export.curves import AxisScale, CurvePoint, labels

    y = AxisScale(1, 2, 354, 66)
    curves = [[CurvePoint(9, mean)] for mean in (1.001, 1.0, 1.5, 1.501, 1.502, 2.0)]
    placed = labels(curves, y)
    heights = [place for _, place in placed]
    assert all(below - above >= 15 - 1e-9 for above, below in pairwise(heights)) and heights[-1] <= 354
    assert [index for index, _ in placed] == [5, 4, 3, 2, 0, 1]
