"""A sample of `python -m tests.train.every_recipe`, which trains all recipes: by a command, by a loop, and one that must not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.train import every_recipe


@pytest.mark.slow
@pytest.mark.parametrize("name", ["transformer", "clip"])
def test_a_recipe_trains(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its loss falls; where nothing is learned, it says so."""
    monkeypatch.chdir(tmp_path)
    every_recipe.write_data(tmp_path)
    assert "→" in every_recipe.learn(name)
    monkeypatch.setattr(every_recipe, "RATE", 0.0)
    with pytest.raises(AssertionError):
        every_recipe.learn(name)
