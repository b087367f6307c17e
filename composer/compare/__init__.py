"""Comparing models: variants trained under one budget with several seeds. Names are imported on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from composer.lazy_names import lazy_names

if TYPE_CHECKING:
    from composer.compare.experiment import Budget as Budget
    from composer.compare.experiment import Experiment as Experiment
    from composer.compare.experiment import Variant as Variant
    from composer.compare.experiment import WidthMatch as WidthMatch
    from composer.compare.experiment import read_experiment as read_experiment
    from composer.compare.planning import PlannedVariant as PlannedVariant
    from composer.compare.planning import plan as plan
    from composer.compare.results import ExperimentResult as ExperimentResult
    from composer.compare.results import RunResult as RunResult
    from composer.compare.results import VariantResult as VariantResult
    from composer.compare.runs import compare as compare
    from composer.compare.statistics import PairedDifference as PairedDifference
    from composer.compare.statistics import paired_difference as paired_difference

_HOME = {
    "Budget": "experiment",
    "Experiment": "experiment",
    "ExperimentResult": "results",
    "PairedDifference": "statistics",
    "PlannedVariant": "planning",
    "RunResult": "results",
    "Variant": "experiment",
    "VariantResult": "results",
    "WidthMatch": "experiment",
    "compare": "runs",
    "paired_difference": "statistics",
    "plan": "planning",
    "read_experiment": "experiment",
}
__all__ = [
    "Budget",
    "Experiment",
    "ExperimentResult",
    "PairedDifference",
    "PlannedVariant",
    "RunResult",
    "Variant",
    "VariantResult",
    "WidthMatch",
    "compare",
    "paired_difference",
    "plan",
    "read_experiment",
]

__getattr__, __dir__ = lazy_names(__name__, _HOME)
