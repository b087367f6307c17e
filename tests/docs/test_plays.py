"""docs/models-on-plays.md: what can be worked out of its table without training is so."""

from __future__ import annotations

import re

import composer
from composer.cli.demo_models import MODELS, NGRAMS, SETTINGS, page
from composer.evaluate.ngrams import witten_bell
from composer.package_data import plays
from composer.train import TrainSettings, characters_of, read_text, split
from tests.docs.pages import ROOT

TEXT = (ROOT / "docs" / "models-on-plays.md").read_text(encoding="utf-8")
TABLE = re.findall(r"^\|.*\|$", TEXT, re.MULTILINE)
ROWS = {name: figures for name, *figures in ([cell.strip() for cell in line.split("|")[1:-1]] for line in TABLE[2:])}


def test_the_page_is_what_the_command_writes() -> None:
    """Around the table: the settings, the threads and the command."""
    threads = re.search(r"with (\d+) threads?", TEXT)
    assert threads is not None
    assert page("\n".join(TABLE), TrainSettings(**SETTINGS), int(threads[1])) == TEXT


def test_the_table_has_a_row_for_each_model_and_what_counting_reaches() -> None:
    """Counting is quick enough to be done again; parameters are those of the recipes at these sizes."""
    text = read_text(plays())
    assert list(ROWS) == [*NGRAMS, *MODELS]
    assert [ROWS[name][1] for name in NGRAMS] == [f"{nats:.3f}" for nats in witten_bell(*split(text))]
    for name, changes in MODELS.items():
        recipe = composer.load(name, overrides={**changes, "vocab": characters_of(text).size})
        assert ROWS[name][0] == f"{recipe.summary().costs.parameters:,}"
