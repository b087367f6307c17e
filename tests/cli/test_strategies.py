"""`arco generate`: strategies side by side, and all beams of a search."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from composer.cli import main
from composer.decode import Search, beam_search
from composer.train import open_run
from tests.evaluate.conftest import run_of

__all__ = ["run_of"]  # a fixture


@pytest.mark.slow
def test_strategies_and_beams_are_those_of_the_single_commands(run_of, capsys) -> None:
    """Each line of the table is what the command writes with these options; beams have their scores, best first."""
    run: Path = run_of(name="gpt_mini", n_layers=1)
    words = ["generate", str(run), "--prompt", "7 sheep", "--device", "cpu", "--max-new-tokens", "5"]

    def printed(*more: str) -> str:
        capsys.readouterr()
        assert main([*words, *more]) == 0
        return capsys.readouterr().out

    table = dict(line.split(" │ ") for line in printed("--strategies").splitlines()[2:])
    table = {name.strip(): ast.literal_eval(text) for name, text in table.items()}
    alone = {
        "greedy": ["--temperature", "0"],
        "temperature 1.5": ["--temperature", "1.5"],
        "top-k 5": ["--top-k", "5"],
        "4 beams": ["--num-beams", "4"],
    }
    for name, options in alone.items():
        assert "7 sheep" + table[name] + "\n" == printed(*options), name
    trained = open_run(run)
    (found,) = beam_search(trained.model, [trained.tokenizer.encode("7 sheep")], Search(num_beams=3, max_new_tokens=5))
    lines = [line.split("  ", 2) for line in printed("--num-beams", "3", "--list-beams").splitlines()]
    assert [rank for rank, _, _ in lines] == ["1", "2", "3"]
    for (_, score, text), each in zip(lines, found, strict=True):
        assert float(score) == pytest.approx(each.score, abs=1e-3)
        assert ast.literal_eval(text.strip()) == trained.tokenizer.decode(each.tokens)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--list-beams"], "--list-beams is for beam search"),
        (["--strategies", "--top-k", "3"], "--strategies has settings of its own, and --top-k is another"),
        (["--strategies", "--num-beams", "3"], "--strategies has settings of its own, and --num-beams is another"),
        (["--strategies", "--compile"], "--strategies runs no compiled step"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options, message, capsys):
    """Before anything is read."""
    assert main(["generate", "nowhere", *options]) == 2
    assert message in capsys.readouterr().err
