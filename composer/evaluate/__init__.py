"""Measuring: how well a trained model predicts text, and what it is compared with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from composer.lazy_names import lazy_names

if TYPE_CHECKING:
    from composer.evaluate.answers import AnswerScore as AnswerScore
    from composer.evaluate.answers import evaluate_answers as evaluate_answers
    from composer.evaluate.calibration import Calibration as Calibration
    from composer.evaluate.calibration import Reliability as Reliability
    from composer.evaluate.evaluation import Evaluation as Evaluation
    from composer.evaluate.evaluation import evaluate as evaluate
    from composer.evaluate.examples import ClassScores as ClassScores
    from composer.evaluate.examples import TableEvaluation as TableEvaluation
    from composer.evaluate.forecasts import ForecastError as ForecastError
    from composer.evaluate.forecasts import Forecasts as Forecasts
    from composer.evaluate.needle import NeedleEvaluation as NeedleEvaluation
    from composer.evaluate.needle import NeedleScore as NeedleScore
    from composer.evaluate.needle import evaluate_needle as evaluate_needle
    from composer.evaluate.published import evaluate_published as evaluate_published
    from composer.evaluate.retrieval import Retrieval as Retrieval
    from composer.evaluate.synthetic import SyntheticExample as SyntheticExample
    from composer.evaluate.synthetic import synthetic_text as synthetic_text
    from composer.evaluate.transcripts import ErrorRates as ErrorRates
    from composer.evaluate.transcripts import edit_distance as edit_distance
    from composer.evaluate.transcripts import error_rates as error_rates
    from composer.evaluate.transcripts import transcribe as transcribe
    from composer.evaluate.translations import Translations as Translations

_HOME = {
    "AnswerScore": "answers",
    "Calibration": "calibration",
    "ClassScores": "examples",
    "ErrorRates": "transcripts",
    "Evaluation": "evaluation",
    "ForecastError": "forecasts",
    "Forecasts": "forecasts",
    "NeedleEvaluation": "needle",
    "NeedleScore": "needle",
    "Reliability": "calibration",
    "Retrieval": "retrieval",
    "SyntheticExample": "synthetic",
    "TableEvaluation": "examples",
    "Translations": "translations",
    "edit_distance": "transcripts",
    "error_rates": "transcripts",
    "evaluate": "evaluation",
    "evaluate_answers": "answers",
    "evaluate_needle": "needle",
    "evaluate_published": "published",
    "synthetic_text": "synthetic",
    "transcribe": "transcripts",
}
__all__ = [
    "AnswerScore",
    "Calibration",
    "ClassScores",
    "ErrorRates",
    "Evaluation",
    "ForecastError",
    "Forecasts",
    "NeedleEvaluation",
    "NeedleScore",
    "Reliability",
    "Retrieval",
    "SyntheticExample",
    "TableEvaluation",
    "Translations",
    "edit_distance",
    "error_rates",
    "evaluate",
    "evaluate_answers",
    "evaluate_needle",
    "evaluate_published",
    "synthetic_text",
    "transcribe",
]

__getattr__, __dir__ = lazy_names(__name__, _HOME)
