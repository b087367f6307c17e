"""What a run shows."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from composer.train.progress import Bar, LineDisplay, Moment, clock, display, summary
from composer.train.validation import Validation

MOMENT = Moment(step=40, steps=300, loss=2.0149, rate=0.0021, tokens_per_second=18204.4, seconds_left=41.2)


def test_a_pipe_gets_a_line_for_each_logged_step():
    """Loss, rate, tokens per second and the time left, and no escape codes."""
    out = io.StringIO()
    shown = display(Console(file=out, width=40))
    assert isinstance(shown, LineDisplay)
    with shown:
        shown.step(MOMENT, logged=False)
        shown.step(MOMENT, logged=True)
        shown.validated(40, Validation(1.5, 1.25, 1.0, 900))
        shown.note("saved [step 40]; to continue: arco train --resume a/long/path/that/is/not/broken")
    assert out.getvalue().splitlines() == [
        "step 40/300  loss 2.015  rate 2.1e-03  18 204 tokens/s  0:41 left",
        "validation at step 40: 1.500 nats per token, 1.250 per character",
        "saved [step 40]; to continue: arco train --resume a/long/path/that/is/not/broken",
    ]


def test_losses_of_a_recipe_are_shown_by_name():
    """Beside the sum, where there are several."""
    parts = replace(MOMENT, by_name={"causal_lm": 2.0, "balance": 0.0149})
    assert summary(parts).startswith("loss 2.015 (causal_lm 2.000, balance 0.015)  rate")


def test_a_terminal_gets_a_bar():
    """With the same numbers in it."""
    out = io.StringIO()
    shown = display(Console(file=out, force_terminal=True, width=100))
    assert isinstance(shown, Bar)
    with shown:
        shown.step(MOMENT, logged=False)
    assert "40/300" in out.getvalue()
    assert "18 204 tokens/s" in out.getvalue()


def test_the_clock_reads_as_people_write_it():
    """Minutes and seconds, hours where there are any."""
    assert [clock(seconds) for seconds in (0.4, 59.6, 3599, 10810)] == ["0:00", "1:00", "59:59", "3:00:10"]
