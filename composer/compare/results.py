"""The results of an experiment: a row for each variant, as a table, CSV and JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, stdev

from composer.compare.statistics import CONFIDENCE, PairedDifference, paired_difference
from composer.cost.units import in_flops, short


@dataclass(frozen=True)
class RunResult:
    """What a run of a variant with a seed came to."""

    seed: int
    loss: float
    """Validation loss at the end, on the whole held-out text, in nats per predicted token."""
    tokens: int
    """Targets that were trained on."""
    seconds: float
    """Time spent in training steps."""
    curve: tuple[tuple[int, float], ...] = ()
    """The targets so far and the loss of each validation."""


@dataclass(frozen=True)
class VariantResult:
    """The runs of a variant, and how they differ from those of the first variant with the same seeds."""

    name: str
    parameters: int
    steps: int
    flops: int
    """FLOPs of a whole run: three times those of its forward passes."""
    width: int | None
    """The param that was solved for, if it was."""
    runs: tuple[RunResult, ...]
    difference: PairedDifference | None = None
    """None for the first variant, and for fewer than two seeds."""

    @property
    def loss(self) -> float:
        """The mean of the losses."""
        return fmean(run.loss for run in self.runs)

    @property
    def spread(self) -> float | None:
        """The standard deviation of the losses; None for one seed."""
        return stdev(run.loss for run in self.runs) if len(self.runs) > 1 else None

    @property
    def tokens_per_second(self) -> float:
        """Targets of all runs by the time of their steps."""
        return sum(run.tokens for run in self.runs) / max(sum(run.seconds for run in self.runs), 1e-9)


@dataclass(frozen=True)
class ExperimentResult:
    """What an experiment came to, the first variant first; `str` is the table."""

    name: str
    doc: str
    width: str | None
    """The name of the param that was solved for."""
    variants: tuple[VariantResult, ...]

    def to_json(self) -> dict[str, object]:
        """Return all numbers, those of each run too."""
        return {
            "experiment": self.name,
            "doc": self.doc,
            "confidence": CONFIDENCE,
            "variants": [self._json(variant) for variant in self.variants],
        }

    def _json(self, variant: VariantResult) -> dict[str, object]:
        difference = None if variant.difference is None else asdict(variant.difference) | {"verdict": variant.difference.verdict}
        return {
            "name": variant.name,
            "parameters": variant.parameters,
            **({} if self.width is None or variant.width is None else {self.width: variant.width}),
            "steps": variant.steps,
            "flops": variant.flops,
            "tokens_per_second": variant.tokens_per_second,
            "loss": variant.loss,
            "spread": variant.spread,
            "difference": difference,
            "runs": [asdict(run) | {"curve": [list(point) for point in run.curve]} for run in variant.runs],
        }

    def to_csv(self) -> str:
        """Return a line for each run, under a line of names."""
        lines = io.StringIO()
        table = csv.writer(lines, lineterminator="\n")
        table.writerow(["variant", "seed", "loss", "steps", "tokens", "seconds", "parameters", "flops"])
        for each in self.variants:
            for run in each.runs:
                table.writerow([each.name, run.seed, run.loss, each.steps, run.tokens, run.seconds, each.parameters, each.flops])
        return lines.getvalue()

    def __str__(self) -> str:
        first, seeds = self.variants[0], len(self.variants[0].runs)
        head = ["variant", "loss", "spread", f"against {first.name}", "", "parameters", "FLOPs", "tokens/s"]
        rows = [head, *(self._row(variant) for variant in self.variants)]
        if self.width is not None:
            for row, extra in zip(rows, [self.width, *(_width(each) for each in self.variants)], strict=True):
                row.insert(5, extra)
        numbers = frozenset({1, 2, *range(5, len(rows[0]))})
        notes = [
            f"loss: nats per token on the held-out text, mean over {seeds} seed{'s' * (seeds != 1)}; "
            "spread: their standard deviation",
        ]
        if seeds > 1:
            notes.append(
                f"against: mean difference of runs with the same seed, and its {CONFIDENCE:.0%} confidence interval (Student's t)"
            )
        else:
            notes.append("one seed does not tell a difference from chance")
        return "\n".join([*aligned(rows, numbers), "", *notes])

    def _row(self, variant: VariantResult) -> list[str]:
        spread, difference = variant.spread, variant.difference
        change = "" if difference is None else f"{difference.mean:+.4f} [{difference.low:+.4f}, {difference.high:+.4f}]"
        return [
            variant.name,
            f"{variant.loss:.4f}",
            "" if spread is None else f"{spread:.4f}",
            change,
            "" if difference is None else difference.verdict,
            short(variant.parameters),
            in_flops(variant.flops).removesuffix("FLOPs").strip(),
            f"{variant.tokens_per_second:,.0f}".replace(",", " "),
        ]


def compared(variants: Sequence[VariantResult], *, name: str, doc: str = "", width: str | None = None) -> ExperimentResult:
    """Return results with the differences of each from the first, seed by seed."""
    first, *others = variants
    reference = [run.loss for run in first.runs]
    assert all([run.seed for run in each.runs] == [run.seed for run in first.runs] for each in others)
    rows = [
        VariantResult(
            each.name, each.parameters, each.steps, each.flops, each.width, each.runs,
            paired_difference([run.loss for run in each.runs], reference),
        )
        for each in others
    ]  # fmt: skip
    return ExperimentResult(name, doc, width, (first, *rows))


def _width(variant: VariantResult) -> str:
    return "" if variant.width is None else str(variant.width)


def aligned(rows: Sequence[Sequence[str]], right: frozenset[int]) -> list[str]:
    """Return the rows of a table as lines, with the columns of numbers on the right; columns without anything are left out."""
    kept = [place for place in range(len(rows[0])) if any(row[place] for row in rows[1:])]
    widths = {place: max(len(row[place]) for row in rows) for place in kept}
    return [
        "  ".join(
            row[place].rjust(widths[place]) if place in right else row[place].ljust(widths[place]) for place in kept
        ).rstrip()
        for row in rows
    ]
