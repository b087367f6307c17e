"""A run as one HTML page, which loads nothing and has no script, and as lines of text."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain

from composer.cost.units import in_bytes
from composer.draw.export.curves import Chart, svg_of_charts
from composer.draw.export.terminal import terminal_chart
from composer.draw.style.palette import DARK, LIGHT, Palette
from composer.language.wording import counted
from composer.printable import markup
from composer.report.charts import charts_of
from composer.report.record import RunRecord
from composer.train.following.loss_curve import smoothed
from composer.train.progress import clock
from composer.train.settings import TrainSettings


@dataclass(frozen=True)
class Sample:
    """A text that the model has written."""

    how: str
    """How it was chosen, such as the random seed."""
    prompt: str
    """The beginning of the text, which the model was given."""
    text: str
    """What the model wrote after it."""


@dataclass(frozen=True)
class Portrait:
    """The model of a run."""

    name: str
    doc: str
    task: str | None
    parameters: int
    svg: str


def report_page(record: RunRecord, model: Portrait, samples: Sequence[Sample] = ()) -> str:
    """Return the text of the page."""
    return "\n".join(_page(record, model, samples)) + "\n"


def report_text(record: RunRecord, model: Portrait, *, width: int) -> str:
    """Return the facts of a run and the curve of its loss as lines of text."""
    facts = facts_of(record, model)
    margin = max(map(len, facts))
    lines = [f"{name:<{margin}}  {value}" for name, value in facts.items()]
    training = [(point.x, point.y) for point in smoothed(record.series("loss"))]
    curve = terminal_chart(training, width=width, height=10, marks=record.series("validation_loss"))
    return "\n".join([*lines, "", "loss by step, smoothed; × validation", *curve])


def facts_of(record: RunRecord, model: Portrait) -> dict[str, str]:
    """Return the facts at the head of a report, by name."""
    last = record.lines[-1]
    step, seconds = int(last["step"]), float(last.get("seconds", 0))
    state = "finished" if step >= record.settings.steps else "not finished"
    facts = {
        "run": str(record.path),
        "model": f"{model.name}, {model.parameters:,} parameters",
        "task": model.task or "none",
        "data": ", ".join(record.data),
        "steps": f"{step:,} of {record.settings.steps:,}, {state}",
    }
    if "tokens" in last:
        facts["trained on"] = f"{int(last['tokens']):,} targets in {clock(seconds)}"
    if (loss := record.last("loss")) is not None:
        facts["training loss"] = f"{loss:.4f} at step {step:,}"
    if (best := record.best_validation()) is not None:
        facts["validation loss"] = f"{best[1]:.4f} at step {int(best[0]):,}, the best of {len(record.series('validation_loss'))}"
    if (accuracy := record.last("validation_accuracy")) is not None:
        facts["accuracy"] = f"{accuracy:.1%} in the last validation"
    if (used := record.last("mfu")) is not None:
        facts["MFU"] = f"{used:.1%} = 3 · FLOPs of the forward passes of a step / (seconds per step · peak)"
    if (memory := record.last("memory")) is not None:
        facts["memory"] = f"{in_bytes(int(memory))} at most"
    return facts


def _page(record: RunRecord, model: Portrait, samples: Sequence[Sample]) -> Iterator[str]:
    title = markup(f"{record.path.name or record.path} – {model.name}")
    yield "<!doctype html>"
    yield '<html lang="en"><head><meta charset="utf-8">'
    yield "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; style-src 'unsafe-inline'\">"
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{title}</title><style>{_style()}</style></head><body><main>"
    yield f"<h1>{title}</h1>"
    if model.doc:
        yield f"<p>{markup(' '.join(model.doc.split()))}</p>"
    yield _table(facts_of(record, model))
    yield "<h2>Curves</h2><div class=charts>"
    unit = "nats per token" if model.task in (None, "causal_lm", "masked_lm", "seq2seq_lm", "denoising") else "loss"
    for chart in charts_of(record, unit=unit):
        yield _figure(svg_of_charts([chart], chart.title), _described(chart))
    yield "</div>"
    if samples:
        yield "<h2>Samples</h2>"
    for sample in samples:
        shown = (
            f"<b>{_text(sample.prompt.lstrip())}</b>{_text(sample.text.lstrip() if not sample.prompt.strip() else sample.text)}"
        )
        yield f"<figure><figcaption>{markup(sample.how)}</figcaption><pre>{shown}</pre></figure>"
    yield f"<h2>Model</h2>{_figure(model.svg, f'the graph of {model.name}', kind='model')}"
    yield "<h2>Settings</h2>"
    usual = asdict(TrainSettings())
    given = asdict(record.settings)
    yield _table(
        {name: _value(each) for name, each in given.items()}, bold={name for name in given if given[name] != usual[name]}
    )
    yield "<p>Bold where it is not the default.</p>"
    yield f"<details><summary>Recipe</summary><pre>{_text(record.recipe)}</pre></details>"
    yield f"<p>{counted(len(record.lines), 'line')} of metrics, from {markup(str(record.path / 'metrics.jsonl'))}.</p>"
    yield "</main></body></html>"


def _described(chart: Chart) -> str:
    """Return what a chart shows, for those who do not see it."""
    ends = ", ".join(f"{name} {chart.y_text(curve[-1].y)}" for name, curve in chart.curves)
    return f"{chart.title} by step; at the end {ends}"


def _figure(svg: str, description: str, *, kind: str = "chart") -> str:
    """Return a picture that cannot run or load anything, nor share styles with the page: an image with its data."""
    data = b64encode(svg.encode()).decode("ascii")
    return f'<img class="{kind}" alt="{markup(description)}" src="data:image/svg+xml;base64,{data}">'


def _table(rows: Mapping[str, str], *, bold: Container[str] = ()) -> str:
    cells = (
        f"<tr><th>{markup(name)}</th><td>{f'<b>{markup(value)}</b>' if name in bold else markup(value)}</td></tr>"
        for name, value in rows.items()
    )
    return "".join(chain(["<table>"], cells, ["</table>"]))


def _value(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _text(text: str) -> str:
    """Return a text of several lines as markup."""
    return markup(text, keep="\n\t")


def _style() -> str:
    rules = (
        "body{font:16px/1.5 Helvetica,Arial,sans-serif;margin:0;color:var(--title);background:var(--paper)}"
        "main{max-width:1340px;margin:auto;padding:1rem 1.5rem 3rem}h1{font-size:1.5rem}h2{font-size:1.2rem;margin-top:2rem}"
        "table{border-collapse:collapse}th,td{text-align:left;vertical-align:top;padding:.15rem 1rem .15rem 0;"
        "overflow-wrap:anywhere}th{font-weight:400;color:var(--detail);white-space:nowrap}"
        ".charts{display:flex;flex-wrap:wrap;gap:1rem}.chart{width:640px;max-width:100%}.model{max-width:100%}"
        "figure{margin:0 0 1rem}figcaption{color:var(--detail)}"
        "pre{white-space:pre-wrap;overflow-wrap:anywhere;border:1px solid var(--frame);padding:.75rem;margin:.25rem 0}"
    )
    dark = f"@media(prefers-color-scheme:dark){{:root{{{_colors(DARK)}}}}}"
    return f":root{{color-scheme:light dark;{_colors(LIGHT)}}}{dark}{rules}"


def _colors(palette: Palette) -> str:
    return f"--title:{palette.title};--detail:{palette.detail};--paper:{palette.paper};--frame:{palette.frame.stroke}"
