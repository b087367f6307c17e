"""The report of a run: as text, and as a page."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from composer.cli import main
from composer.report.charts import charts_of, evenly
from composer.report.page import Portrait, Sample, report_page, report_text
from composer.report.record import RunRecord, read_record
from composer.train import RunFolder, TrainingError, TrainSettings
from tests.evaluate.conftest import run_of

__all__ = ["run_of"]  # a fixture

BAD = "<script>alert(1)</script>\x1b[31m\u202e"
MODEL = Portrait(BAD, f"Of {BAD}.", "causal_lm", 1234, '<svg xmlns="http://www.w3.org/2000/svg"/>')


def record(*lines: dict[str, float], path: str = "runs/a", steps: int = 4) -> RunRecord:
    """A run with some lines of metrics."""
    return RunRecord(Path(path), f"recipe: {BAD}", TrainSettings(steps=steps), (BAD,), lines)


class Seen(HTMLParser):
    """The tags of a page, its text and its pictures."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""
        self.pictures: list[tuple[str, str]] = []
        self.links: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        values = dict(attributes)
        if tag == "img":
            kind, _, data = values["src"].partition(",")
            assert kind == "data:image/svg+xml;base64"
            self.pictures.append((values["alt"], base64.b64decode(data).decode()))
        self.links += [value for name, value in attributes if name in ("href", "src") and tag != "img"]

    def handle_data(self, data):
        self.text += data


def test_a_page_holds_nothing_of_a_run_as_markup_and_loads_nothing():
    """Names, texts of the model and the recipe: all of them are text, and what is not visible is written out."""
    page = report_page(record({"step": 4, "loss": 2.0}, path=BAD), MODEL, [Sample(BAD, f"{BAD}\n", BAD)])
    seen = Seen(page)
    assert "script" not in seen.tags and not seen.links and "\x1b" not in page and "\u202e" not in page
    assert seen.text.count("<script>alert(1)</script>\\x1b[31m\\u202e") >= 8
    assert "default-src 'none'" in page
    for _, picture in seen.pictures:
        ElementTree.fromstring(picture)


def test_a_page_shows_what_was_measured():
    """A chart for each kind of number, with what it ends at; settings that were chosen are bold."""
    lines = [
        {
            "step": step, "loss": 4 - step / 2, "loss/causal_lm": 3.0, "loss/balance": 0.5, "gradient_norm": 0.1 * step,
            "gradient_norm/layers.0": 0.01, "gradient_norm/head": 1.0, "activation/head": 2.0, "load/moe/0": 0.25,
            "load/moe/1": 0.75, "tokens_per_second": 100.0, "learning_rate": 0.001, "mfu": 0.4, "memory": 3 * 2**20,
            "tokens": 8 * step, "seconds": 61.0, **({"validation_loss": 2.5} if step == 2 else {}),
        }
        for step in (1, 2, 3)
    ]  # fmt: skip
    seen = Seen(report_page(record(*lines), MODEL))
    described = [text for text, _ in seen.pictures]
    assert described[0] == "Loss by step; at the end training 2.5, validation 2.5"
    assert "Gradient norm by layer by step; at the end layers.0 0.01, head 1" in described
    assert "Load of experts, moe by step; at the end expert 0 25%, expert 1 75%" in described
    assert {each.partition(" by step")[0] for each in described[:-1]} == {
        "Loss", "Terms of the loss", "Gradient norm", "Gradient norm by layer", "Activations by layer", "Load of experts, moe",
        "Learning rate", "Speed", "Model FLOPs utilization", "Memory",
    }  # fmt: skip
    assert "3 of 4, not finished" in seen.text and "24 targets in 1:01" in seen.text
    assert "2.5000 at step 2, the best of 1" in seen.text
    page = report_page(record(*lines), MODEL)
    assert "<tr><th>steps</th><td><b>4</b></td></tr>" in page and "<tr><th>batch_size</th><td>32</td></tr>" in page


def test_of_many_layers_and_experts_some_are_shown():
    """Evenly, with the first and the last; of many experts the busiest and the idlest."""
    many = {f"gradient_norm/layers.{layer}": 1.0 for layer in range(24)} | {f"load/moe/{each}": each / 100 for each in range(20)}
    titles = {chart.title: chart for chart in charts_of(record({"step": 1, "loss": 2.0, **many}), unit="loss")}
    shown = [name for name, _ in titles["Gradient norm by layer, 8 of 24"].curves]
    assert (len(shown), shown[0], shown[-1]) == (8, "layers.0", "layers.23")
    ends = {name: curve[-1].y for name, curve in titles["Load of experts, moe"].curves}
    assert ends == {"busiest": 0.19, "mean": pytest.approx(0.095), "idlest": 0.0}
    assert evenly(["a", "b", "c"], 3) == ["a", "b", "c"]


def test_the_text_has_the_facts_and_the_curve():
    """With a cross at each validation."""
    lines = [{"step": step, "loss": 4.0 - step, "tokens": step, "seconds": 1.0} for step in (1, 2, 3)]
    lines[1] |= {"validation_loss": 2.5}
    text = report_text(record(*lines), replace(MODEL, name="small"), width=60)
    assert "model            small, 1,234 parameters" in text and "training loss    1.0000 at step 3" in text
    assert "3.000 ┤" in text and "1.000 ┤" in text and text.count("×") == 2


@pytest.mark.slow
def test_a_run_is_read_beyond_its_last_checkpoint(run_of):
    """As far as lines are complete; what a checkpoint has sealed must be whole."""
    run = run_of(settings=TrainSettings(steps=3, batch_size=3, seq_len=12, log_every=1, warmup_steps=1))
    metrics = RunFolder(run).metrics
    assert [line["step"] for line in read_record(run).lines] == [1, 2, 3]
    whole = metrics.read_bytes()
    metrics.write_bytes(whole + json.dumps({"step": 4, "loss": 1.0}).encode() + b'\n{"step": 5, "lo')
    assert [line["step"] for line in read_record(run).lines] == [1, 2, 3, 4]
    metrics.write_bytes(whole + b'{"step": "4"}\n')
    with pytest.raises(TrainingError, match=r"metrics\.jsonl"):
        read_record(run)
    metrics.write_bytes(whole.replace(b"1", b"2", 1))
    with pytest.raises(TrainingError, match="damaged"):
        read_record(run)


@pytest.mark.slow
def test_the_command_prints_text_and_writes_a_page(run_of, tmp_path, capsys):
    """With samples that begin with the prompt, the same each time; a page is not written for a name that is none."""
    run = run_of()
    assert main(["report", str(run)]) == 0
    assert "steps            3 of 3, finished" in capsys.readouterr().out
    page = tmp_path / "report.html"
    words = ["report", str(run), "-o", str(page), "--samples", "2", "--prompt", "7 sheep", "--device", "cpu"]
    assert main(words) == 0
    first = page.read_text(encoding="utf-8")
    assert len(re.findall("<b>7 sheep</b>", first)) == 2 and "random seed 1" in first
    pictures = Seen(first).pictures
    assert pictures[-1][0] == "the graph of gpt2" and "embedding" in pictures[-1][1].lower()
    assert main(words) == 0 and page.read_text(encoding="utf-8") == first
    assert main(["report", str(run), "-o", "report.pdf"]) == 2
    assert "does not end in .html" in capsys.readouterr().err
