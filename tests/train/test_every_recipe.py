"""A sample of `python -m tests.train.every_recipe`, which trains all recipes: one by its command, one by a loop."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.train import every_recipe


@pytest.mark.slow
@pytest.mark.parametrize("name", ["transformer", "clip"])
def test_a_recipe_trains(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its loss falls, and a run is there if a command trained it."""
    monkeypatch.chdir(tmp_path)
    every_recipe.write_data(tmp_path)
    assert "→" in every_recipe.learn(name)
    assert (tmp_path / "runs").exists() == (name == "transformer")


@pytest.mark.slow
def test_a_loss_that_does_not_fall_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is learned here."""
    monkeypatch.setattr(every_recipe, "RATE", 0.0)
    with pytest.raises(AssertionError, match=r"the loss went from (.*) to \1"):
        every_recipe.learn("clip")
