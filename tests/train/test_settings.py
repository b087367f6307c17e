"""Settings: ranges and files."""

from __future__ import annotations

import pytest

from composer.train import TrainingError, TrainSettings
from composer.train.settings import load_settings, save_settings


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


def test_settings_come_back_from_their_file(tmp_path):
    """Every field, to the last digit."""
    settings = TrainSettings(learning_rate=1 / 3, steps=7, max_grad_norm=0)
    save_settings(settings, tmp_path / "settings.json")
    assert load_settings(tmp_path / "settings.json") == settings


def test_an_unknown_setting_in_a_file_is_not_skipped(tmp_path):
    """A file of a later version says so."""
    (tmp_path / "settings.json").write_text('{"steps": 3, "sharpness": 1}', encoding="utf-8")
    with pytest.raises(TrainingError, match="sharpness"):
        load_settings(tmp_path / "settings.json")
