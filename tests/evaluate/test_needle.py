"""The needle in a haystack: where it lies, how it is counted, and its heat map."""

from __future__ import annotations

from functools import partial
from itertools import islice
from xml.etree import ElementTree

import pytest

from composer.cli import main
from composer.evaluate import NeedleEvaluation, NeedleScore, evaluate_needle, synthetic_text
from composer.evaluate.answers import count_right
from composer.evaluate.needle import examples_of, hidden_needle
from composer.train import TrainingError, open_run

SCORES = NeedleEvaluation(
    "runs/<b>",
    (NeedleScore(8, 0.0, 20, 20), NeedleScore(16, 0.0, 20, 5), NeedleScore(8, 1.0, 10, 0), NeedleScore(16, 1.0, 10, 7)),
)


@pytest.mark.parametrize(("depth", "before"), [(0.0, 0), (0.5, 3), (1.0, 6)])
def test_a_needle_lies_at_its_depth(depth, before):
    """Among six words of hay; no question of the evaluation is in a text."""
    drawn = examples_of("needle", 6, held_out=True, seed=1, draw=partial(hidden_needle, depth=depth))
    some = list(islice(drawn, 20))
    for each in some:
        first, _, rest = each.question.partition(each.answer)
        assert (first, rest) == ("hay " * before, " " + "hay " * (6 - before) + "?")
    assert not {each.question for each in some} & {line.partition("=")[0] for line in synthetic_text("needle", [6], lines=5000)}


def test_the_heat_map_shades_each_cell_by_its_share():
    """A row for each depth and a column for each length; a name of a run is no markup."""
    root = ElementTree.fromstring(SCORES.svg())
    shades = [each.get("fill-opacity") for each in root.iter("{http://www.w3.org/2000/svg}rect") if each.get("class") == "full"]
    assert shades == ["1.000", "0.250", "0.000", "0.700"]
    texts = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[0] == "Needles found by runs/<b>" and {"0%", "100%", "8", "16", "25%", "70%"} <= {*texts}
    assert str(SCORES).splitlines() == ["depth       8     16", "   0%  100.0%  25.0%", " 100%    0.0%  70.0%"]
    assert SCORES.to_json()["cells"][1] == {"length": 16, "depth": 0.0, "examples": 20, "right": 5, "accuracy": 0.25}


@pytest.mark.slow
def test_a_run_is_asked_for_needles(run_of, tmp_path, capsys):
    """By the command too, which draws what it counts; a depth outside of the hay is refused."""
    run = run_of(name="gpt_mini", text=synthetic_text("needle", [2, 3], lines=300), n_layers=1)
    found = evaluate_needle(run, [2, 5], [0.0, 0.5], examples=3)
    assert [(each.length, each.depth, each.examples) for each in found.scores] == [
        (2, 0.0, 3), (2, 0.5, 3), (5, 0.0, 3), (5, 0.5, 3),
    ]  # fmt: skip
    figure = tmp_path / "needle.svg"
    words = ["evaluate", str(run), "--task", "needle", "--lengths", "2,5", "--depths", "0,50", "--examples", "3"]
    assert main([*words, "--figure", str(figure), "--device", "cpu"]) == 0
    assert capsys.readouterr().out == f"{found}\nwrote {figure}\n" and figure.read_text(encoding="utf-8") == found.svg()
    for depth in (-0.1, 1.5):
        with pytest.raises(TrainingError, match="must be from 0 to 1"):
            evaluate_needle(run, [2], [depth])
    assert main(["evaluate", str(run), "--depths", "0,50"]) == 2 and "--depths is for needles" in capsys.readouterr().err


@pytest.mark.slow
def test_a_needle_counts_as_found_if_the_answer_is_exact(run_of, monkeypatch):
    """By a model that always says the same number and a line break."""
    trained = open_run(run_of(name="gpt_mini", text=synthetic_text("needle", [2], lines=300), n_layers=1))
    asked = list(islice(examples_of("needle", 2, held_out=True, seed=1), 4))
    said = trained.tokenizer.encode(f"{asked[1].answer}\n")
    monkeypatch.setattr("composer.evaluate.answers.generate", lambda model, prompts, *args, **options: [said] * len(prompts))
    assert count_right(trained, asked, task="needle", what="needles") == 1
