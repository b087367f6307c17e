"""Settings: ranges and files."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path

import pytest

from composer.train import TrainingError, TrainSettings
from composer.train.settings import settings_from_json

PATH = Path("run", "settings.json")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("steps", 0), ("batch_size", 0), ("seq_len", -1), ("learning_rate", 0.0), ("learning_rate", float("nan")),
        ("learning_rate", float("inf")), ("beta2", 1.0), ("min_lr_ratio", 1.5), ("max_grad_norm", -1.0),
        ("weight_decay", float("nan")), ("warmup_steps", -1), ("label_smoothing", 1.0), ("eps", 0.0), ("save_every", -5),
    ],
)  # fmt: skip
def test_a_setting_out_of_range_is_named(name, value):
    """The message says which, and what it is."""
    with pytest.raises(TrainingError, match=f"`{name}` is {value}"):
        TrainSettings(**{name: value})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"optimizer": "sgd", "beta1": 0.8}, "`beta1` is 0.8, which sgd does not read; `optimizer` must be adamw or adam or"),
        ({"momentum": 0.9}, "`momentum` is 0.9, which adamw does not read; `optimizer` must be sgd or muon"),
        ({"optimizer": "adafactor", "eps": 1e-6}, "`eps` is 1e-06, which adafactor does not read"),
        ({"decay_ratio": 0.3}, "`decay_ratio` is 0.3, which cosine does not read; `schedule` must be wsd"),
        ({"schedule": "constant", "min_lr_ratio": 0.2}, "`min_lr_ratio` is 0.2, which constant does not read"),
        ({"schedule": "step"}, "`schedule` is step; it must be cosine or linear or constant or inverse_sqrt or wsd"),
        ({"optimizer": "sgd", "momentum": 1.0}, "`momentum` is 1.0; it must be at least 0 and below 1"),
        ({"schedule": "wsd", "decay_ratio": 1.5}, "`decay_ratio` is 1.5; it must be a fraction of the steps"),
        ({"optimizer": "sgd", "momentum": "much"}, "`momentum` is 'much'; it must be a number"),
    ],
)  # fmt: skip
def test_a_setting_that_nothing_reads_is_refused(given, message):
    """It would be given for nothing."""
    with pytest.raises(TrainingError, match=re.escape(message)):
        TrainSettings(**given)


@pytest.mark.parametrize("value", ["3", None, True, 2.0, [3], 2**63], ids=repr)
def test_a_setting_of_another_type_is_named(value):
    """Such as one of a file that somebody has edited."""
    with pytest.raises(TrainingError, match="`batch_size` is"):
        TrainSettings(batch_size=value)
    with pytest.raises(TrainingError, match="`optimizer` is"):
        TrainSettings(optimizer=value)


def test_settings_come_back_from_their_file():
    """Every field, to the last digit."""
    for settings in (
        TrainSettings(learning_rate=1 / 3, steps=7, max_grad_norm=0),
        TrainSettings(optimizer="sgd", momentum=1 / 3, schedule="wsd", decay_ratio=1 / 7),
    ):
        assert settings_from_json(json.loads(json.dumps(asdict(settings))), PATH) == settings


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sharpness": 1}, "a setting `sharpness` that this version does not support"),
        ({"steps": None}, "lacks the setting `steps`"),
        ({"steps": "many"}, "`steps` is 'many'; it must be a whole number"),
    ],
)
def test_settings_in_a_file_are_neither_skipped_nor_guessed(change, message):
    """A file of a later version says so."""
    values = {**asdict(TrainSettings()), **change}
    values = {name: value for name, value in values.items() if value is not None or name not in change}
    with pytest.raises(TrainingError, match=rf"settings\.json.*{message}"):
        settings_from_json(values, PATH)


def test_settings_are_an_object():
    """Neither a list nor a number."""
    with pytest.raises(TrainingError, match=r"settings\.json does not contain settings"):
        settings_from_json([3], PATH)
